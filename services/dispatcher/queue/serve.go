package queue

import (
	"context"
	"sync"

	"waybill.dev/waybill/internal/kv"
	"waybill.dev/waybill/internal/lifecycle"
)

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
		taking.Go(func() { k.loop(in, "pick", k.pick) })
		taking.Go(func() { k.loop(in, "fetch", k.fetch) })
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
	return err
}

// loop runs a loop of the desk until ctx ends, again after a panic.
func (k *Desk) loop(ctx context.Context, name string, run func(context.Context)) {
	_ = lifecycle.Restart(ctx, k.deps.Logger, "waiting "+name, func(ctx context.Context) error { // its error is that of ctx
		run(ctx)
		return ctx.Err()
	})
}

// begin starts what the desk knows things by, and waits until it knows what there is.
func (k *Desk) begin(ctx, behind context.Context, wg *sync.WaitGroup) error {
	seen := make(chan struct{}, 3)
	wg.Go(func() { k.follow(behind, permitPrefix, k.permits.take, k.permits.begin, k.permits.sweep, seen) })
	for _, prefix := range []string{readyPrefix, limitedPrefix} {
		wg.Go(func() {
			k.follow(behind, prefix, k.see, func() { k.nextRound(prefix) }, func() { k.sweep(prefix) }, seen)
		})
	}
	wg.Go(func() { k.loop(behind, "tend", k.tend) })
	for range cap(seen) {
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
		begin()
		round, cancel := context.WithTimeout(ctx, k.cfg.Resync)
		ready, done := make(chan struct{}), make(chan struct{})
		go func() {
			defer close(done)
			select {
			case <-ready:
			case <-round.Done():
				return
			}
			sweep()
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

// tend frees what dead processes hold, and what this one holds without use.
func (k *Desk) tend(ctx context.Context) {
	for lifecycle.Wait(ctx, k.cfg.Tick) {
		bounded, cancel := context.WithTimeout(ctx, storePatience)
		for _, process := range k.holders.check(bounded) {
			k.relist(process)
		}
		k.permits.reap(bounded)
		k.permits.settle(bounded)
		cancel()
	}
}

// releaseAll releases the runs that were picked and not taken.
func (k *Desk) releaseAll() {
	k.drainWrites()
	for {
		select {
		case d := <-k.ready:
			if err := d.Return(); err != nil {
				k.deps.Logger.Debug("run not released", "run_id", d.frame.Run.RunID, "error", err)
			}
			d.Done()
		default:
			return
		}
	}
}
