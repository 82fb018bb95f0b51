package machine

import (
	"time"

	"waybill.dev/waybill/protocol/runstate"
)

// runner takes the steps of a run.
type runner interface {
	// advance takes every step that needs no effect, and returns the effects to execute next.
	advance(now time.Time) []Effect
	// repair completes a step that the copied history of a fork contains only in part. Only the
	// first call has an effect.
	repair(now time.Time)
	// dropped is called when the state was replaced and pending events were lost.
	dropped(p pending)
	// enqueues reports whether the run must be enqueued for another session after a change.
	enqueues() bool
}

// execution executes a run: it recovers what a lost executor began, takes steps, and begins effects.
type execution struct {
	*Machine
	// recovered is set once lost effects are handled, repaired once a partial step is complete.
	recovered, repaired bool
}

func (x *execution) advance(now time.Time) []Effect {
	x.Begin(now)
	x.Repair(now)
	x.recoverNodes(now)
	return x.takeSteps(now, x.takeStep, x.beginEffects)
}

// takeStep takes one step; false if there is none.
func (x *execution) takeStep(now time.Time) bool {
	return x.enforceTimeLimit(now) ||
		x.fireTimers(now) ||
		x.suspendAsking(now) ||
		x.restartStopped(now) ||
		x.stepReady(now)
}

// dropped makes the next advance recover again if the log lacks the events of the recovery.
func (x *execution) dropped(p pending) { x.recovered = x.recovered && !p.recovery }

// enqueues is false: the session of this machine continues the run.
func (*execution) enqueues() bool { return false }

// change applies a request to a run that another session may execute. It recovers nothing and begins
// no effects.
type change struct {
	*Machine
	// executing reports that a session executes an effect of the run. That session finds the frame.
	executing bool
}

func (c change) advance(now time.Time) []Effect {
	c.Begin(now)
	return c.takeSteps(now, c.takeStep, func([]Effect) {})
}

// takeStep takes one step; false if there is none. A node whose model asks is suspended by the
// session that executes its effect.
func (c change) takeStep(now time.Time) bool {
	return c.enforceTimeLimit(now) || c.fireTimers(now) || c.restartStopped(now) || c.stepReady(now)
}

// fireTimers completes waits that are due. An attempt that is out of time is ended by the session that
// executes it, or by the next one: only that knows whether the call may be repeated (see settleUnknown).
func (c change) fireTimers(now time.Time) bool {
	if id, n, ok := c.st.Timer(); ok && n.Status == runstate.NodeRunning && c.needsExecutor(id, n) {
		return false
	}
	return c.Machine.fireTimers(now)
}

func (change) repair(time.Time) {}

func (change) dropped(pending) {}

func (c change) enqueues() bool { return !c.executing }

// takeSteps takes steps until there is none, or the pending events must be appended. It passes the
// effects that may execute next to begin, and returns them.
func (m *Machine) takeSteps(now time.Time, takeStep func(time.Time) bool, begin func([]Effect)) (out []Effect) {
	for {
		m.takePureSteps(now, takeStep)
		effects, broken := m.collectEffects(now)
		begin(effects)
		if out = append(out, effects...); !broken {
			break
		}
	}
	if !m.isLive() {
		return nil
	}
	return out
}

// takePureSteps takes steps that need no effect. It ends or pauses a run that has none left.
func (m *Machine) takePureSteps(now time.Time, takeStep func(time.Time) bool) {
	for m.isLive() {
		if m.mustAppend = m.pending.isFull(); m.mustAppend {
			return
		}
		if takeStep(now) {
			continue
		}
		if m.st.Pausing == nil {
			m.finishRun(now)
		}
		m.finishPause(now)
		return
	}
}
