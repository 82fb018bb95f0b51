package queue

import (
	"context"
	"errors"
	"log/slog"
	"sync"
	"time"

	"waybill.dev/waybill/internal/kv"
	"waybill.dev/waybill/internal/lifecycle"
	"waybill.dev/waybill/internal/runlog"
	"waybill.dev/waybill/protocol/subject"
	"waybill.dev/waybill/services/dispatcher/queue/schedule"
)

// storeTimeout limits one write of a ticket or a permit.
const storeTimeout = 5 * time.Second

// maxWrites limits the concurrent writes of tickets, maxReads the reads of schedules, each of a
// frame of at most 1 MiB.
const (
	maxWrites = 64
	maxReads  = 128
)

// Deps are the scheduler's collaborators.
type Deps struct {
	Queue runlog.Queue
	Log   runlog.Reader
	// Tickets has the waiting runs and the permits. Rates has the starts of rate limits; its
	// records may be dropped after the longest period.
	Tickets, Rates kv.Store
	// Leases is the liveness of dispatcher processes. The lease of this one is valid before Serve
	// is called.
	Leases Leases
	// Tenant returns the current settings of a tenant.
	Tenant func(tenant string) Tenant
	// Scheduled reports whether a run of the workflow may have a schedule in its record.
	Scheduled func(tenant, workflowID string) bool
	Clock     func() time.Time
	Logger    *slog.Logger
}

// Scheduler hands out runs by share, priority and limits. It is a runlog.Queue. Its deliveries have
// a method Done, which must be called when their execution ends. It is safe for concurrent use.
type Scheduler struct {
	cfg     Config
	deps    Deps
	holders *holders
	permits *permits
	metrics metrics
	ready   chan *delivery
	reads   chan struct{} // has an entry for each read that runs
	writes  chan struct{}
	changed chan struct{} // capacity 1: a run may be ready to pick
	freed   chan struct{} // capacity 1: a slot is free

	mu           sync.Mutex // guards what follows
	entries      map[string]entry
	byRun        map[runKey]map[string]struct{} // keys of entries
	book         *schedule.WaitList
	slots        *schedule.Slots
	settings     map[string]Tenant // of tenants with waiting runs, when these were listed
	mine         map[string]bool   // tickets that this process executes or is about to claim
	rounds       map[string]int    // watches so far, by prefix
	lagging      bool              // runs stay in the queue longer than MaxLag
	stopFetching func()            // stops fetching runs
	// parked and claimed count the observed creations and claims of tickets.
	parked, claimed, handed uint64
	byTenant                map[string]int
	byReason                map[Reason]int
	heldTickets             int
}

// New returns a scheduler; Serve runs it.
func New(cfg Config, d Deps) *Scheduler {
	cfg = cfg.withDefaults()
	s := &Scheduler{
		cfg:      cfg,
		deps:     d,
		ready:    make(chan *delivery, cfg.Slots()),
		reads:    make(chan struct{}, maxReads),
		writes:   make(chan struct{}, maxWrites),
		metrics:  newMetrics(),
		changed:  make(chan struct{}, 1),
		freed:    make(chan struct{}, 1),
		entries:  map[string]entry{},
		byRun:    map[runKey]map[string]struct{}{},
		book:     schedule.NewWaitList(),
		settings: map[string]Tenant{},
		mine:     map[string]bool{},
		rounds:   map[string]int{},
		byTenant: map[string]int{},
		byReason: map[Reason]int{},
	}
	s.slots = schedule.NewSlots(cfg.Size, func(tenant string) int { return max(1, d.Tenant(tenant).Weight) })
	s.holders = newHolders(d.Leases)
	s.permits = newPermits(d.Tickets, s.holders, s.permitFreed)
	return s
}

// Drain stops fetching runs, and releases those that no executor has. Runs in execution continue,
// and end their deliveries as usual.
func (s *Scheduler) Drain() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.stopFetching != nil {
		s.stopFetching()
	}
}

// Want has no effect: the scheduler fetches a run for each of its own slots.
func (s *Scheduler) Want(int) {}

// Close stops fetching runs and closes the queue; see runlog.Queue.
func (s *Scheduler) Close() {
	s.Drain()
	s.deps.Queue.Close()
}

// Next returns the next run to execute; see runlog.Queue.
func (s *Scheduler) Next(ctx context.Context) (runlog.Delivery, error) {
	select {
	case d := <-s.ready:
		return d, nil
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// Depth adds the tickets to the depth of the queue; see runlog.Queue.
func (s *Scheduler) Depth(ctx context.Context) (runlog.Depth, error) {
	d, err := s.deps.Queue.Depth(ctx)
	if err != nil {
		return d, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	d.Parked, d.Limited = s.byReason[Capacity], s.byReason[Concurrency]+s.byReason[Rate]
	d.Waiting += d.Parked
	d.InDelivery += s.heldTickets
	// A run with a ticket counts as handed out when the ticket is claimed.
	s.handed = max(s.handed, d.HandedOut+s.claimed-min(s.parked, d.HandedOut+s.claimed))
	d.HandedOut = s.handed
	return d, nil
}

// Parked is the number of a tenant's runs that wait for a slot.
func (s *Scheduler) Parked(tenant string) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.byTenant[tenant]
}

// HasTicket reports whether a run has a ticket: it waits, or is executed from it.
func (s *Scheduler) HasTicket(r subject.Run) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.byRun[runKey{r.Tenant, r.RunID}]) > 0
}

// signalPick makes assignSlots check the tickets.
func (s *Scheduler) signalPick() {
	select {
	case s.changed <- struct{}{}:
	default:
	}
}

// freeSlot returns a tenant's slot.
func (s *Scheduler) freeSlot(tenant string) {
	s.mu.Lock()
	s.slots.Release(tenant)
	s.mu.Unlock()
	select {
	case s.freed <- struct{}{}:
	default:
	}
	s.signalPick()
}

// permitFreed unblocks the lanes of a limit after a permit became free.
func (s *Scheduler) permitFreed(id string) {
	s.mu.Lock()
	s.book.Unblock(id)
	s.mu.Unlock()
	s.signalPick()
}

// drainWrites waits for running reads, and then for the writes that they began.
func (s *Scheduler) drainWrites() {
	for _, running := range []chan struct{}{s.reads, s.writes} {
		for range cap(running) {
			running <- struct{}{}
		}
		for range cap(running) {
			<-running
		}
	}
}

// runWrite runs f in the background, up to maxWrites at a time.
func (s *Scheduler) runWrite(f func(context.Context)) { s.runIn(s.writes, f) }

// runIn runs f in the background once running has room.
func (s *Scheduler) runIn(running chan struct{}, f func(context.Context)) {
	running <- struct{}{}
	go func() {
		defer func() { <-running }()
		ctx, cancel := context.WithTimeout(context.Background(), storeTimeout)
		defer cancel()
		_ = lifecycle.Contain(s.deps.Logger, "waiting", func() error { f(ctx); return nil }) // after a panic the run's delivery lapses
	}()
}

var errLostTicket = errors.New("another dispatcher has the ticket")
