package engine

import (
	"context"
	"errors"

	"waybill.dev/waybill/internal/kv"
	"waybill.dev/waybill/internal/lifecycle"
	"waybill.dev/waybill/internal/runlog"
	"waybill.dev/waybill/protocol/fault"
	"waybill.dev/waybill/protocol/frame"
	"waybill.dev/waybill/services/dispatcher/quarantine"
)

// How many deliveries in a row may fail in one process before a run is quarantined. The queue's
// pause between them grows to eight seconds.
const (
	// maxTries is about a minute.
	maxTries = 10
	// maxTriesEngine is about ten minutes: in a rolling upgrade a newer dispatcher takes
	// the run before that.
	maxTriesEngine = 80
)

// aside decides whether a run is quarantined after a delivery that failed. What is
// unavailable never quarantines a run, however often it is tried: that is an outage
// of the host, not a fault of the run.
func aside(err error, tries int) (c quarantine.Cause, ok bool) {
	c = quarantine.Cause{Reason: reasonOf(err), Tries: tries}
	switch {
	case c.Reason == quarantine.ReasonDamaged, c.Reason == quarantine.ReasonPanic: // another try would come to the same
		return c, true
	case transient(err):
		return c, false
	case c.Reason == quarantine.ReasonEngine:
		return c, tries >= maxTriesEngine
	default:
		return c, tries >= maxTries
	}
}

// maxSetbacks bounds the runs whose failures are counted.
const maxSetbacks = 4096

// setback counts a failure of a run, if it is the run's own and not an outage, and returns how many
// there were in a row in this process.
func (x *Executor) setback(runID string, err error) int {
	x.mu.Lock()
	defer x.mu.Unlock()
	switch {
	case err == nil:
		delete(x.setbacks, runID)
		return 0
	case transient(err), errors.Is(err, errElsewhere), errors.Is(err, errReleased):
		return x.setbacks[runID]
	}
	if len(x.setbacks) >= maxSetbacks {
		clear(x.setbacks)
	}
	x.setbacks[runID]++
	return x.setbacks[runID]
}

func reasonOf(err error) string {
	switch {
	case refused(err): // also where an older engine cannot fold the log
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

// refused reports a run that only a later engine may continue.
func refused(err error) bool { return fault.CodeOf(err) == fault.EngineVersionMismatch }

// transient reports a failure that passes without the run: a part of the host is
// unreachable, another writer was faster, or the process stops.
func transient(err error) bool {
	for _, t := range []error{runlog.ErrConflict, kv.ErrConflict, context.Canceled, context.DeadlineExceeded, errLapsed, errAborted, errLeaseLost} {
		if errors.Is(err, t) {
			return true
		}
	}
	return unreachable(err)
}

// unreachable reports that a part of the host could not be reached.
func unreachable(err error) bool {
	return errors.Is(err, runlog.ErrUnavailable) || errors.Is(err, kv.ErrUnavailable) || fault.CodeOf(err) == fault.ServiceUnavailable
}
