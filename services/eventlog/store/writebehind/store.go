package writebehind

import (
	"context"
	"fmt"
	"sync"
	"time"

	"waybill.dev/waybill/internal/lifecycle"
	"waybill.dev/waybill/internal/lru"
	"waybill.dev/waybill/services/eventlog/store"
)

// Config bounds the store. Start from DefaultConfig.
type Config struct {
	// Linger is how long a batch waits for others to be committed with it.
	Linger time.Duration
	// PendingBytes bounds what is not committed; Apply waits beyond it.
	PendingBytes int
	// RecentBytes bounds what is committed and kept all the same.
	RecentBytes int
}

// DefaultConfig is right for a process with half a gigabyte of memory. A frame that is
// kept pins the message it came in, which is more than what is counted, and the garbage
// collector lets the heap grow to a multiple of what lives: so what is kept is the last
// second or two of a loaded host, which most readers are after, and the file has the rest.
func DefaultConfig() Config {
	return Config{Linger: 20 * time.Millisecond, PendingBytes: 32 << 20, RecentBytes: 4 << 20}
}

// Backoff between tries to commit while the store below fails.
const (
	minBackoff = 50 * time.Millisecond
	maxBackoff = 5 * time.Second
)

// Store is a store.Store in front of another one. Write commits what is applied;
// while nobody runs it, a batch is committed before Apply returns. It is safe
// for concurrent use, by one writer.
type Store struct {
	below    store.Store
	cfg      Config
	wake     chan struct{} // tells Write that there is something to commit
	flushNow chan struct{} // tells Write not to linger

	committing sync.Mutex // found while the store below commits or is rebuilt

	mu       sync.Mutex // guards what follows
	running  bool
	pending  pendingBatch // applied, not handed to the store below
	inFlight *store.Batch // handed to the store below, until it is committed
	// Batches are counted: applied so far, up to the one in flight, committed.
	applied, flushing, committed uint64

	runs    map[store.Key]*run
	recent  *lru.Cache[store.Key, *run] // committed; a run is here or in runs
	tail    *store.Tail                 // of what was applied; nil: ask the store below
	err     error                       // why the store below fails now
	changed chan struct{}               // closed when a commit has ended
}

var _ store.Store = (*Store)(nil)

// pendingBatch is what will be committed together.
type pendingBatch struct {
	keys          []store.Key // of the runs whose rows change, in the order of their first change
	frames        []store.Frame
	marks         []store.Mark
	substitutions []store.Substitution
	tail          store.Tail
	bytes         int
	dirty         bool // there is something, if only a position
}

// New puts a store in front of another one. The caller closes that one by
// closing this one.
func New(below store.Store, cfg Config) *Store {
	return &Store{
		below: below, cfg: cfg, wake: make(chan struct{}, 1), flushNow: make(chan struct{}, 1),
		runs: map[store.Key]*run{}, recent: lru.New[store.Key, *run](cfg.RecentBytes), changed: make(chan struct{}),
	}
}

// Write commits until ctx ends, and then what is left.
func (s *Store) Write(ctx context.Context) error {
	s.setRunning(true)
	backoff := minBackoff
	for s.waitForWork(ctx) {
		if err := s.commit(ctx); err == nil {
			backoff = minBackoff
			continue
		}
		if !lifecycle.Wait(ctx, backoff) {
			break
		}
		backoff = min(2*backoff, maxBackoff)
	}
	s.setRunning(false)
	if err := s.commitAll(ctx); err != nil {
		return fmt.Errorf("commit the last of the read model: %w", err)
	}
	return nil
}

// waitForWork waits until there is something to commit, and then a little for more.
// It is false when ctx has ended.
func (s *Store) waitForWork(ctx context.Context) bool {
	for !s.hasUncommitted() {
		select {
		case <-s.wake:
		case <-ctx.Done():
			return false
		}
	}
	linger := time.NewTimer(s.cfg.Linger)
	defer linger.Stop()
	select {
	case <-linger.C:
		return true
	case <-s.flushNow:
		return true
	case <-ctx.Done():
		return false
	}
}

// commitAll commits what was applied before the call.
func (s *Store) commitAll(ctx context.Context) error {
	for s.hasUncommitted() {
		if err := s.commit(ctx); err != nil {
			return err
		}
	}
	return nil
}

// commit hands what is pending to the store below. What fails stays in flight,
// as it is, and is handed over again by the next call.
func (s *Store) commit(ctx context.Context) error {
	s.committing.Lock()
	defer s.committing.Unlock()
	b := s.beginFlush()
	if b == nil {
		return nil
	}
	err := s.below.Apply(context.WithoutCancel(ctx), *b)
	s.endFlush(err)
	return err
}

// beginFlush gives the batch in flight; if there is none, what is pending becomes
// it. The rows are those of this moment: a later row would speak of frames that
// are not in the batch.
func (s *Store) beginFlush() *store.Batch {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.inFlight != nil || !s.pending.dirty {
		return s.inFlight
	}
	s.inFlight = &store.Batch{Frames: s.pending.frames, Marks: s.pending.marks, Substitutions: s.pending.substitutions, Tail: s.pending.tail}
	for _, key := range s.pending.keys {
		r := s.runs[key]
		s.inFlight.Runs = append(s.inFlight.Runs, r.row)
		r.row.New, r.pending = false, false
	}
	s.pending, s.flushing = pendingBatch{}, s.applied
	return s.inFlight
}

// endFlush settles the batch in flight.
func (s *Store) endFlush(err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.err = err
	if err == nil {
		for _, row := range s.inFlight.Runs {
			s.evict(row)
		}
		s.inFlight, s.committed = nil, s.flushing
	}
	s.notifyWaiters()
}

// evict lets go of a run that is committed up to a row, unless more is pending
// of it. Of a large one it keeps only what is not committed.
func (s *Store) evict(row store.Run) {
	r := s.runs[row.Key]
	if r.bytes > s.cfg.RecentBytes/largeShare {
		r.dropFrames(row.Head)
	}
	if !r.pending {
		delete(s.runs, row.Key)
		s.recent.Put(row.Key, r, r.bytes)
	}
}

// largeShare: a run that takes more than one part in so many of what is kept is
// large, so that it does not crowd out the others.
const largeShare = 8

// notifyWaiters wakes those who wait for a commit.
func (s *Store) notifyWaiters() {
	close(s.changed)
	s.changed = make(chan struct{})
}

// hasUncommitted reports that the store below has not got everything.
func (s *Store) hasUncommitted() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.inFlight != nil || s.pending.dirty
}

func (s *Store) setRunning(yes bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.running = yes
	s.notifyWaiters()
}

func signal(c chan<- struct{}) {
	select {
	case c <- struct{}{}:
	default: // it is told already
	}
}
