// Package runcheck holds the events of a run, and its snapshot, against what the protocol
// promises of every run. It needs nothing but what each reader of a run is given.
//
// What it finds is a fault of a host, or of who kept the events since: no run can be made
// to break these rules.
package runcheck

// Rule is one promise.
type Rule string

// The rules, in the order in which they are told.
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

// Row says what a rule promises, and where the protocol does.
type Row struct {
	Rule    Rule
	Promise string
	Section string
}

// Rows are all rules.
func Rows() []Row {
	return []Row{
		{Document, "each event has an id of its own, the id of the run, a type, a payload and a time", "host core 3.3"},
		{Sequence, "events count from 0 without a gap or a double", "host core 3.3"},
		{Start, "the run starts once, with its first event, unless it was cancelled before", "host core 3.1"},
		{End, "the run ends once, and nothing follows", "host core 3.1"},
		{RunStatus, "each event may come at the status that the run has", "host core 3.1"},
		{NodeStatus, "each event may come at the status that its node has", "host core 3.1"},
		{Attempt, "attempts of nodes and of emissions count up by one", "host core 3.4, envelopes 15"},
		{Envelope, "an envelope is recorded once", "envelopes 9 and 10"},
		{Cause, "what caused an event was recorded before it", "host core 3.3"},
		{Snapshot, "the snapshot is what the events fold to", "host core 3.2"},
	}
}

// Finding is a place where a promise is not kept.
type Finding struct {
	Rule Rule `json:"check"`
	// Sequence is that of the event; nil: it is about none.
	Sequence *int   `json:"sequence,omitempty"`
	Message  string `json:"message"`
}
