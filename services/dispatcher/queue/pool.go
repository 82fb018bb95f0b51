package queue

import (
	"context"
	"errors"
	"log/slog"
	"sync"
	"time"

	"waybill.dev/waybill/internal/lifecycle"
	"waybill.dev/waybill/internal/runlog"
)

// RunExecutor executes a delivered run and ends its delivery.
type RunExecutor interface {
	Execute(ctx context.Context, d runlog.Delivery)
}

// Pool executes runs in a fixed number of slots.
type Pool struct {
	source runlog.Queue
	exec   RunExecutor
	slots  chan struct{}
	log    *slog.Logger

	// draining is closed when no more runs are fetched, idle when no run is executed any more.
	draining, idle chan struct{}
	once           sync.Once
}

// NewPool returns a pool of size slots.
func NewPool(source runlog.Queue, exec RunExecutor, size int, log *slog.Logger) *Pool {
	return &Pool{
		source:   source,
		exec:     exec,
		slots:    make(chan struct{}, size),
		log:      log,
		draining: make(chan struct{}),
		idle:     make(chan struct{}),
	}
}

// poolRetry is the pause after a failed read of the source.
const poolRetry = 200 * time.Millisecond

// Drain stops fetching; fetched runs that have not begun go back to the source. The returned
// channel is closed once no run is executed any more.
func (p *Pool) Drain() (idle <-chan struct{}) {
	p.once.Do(func() { close(p.draining) })
	return p.idle
}

// Run executes runs until ctx ends or the pool drains, then waits for the running ones. It fetches
// one run per free slot.
func (p *Pool) Run(ctx context.Context) error {
	var wg sync.WaitGroup
	fetching, cancel := context.WithCancel(ctx)
	defer cancel()
	stopped := make(chan struct{})
	defer close(stopped)
	go func() {
		select {
		case <-p.draining:
			cancel()
		case <-stopped:
		}
	}()
	err := p.fetch(fetching, ctx, &wg)
	p.source.Close()
	wg.Wait()
	close(p.idle)
	<-ctx.Done() // after a drain the caller ends the pool
	return err
}

// fetch fetches and starts runs until ctx ends; executing is the context of their execution.
func (p *Pool) fetch(ctx, executing context.Context, wg *sync.WaitGroup) error {
	for {
		select {
		case p.slots <- struct{}{}:
		case <-ctx.Done():
			return ctx.Err()
		}
		p.source.Want(1 + cap(p.slots) - len(p.slots))
		d, err := p.next(ctx)
		if err != nil {
			<-p.slots
			if ctx.Err() != nil || errors.Is(err, context.Canceled) {
				return context.Cause(ctx)
			}
			p.log.Warn("dispatch source not readable; trying again", "error", err)
			if !lifecycle.Wait(ctx, poolRetry) {
				return ctx.Err()
			}
			continue
		}
		wg.Go(func() {
			defer func() { <-p.slots }()
			defer runlog.Done(d)
			// The executor ends runs that panic. After a panic of the executor itself the delivery
			// lapses.
			_ = lifecycle.Contain(p.log, "worker", func() error { p.exec.Execute(executing, d); return nil }, "run_id", d.Frame().Run.RunID)
		})
	}
}

// next reads a run from the source. A panic there becomes an error, so that the slot is freed.
func (p *Pool) next(ctx context.Context) (d runlog.Delivery, err error) {
	err = lifecycle.Contain(p.log, "queue", func() error {
		d, err = p.source.Next(ctx)
		return err
	})
	return d, err
}

// Busy is the number of runs in execution.
func (p *Pool) Busy() int { return len(p.slots) }
