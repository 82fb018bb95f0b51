package engine

import (
	"context"

	"waybill.dev/waybill/services/dispatcher/machine"
)

// attempt identifies one attempt of a node's effect.
type attempt struct {
	node   string
	number int
}

func attemptOf(e machine.Effect) attempt { return attempt{e.NodeID, e.Attempt} }

// inflight cancels single effects whose run continues without them.
type inflight struct {
	cancels map[attempt]context.CancelFunc
	effects map[attempt]machine.Effect
}

func newInflight() inflight {
	return inflight{map[attempt]context.CancelFunc{}, map[attempt]machine.Effect{}}
}

// add registers an effect and returns its context.
func (f inflight) add(ctx context.Context, e machine.Effect) context.Context {
	ctx, cancel := context.WithCancel(ctx)
	f.cancels[attemptOf(e)], f.effects[attemptOf(e)] = cancel, e
	return ctx
}

// remove forgets an effect that has ended.
func (f inflight) remove(e machine.Effect) {
	if cancel := f.cancels[attemptOf(e)]; cancel != nil {
		cancel()
	}
	delete(f.cancels, attemptOf(e))
	delete(f.effects, attemptOf(e))
}

// cancelAll cancels all effects. They report their end to the writer.
func (f inflight) cancelAll() {
	for _, cancel := range f.cancels {
		cancel()
	}
}

// cancelDropped cancels the effects that the run no longer waits for, for example after a node
// timeout. The writer drops their results.
func (f inflight) cancelDropped(m *machine.Machine) {
	for a, e := range f.effects {
		if !m.IsCurrent(e) {
			f.cancels[a]()
		}
	}
}

// isStale reports that the run no longer waits for an effect: its drafts must not be appended.
func (s *session) isStale(e machine.Effect) bool { return !s.machine.IsCurrent(e) }

// endInflight removes a completed effect, and reports whether its result is late.
func (s *session) endInflight(d effectResult) bool {
	s.inflight.remove(d.effect)
	return s.isStale(d.effect)
}
