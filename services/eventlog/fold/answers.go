package fold

import (
	"cmp"
	"fmt"
	"math/big"
	"strings"

	"waybill.dev/waybill/protocol/fault"
	"waybill.dev/waybill/protocol/runstate"
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
	// at is the time of the event that is read, since when the next call counts, and began when the
	// last one did.
	at, since, began int64
	// instead is why the node's attempts call another model than its own; empty for its own.
	instead string
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

// over returns the last execution of a node if it has ended; nil if not.
func (a *answers) over(id string) *view.Execution {
	n := a.nodes[id]
	if n == nil || n.current == nil || n.current.Result == view.ResultOpen || n.current.Result == view.ResultWaiting {
		return nil
	}
	return n.current
}

func (a *answers) add(e wire.Event, p *payload, id string, at int64) {
	n, ok := a.nodes[id]
	if !ok {
		n = &node{id: id, answers: a, recorded: map[int]recording{}}
		a.nodes[id] = n
	}
	n.at = at
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
		x.Choice = n.choice()
		n.since = n.at
	case "node.retried":
		n.retried(p)
	case "node.suspended":
		if n.current != nil && n.current.Result == view.ResultOpen {
			n.current.Result = view.ResultWaiting
		}
	case "node.resumed":
		if n.current != nil && n.current.Result == view.ResultWaiting {
			n.current.Result = view.ResultOpen
		}
		n.waiting = true
		n.since = n.at
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

// retried ends an attempt that another one follows, maybe with the next model of a list.
func (n *node) retried(p *payload) {
	if p.branched() {
		n.end(view.ResultBranched, nil)
		return
	}
	err := cmp.Or(p.LastError, p.Error)
	switch {
	case err != nil && err.Details.Reason == runstate.ModelFailed && err.Details.Next != nil:
		n.instead = fmt.Sprintf("Called because the model before it failed: %s.", cmp.Or(err.Message, err.Code))
	case err == nil || err.Details.Reason != runstate.NoCapacity && err.Details.Reason != runstate.ExecutorLost:
		n.instead = ""
	}
	n.end(view.ResultRetried, err)
}

// choice returns why the model of an execution is called.
func (n *node) choice() string {
	s := n.current.Substitution
	switch {
	case s != nil && s.Hidden:
		return fmt.Sprintf("Called instead of %s/%s, which lacks %s. The host does not name the model.",
			s.From.Provider, s.From.Model, strings.Join(s.Missing, ", "))
	case s != nil:
		return fmt.Sprintf("Called instead of %s/%s, which lacks %s.", s.From.Provider, s.From.Model, strings.Join(s.Missing, ", "))
	default:
		return n.instead
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
	n.began = n.since
	if cause == view.CauseRetry || cause == view.CauseProse {
		n.began = n.at
	}
	return c
}

// spoke notes the first text of a call.
func (n *node) spoke(c *view.Call) {
	if c.FirstMs == nil {
		ms := n.at - n.began
		c.FirstMs = &ms
	}
}

// finished notes the usage of a call, with which it ends.
func (n *node) finished(c *view.Call, u view.Usage) {
	took := n.at - n.began
	c.Usage, c.TookMs, c.Partial = &u, &took, nil
	n.since = n.at
	if c.FirstMs == nil || u.OutputTokens == nil || took <= *c.FirstMs {
		return
	}
	tokens, _ := new(big.Float).SetInt(u.OutputTokens).Float64()
	rate := tokens * 1000 / float64(took-*c.FirstMs)
	c.TokensPerSecond = &rate
}

func (n *node) answered(e wire.Event, p *payload) {
	switch e.Type {
	case "prompt.composed":
		c := n.call(e, n.ended(), "")
		c.Prompt, n.began = &e.Sequence, n.at
	case "agent.reasoning.delta":
		if n.current != nil && !n.handedIn {
			n.spoke(n.call(e, n.ended(), ""))
		}
	case "agent.reasoned":
		if n.current != nil && !n.handedIn {
			c := n.call(e, n.ended(), "")
			n.spoke(c)
			c.Thoughts = append(c.Thoughts, e.Sequence)
		}
	case "output.chunk":
		c := n.call(e, n.ended(), "")
		n.spoke(c)
		if p.Partial.IsPartial {
			c.Partial = &e.Sequence
		}
	case "provider.usage":
		n.finished(n.call(e, n.ended(), ""), usageOf(p, n.reasoning))
		n.reasoning = nil
	case "envelope.truncated":
		n.last(e).Truncated = &view.Truncation{
			StopReason: cmp.Or(p.StopReason, "unknown"), OutputTokens: integer(p.OutputTokenCount), Partial: p.PartialAvailable,
		}
	case "envelope.refusal":
		n.last(e).Refusal = &view.Refusal{Text: p.RefusalText, Category: p.SafetyCategory}
	case "envelope.recovery.applied":
		path := cmp.Or(p.Path, "custom")
		n.last(e).Recovery = &view.Recovery{Path: path, Words: view.Recovered(path), ByteOffset: integer(p.ByteOffset)}
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
