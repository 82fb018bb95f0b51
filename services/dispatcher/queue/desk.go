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
	"waybill.dev/waybill/services/dispatcher/schedule"
)

// storePatience bounds one write of a ticket or a permit.
const storePatience = 5 * time.Second

// maxWrites bounds the tickets that are written or claimed at a time.
const maxWrites = 64

// Deps are the desk's collaborators.
type Deps struct {
	Queue runlog.Queue
	Log   runlog.Reader
	// Tickets has the waiting runs and the permits, Rates the starts of rate limits. Records of
	// Rates may be dropped after the longest period.
	Tickets, Rates kv.Store
	// Leases says which processes are alive. The lease of this one is valid before Serve is called.
	Leases Leases
	// Tenant is what holds for a tenant now.
	Tenant func(tenant string) Tenant
	// Scheduled reports whether a run of the workflow may have settings in its record.
	Scheduled func(tenant, workflowID string) bool
	Clock     func() time.Time
	Logger    *slog.Logger
}

// Desk hands out runs by share, priority and limits. It is a runlog.Queue; its deliveries have a
// method Done, which must be called when their execution is over. It is safe for concurrent use.
type Desk struct {
	cfg     Config
	deps    Deps
	holders *holders
	permits *permits
	metrics metrics
	ready   chan *delivery
	writes  chan struct{}
	changed chan struct{} // capacity 1: there may be something to pick
	freed   chan struct{} // capacity 1: a slot is free

	mu      sync.Mutex // guards what follows
	entries map[string]entry
	byRun   map[runKey]map[string]struct{} // keys of entries
	book    *schedule.Book
	slots   *schedule.Slots
	mine    map[string]bool // tickets that this process executes or is about to claim
	rounds  map[string]int  // watches so far, by prefix
	lagging bool            // runs stay in the queue for too long
	halt    func()          // ends the taking of runs
	// parked and claimed count the tickets that were seen to be made and to be claimed.
	parked, claimed, handed uint64
	byTenant                map[string]int
	byReason                map[Reason]int
	heldTickets             int
}

// New makes a desk; Serve runs it.
func New(cfg Config, d Deps) *Desk {
	cfg = cfg.withDefaults()
	k := &Desk{
		cfg: cfg, deps: d, ready: make(chan *delivery, cfg.Slots()), writes: make(chan struct{}, maxWrites), metrics: newMetrics(),
		changed: make(chan struct{}, 1), freed: make(chan struct{}, 1),
		entries: map[string]entry{}, byRun: map[runKey]map[string]struct{}{}, book: schedule.NewBook(), mine: map[string]bool{}, rounds: map[string]int{}, byTenant: map[string]int{}, byReason: map[Reason]int{},
	}
	k.slots = schedule.NewSlots(cfg.Size, func(tenant string) int { return max(1, d.Tenant(tenant).Weight) })
	k.holders = newHolders(d.Leases)
	k.permits = newPermits(d.Tickets, k.holders, k.returned)
	return k
}

// Drain has the desk take no further runs; those that no executor has are released. The runs in
// execution go on, and end their deliveries as ever.
func (k *Desk) Drain() {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.halt != nil {
		k.halt()
	}
}

// Want is of no effect: the desk fetches a run for each of its own slots.
func (k *Desk) Want(int) {}

// Close takes no further runs, and gives back those that no executor has; see runlog.Queue.
func (k *Desk) Close() {
	k.Drain()
	k.deps.Queue.Close()
}

// Next waits for the next run to execute; see runlog.Queue.
func (k *Desk) Next(ctx context.Context) (runlog.Delivery, error) {
	select {
	case d := <-k.ready:
		return d, nil
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// Depth adds the tickets to what is in the queue; see runlog.Queue.
func (k *Desk) Depth(ctx context.Context) (runlog.Depth, error) {
	d, err := k.deps.Queue.Depth(ctx)
	if err != nil {
		return d, err
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	d.Parked, d.Limited = k.byReason[Capacity], k.byReason[Concurrency]+k.byReason[Rate]
	d.Waiting += d.Parked
	d.Held += k.heldTickets
	// A run that became a ticket counts as handed out when the ticket is claimed.
	k.handed = max(k.handed, d.HandedOut+k.claimed-min(k.parked, d.HandedOut+k.claimed))
	d.HandedOut = k.handed
	return d, nil
}

// Parked is how many runs of a tenant wait for a slot.
func (k *Desk) Parked(tenant string) int {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.byTenant[tenant]
}

// signal has the picker look.
func (k *Desk) signal() {
	select {
	case k.changed <- struct{}{}:
	default:
	}
}

// give takes a slot back.
func (k *Desk) give(tenant string) {
	k.mu.Lock()
	k.slots.Give(tenant)
	k.mu.Unlock()
	select {
	case k.freed <- struct{}{}:
	default:
	}
	k.signal()
}

// returned hears that a permit is free.
func (k *Desk) returned(id string) {
	k.mu.Lock()
	k.book.Unblock(id)
	k.mu.Unlock()
	k.signal()
}

// drainWrites waits for the writes on their way.
func (k *Desk) drainWrites() {
	for range maxWrites {
		k.writes <- struct{}{}
	}
	for range maxWrites {
		<-k.writes
	}
}

// write runs f in the background, with room for maxWrites at a time.
func (k *Desk) write(f func(context.Context)) {
	k.writes <- struct{}{}
	go func() {
		defer func() { <-k.writes }()
		ctx, cancel := context.WithTimeout(context.Background(), storePatience)
		defer cancel()
		_ = lifecycle.Contain(k.deps.Logger, "waiting", func() error { f(ctx); return nil }) // the run's delivery lapses
	}()
}

var errLostTicket = errors.New("another dispatcher has the ticket")
