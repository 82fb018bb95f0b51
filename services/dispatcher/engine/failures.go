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
	// maxFailuresInRow is about a minute.
	maxFailuresInRow = 10
	// maxFailuresLaterEngine is about ten minutes: in a rolling upgrade a newer dispatcher takes
	// the run before that.
	maxFailuresLaterEngine = 80
)

// shouldQuarantine decides whether a run is quarantined after a delivery that failed. What is
// unavailable never quarantines a run, however often it is tried: that is an outage
// of the host, not a fault of the run.
func shouldQuarantine(err error, tries int) (c quarantine.Cause, ok bool) {
	c = quarantine.Cause{Reason: quarantineReason(err), Tries: tries}
	switch {
	case c.Reason == quarantine.ReasonDamaged, c.Reason == quarantine.ReasonPanic: // another try would come to the same
		return c, true
	case isTransient(err):
		return c, false
	case c.Reason == quarantine.ReasonEngine:
		return c, tries >= maxFailuresLaterEngine
	default:
		return c, tries >= maxFailuresInRow
	}
}

// maxFailures bounds the runs whose failures are counted.
const maxFailures = 4096

// countFailure counts a failure of a run, if it is the run's own and not an outage, and returns how many
// there were in a row in this process.
func (e *Executor) countFailure(runID string, err error) int {
	e.mu.Lock()
	defer e.mu.Unlock()
	switch {
	case err == nil:
		delete(e.failures, runID)
		return 0
	case isTransient(err), errors.Is(err, errElsewhere), errors.Is(err, errReleased):
		return e.failures[runID]
	}
	if len(e.failures) >= maxFailures {
		clear(e.failures)
	}
	e.failures[runID]++
	return e.failures[runID]
}

func quarantineReason(err error) string {
	switch {
	case needsLaterEngine(err): // also where an older engine cannot fold the log
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

// needsLaterEngine reports a run that only a later engine may continue.
func needsLaterEngine(err error) bool { return fault.CodeOf(err) == fault.EngineVersionMismatch }

// isTransient reports a failure that passes without the run: a part of the host is
// unreachable, another writer was faster, or the process stops.
func isTransient(err error) bool {
	for _, t := range []error{runlog.ErrConflict, kv.ErrConflict, context.Canceled, context.DeadlineExceeded, errLapsed, errAborted, errLeaseLost} {
		if errors.Is(err, t) {
			return true
		}
	}
	return isUnreachable(err)
}

// isUnreachable reports that a part of the host could not be reached.
func isUnreachable(err error) bool {
	return errors.Is(err, runlog.ErrUnavailable) || errors.Is(err, kv.ErrUnavailable) || fault.CodeOf(err) == fault.ServiceUnavailable
}
