package engine

import (
	"context"
	"errors"

	"waybill.dev/waybill/internal/kv"
	"waybill.dev/waybill/internal/lifecycle"
	"waybill.dev/waybill/internal/runlog"
	"waybill.dev/waybill/protocol/fault"
	"waybill.dev/waybill/protocol/frame"
	"waybill.dev/waybill/services/dispatcher/engine/quarantine"
)

// Limits of consecutive failed deliveries, to all processes together, before a run is quarantined. The
// queue's pause between them grows to eight seconds.
const (
	// maxFailuresInRow takes about a minute.
	maxFailuresInRow = 10
	// maxFailuresLaterEngine takes about ten minutes: in a rolling upgrade a newer dispatcher takes
	// the run before that.
	maxFailuresLaterEngine = 80
)

// shouldQuarantine decides whether a run is quarantined after a failed delivery. Unavailable
// dependencies never quarantine a run: that is an outage of the host, not a fault of the run.
func shouldQuarantine(err error, tries int) (c quarantine.Cause, ok bool) {
	c = quarantine.Cause{Reason: quarantineReason(err), Tries: tries}
	if deaths := (deathsError{}); errors.As(err, &deaths) {
		c.Tries = deaths.count
		return c, true
	}
	switch {
	case c.Reason == quarantine.ReasonDamaged, c.Reason == quarantine.ReasonPanic: // a retry would fail in the same way
		return c, true
	case isTransient(err):
		return c, false
	case c.Reason == quarantine.ReasonEngine:
		return c, tries >= maxFailuresLaterEngine
	default:
		return c, tries >= maxFailuresInRow
	}
}

func quarantineReason(err error) string {
	switch {
	case needsLaterEngine(err): // also if this engine is too old to fold the log
		return quarantine.ReasonEngine
	case errors.Is(err, frame.ErrDamaged):
		return quarantine.ReasonDamaged
	case errors.Is(err, lifecycle.ErrPanic):
		return quarantine.ReasonPanic
	case errors.Is(err, errNoDefinition):
		return quarantine.ReasonDefinition
	default:
		return quarantine.ReasonFailing
	}
}

// errNoDefinition marks the failure to get a run's definition.
var errNoDefinition = errors.New("the run's workflow definition is missing")

// needsLaterEngine reports that only a later engine may continue the run.
func needsLaterEngine(err error) bool { return fault.CodeOf(err) == fault.EngineVersionMismatch }

// isTransient reports a failure without a cause in the run: a dependency is unreachable, another
// writer was faster, or the process stops.
func isTransient(err error) bool {
	for _, t := range []error{
		runlog.ErrConflict, kv.ErrConflict, context.Canceled, context.DeadlineExceeded, errLapsed,
		errAborted, errLeaseLost, errPaused, errQuarantined,
	} {
		if errors.Is(err, t) {
			return true
		}
	}
	return isUnreachable(err)
}

// isUnreachable reports that a dependency of the host was unreachable.
func isUnreachable(err error) bool {
	return errors.Is(err, runlog.ErrUnavailable) || errors.Is(err, kv.ErrUnavailable) || fault.CodeOf(err) == fault.ServiceUnavailable
}
