package engine

import (
	"context"
	"errors"

	"waybill.dev/waybill/internal/runlog"
	"waybill.dev/waybill/protocol/frame"
	"waybill.dev/waybill/services/dispatcher/machine"
)

// unflushed is what the machine applied and the log does not have yet.
type unflushed struct {
	// inputs are effect results and drafts. They are applied again after a reload.
	inputs []func()
	// sideEffectPending reports that pending events complete an effect that must not run twice.
	sideEffectPending bool
	// starts reports that the pending events start effects, which begin after the append.
	starts bool
	// overflowed is set after the run was ended because its log rejects its next events.
	overflowed bool
}

// apply applies an input to the machine, and again after a reload if it is not appended by then.
func (u *unflushed) apply(input func()) {
	u.inputs = append(u.inputs, input)
	input()
}

// applyAgain applies all inputs to a reloaded machine.
func (u *unflushed) applyAgain() {
	for _, input := range u.inputs {
		input()
	}
}

// replay replaces the inputs by some of them, and applies those to a reloaded machine.
func (u *unflushed) replay(kept []func()) {
	u.inputs = nil
	for _, input := range kept {
		u.apply(input)
	}
}

// appended forgets the inputs, because the log has them.
func (u *unflushed) appended() { u.inputs, u.sideEffectPending, u.starts = nil, false, false }

// overflow drops the inputs of a run whose log rejects their events.
func (u *unflushed) overflow() { u.inputs, u.overflowed = nil, true }

// flushPending appends the pending events in a frame that claims the run, or gives it up with
// release. force appends a frame even without pending events. changed reports that the redactor
// changed events.
func (s *session) flushPending(ctx context.Context, to appendFunc, release, force bool) (changed bool, err error) {
	start := s.exec.deps.Clock()
	sent := false
	e := s.claim.entry(func(ctx context.Context, f *frame.Frame, after uint64) (uint64, error) {
		sent = true
		return to(ctx, f, after)
	}, release)
	e.force = force
	var a appendResult
	write := func() (err error) {
		a, err = s.exec.append(ctx, e, s.machine) // the same frame each time: the log stores it once
		return err
	}
	if err = write(); s.mustHold() || s.unflushed.starts && sent {
		err = s.repeatUntilReachable(ctx, err, write)
	}
	if err != nil {
		return false, err
	}
	s.active.begun()
	s.claim.head = a.head
	s.unflushed.appended()
	s.active.claimed.Store(s.claim.isHeld())
	s.snapshots.offer(a.head, s.machine.State())
	s.spans.exportAppend(a.events, start)
	return a.changed, nil
}

// flushWithCatchUp appends the pending events, catching up with frames of other writers first if
// necessary.
func (s *session) flushWithCatchUp(ctx context.Context) error {
	for {
		_, err := s.flushPending(ctx, s.exec.deps.Log.Append, false, false)
		if !errors.Is(err, runlog.ErrConflict) {
			return err
		}
		if err := s.catchUpWithLog(ctx, nil); err != nil {
			return err
		}
	}
}

// dropUnflushed reverts the machine to the log plus the first kept unflushed inputs.
func (s *session) dropUnflushed(ctx context.Context, kept int) error {
	if len(s.unflushed.inputs) <= kept {
		return nil
	}
	if _, err := s.reloadState(ctx, nil); err != nil {
		return err
	}
	s.unflushed.replay(s.unflushed.inputs[:kept])
	return nil
}

// endOversizedRun ends a run whose next events exceed a limit of its log. A redelivery would
// produce the same events.
func (s *session) endOversizedRun(ctx context.Context, notBegun []machine.Effect, cause error) error {
	if _, err := s.reloadState(ctx, notBegun); err != nil {
		return err
	}
	s.exec.deps.Logger.Warn("run ended: its next events exceed a limit of the log",
		"run_id", s.claim.run.RunID, "error", cause)
	s.unflushed.overflow()
	s.machine.EndOversized(s.exec.deps.Clock())
	return nil
}
