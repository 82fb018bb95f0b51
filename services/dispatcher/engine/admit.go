package engine

import (
	"context"
	"slices"
	"sync"

	"golang.org/x/sync/errgroup"

	"waybill.dev/waybill/protocol/wire"
	"waybill.dev/waybill/services/dispatcher/machine"
	"waybill.dev/waybill/services/dispatcher/model"
)

// A call that the operator limits gets its place in the limit before the log records its start. If
// the limit is used up, one frame records the start and the end of the attempt. So a node that is
// running in the log may have been called, and a node that only waited is not running. See
// docs/adr/0050.

// places are the places in limits of effects that have not started, by attempt. A function releases
// its place.
type places map[attempt]func()

// take returns the function that releases the place of an effect. The effect calls it at its end.
func (p places) take(e machine.Effect) (release func()) {
	release, ok := p[attemptOf(e)]
	if !ok {
		return func() {}
	}
	delete(p, attemptOf(e))
	return release
}

// keepOnly releases the places of all other effects.
func (p places) keepOnly(effects []machine.Effect) {
	needed := map[attempt]bool{}
	for _, e := range effects {
		needed[attemptOf(e)] = true
	}
	var releases sync.WaitGroup
	for at, release := range p {
		if !needed[at] {
			releases.Go(release)
			delete(p, at)
		}
	}
	releases.Wait()
}

// takeAdmittedSteps takes all steps that are possible now and returns the effects to start. Calls
// with a limit have their place. A node whose call is refused waits or fails, and further steps may
// follow; they are taken at the same instant, so that no recorded pause ends between them. planned
// are all effects that the machine returned.
func (s *session) takeAdmittedSteps(ctx context.Context, draining bool) (effects, planned []machine.Effect, err error) {
	now := s.exec.deps.Clock()
	for {
		next := s.machine.Advance(now)
		if draining && len(next) > 0 {
			return nil, nil, s.releaseRun(ctx) // the pending events are dropped: the next dispatcher derives the same ones
		}
		if len(next) > 0 { // before the log records their start
			if err := s.exec.awaitLease(ctx, s.claim.process); err != nil {
				return nil, nil, err
			}
		}
		planned = append(planned, next...)
		refused, err := s.admitEffects(ctx, next)
		if err != nil {
			s.releaseEffects(planned...)
			return nil, nil, err
		}
		if len(refused) == 0 {
			break
		}
		for _, r := range refused {
			endEffect(s.machine, now, r.effect, model.Result{Err: r.reason})
		}
	}
	effects = slices.DeleteFunc(slices.Clone(planned), func(e machine.Effect) bool { return !s.machine.IsCurrent(e) })
	s.places.keepOnly(effects)
	return effects, planned, nil
}

// refusal is an effect whose call is over a limit.
type refusal struct {
	effect machine.Effect
	reason *wire.NodeError
}

// admitEffects gets places for the effects that have none, and returns the refused ones in order.
// An effect keeps its place while other frames of the log delay its start.
func (s *session) admitEffects(ctx context.Context, effects []machine.Effect) (refused []refusal, err error) {
	if s.exec.deps.Limiter == nil {
		return nil, nil
	}
	effects = slices.DeleteFunc(slices.Clone(effects), func(e machine.Effect) bool {
		_, has := s.places[attemptOf(e)]
		return has || e.Spawn != nil || s.exec.onlyCallsModel(e)
	})
	if len(effects) == 0 {
		return nil, nil
	}
	defer s.delivery.keepExtended()()
	var (
		g        errgroup.Group
		releases = make([]func(), len(effects))
		reasons  = make([]*wire.NodeError, len(effects))
	)
	for i, e := range effects {
		task := buildTask(s.claim.run, s.machine.State(), e)
		g.Go(func() error {
			return s.exec.contain(task.RunID, func() (err error) {
				releases[i], reasons[i], err = s.exec.deps.Limiter.Admit(ctx, task)
				return err
			})
		})
	}
	err = g.Wait()
	for i, e := range effects {
		if releases[i] != nil {
			s.places[attemptOf(e)] = releases[i]
		}
		if reasons[i] != nil {
			refused = append(refused, refusal{e, reasons[i]})
		}
	}
	return refused, err
}
