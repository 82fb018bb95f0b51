package queue

import (
	"context"
	"sync"

	"waybill.dev/waybill/internal/kv"
	"waybill.dev/waybill/internal/lifecycle"
)

// Serve runs the scheduler while work fetches runs with Next. When its ctx ends, work completes its
// runs. The scheduler's watches and writes continue until work returns.
func (s *Scheduler) Serve(ctx context.Context, work func(context.Context) error) error {
	behind, stop := context.WithCancel(context.WithoutCancel(ctx))
	var wg sync.WaitGroup
	defer wg.Wait()
	defer stop()
	if err := s.startWatches(ctx, behind, &wg); err != nil {
		return err
	}
	in, halt := context.WithCancel(ctx)
	s.mu.Lock()
	s.stopFetching = halt
	s.mu.Unlock()
	var front sync.WaitGroup
	front.Go(func() {
		var taking sync.WaitGroup
		taking.Go(func() { s.loop(in, "pick", s.assignSlots) })
		taking.Go(func() { s.loop(in, "fetch", s.fetch) })
		taking.Wait()
		s.releaseAll()
	})
	err := work(ctx)
	halt()
	front.Wait()
	s.releaseAll()
	leaving, cancel := context.WithTimeout(behind, storeTimeout)
	defer cancel()
	s.permits.releaseLost(leaving)
	return err
}

// loop runs a loop of the scheduler until ctx ends, and restarts it after a panic.
func (s *Scheduler) loop(ctx context.Context, name string, run func(context.Context)) {
	_ = lifecycle.Restart(ctx, s.deps.Logger, "waiting "+name, func(ctx context.Context) error { // its error is that of ctx
		run(ctx)
		return ctx.Err()
	})
}

// startWatches starts the watches of tickets and permits, and waits until they have reported all
// present ones.
func (s *Scheduler) startWatches(ctx, behind context.Context, wg *sync.WaitGroup) error {
	seen := make(chan struct{}, 3)
	wg.Go(func() {
		s.watchKeys(behind, permitPrefix, s.permits.applyPermit, s.permits.nextRound, s.permits.dropUnseen, seen)
	})
	for _, prefix := range []string{readyPrefix, limitedPrefix} {
		wg.Go(func() {
			s.watchKeys(behind, prefix, s.applyTicket, func() { s.nextRound(prefix) }, func() { s.sweep(prefix) }, seen)
		})
	}
	wg.Go(func() { s.loop(behind, "tend", s.freeUnused) })
	for range cap(seen) {
		select {
		case <-seen:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	return nil
}

// watchKeys watches the keys under a prefix until ctx ends. It restarts from the beginning
// regularly, which repairs the effect of a lost event.
func (s *Scheduler) watchKeys(ctx context.Context, prefix string, take func(kv.Entry), begin, sweep func(), seen chan<- struct{}) {
	first := true
	for ctx.Err() == nil {
		begin()
		round, cancel := context.WithTimeout(ctx, s.cfg.Resync)
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
			s.signalPick()
		}()
		err := s.deps.Tickets.Watch(round, prefix, ready, take)
		broken := round.Err() == nil
		cancel()
		<-done
		if broken {
			s.deps.Logger.Warn("waiting runs not followed; trying again", "error", err)
			lifecycle.Wait(ctx, s.cfg.Tick)
		}
	}
}

// ticksPerFree is the number of ticks between two searches for unused tickets and permits. A lease
// is much longer.
const ticksPerFree = 10

// freeUnused frees the tickets and permits of dead processes, and permits that this process holds
// without use.
func (s *Scheduler) freeUnused(ctx context.Context) {
	for lifecycle.Wait(ctx, ticksPerFree*s.cfg.Tick) {
		bounded, cancel := context.WithTimeout(ctx, storeTimeout)
		for _, process := range s.holders.findDead(bounded) {
			s.relistHolder(process)
		}
		s.permits.deleteDead(bounded)
		s.permits.releaseLost(bounded)
		cancel()
	}
}

// releaseAll releases the runs that were picked and not fetched.
func (s *Scheduler) releaseAll() {
	s.drainWrites()
	for {
		select {
		case d := <-s.ready:
			if err := d.Return(); err != nil {
				s.deps.Logger.Debug("run not released", "run_id", d.frame.Run.RunID, "error", err)
			}
			d.Done()
		default:
			return
		}
	}
}
