package queue_test

import (
	"context"
	"errors"
	"log/slog"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"waybill.dev/waybill/internal/kv"
	"waybill.dev/waybill/internal/runlog"
	"waybill.dev/waybill/services/dispatcher/engine/lease"
	"waybill.dev/waybill/services/dispatcher/queue"
)

// leaseTime is how long the lease of a dispatcher lasts.
const leaseTime = 3 * time.Second

// dispatcher is a scheduler with a lease and a pool, whose executor does what the test says.
type dispatcher struct {
	*queue.Scheduler
	table *lease.Table
	pool  *queue.Pool
	exec  func(context.Context, runlog.Delivery)
	stop  func()
	// noTickets and noLeases have the writes to a store fail.
	noTickets, noLeases atomic.Bool

	mu      sync.Mutex // guards what follows
	running map[runlog.Delivery]context.CancelCauseFunc
}

// dispatcher runs until the test ends or stop is called. exec ends the delivery.
func (r *rig) dispatcher(t *testing.T, cfg queue.Config, exec func(context.Context, runlog.Delivery)) *dispatcher {
	t.Helper()
	return r.process(t, cfg, lease.Config{}, exec)
}

// process is a dispatcher with a host name, or the only dispatcher.
func (r *rig) process(t *testing.T, cfg queue.Config, l lease.Config, exec func(context.Context, runlog.Delivery)) *dispatcher {
	t.Helper()
	log := slog.New(slog.DiscardHandler)
	d := &dispatcher{exec: exec, running: map[runlog.Delivery]context.CancelCauseFunc{}}
	l.Duration = leaseTime
	d.table = lease.New(l, cut{r.leases, &d.noLeases}, time.Now, log)
	d.Scheduler = queue.New(cfg, queue.Deps{
		Queue: r.queue(t), Log: r.log, Tickets: cut{r.tickets, &d.noTickets}, Rates: r.rates, Leases: d.table,
		Tenant:    r.tenant,
		Scheduled: func(string, string) bool { return true }, Clock: time.Now, Logger: log,
	})
	ctx, cancel := context.WithCancel(context.Background())
	require.NoError(t, d.table.Open(ctx))
	d.pool = queue.NewPool(d, d, cfg.Slots(), log)
	served, renewed := make(chan error, 1), make(chan error, 1)
	go func() { served <- d.Serve(ctx, d.pool.Run) }()
	go func() { renewed <- d.table.Run(ctx, d) }()
	d.stop = sync.OnceFunc(func() {
		cancel()
		require.ErrorIs(t, <-served, context.Canceled)
		require.ErrorIs(t, <-renewed, context.Canceled)
	})
	t.Cleanup(d.stop)
	return d
}

// Execute does what the test says, under the lease under which the run was handed out.
func (d *dispatcher) Execute(ctx context.Context, del runlog.Delivery) {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	d.mu.Lock()
	if p := runlog.ProcessOf(del); p != "" && p != d.table.Process() {
		d.mu.Unlock()
		return
	}
	d.running[del] = cancel
	d.mu.Unlock()
	d.exec(ctx, del)
	d.mu.Lock()
	defer d.mu.Unlock()
	delete(d.running, del)
}

var errNotMine = errors.New("the process is dead or has lost its lease")

// Lost stops what is executed; see lease.Handler.
func (d *dispatcher) Lost(string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	for _, cancel := range d.running {
		cancel(errNotMine)
	}
}

// Orphaned has no runs; see lease.Handler.
func (d *dispatcher) Orphaned(context.Context, string) error { return nil }

// stopped ends the delivery of an execution that was stopped, as the executor does.
func stopped(ctx context.Context, d runlog.Delivery) {
	if !errors.Is(context.Cause(ctx), errNotMine) {
		_ = d.Retry()
	}
}

// kill ends the process: nothing that it does from now on reaches a store.
func (d *dispatcher) kill() {
	d.noTickets.Store(true)
	d.noLeases.Store(true)
	d.Lost("")
	d.stop()
}

// cut is a store to which writes may fail.
type cut struct {
	kv.Store
	off *atomic.Bool
}

func (c cut) Update(ctx context.Context, key string, value []byte, revision uint64) (uint64, error) {
	if c.off.Load() {
		return 0, kv.ErrUnavailable
	}
	return c.Store.Update(ctx, key, value, revision)
}

func (c cut) Delete(ctx context.Context, key string, revision uint64) error {
	if c.off.Load() {
		return kv.ErrUnavailable
	}
	return c.Store.Delete(ctx, key, revision)
}
