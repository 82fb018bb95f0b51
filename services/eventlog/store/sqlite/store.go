package sqlite

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"waybill.dev/waybill/services/eventlog/store"
)

// Config locates the file.
type Config struct {
	// Path of the file; its folder is created if absent.
	Path string
	// Readers is the number of reading connections; 0 means 4.
	Readers int
}

const defaultReaders = 4

// keptAside is the number of damaged files that are kept.
const keptAside = 3

// Store is a store.Store in a file. It is safe for concurrent use.
type Store struct {
	cfg Config
	log *slog.Logger
	now func() time.Time

	// unscrubbed: the log of the database may hold erased runs.
	unscrubbed atomic.Bool

	writing sync.Mutex // held during a transaction of the writing connection

	mu   sync.RWMutex // held for writing while the file is replaced
	h    *handle      // nil means closed, or lost
	lost error        // why a Rebuild failed
}

var _ store.Store = (*Store)(nil)

// errClosed: the store has no open file.
var errClosed = errors.New("store is closed")

// Open opens or creates the file. A damaged file is moved aside, as by Rebuild. now provides the
// time in the names of moved files.
func Open(ctx context.Context, cfg Config, log *slog.Logger, now func() time.Time) (*Store, error) {
	if cfg.Path == "" {
		return nil, errors.New("sqlite store: path is empty (try eventlog.db)")
	}
	if cfg.Readers <= 0 {
		cfg.Readers = defaultReaders
	}
	if err := os.MkdirAll(filepath.Dir(cfg.Path), 0o750); err != nil {
		return nil, fmt.Errorf("sqlite store: %w", err)
	}
	s := &Store{cfg: cfg, log: log, now: now}
	h, err := open(ctx, cfg)
	switch {
	case errors.Is(err, errNewer):
		log.Warn("read model is newer than this program, it will be rebuilt from the run log", "path", cfg.Path, "error", err)
		h, err = s.replace(ctx)
	case errors.Is(err, store.ErrDamaged):
		log.Error("read model is damaged, it will be rebuilt from the run log", "path", cfg.Path, "error", err)
		h, err = s.replace(ctx)
	}
	if err != nil {
		return nil, fmt.Errorf("sqlite store %s: %w", cfg.Path, err)
	}
	s.h = h
	return s, nil
}

// Rebuild moves the file aside and creates an empty one; see store.Writer.
func (s *Store) Rebuild(ctx context.Context) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.h != nil {
		// A damaged file may fail to close cleanly; it is moved aside either way.
		if err := s.h.close(); err != nil {
			s.log.Warn("close damaged read model", "path", s.cfg.Path, "error", err)
		}
		s.h = nil
	}
	s.h, s.lost = s.replace(ctx)
	if s.lost != nil {
		return fmt.Errorf("rebuild %s: %w", s.cfg.Path, s.lost)
	}
	return nil
}

// replace moves the closed file aside and opens an empty one.
func (s *Store) replace(ctx context.Context) (*handle, error) {
	aside := fmt.Sprintf("%s.damaged-%d", s.cfg.Path, s.now().Unix())
	// The file last: a new one must never be opened with the old WAL.
	for _, suffix := range []string{"-shm", "-wal", ""} {
		if err := os.Rename(s.cfg.Path+suffix, aside+suffix); err != nil && !errors.Is(err, os.ErrNotExist) {
			return nil, fmt.Errorf("move damaged file aside: %w", err)
		}
	}
	s.log.Warn("read model moved aside", "path", aside)
	s.dropOldest()
	return open(ctx, s.cfg)
}

// dropOldest removes the oldest damaged files, so that they do not fill the disk.
func (s *Store) dropOldest() {
	files, err := filepath.Glob(s.cfg.Path + ".damaged-*")
	if err != nil {
		return
	}
	files = slices.DeleteFunc(files, func(f string) bool {
		return strings.HasSuffix(f, "-wal") || strings.HasSuffix(f, "-shm")
	})
	slices.Sort(files)
	for _, f := range files[:max(0, len(files)-keptAside)] {
		for _, suffix := range []string{"", "-wal", "-shm"} {
			if err := os.Remove(f + suffix); err != nil && !errors.Is(err, os.ErrNotExist) {
				s.log.Warn("remove old damaged read model", "path", f+suffix, "error", err)
			}
		}
	}
}

// Close closes the file. It is safe to call twice.
func (s *Store) Close() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.lost = nil
	if s.h == nil {
		return nil
	}
	err := s.h.close()
	s.h = nil
	return err
}

// with calls f with the open file.
func (s *Store) with(f func(h *handle) error) error {
	s.mu.RLock()
	defer s.mu.RUnlock()
	switch {
	case s.h != nil:
		return classify(f(s.h))
	case s.lost != nil: // another Rebuild may succeed
		return fmt.Errorf("%w: no file: %w", store.ErrDamaged, s.lost)
	default:
		return errClosed
	}
}
