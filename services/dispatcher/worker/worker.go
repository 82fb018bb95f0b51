// Package worker takes runs from the queue and hands them to the executor, a
// bounded number at a time.
package worker

import (
	"context"
	"errors"
	"log/slog"
	"sync"
	"time"

	"waybill.dev/waybill/internal/lifecycle"
	"waybill.dev/waybill/internal/runlog"
)

// Executor carries out a handed-out run and ends its delivery.
type Executor interface {
	Execute(ctx context.Context, d runlog.Delivery)
}

// Pool executes up to a number of runs at a time.
type Pool struct {
	queue runlog.Queue
	exec  Executor
	slots chan struct{}
	log   *slog.Logger
}

// New makes a pool of size slots.
func New(queue runlog.Queue, exec Executor, size int, log *slog.Logger) *Pool {
	return &Pool{queue: queue, exec: exec, slots: make(chan struct{}, size), log: log}
}

// queueRetry is the pause after the queue could not be read.
const queueRetry = 200 * time.Millisecond

// Run executes runs until ctx ends, then waits for those in execution, which see
// their context ended and hand their runs back.
func (p *Pool) Run(ctx context.Context) error {
	var wg sync.WaitGroup
	defer wg.Wait()
	for {
		// A slot first: a run that is handed out and waits for one would lapse.
		select {
		case p.slots <- struct{}{}:
		case <-ctx.Done():
			return ctx.Err()
		}
		d, err := p.queue.Next(ctx)
		if err != nil {
			<-p.slots
			if ctx.Err() != nil || errors.Is(err, context.Canceled) {
				return context.Cause(ctx)
			}
			p.log.Warn("dispatch queue not readable; trying again", "error", err)
			if !lifecycle.Wait(ctx, queueRetry) {
				return ctx.Err()
			}
			continue
		}
		wg.Go(func() {
			defer func() { <-p.slots }()
			defer runlog.Done(d)
			p.exec.Execute(ctx, d)
		})
	}
}

// Busy is the number of runs in execution.
func (p *Pool) Busy() int { return len(p.slots) }
