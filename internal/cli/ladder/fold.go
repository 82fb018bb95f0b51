package ladder

import (
	"cmp"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"waybill.dev/waybill/protocol/wire"
)

// structured is the node type that gives a value, and no envelope.
const structured = "core.ai.structuredOutput"

// Read gives what the models of a run were asked and what became of their answers, in
// the order in which nodes were carried out.
func Read(events []wire.Event) []*Execution {
	f := fold{nodes: map[string]*node{}}
	for _, e := range events {
		f.take(e)
	}
	return slices.DeleteFunc(f.all, func(x *Execution) bool {
		return len(x.Calls) == 0 && x.Substituted == "" && x.Insufficient == "" && !strings.HasPrefix(x.TypeID, "core.ai.")
	})
}

type fold struct {
	all   []*Execution
	nodes map[string]*node
}

// node is the history of one node while the log is read.
type node struct {
	id      string
	fold    *fold
	current *Execution
	number  int
	// waiting: an answer from outside came since the last call.
	waiting, handedIn bool
	// recorded is which call recorded which sequence: an answer that repeats an envelope
	// names it so.
	recorded map[int]recording
}

type recording struct {
	call     *Call
	envelope *Envelope
}

// document is a payload, as far as the ladder reads it.
type document struct {
	NodeID string `json:"nodeId"`
	TypeID string `json:"typeId"`

	OriginalProvider    string   `json:"originalProvider"`
	OriginalModel       string   `json:"originalModel"`
	FallbackProvider    string   `json:"fallbackProvider"`
	FallbackModel       string   `json:"fallbackModel"`
	Provider            string   `json:"provider"`
	Model               string   `json:"model"`
	MissingCapabilities []string `json:"missingCapabilities"`

	StopReason       string `json:"stopReason"`
	OutputTokenCount int    `json:"outputTokenCount"`
	RefusalText      string `json:"refusalText"`
	SafetyCategory   string `json:"safetyCategory"`
	Path             string `json:"path"`

	Attempt       int    `json:"attempt"`
	Reason        string `json:"reason"`
	PreviousError string `json:"previousError"`
	TotalAttempts int    `json:"totalAttempts"`
	FinalReason   string `json:"finalReason"`
	FinalError    string `json:"finalError"`

	Kind     string `json:"kind"`
	Limit    int    `json:"limit"`
	Observed int    `json:"observed"`

	Error     *Error                     `json:"error"`
	LastError *Error                     `json:"lastError"`
	Outputs   map[string]json.RawMessage `json:"outputs"`

	Message string `json:"message"`
	Fields  struct {
		stamp

		RefusalMode  string   `json:"refusalMode"`
		Kind         string   `json:"kind"`
		AllowedKinds []string `json:"allowedKinds"`
	} `json:"fields"`
	Envelope stamp `json:"envelope"`

	ArtifactID   string `json:"artifactId"`
	ArtifactType string `json:"artifactType"`
	stamp
}

// stamp is what an event says of the envelope that it records.
type stamp struct {
	EnvelopeType string          `json:"envelopeType"`
	EnvelopeID   string          `json:"envelopeId"`
	Version      string          `json:"version"`
	Payload      json.RawMessage `json:"payload"`
	Answer       struct {
		With []int `json:"with"`
	} `json:"answer"`
}

func (f *fold) take(e wire.Event) {
	var p document
	// A payload of another shape says nothing here; what fits of it is read all the same.
	_ = json.Unmarshal(e.Payload, &p)
	id := cmp.Or(e.NodeID, p.NodeID)
	if id == "" {
		return
	}
	n, ok := f.nodes[id]
	if !ok {
		n = &node{id: id, fold: f, recorded: map[int]recording{}}
		f.nodes[id] = n
	}
	n.read(e, p)
}

func (n *node) read(e wire.Event, p document) {
	switch e.Type {
	case "model.capability.substituted":
		n.begin().Substituted = fmt.Sprintf("%s/%s lacks %s, so %s/%s was asked", p.OriginalProvider, p.OriginalModel,
			strings.Join(p.MissingCapabilities, ", "), p.FallbackProvider, p.FallbackModel)
	case "model.capability.insufficient":
		n.begin().Insufficient = fmt.Sprintf("%s/%s lacks %s, and nothing took its place", p.Provider, p.Model, strings.Join(p.MissingCapabilities, ", "))
	case "node.started":
		x := n.current
		if x == nil || x.Result != "open" || x.TypeID != "" || x.Substituted == "" {
			x = n.begin()
		}
		x.TypeID = p.TypeID
	case "node.retried":
		n.end("retried", cmp.Or(p.LastError, p.Error))
	case "node.suspended":
		if n.current != nil && n.current.Result == "open" {
			n.current.Result = "waiting"
		}
	case "node.resumed":
		if n.current != nil && n.current.Result == "waiting" {
			n.current.Result = "open"
		}
		n.waiting = true
	case "node.cancelled":
		n.end("cancelled", nil)
	case "node.completed":
		n.completed(e, p)
	case "node.failed":
		n.failed(e, p)
	default:
		n.answered(e, p)
	}
}

func (n *node) begin() *Execution {
	n.number++
	n.current = &Execution{NodeID: n.id, Number: n.number, Result: "open", Calls: []*Call{}}
	n.waiting = false
	n.fold.all = append(n.fold.all, n.current)
	return n.current
}

func (n *node) end(result string, err *Error) {
	if n.current != nil {
		n.current.Result, n.current.Error = result, err
	}
}

// call is the one that is being made; with another, one that is over is not it.
func (n *node) call(another func(*Call) bool, cause string) *Call {
	x := n.current
	if x == nil {
		x = n.begin()
	}
	var last *Call
	if len(x.Calls) > 0 {
		last = x.Calls[len(x.Calls)-1]
	}
	switch {
	case last != nil && !another(last):
		return last
	case cause != "":
	case last == nil:
		cause = causeFirst
	case n.waiting:
		cause = causeAfterAnswer
	default:
		cause = causeNextTurn
	}
	return n.open(cause, 0)
}

func (n *node) open(cause string, attempt int) *Call {
	x := n.current
	c := &Call{Ordinal: len(x.Calls) + 1, Attempt: attempt, Cause: cause, Envelopes: []*Envelope{}}
	if attempt == 0 {
		c.Attempt = 1
		if len(x.Calls) > 0 && cause != causeAfterAnswer {
			c.Attempt = x.Calls[len(x.Calls)-1].Attempt + 1
		}
	}
	x.Calls = append(x.Calls, c)
	n.waiting = false
	return c
}

// last is the call that an event of the host speaks of.
func (n *node) last() *Call { return n.call(func(*Call) bool { return false }, "") }

func (n *node) answered(e wire.Event, p document) {
	over := func(c *Call) bool { return c.used }
	switch e.Type {
	case "output.chunk":
		n.call(over, "")
	case "provider.usage":
		c := n.call(over, "")
		c.used, c.Model = true, p.Provider+"/"+p.Model
	case "envelope.truncated":
		n.last().Truncated = &Truncation{StopReason: cmp.Or(p.StopReason, "unknown"), OutputTokens: p.OutputTokenCount}
	case "envelope.refusal":
		n.last().Refusal = &Refusal{Text: p.RefusalText, Category: p.SafetyCategory}
	case "envelope.recovery.applied":
		n.last().Recovery = p.Path
	case "envelope.retry.attempted":
		n.fails(n.last(), Failure{cmp.Or(p.Reason, "unknown"), p.PreviousError})
		n.open(causeRetry, p.Attempt)
	case "envelope.retry.exhausted":
		n.fails(n.last(), Failure{cmp.Or(p.FinalReason, "unknown"), p.FinalError})
		n.current.Exhausted = cmp.Or(p.TotalAttempts, len(n.current.Calls))
	case "envelope.nlToFormat.engaged":
		// Only an answer without any document is prose: the event says no more of why.
		n.fails(n.last(), Failure{"parse-error", "it holds no JSON document"})
		n.open(causeProse, 0)
	case "cap.breached":
		n.breached(e, p)
	default:
		n.records(e, p)
	}
}

// fails is a call whose answer was not taken.
func (n *node) fails(c *Call, why Failure) {
	c.Failure = &why
	if why.Reason == "truncation" || why.Reason == "refusal" || why.Reason == "parse-error" {
		return
	}
	gate := gateOf(why)
	if n.current.TypeID == structured && gate.Gate == "payload" {
		n.adds(c, Envelope{Value: true, Outcome: OutcomeRefused, Rungs: ofValue(&gate)})
		return
	}
	n.refuses(c, gate, Envelope{Outcome: OutcomeRefused})
}

func (n *node) refuses(c *Call, gate Rung, x Envelope) {
	x.Kind, x.Rungs = gate.RefusedKind, refused(gate)
	n.adds(c, x)
}

func (n *node) adds(c *Call, x Envelope) {
	x.Key = fmt.Sprintf("%s.%d.%d.%d", n.id, n.number, c.Ordinal, len(c.Envelopes)+1)
	if x.Events == nil {
		x.Events = []Event{}
	}
	c.Envelopes = append(c.Envelopes, &x)
}

// limits are the caps that an envelope is counted against.
var limits = map[string]string{
	"envelopes":     "envelopes of the turn",
	"schema":        "rounds for the schema",
	"clarification": "questions of the node",
}

func (n *node) breached(e wire.Event, p document) {
	counted, ok := limits[p.Kind]
	if n.current == nil || n.current.Exhausted > 0 || !ok {
		return // one of the run, or what exhaustion also is
	}
	reason := fmt.Sprintf("%s: %d would be one more than the %d that are allowed", counted, p.Observed, p.Limit)
	n.refuses(n.last(), Rung{Gate: "limits", Code: "cap_breached", Reason: reason},
		Envelope{Outcome: OutcomeRefused, Events: []Event{named(e)}, CorrelationID: e.CausationID})
}

func named(e wire.Event) Event { return Event{e.EventID, e.Sequence, string(e.Type)} }
