package natsd

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"sync"
	"time"

	"github.com/nats-io/nats-server/v2/server"

	"waybill.dev/waybill/internal/retry"
)

// Intervals of storage checks and of syncs other than records, and the backoff of restarts.
const (
	look       = time.Second
	settleEach = 5 * time.Second
	maxBackoff = 5 * time.Second
)

// ErrStorage means that the server runs but cannot write. After a failed write, for example on a full disk,
// it accepts and answers nothing until it is reopened.
var ErrStorage = errors.New("embedded nats: the storage of the run log has failed")

// errDamaged: a file was found to be damaged while the server runs.
var errDamaged = errors.New("embedded nats: a file is damaged")

// Ready returns why the log cannot be written; nil if it can.
func (s *Server) Ready() error {
	srv := s.current()
	if srv == nil {
		return errDown
	}
	if h := srv.Healthz(&server.HealthzOptions{}); h.StatusCode != http.StatusOK {
		return fmt.Errorf("%w: %s", ErrStorage, h.Error)
	}
	return s.files().broken()
}

// Watch restarts the server after a storage failure, until ctx ends. Once the disk has space again,
// the host continues without a restart. After an error the process must end, see Start.
func (s *Server) Watch(ctx context.Context) error {
	t := time.NewTicker(look)
	defer t.Stop()
	var settling sync.WaitGroup
	defer settling.Wait()
	settling.Go(func() { s.settle(ctx) }) // concurrent, so that a slow disk does not delay the checks
	damaged := make(chan error, 1)
	settling.Go(func() {
		if s.checkRest(ctx) {
			damaged <- errDamaged
		}
	})
	var failing alarm
	for {
		var err error
		select {
		case <-ctx.Done():
			return nil
		case err = <-damaged:
		case <-t.C:
			if err = s.Ready(); !failing.rings(err) {
				continue
			}
		}
		s.cfg.Log.Error("the run log will be opened again", "error", err, "dir", s.cfg.Dir)
		if err := s.reopen(ctx); err != nil {
			return err
		}
	}
}

// settle syncs what the server writes other than records, until ctx ends.
func (s *Server) settle(ctx context.Context) {
	t := time.NewTicker(settleEach)
	defer t.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-t.C:
		}
		if err := s.files().settle(); err != nil && !errors.Is(err, errDown) {
			s.cfg.Log.Warn("what the log's server remembers is not on the disk", "error", err, "dir", s.cfg.Dir)
		}
	}
}

// looks is how many consecutive checks must fail. A process without CPU for a moment fails a check,
// too: the server's own check has a timeout of a millisecond.
const looks = 2

// alarm counts consecutive failed checks.
type alarm int

// rings reports whether to restart the server. It then resets the count.
func (a *alarm) rings(err error) bool {
	if !errors.Is(err, ErrStorage) {
		*a = 0
		return false
	}
	if *a++; *a < looks {
		return false
	}
	*a = 0
	return true
}

// reopen restarts the server until that succeeds or ctx ends. It fails if a server still works on the
// files.
func (s *Server) reopen(ctx context.Context) error {
	for waits := range (retry.Policy{Base: look, Max: maxBackoff}).Tries(ctx) {
		err := s.restart(ctx)
		if err == nil {
			s.cfg.Log.Warn("the run log is open again", "dir", s.cfg.Dir)
			return nil
		}
		s.cfg.Log.Error("the run log does not open", "error", err, "backoff", waits.Next())
		if _, abandoned := errors.AsType[abandonedError](err); abandoned && ctx.Err() == nil {
			return err
		}
	}
	return nil
}

// Restart stops the server if it runs, and starts it on the same files.
func (s *Server) Restart() error { return s.restart(context.Background()) }

func (s *Server) restart(ctx context.Context) error {
	s.Stop()
	srv, err := s.launch(ctx, false)
	if err != nil {
		return fmt.Errorf("restart: %w", err)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.srv, s.disk = srv, newDisk(s.cfg.Dir)
	return nil
}

// checkRest checks the files that were not checked before the start, and reports whether one is
// damaged. Damage is repaired while the server is down.
func (s *Server) checkRest(ctx context.Context) bool {
	s.mu.Lock()
	files := s.unchecked
	s.mu.Unlock()
	for _, f := range files {
		if ctx.Err() != nil {
			return false
		}
		path := f.path(streamsDir(s.cfg.Dir))
		buf, err := os.ReadFile(path) //nolint:gosec // G304: in the data directory
		if err != nil || newBlock(buf, f.stream, f.number, s.cfg.Layout).whole() {
			continue // the server may have deleted it
		}
		s.cfg.Log.Error("a file of the log is damaged", "stream", f.stream, "file", path)
		s.mu.Lock()
		defer s.mu.Unlock()
		s.suspicious = true
		return true
	}
	return false
}
