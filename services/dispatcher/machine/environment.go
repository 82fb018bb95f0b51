package machine

import (
	"strconv"
	"time"

	"waybill.dev/waybill/protocol/strictjson"
	"waybill.dev/waybill/protocol/wire"
	"waybill.dev/waybill/services/dispatcher/node"
)

// environment is what the steps of a run depend on outside its state. The host is that of an
// executed run; a replay takes the recorded decisions and times of its source.
type environment interface {
	// startRun emits run.started.
	startRun(now time.Time)
	// gateAttempt makes the checks before an attempt starts. It returns true if the attempt must not
	// start; it has emitted the reason then.
	gateAttempt(now time.Time, id string, t node.Type, attempt int) bool
	// pinRecorded pins the version of a change if it is recorded.
	pinRecorded(now time.Time, change string)
	// isRecorded reports whether an event of the attempt is recorded. A node with a recorded
	// question or answer asks no new question.
	isRecorded(id string, attempt int) bool
	// recordedTimeout is the recorded time limit of an attempt, in milliseconds.
	recordedTimeout(id string, attempt int) (ms int64, ok bool)
	// startTime is when a node starts, writeTime when it writes a channel.
	startTime(now time.Time, id string) string
	writeTime(now time.Time, id string) time.Time
	// placeEvent adds a draft to the pending events without changing its trust.
	placeEvent(now time.Time, d wire.Draft, clean bool)
	// executesEffects reports whether effects are executed.
	executesEffects() bool
}

// host is the environment of an executed run. It decides by the plan at the current time.
type host struct{ *Machine }

// startRun emits the run's first event. It is emitted when an executor has claimed the run, so that
// time in the queue does not count against the run.
func (h host) startRun(now time.Time) {
	r := h.st.Record
	h.emit(now, wire.Draft{Type: wire.EventRunStarted, Payload: strictjson.Render(startedPayload{
		WorkflowID:    r.WorkflowID,
		Inputs:        r.Inputs,
		Transport:     r.Transport,
		EngineVersion: strconv.Itoa(r.EngineVersion),
		Owner:         r.Owner,
		Tags:          r.Tags,
		Metadata:      r.Metadata,
	}), Trust: untrustedOnly(r.TrustBoundary)}, true) // the record was redacted
}

func (h host) gateAttempt(now time.Time, id string, t node.Type, attempt int) bool {
	if h.editedOutputs(id) != nil { // nothing of the node is executed
		return h.enforceExecutionLimit(now, id)
	}
	return h.failWithoutCapability(now, id, t, attempt) ||
		h.failWithoutSecret(now, id, t, attempt) ||
		h.failWithoutPermission(now, id, t, attempt) ||
		h.failWithoutModel(now, id, t, attempt) ||
		h.enforceExecutionLimit(now, id)
}

func (host) pinRecorded(time.Time, string) {}

func (host) isRecorded(string, int) bool { return false }

func (host) recordedTimeout(string, int) (ms int64, ok bool) { return 0, false }

func (host) startTime(now time.Time, _ string) string { return wire.FormatTime(now) }

func (host) writeTime(now time.Time, _ string) time.Time { return now }

func (h host) placeEvent(now time.Time, d wire.Draft, clean bool) {
	h.addEvent(d.Place(h.st.Record.RunID, h.st.Next, now), clean)
}

func (host) executesEffects() bool { return true }
