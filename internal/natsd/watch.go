package natsd

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"sync"
	"time"

	"github.com/nats-io/nats-server/v2/server"
)

// How often the server is looked at, and what it has written besides records is put on the disk,
// and the backoff between tries to start it.
const (
	look       = time.Second
	settleEach = 5 * time.Second
	maxBackoff = 5 * time.Second
)

// ErrStorage says that the server runs, but cannot write. After a failed write,
// as on a full disk, it takes no more, and answers nothing, until it is opened
// again.
var ErrStorage = errors.New("embedded nats: the storage of the run log has failed")

// Ready says why the log cannot be written; nil when it can.
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

// Watch starts the server anew when its storage has failed, until ctx ends: once
// the disk has room again, the host goes on without being restarted.
func (s *Server) Watch(ctx context.Context) error {
	t := time.NewTicker(look)
	defer t.Stop()
	var settling sync.WaitGroup
	defer settling.Wait()
	settling.Go(func() { s.settle(ctx) }) // a disk that is slow does not keep the server from being looked at
	var failing alarm
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-t.C:
		}
		err := s.Ready()
		if !failing.rings(err) {
			continue
		}
		s.cfg.Log.Error("the run log will be opened again", "error", err, "dir", s.cfg.Dir)
		s.reopen(ctx)
	}
}

// settle has on the disk what the server has written besides records, until ctx ends.
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

// looks is how many looks in a row must find the storage failed. A process that gets no
// CPU for a moment looks so, too: the server gives its own check a millisecond.
const looks = 2

// alarm counts the looks in a row that found the storage failed.
type alarm int

// rings reports whether the server is to be started anew; the count then begins again.
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

// reopen starts the server until that succeeds or ctx ends.
func (s *Server) reopen(ctx context.Context) {
	for backoff := look; ; backoff = min(2*backoff, maxBackoff) {
		err := s.Restart()
		if err == nil {
			s.cfg.Log.Warn("the run log is open again", "dir", s.cfg.Dir)
			return
		}
		s.cfg.Log.Error("the run log does not open", "error", err, "backoff", backoff)
		select {
		case <-ctx.Done():
			return
		case <-time.After(backoff):
		}
	}
}

// Restart ends the server, if it runs, and starts it on the same files.
func (s *Server) Restart() error {
	s.Stop()
	srv, err := s.launch()
	if err != nil {
		return fmt.Errorf("restart: %w", err)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.srv, s.disk = srv, newDisk(s.cfg.Dir)
	return nil
}
