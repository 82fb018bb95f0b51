package writebehind

import (
	"context"
	"fmt"
	"sync"
	"time"

	"waybill.dev/waybill/internal/lru"
	"waybill.dev/waybill/internal/retry"
	"waybill.dev/waybill/services/eventlog/store"
	"waybill.dev/waybill/services/eventlog/tally"
)

// Config bounds the store. Start from DefaultConfig.
type Config struct {
	// Linger is how long a batch waits for others to be committed with it.
	Linger time.Duration
	// PendingBytes limits the uncommitted bytes; Apply blocks above it.
	PendingBytes int
	// RecentBytes limits the committed bytes that stay in memory.
	RecentBytes int
}

// DefaultConfig suits a process with 512 MB of memory. A cached frame pins its whole message,
// which is larger than the bytes counted here, and the garbage collector lets the heap grow to a
// multiple of the live data. The cache therefore covers only the last second or two of a loaded
// host, which is what most readers request. Older frames come from the file.
func DefaultConfig() Config {
	return Config{Linger: 20 * time.Millisecond, PendingBytes: 32 << 20, RecentBytes: 4 << 20}
}

// backoff is for commits while the store below fails.
var backoff = retry.Policy{Base: 50 * time.Millisecond, Max: 5 * time.Second}

// Store is a store.Store in front of another one. Write commits what Apply accepted. While
// Write is not running, Apply commits before it returns. It is safe for concurrent use, by one
// writer.
type Store struct {
	below    store.Store
	cfg      Config
	wake     chan struct{} // wakes Write when there is something to commit
	flushNow chan struct{} // makes Write skip the linger time

	committing sync.Mutex // held while the store below commits or is rebuilt

	mu       sync.Mutex // guards the fields below
	running  bool
	pending  pendingBatch // applied, not yet passed to the store below
	inFlight *store.Batch // passed to the store below, not yet committed
	// Batch counters: applied, included in the current flush, committed.
	applied, flushing, committed uint64

	runs    map[store.Key]*run
	recent  *lru.Cache[store.Key, *run] // committed; a run is either here or in runs
	tail    *store.Tail                 // of the last applied batch; nil means read it from the store below
	err     error                       // last commit error; nil after a successful commit
	changed chan struct{}               // closed when a commit ends
}

var _ store.Store = (*Store)(nil)

// pendingBatch collects what the next flush commits.
type pendingBatch struct {
	keys          []store.Key // runs whose rows change, in the order of their first change
	frames        []store.Frame
	marks         []store.Mark
	substitutions []store.Substitution
	tallies       []tally.Delta
	texts         []store.Text
	sealed        []store.Key
	erased        []store.Erasure
	tail          store.Tail
	bytes         int
	dirty         bool // not empty; true even if only the position changed
}

// New puts a store in front of another one. Close closes both.
func New(below store.Store, cfg Config) *Store {
	return &Store{
		below: below, cfg: cfg, wake: make(chan struct{}, 1), flushNow: make(chan struct{}, 1),
		runs: map[store.Key]*run{}, recent: lru.New[store.Key, *run](cfg.RecentBytes), changed: make(chan struct{}),
	}
}

// Write commits until ctx ends, then commits the rest.
func (s *Store) Write(ctx context.Context) error {
	s.setRunning(true)
	for waits := backoff.Start(); s.waitForWork(ctx); {
		if err := s.commit(ctx); err == nil {
			waits.Reset()
		} else if !waits.Wait(ctx) {
			break
		}
	}
	s.setRunning(false)
	if err := s.commitAll(ctx); err != nil {
		return fmt.Errorf("commit the last of the read model: %w", err)
	}
	return nil
}

// waitForWork waits until there is something to commit, then lingers for more. It returns
// false when ctx has ended.
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

// commitAll commits every batch applied before the call.
func (s *Store) commitAll(ctx context.Context) error {
	for s.hasUncommitted() {
		if err := s.commit(ctx); err != nil {
			return err
		}
	}
	return nil
}

// commit passes the pending batch to the store below. After an error the batch stays in
// flight unchanged, and the next call passes it again.
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

// beginFlush returns the batch in flight. If there is none, it starts one from what is
// pending. The rows are copied at this moment: a later row would refer to frames outside the batch.
func (s *Store) beginFlush() *store.Batch {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.inFlight != nil || !s.pending.dirty {
		return s.inFlight
	}
	s.inFlight = &store.Batch{
		Frames:        s.pending.frames,
		Marks:         s.pending.marks,
		Substitutions: s.pending.substitutions,
		Tallies:       s.pending.tallies,
		Texts:         s.pending.texts,
		Sealed:        s.pending.sealed,
		Erased:        s.pending.erased,
		Tail:          s.pending.tail,
	}
	for _, key := range s.pending.keys {
		r := s.runs[key]
		s.inFlight.Runs = append(s.inFlight.Runs, r.row)
		r.row.New, r.pending = false, false
	}
	s.pending, s.flushing = pendingBatch{}, s.applied
	return s.inFlight
}

// endFlush records the result of the batch in flight.
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

// evict moves a run that is committed up to row to the recent cache, unless newer changes
// are pending. Of a large run it keeps only the uncommitted frames.
func (s *Store) evict(row store.Run) {
	r, ok := s.runs[row.Key]
	if !ok { // erased
		return
	}
	if r.bytes > s.cfg.RecentBytes/largeShare {
		r.dropFrames(row.Head)
	}
	if !r.pending {
		delete(s.runs, row.Key)
		s.recent.Put(row.Key, r, r.bytes)
	}
}

// largeShare: a run larger than 1/largeShare of RecentBytes is large. Its committed frames
// are dropped, so that it does not evict all other runs.
const largeShare = 8

// notifyWaiters wakes all goroutines that wait for a commit.
func (s *Store) notifyWaiters() {
	close(s.changed)
	s.changed = make(chan struct{})
}

// hasUncommitted reports whether the store below lacks anything that was applied.
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
	default: // a signal is already pending
	}
}
