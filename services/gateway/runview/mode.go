// Package runview decides what API clients see of recorded runs: which events a stream
// mode shows, how bufferMs batches them, which runs a list filter selects, and how two runs
// differ. It is pure: transports feed it.
package runview

import (
	"strings"

	"waybill.dev/waybill/protocol/fault"
	"waybill.dev/waybill/protocol/wire"
)

// Mode is a subscriber's view of a run (OpenWOP host contract §4.1).
type Mode string

// The four modes.
const (
	ModeValues   Mode = "values"
	ModeUpdates  Mode = "updates"
	ModeMessages Mode = "messages"
	ModeDebug    Mode = "debug"
)

// supported are the modes, in the order of error messages.
var supported = []Mode{ModeValues, ModeUpdates, ModeMessages, ModeDebug}

// Modes is a set of combinable modes.
type Modes struct{ values, updates, messages, debug bool }

// ParseModes reads a list of modes. Entries may be comma-separated lists; an empty list
// means updates.
func ParseModes(list []string) (Modes, error) {
	var m Modes
	n := 0
	for _, entry := range list {
		for name := range strings.SplitSeq(entry, ",") {
			n++
			switch Mode(name) {
			case ModeValues:
				m.values = true
			case ModeUpdates:
				m.updates = true
			case ModeMessages:
				m.messages = true
			case ModeDebug:
				m.debug = true
			default:
				return Modes{}, unsupported("streamMode contains a mode that this host does not support")
			}
		}
	}
	if n == 0 {
		return Modes{updates: true}, nil
	}
	if m.values && (m.updates || m.messages || m.debug) {
		return Modes{}, unsupported("streamMode values cannot be combined with another mode")
	}
	return m, nil
}

func unsupported(message string) error {
	return fault.New(fault.UnsupportedStreamMode, "%s", message).With("supported", supported)
}

// Snapshots reports whether the subscriber gets snapshots instead of events.
func (m Modes) Snapshots() bool { return m.values }

// Notices reports whether the subscriber gets notifications that are not events of the run,
// such as new annotations (OpenWOP host contract §2.8).
func (m Modes) Notices() bool { return m.values || m.updates || m.debug }

// Form is how an event is shown.
type Form int

// The forms of an event.
const (
	Hidden   Form = iota
	AsEvent       // the RunEventDoc
	AsChunk       // ai.message.chunk: the payload of an output.chunk
	AsValues      // state.snapshot: the run as of the event
)

// Names of stream items that are not event types.
const (
	NameSnapshot = "state.snapshot"
	NameChunk    = "ai.message.chunk"
	NameBatch    = "batch"
)

// updates are the event types of mode updates (OpenWOP host contract §4.3). Mode values
// shows a snapshot for each of them and for node.started.
var updates = map[wire.EventType]bool{
	wire.EventRunStarted: true, wire.EventRunCompleted: true, wire.EventRunFailed: true, wire.EventRunCancelled: true,
	wire.EventRunPaused: true, wire.EventRunResumed: true, "run.annotated": true,
	wire.EventNodeCompleted: true, wire.EventNodeFailed: true, wire.EventNodeSkipped: true, wire.EventNodeSuspended: true,
	wire.EventNodeCancelled: true, wire.EventNodeDispatched: true,
	wire.EventApprovalRequested: true, wire.EventApprovalReceived: true,
	wire.EventClarificationRequested: true, wire.EventClarificationResolved: true,
	wire.EventInterruptRequested: true, wire.EventInterruptResolved: true, wire.EventArtifactCreated: true,
}

// Form returns how an event type is shown. An event is shown once, even if several modes
// include it.
func (m Modes) Form(t wire.EventType) Form {
	switch {
	case m.values:
		if updates[t] || t == wire.EventNodeStarted {
			return AsValues
		}
		return Hidden
	case t == wire.EventOutputChunk && m.messages:
		return AsChunk
	case m.debug, m.updates && updates[t]:
		return AsEvent
	default:
		return Hidden
	}
}
