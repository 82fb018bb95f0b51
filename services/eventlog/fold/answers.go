package fold

import (
	"cmp"
	"fmt"
	"math/big"
	"strings"

	"waybill.dev/waybill/protocol/fault"
	"waybill.dev/waybill/protocol/view"
	"waybill.dev/waybill/protocol/wire"
)

// structured is the node type whose answers are values, not envelopes.
const structured = "core.ai.structuredOutput"

// answers folds the model calls of a run.
type answers struct {
	all   []*view.Execution
	nodes map[string]*node
}

// node is the state of one node.
type node struct {
	id      string
	answers *answers
	current *view.Execution
	number  int
	// waiting: an answer from outside arrived since the last call. handedIn: an external executor
	// submits the envelopes.
	waiting, handedIn bool
	// recorded maps sequences to the envelopes that they recorded, to resolve duplicates.
	recorded map[int]recording
	// reasoning is the count that was reported for the next usage; nil for none.
	reasoning *big.Int
}

type recording struct {
	call     *view.Call
	envelope *view.Envelope
}

// view returns the executions that concern a model.
func (a *answers) view() []*view.Execution {
	out := []*view.Execution{}
	for _, x := range a.all {
		if len(x.Calls) == 0 && x.Substitution == nil && x.Insufficient == nil && !strings.HasPrefix(x.TypeID, "core.ai.") {
			continue
		}
		tell(x)
		out = append(out, x)
	}
	return out
}

func (a *answers) add(e wire.Event, p *payload, id string) {
	n, ok := a.nodes[id]
	if !ok {
		n = &node{id: id, answers: a, recorded: map[int]recording{}}
		a.nodes[id] = n
	}
	n.read(e, p)
	if n.current != nil {
		n.current.To = e.Sequence
	}
}

func (n *node) read(e wire.Event, p *payload) {
	switch e.Type {
	case "model.capability.substituted":
		n.begin(e).Substitution = &view.Substitution{
			From:    view.Model{Provider: p.OriginalProvider, Model: p.OriginalModel},
			To:      view.Model{Provider: p.FallbackProvider, Model: p.FallbackModel},
			Missing: list(p.MissingCapabilities), Hidden: p.FallbackModel == "[REDACTED]", Event: ref(e),
		}
	case "model.capability.insufficient":
		n.begin(e).Insufficient = &view.Insufficient{
			Provider: p.Provider, Model: p.Model, Missing: list(p.MissingCapabilities),
			FallbackAttempted: p.FallbackAttempted, Event: ref(e),
		}
	case "node.started":
		x := n.current
		if x == nil || x.Result != view.ResultOpen || x.TypeID != "" || x.Substitution == nil {
			x = n.begin(e)
		}
		x.TypeID = p.TypeID
	case "node.retried":
		n.end(view.ResultRetried, cmp.Or(p.LastError, p.Error))
	case "node.suspended":
		if n.current != nil && n.current.Result == view.ResultOpen {
			n.current.Result = view.ResultWaiting
		}
	case "node.resumed":
		if n.current != nil && n.current.Result == view.ResultWaiting {
			n.current.Result = view.ResultOpen
		}
		n.waiting = true
	case "node.cancelled":
		n.end(view.ResultCancelled, nil)
	case "node.completed":
		n.completed(e, p)
	case "node.failed":
		n.failed(e, p)
	default:
		n.answered(e, p)
	}
}

func (n *node) begin(e wire.Event) *view.Execution {
	n.number++
	n.current = &view.Execution{
		NodeID: n.id, Number: n.number, Result: view.ResultOpen, Calls: []*view.Call{}, From: e.Sequence, To: e.Sequence,
	}
	n.waiting = false
	n.answers.all = append(n.answers.all, n.current)
	return n.current
}

func (n *node) end(result view.Result, err *nodeError) {
	if n.current != nil {
		n.current.Result, n.current.Error = result, err.view()
	}
}

// last returns the last call, which an event of the host refers to.
func (n *node) last(e wire.Event) *view.Call { return n.call(e, false, "") }

// call returns the open call, or opens one if there is none or next is set.
func (n *node) call(e wire.Event, next bool, cause view.Cause) *view.Call {
	x := n.current
	if x == nil {
		x = n.begin(e)
	}
	switch {
	case len(x.Calls) > 0 && !next:
		last := x.Calls[len(x.Calls)-1]
		last.To = e.Sequence
		return last
	case cause != "":
	case len(x.Calls) == 0:
		cause = view.CauseFirst
	case n.waiting:
		cause = view.CauseAfterAnswer
	default:
		cause = view.CauseNextTurn
	}
	return n.open(e, cause, 0, nil)
}

// ended reports whether the last call has ended: its usage is recorded.
func (n *node) ended() bool {
	return n.current != nil && len(n.current.Calls) > 0 && n.current.Calls[len(n.current.Calls)-1].Usage != nil
}

func (n *node) open(e wire.Event, cause view.Cause, attempt int, because *view.Failure) *view.Call {
	x := n.current
	c := &view.Call{
		Ordinal: len(x.Calls) + 1, Attempt: attempt, Cause: cause, Because: because,
		Envelopes: []*view.Envelope{}, From: e.Sequence, To: e.Sequence,
	}
	if attempt == 0 {
		c.Attempt = 1
		if len(x.Calls) > 0 && cause != view.CauseAfterAnswer {
			c.Attempt = x.Calls[len(x.Calls)-1].Attempt + 1
		}
	}
	x.Calls = append(x.Calls, c)
	n.waiting = false
	return c
}

func (n *node) answered(e wire.Event, p *payload) {
	switch e.Type {
	case "output.chunk":
		n.call(e, n.ended(), "")
	case "provider.usage":
		usage := usageOf(p, n.reasoning)
		n.reasoning = nil
		n.call(e, n.ended(), "").Usage = &usage
	case "envelope.truncated":
		n.last(e).Truncated = &view.Truncation{
			StopReason: cmp.Or(p.StopReason, "unknown"), OutputTokens: integer(p.OutputTokenCount), Partial: p.PartialAvailable,
		}
	case "envelope.refusal":
		n.last(e).Refusal = &view.Refusal{Text: p.RefusalText, Category: p.SafetyCategory}
	case "envelope.recovery.applied":
		path := cmp.Or(p.Path, "custom")
		n.last(e).Recovery = &view.Recovery{Path: path, Words: recovered(path), ByteOffset: integer(p.ByteOffset)}
	case "envelope.retry.attempted":
		why := failure(p.Reason, p.PreviousError)
		n.fails(n.last(e), why)
		n.open(e, view.CauseRetry, whole(p.Attempt), why)
	case "envelope.retry.exhausted":
		n.fails(n.last(e), failure(p.FinalReason, p.FinalError))
		n.current.Exhausted = cmp.Or(whole(p.TotalAttempts), len(n.current.Calls))
	case "envelope.nlToFormat.engaged":
		// Only text without a document counts as prose; the event has no further cause.
		why := failure(parseError, "it is text, not a JSON document")
		n.fails(n.last(e), why)
		n.open(e, view.CauseProse, 0, why)
	case "cap.breached":
		n.breached(e, p)
	default:
		n.records(e, p)
	}
}

// fails ends a call whose answer was rejected.
func (n *node) fails(c *view.Call, why *view.Failure) {
	c.Failure = why
	if why.Reason == "truncation" || why.Reason == "refusal" || why.Reason == parseError {
		return
	}
	gate := gateOf(why)
	if n.current.TypeID == structured && gate.Name == "payload" {
		n.adds(c, &view.Envelope{Form: view.FormValue, Outcome: view.OutcomeRefused, Gates: ofValue(&gate)})
		return
	}
	n.refuses(c, gate, &view.Envelope{Outcome: view.OutcomeRefused})
}

func (n *node) refuses(c *view.Call, gate view.Gate, x *view.Envelope) {
	x.Form, x.Kind, x.Gates = view.FormEnvelope, gate.RefusedKind, refused(gate)
	n.adds(c, x)
}

// adds appends a document without an id to a call.
func (n *node) adds(c *view.Call, x *view.Envelope) {
	x.Key = fmt.Sprintf("%s.%d.%d.%d", n.id, n.number, c.Ordinal, len(c.Envelopes)+1)
	if x.Events == nil {
		x.Events = []view.EventRef{}
	}
	c.Envelopes = append(c.Envelopes, x)
}

// limits are the limits that count envelopes. Others limit the run or the node.
var limits = map[string]string{
	"envelopes": "envelopes per turn", "schema": "schema rounds", "clarification": "questions per node",
}

func (n *node) breached(e wire.Event, p *payload) {
	counted, ok := limits[p.Kind]
	if n.current == nil || n.current.Exhausted > 0 || !ok {
		return
	}
	gate := view.Gate{
		Name: "limits", Code: string(fault.CapBreached),
		Reason: fmt.Sprintf("%s: %d exceeds the limit of %d", counted, whole(p.Observed), whole(p.Limit)),
	}
	n.refuses(n.last(e), gate, &view.Envelope{
		Outcome: view.OutcomeRefused, Events: []view.EventRef{ref(e)}, CorrelationID: e.CausationID,
	})
}

func ref(e wire.Event) view.EventRef {
	return view.EventRef{EventID: e.EventID, Sequence: e.Sequence, Type: string(e.Type)}
}

// list returns a list that is rendered as [] when it is empty.
func list(texts []string) []string {
	if texts == nil {
		return []string{}
	}
	return texts
}

func failure(reason, detail string) *view.Failure {
	reason = cmp.Or(reason, "unknown")
	return &view.Failure{Reason: reason, Words: inWords(reason, detail), Detail: detail}
}
