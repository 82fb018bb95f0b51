// Package runcheck checks the events of a run, and its snapshot, against the protocol's rules for
// all runs. It needs only data that every reader of a run receives.
//
// A finding means a fault of the host or of the storage of the events: a valid request cannot cause
// one.
package runcheck

// Rule names one rule.
type Rule string

// The rules, in the order of reports.
const (
	Document   Rule = "document"
	Sequence   Rule = "sequence"
	Start      Rule = "start"
	End        Rule = "end"
	RunStatus  Rule = "run-status"
	NodeStatus Rule = "node-status"
	Attempt    Rule = "attempt"
	Envelope   Rule = "envelope"
	Cause      Rule = "cause"
	Snapshot   Rule = "snapshot"
)

// Row describes a rule and the section of the protocol that defines it.
type Row struct {
	Rule    Rule
	Promise string
	Section string
}

// Rows returns all rules.
func Rows() []Row {
	return []Row{
		{Document, "each event has an id of its own, the id of the run, a type, a payload and a time", "host core 3.3"},
		{Sequence, "events count from 0 without a gap or a double", "host core 3.3"},
		{Start, "the run starts once, with its first event, unless it was cancelled before that", "host core 3.1"},
		{End, "the run ends once, and nothing follows", "host core 3.1"},
		{RunStatus, "each event is valid at the run's status", "host core 3.1"},
		{NodeStatus, "each event is valid at its node's status", "host core 3.1"},
		{Attempt, "attempts of nodes and of emissions increase by one", "host core 3.4, envelopes 15"},
		{Envelope, "an envelope is recorded once", "envelopes 9 and 10"},
		{Cause, "what caused an event was recorded before it", "host core 3.3"},
		{Snapshot, "the snapshot equals the fold of the events", "host core 3.2"},
	}
}

// Finding is a violation of a rule.
type Finding struct {
	Rule Rule `json:"check"`
	// Sequence is the sequence of the event; nil if the finding is not about one event.
	Sequence *int   `json:"sequence,omitempty"`
	Message  string `json:"message"`
}
