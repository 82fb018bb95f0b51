package natsd

import (
	"cmp"
	"context"
	"fmt"
	"log/slog"
	"maps"
	"path/filepath"
	"regexp"
	"runtime/metrics"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/nats-io/nats-server/v2/server"
)

// Without other limits, a start may take startTime, and a second more for each startRate bytes of the
// store. It may use startMemory, and twice the size of the store. A sound store needs a small part of
// either. othersMemory is what other parts of the process may allocate during a restart.
const (
	startTime   = 60 * time.Second
	startRate   = 50 << 20
	startMemory = 256 << 20
	startLook   = 20 * time.Millisecond

	othersMemory = 128 << 20
)

// launch puts damaged files right, and starts the server. alone means that nothing else of the process
// allocates memory yet.
func (s *Server) launch(ctx context.Context, alone bool) (*server.Server, error) {
	m := newMender(s.cfg.Dir, s.cfg.Layout, newJournal(s.cfg.Dir, s.cfg.Log))
	s.mu.Lock()
	m.all, s.suspicious, s.unchecked = s.suspicious, false, nil
	s.mu.Unlock()
	if err := m.compare(s.cfg.Dir); err != nil {
		return nil, fmt.Errorf("embedded nats: compare files: %w", err)
	}
	if err := m.mend(ctx); err != nil {
		return nil, fmt.Errorf("embedded nats: check files: %w", err)
	}
	found, err := Damaged(s.cfg.Dir)
	if err != nil {
		return nil, fmt.Errorf("embedded nats: %w", err)
	}
	s.mu.Lock()
	s.unchecked, s.damage = m.rest, found
	s.mu.Unlock()
	most := s.cfg.Recovery
	most.Time = cmp.Or(most.Time, startTime+time.Duration(m.size/startRate)*time.Second)
	most.Memory = cmp.Or(most.Memory, startMemory+2*m.size)
	if !alone {
		most.Memory += othersMemory
	}
	return s.recover(ctx, most)
}

// abandonedError means that a server still recovers its files and cannot be stopped. The process must
// end before they are opened again.
type abandonedError struct{ error }

func (e abandonedError) Unwrap() error { return e.error }

// recover starts the server within limits.
func (s *Server) recover(ctx context.Context, most Limits) (*server.Server, error) {
	type result struct {
		srv *server.Server
		err error
	}
	log := &recoveryLog{log: s.cfg.Log, recovering: map[string]bool{}}
	done, left := make(chan result), make(chan struct{})
	defer close(left)
	began := memory()
	go func() {
		srv, err := s.run(log, most.Time)
		select {
		case done <- result{srv, err}:
		case <-left:
			if srv != nil {
				end(srv)
			}
		}
	}()
	look, late := time.NewTicker(startLook), time.NewTimer(most.Time)
	defer look.Stop()
	defer late.Stop()
	for {
		select {
		case r := <-done:
			return r.srv, r.err
		case <-ctx.Done():
			return nil, abandonedError{fmt.Errorf("embedded nats: stopped while it recovered %s: %w", s.named(log), ctx.Err())}
		case <-late.C:
			return nil, abandonedError{fmt.Errorf("embedded nats: %s not recovered within %s (--log-recovery-timeout): %s", s.named(log), most.Time, remedy)}
		case <-look.C:
			if memory()-began > most.Memory {
				return nil, abandonedError{fmt.Errorf("embedded nats: recovery of %s takes more than %d MB (--log-recovery-bytes): %s", s.named(log), most.Memory>>20, remedy)}
			}
		}
	}
}

const remedy = "raise the limit if the files are only large; if they are damaged in a way the host does not know, restore the data directory from a backup, or move the stream's folder aside: the host then starts without its records"

// named returns the folders of the streams in recovery, or else the store.
func (s *Server) named(log *recoveryLog) string {
	streams := log.streams()
	if len(streams) == 0 {
		return s.cfg.Dir
	}
	for i, name := range streams {
		streams[i] = filepath.Join(streamsDir(s.cfg.Dir), name)
	}
	return strings.Join(streams, ", ")
}

// memory returns the bytes of the process's heap.
func memory() int64 {
	sample := []metrics.Sample{{Name: "/memory/classes/heap/objects:bytes"}}
	metrics.Read(sample)
	return int64(sample[0].Value.Uint64()) //nolint:gosec // G115: smaller than an address space
}

// recoveryLog passes the server's messages on, and notes which streams it recovers.
type recoveryLog struct {
	log *slog.Logger

	mu         sync.Mutex // guards recovering
	recovering map[string]bool
}

var (
	restoring = regexp.MustCompile(`Starting restore for stream '.* > (.*)'`)
	restored  = regexp.MustCompile(`Restored .* messages for stream '.* > (.*)' in`)
)

// Noticef is for progress.
func (l *recoveryLog) Noticef(format string, v ...any) {
	text := fmt.Sprintf(format, v...)
	l.mu.Lock()
	defer l.mu.Unlock()
	if m := restoring.FindStringSubmatch(text); m != nil {
		l.recovering[m[1]] = true
	} else if m := restored.FindStringSubmatch(text); m != nil {
		delete(l.recovering, m[1])
	}
}

func (l *recoveryLog) streams() []string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return slices.Sorted(maps.Keys(l.recovering))
}

// Warnf, Fatalf and Errorf are for what the host does not detect by itself.
func (l *recoveryLog) Warnf(format string, v ...any)  { l.pass(format, v...) }
func (l *recoveryLog) Fatalf(format string, v ...any) { l.pass(format, v...) }
func (l *recoveryLog) Errorf(format string, v ...any) { l.pass(format, v...) }

// Debugf and Tracef are off.
func (*recoveryLog) Debugf(string, ...any) {}
func (*recoveryLog) Tracef(string, ...any) {}

func (l *recoveryLog) pass(format string, v ...any) {
	l.log.Debug("NATS server", "message", strings.TrimSpace(fmt.Sprintf(format, v...)))
}
