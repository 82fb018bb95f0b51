package waiting

import (
	"context"
	"crypto/rand"
	"errors"
	"log/slog"
	"sync"
	"time"

	"waybill.dev/waybill/internal/kv"
	"waybill.dev/waybill/internal/lifecycle"
	"waybill.dev/waybill/internal/runlog"
	"waybill.dev/waybill/services/dispatcher/schedule"
)

// Config says how runs wait. The zero durations are replaced by defaults.
type Config struct {
	// Size is the number of regular slots; Slots is how many runs are handed out at most.
	Size int
	// Renew is how often the process says that it is alive, Patience how long it is taken for
	// alive without.
	Renew, Patience time.Duration
	// Tick is how often the desk checks what has no event: the end of a block or a period, a
	// queue that fills up while all slots are taken.
	Tick time.Duration
	// Lag is how long a run may stay in the queue until the queue is emptied into tickets
	// although slots come free.
	Lag time.Duration
	// RetryDelay is how long a run waits that was handed back the first time.
	RetryDelay time.Duration
	// Resync is how often the tickets are read from the start.
	Resync time.Duration
}

func (c Config) withDefaults() Config {
	set := func(d *time.Duration, def time.Duration) {
		if *d == 0 {
			*d = def
		}
	}
	set(&c.Renew, 5*time.Second)
	set(&c.Patience, 30*time.Second)
	set(&c.Tick, 100*time.Millisecond)
	set(&c.Lag, 500*time.Millisecond)
	set(&c.RetryDelay, time.Second)
	set(&c.Resync, 5*time.Minute)
	return c
}

// Slots is how many runs are executed at most: the regular slots and the reserve.
func (c Config) Slots() int { return c.Size + schedule.Reserve(c.Size) }

// storePatience bounds one write of a ticket or a permit.
const storePatience = 5 * time.Second

// maxWrites bounds the tickets that are written or claimed at a time.
const maxWrites = 64

// Deps are the desk's collaborators.
type Deps struct {
	Queue runlog.Queue
	Log   runlog.Reader
	// Tickets has the waiting runs, the permits and the processes; Rates the starts of rate
	// limits. Records of Rates may be dropped after the longest period.
	Tickets, Rates kv.Store
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
	me      string
	holders *holders
	permits *permits
	metrics metrics
	ready   chan *delivery
	writes  chan struct{}
	changed chan struct{} // capacity 1: there may be something to pick
	freed   chan struct{} // capacity 1: a slot is free

	mu      sync.Mutex // guards what follows
	entries map[string]entry
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
		cfg: cfg, deps: d, me: rand.Text(), ready: make(chan *delivery, cfg.Slots()), writes: make(chan struct{}, maxWrites), metrics: newMetrics(),
		changed: make(chan struct{}, 1), freed: make(chan struct{}, 1),
		entries: map[string]entry{}, book: schedule.NewBook(), mine: map[string]bool{}, rounds: map[string]int{}, byTenant: map[string]int{}, byReason: map[Reason]int{},
	}
	k.slots = schedule.NewSlots(cfg.Size, func(tenant string) int { return max(1, d.Tenant(tenant).Weight) })
	k.holders = newHolders(d.Tickets, k.me, cfg.Patience, d.Clock)
	k.permits = newPermits(d.Tickets, k.holders, k.returned)
	return k
}

// Serve runs the desk around work, which takes runs with Next until its ctx ends and then sees its
// runs through. What the desk needs for that goes on until work returns.
func (k *Desk) Serve(ctx context.Context, work func(context.Context) error) error {
	behind, stop := context.WithCancel(context.WithoutCancel(ctx))
	var wg sync.WaitGroup
	defer wg.Wait()
	defer stop()
	if err := k.begin(ctx, behind, &wg); err != nil {
		return err
	}
	in, halt := context.WithCancel(ctx)
	k.mu.Lock()
	k.halt = halt
	k.mu.Unlock()
	var front sync.WaitGroup
	front.Go(func() {
		var taking sync.WaitGroup
		taking.Go(func() { k.pick(in) })
		taking.Go(func() { k.fetch(in) })
		taking.Wait()
		k.releaseAll()
	})
	err := work(ctx)
	halt()
	front.Wait()
	k.releaseAll()
	leaving, cancel := context.WithTimeout(behind, storePatience)
	defer cancel()
	k.permits.settle(leaving)
	k.holders.leave(leaving)
	return err
}

// begin starts what the desk knows things by, and waits until it knows what there is.
func (k *Desk) begin(ctx, behind context.Context, wg *sync.WaitGroup) error {
	for k.holders.renew(ctx) != nil {
		if !lifecycle.Wait(ctx, k.cfg.Tick) {
			return ctx.Err()
		}
	}
	seen := make(chan struct{}, 4)
	wg.Go(func() { k.follow(behind, holderPrefix, k.holders.take, nil, nil, seen) })
	wg.Go(func() { k.follow(behind, permitPrefix, k.permits.take, k.permits.begin, k.permits.sweep, seen) })
	for _, prefix := range []string{readyPrefix, limitedPrefix} {
		wg.Go(func() {
			k.follow(behind, prefix, k.see, func() { k.nextRound(prefix) }, func() { k.sweep(prefix) }, seen)
		})
	}
	wg.Go(func() { k.renew(behind) })
	for range 4 {
		select {
		case <-seen:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	return nil
}

// follow watches the keys under a prefix until ctx ends, from the start now and then: an event
// that was lost does no lasting harm.
func (k *Desk) follow(ctx context.Context, prefix string, take func(kv.Entry), begin, sweep func(), seen chan<- struct{}) {
	first := true
	for ctx.Err() == nil {
		if begin != nil {
			begin()
		}
		round, cancel := context.WithTimeout(ctx, k.cfg.Resync)
		ready, done := make(chan struct{}), make(chan struct{})
		go func() {
			defer close(done)
			select {
			case <-ready:
			case <-round.Done():
				return
			}
			if sweep != nil {
				sweep()
			}
			if first {
				first = false
				seen <- struct{}{}
			}
			k.signal()
		}()
		err := k.deps.Tickets.Watch(round, prefix, ready, take)
		broken := round.Err() == nil
		cancel()
		<-done
		if broken {
			k.deps.Logger.Warn("waiting runs not followed; trying again", "error", err)
			lifecycle.Wait(ctx, k.cfg.Tick)
		}
	}
}

// renew keeps this process alive for the others, and settles what was left over.
func (k *Desk) renew(ctx context.Context) {
	for lifecycle.Wait(ctx, k.cfg.Renew) {
		bounded, cancel := context.WithTimeout(ctx, storePatience)
		if err := k.holders.renew(bounded); err != nil && ctx.Err() == nil {
			k.deps.Logger.Warn("process not renewed; runs that it holds may be executed elsewhere", "error", err)
		}
		k.permits.settle(bounded)
		k.holders.forget(bounded)
		cancel()
		k.refreshHeld()
	}
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

// releaseAll releases the runs that were picked and not taken.
func (k *Desk) releaseAll() {
	k.drainWrites()
	for {
		select {
		case d := <-k.ready:
			if err := d.Release(); err != nil {
				k.deps.Logger.Debug("run not released", "run_id", d.frame.Run.RunID, "error", err)
			}
			d.Done()
		default:
			return
		}
	}
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
		f(ctx)
	}()
}

var errLostTicket = errors.New("another dispatcher has the ticket")
