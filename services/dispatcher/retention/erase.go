package retention

import (
	"context"
	"errors"
	"log/slog"
	"time"

	"waybill.dev/waybill/internal/lifecycle"
	"waybill.dev/waybill/internal/retry"
	"waybill.dev/waybill/internal/runlog"
	"waybill.dev/waybill/protocol/fault"
	"waybill.dev/waybill/protocol/frame"
	"waybill.dev/waybill/protocol/subject"
)

// EraseStep removes data of a run outside the log. frames are what is left of its log; none if an earlier
// attempt has removed it. A step is repeated after a failure or a crash.
type EraseStep func(ctx context.Context, run subject.Run, frames []*frame.Frame) error

// Eraser erases runs. It is safe for concurrent use, also by several processes.
type Eraser struct {
	log    runlog.Log
	marks  runlog.Eraser
	steps  []EraseStep
	logger *slog.Logger
	// ended counts attempts; failed ones are repeated.
	ended func(erased bool)
	claim EraseClaim
}

// EraseClaim excludes a legal hold while a run is being marked. The mark uses the returned context, and
// release ends the claim of a run that was not marked. Errors: fault.Conflict if the run has a hold.
type EraseClaim func(ctx context.Context, run subject.Run) (within context.Context, release func(marked bool), err error)

// Guard sets the claim of legal holds; without it there are none.
func (e *Eraser) Guard(c EraseClaim) { e.claim = c }

// NewEraser returns an eraser that carries out steps in their order, and then removes the frames. ended
// counts attempts.
func NewEraser(log runlog.Log, marks runlog.Eraser, logger *slog.Logger, ended func(erased bool), steps ...EraseStep) *Eraser {
	return &Eraser{log: log, marks: marks, steps: steps, logger: logger, ended: ended}
}

// eraseRetry is the retry hint of temporary errors.
const eraseRetry = time.Second

// Erase marks a run as erased. erased is false if it was marked before. Errors: fault.RunNotFound,
// fault.Conflict if the run, or its parent, has not ended, fault.CapabilityNotProvided,
// fault.ServiceUnavailable.
func (e *Eraser) Erase(ctx context.Context, run subject.Run, why frame.Cause) (erased bool, err error) {
	if err := e.checkParent(ctx, run); err != nil {
		return false, eraseFault(err)
	}
	release := func(bool) {}
	if e.claim != nil {
		if _, err := e.log.Last(ctx, run); errors.Is(err, runlog.ErrErased) {
			return false, nil
		} else if errors.Is(err, runlog.ErrNotFound) {
			return false, eraseFault(err)
		}
		if ctx, release, err = e.claim(ctx, run); err != nil {
			return false, err
		}
	}
	erased, err = e.marks.Mark(ctx, run, why)
	// After an unknown outcome the claim stays, for as long as the mark may be on its way.
	release(err == nil && erased || errors.Is(err, runlog.ErrUnavailable))
	return erased, eraseFault(err)
}

// Settled reports whether a marked run was removed from the log.
func (e *Eraser) Settled(ctx context.Context, run subject.Run) (bool, error) {
	left, err := e.marks.Remaining(ctx, &frame.Frame{Run: run, Kind: subject.Erase})
	return len(left) == 0, eraseFault(err)
}

// checkParent rejects a child whose parent goes on: the parent may still read the child's result.
func (e *Eraser) checkParent(ctx context.Context, run subject.Run) error {
	first, err := e.log.First(ctx, run)
	if errors.Is(err, runlog.ErrNotFound) || errors.Is(err, frame.ErrDamaged) {
		return nil // unknown, erased or damaged: Mark decides
	}
	if err != nil {
		return err
	}
	rec, err := first.Record()
	if err != nil || rec.Parent == nil {
		return nil //nolint:nilerr // a damaged record names no parent
	}
	last, err := e.log.Last(ctx, subject.Run{Tenant: run.Tenant, RunID: rec.Parent.RunID})
	switch {
	case errors.Is(err, runlog.ErrNotFound), errors.Is(err, frame.ErrDamaged):
		return nil
	case err != nil:
		return err
	case last.Kind != subject.End:
		return fault.New(fault.Conflict, "the run is a child of run %s, which has not ended; cancel that run, or wait for its end", rec.Parent.RunID).
			With("parentRunId", rec.Parent.RunID)
	}
	return nil
}

func eraseFault(err error) error {
	switch {
	case err == nil:
		return nil
	case errors.Is(err, runlog.ErrNotFound):
		return fault.NoRun()
	case errors.Is(err, runlog.ErrActive):
		return fault.New(fault.Conflict, "the run has not ended; cancel it, and erase it when it has ended").Wrap(err)
	case errors.Is(err, runlog.ErrRemovalDenied):
		return fault.New(fault.CapabilityNotProvided, "the run log was created by a build that forbids the removal of frames; "+
			"the operator has to move it to a new stream").Wrap(err)
	case errors.Is(err, runlog.ErrUnavailable):
		return fault.New(fault.ServiceUnavailable, "the run log is unavailable; try again").After(eraseRetry).Wrap(err)
	}
	return err
}

// watchRetry is the pause before marks are followed again.
const watchRetry = time.Second

// Run carries out erasures until ctx ends.
func (e *Eraser) Run(ctx context.Context) error {
	for range retry.Every(watchRetry).Tries(ctx) {
		err := e.marks.Erasures(ctx, e.attempt)
		if ctx.Err() != nil {
			return ctx.Err()
		}
		e.logger.Warn("erasures not followed; trying again", "error", err)
	}
	return ctx.Err()
}

// attempt carries out an erasure once.
func (e *Eraser) attempt(ctx context.Context, mark *frame.Frame) error {
	attrs := []any{"run_id", mark.Run.RunID, "tenant", mark.Run.Tenant}
	err := lifecycle.Contain(e.logger, "erasure", func() error { return e.carryOut(ctx, mark) }, attrs...)
	switch {
	case ctx.Err() != nil: // this process stops
	case err != nil:
		e.ended(false)
		e.logger.Warn("run not erased yet; trying again", append(attrs, "error", err)...)
	default:
		e.ended(true)
		e.logger.Info("run erased", attrs...)
	}
	return err
}

func (e *Eraser) carryOut(ctx context.Context, mark *frame.Frame) error {
	frames, err := e.marks.Remaining(ctx, mark)
	if err != nil {
		return err
	}
	for _, step := range e.steps {
		if err := step(ctx, mark.Run, frames); err != nil {
			return err
		}
	}
	return e.marks.Purge(ctx, mark)
}
