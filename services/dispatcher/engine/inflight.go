package engine

import (
	"context"

	"waybill.dev/waybill/services/dispatcher/machine"
)

// attempt names one attempt of a node's effect.
type attempt struct {
	node   string
	number int
}

func attemptOf(e machine.Effect) attempt { return attempt{e.NodeID, e.Attempt} }

// inflight ends single effects: their run goes on, but not with them.
type inflight struct {
	cancels map[attempt]context.CancelFunc
	effects map[attempt]machine.Effect
}

func newInflight() inflight {
	return inflight{map[attempt]context.CancelFunc{}, map[attempt]machine.Effect{}}
}

// add gives an effect a lifetime of its own.
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

// cancelAll ends all effects. They say so to the writer.
func (f inflight) cancelAll() {
	for _, cancel := range f.cancels {
		cancel()
	}
}

// cancelDropped ends the effects that the run no longer waits for, such as those whose time
// was up. They end beside the writer, who throws away what they still bring.
func (f inflight) cancelDropped(m *machine.Machine) {
	for a, e := range f.effects {
		if !m.IsCurrent(e) {
			f.cancels[a]()
		}
	}
}

// isStale refuses what an effect tells that the run no longer waits for: nothing of a
// late attempt gets into the log.
func (s *session) isStale(e machine.Effect) bool { return !s.machine.IsCurrent(e) }

// endInflight reports whether the end of an effect comes after its attempt was given up.
func (s *session) endInflight(d effectResult) bool {
	s.inflight.remove(d.effect)
	return s.isStale(d.effect)
}
