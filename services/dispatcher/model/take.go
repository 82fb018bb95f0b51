package model

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"

	"waybill.dev/waybill/protocol/fault"
	"waybill.dev/waybill/protocol/wire"
	"waybill.dev/waybill/protocol/workflow"
	"waybill.dev/waybill/services/dispatcher/node"
	"waybill.dev/waybill/services/dispatcher/provider"
)

// take turns a clean answer into the node's result.
func (c *call) take(ctx context.Context, res provider.Result, attempt int) verdict {
	docs := c.restore(extract(res.Text))
	switch {
	case c.want.value != nil:
		return c.takeValue(docs)
	case c.want.kind != "" || c.contract() != nil || len(res.Media) > 0:
		return c.takeEnvelopes(ctx, res, docs, attempt)
	default:
		return c.succeed(textOutput(res.Text))
	}
}

func textOutput(text string) node.Output {
	return node.Output{Ports: map[string]json.RawMessage{
		"output": wire.AppendString(nil, text), "envelopes": json.RawMessage("[]"),
	}}
}

// takeValue accepts the first document that satisfies the node's output schema.
func (c *call) takeValue(docs []document) verdict {
	if len(docs) == 0 {
		return verdict{failure: parseFailure()}
	}
	d := docs[0]
	if violations := c.want.value.Validate(d.raw); len(violations) > 0 {
		return verdict{failure: schemaFailure(violations)}
	}
	c.recovered(d)
	return c.succeed(node.Output{Ports: map[string]json.RawMessage{"output": d.raw}})
}

// recovered tells that lenient parsing was needed; without any of the text.
func (c *call) recovered(d document) {
	if d.path == pathDirect || c.told {
		return
	}
	c.add(wire.EventEnvelopeRecovery, wire.EnvelopeRecovery{NodeID: c.task.Input.NodeID, Path: d.path, ByteOffset: d.offset})
}

func (c *call) contract() *workflow.EnvelopeContract {
	if c.task.Contract != nil {
		return c.task.Contract
	}
	return c.cfg.Contract
}

// kindClarification is a question to somebody outside, for whose answer the node waits.
const kindClarification = "clarification.request"

// takeEnvelopes hands each envelope of the answer to the accept pipeline, in
// order. If one of them fails the node, the rest is not processed.
func (c *call) takeEnvelopes(ctx context.Context, res provider.Result, docs []document, attempt int) verdict {
	emissions, err := c.emissions(ctx, docs, res)
	if err != nil {
		return verdict{done: &Result{Interrupted: err}}
	}
	if len(emissions) == 0 {
		if c.want.kind == "" { // nothing was asked for: the text is the answer
			return c.succeed(textOutput(res.Text))
		}
		return verdict{failure: parseFailure()}
	}
	c.recovered(emissions[0].doc)
	t := turn{call: c, attempt: attempt, size: len(emissions)}
	for i, e := range emissions {
		if v, ended := t.accept(ctx, i, e); ended {
			return v
		}
	}
	switch {
	case t.asks():
		return verdict{done: &Result{Waits: true, Drafts: t.drafts}}
	case t.onlySideChannel():
		return t.another(ctx)
	case len(t.accepted) == 0 && t.fragments > 0:
		return verdict{failure: fragmentFailure()}
	}
	return c.succeed(t.output())
}

// asks reports whether the model wants to know something before it goes on.
func (t *turn) asks() bool {
	return slices.ContainsFunc(t.accepted, func(a acceptedEnvelope) bool { return a.Type == kindClarification })
}

// turn collects what one answer's envelopes came to.
type turn struct {
	*call
	attempt  int
	size     int // envelopes in the answer
	accepted []acceptedEnvelope
	// recorded are the sequences of the events that record those accepted.
	recorded []int
	// fragments counts pieces of streamed envelopes: they are shown and are no
	// answer (OpenWOP envelope contract §2, PartialInfo).
	fragments int
}

type acceptedEnvelope struct {
	Type       string          `json:"type"`
	EnvelopeID string          `json:"envelopeId"`
	Payload    json.RawMessage `json:"payload"`
}

// accept runs one envelope through the pipeline; ended is false when the turn
// goes on with the next one.
func (t *turn) accept(ctx context.Context, index int, e emission) (verdict, bool) {
	p := t.place(index)
	t.tag(t.drafts)
	o, err := t.journal.Accept(ctx, AcceptRequest{
		NodeID: t.task.Input.NodeID, Envelope: e.complete(p, t.version(ctx, e.kind), t.task.Trust, t.deps.Clock()),
		Contract: t.contract(), TurnCount: len(t.accepted), Answer: t.part(index), SchemaRounds: t.attempt - 1, Clarifications: t.task.Clarifications,
		Traceparent: t.task.Trace.Attempt(t.task.Input.NodeID, t.task.Attempt), Preceding: slices.Clone(t.drafts),
	})
	if o.Preceded {
		t.drafts = nil
	}
	if err != nil {
		return verdict{done: &Result{Interrupted: err}}, true
	}
	return t.settle(e, o, e.cause(p))
}

// part tells the log which part of the answer an envelope is.
func (t *turn) part(index int) wire.AnswerPart {
	if t.size < 2 {
		return wire.AnswerPart{}
	}
	return wire.AnswerPart{Size: t.size, Index: index, With: slices.Clone(t.recorded)}
}

func (c *call) place(index int) place {
	return place{
		runID: c.task.RunID, nodeID: c.task.Input.NodeID, attempt: c.task.Attempt, answered: len(c.task.Answered), round: c.round, index: index,
	}
}

// version is the advertised one of the kind; 0 lets the kind step refuse an
// unknown kind itself.
func (c *call) version(ctx context.Context, kind string) int {
	if kind == c.want.kind {
		return c.want.version
	}
	k, _, err := c.deps.Schemas.Kind(ctx, kind)
	if err != nil {
		return 0
	}
	return k.Version
}

// settle turns an outcome into the next step of the turn. cause is the envelope's
// correlationId.
func (t *turn) settle(e emission, o Outcome, cause string) (verdict, bool) {
	switch {
	case o.Status == "accepted" && e.fragment():
		t.fragments++
		return verdict{}, false
	case o.Status == "accepted":
		t.accepted = append(t.accepted, acceptedEnvelope{Type: e.kind, EnvelopeID: o.EnvelopeID, Payload: o.Payload})
		t.recorded = append(t.recorded, o.Sequence)
		return verdict{}, false
	case o.Status == "breached":
		return t.breached(o, cause), true
	}
	if f, retry := outcomeFailure(o); retry {
		return verdict{failure: f}, true
	}
	if o.Status == "gated" {
		return t.gated(e, o, cause)
	}
	code, message := fault.Code(o.Reason), "the accept pipeline refused the envelope"
	if f, _ := outcomeFailure(o); fault.Known(f.code) {
		code = f.code
	}
	return t.end(&wire.NodeError{Code: string(code), Message: message, CausationID: cause}), true
}

// gated applies the contract's refusal mode (OpenWOP envelope contract §7).
func (t *turn) gated(e emission, o Outcome, cause string) (verdict, bool) {
	g := o.Gate
	if g == nil {
		g = &Gate{RefusedType: e.kind, AcceptedTypes: o.AllowedKinds}
	}
	if g.RefusalMode == "discard-and-warn" {
		t.caused(cause, wire.EventLogAppended, struct {
			Level   string         `json:"level"`
			Message string         `json:"message"`
			NodeID  string         `json:"nodeId"`
			Fields  map[string]any `json:"fields"`
		}{"warn", "envelope discarded: the node's contract does not accept its kind", t.task.Input.NodeID, map[string]any{
			"kind": g.RefusedType, "allowedKinds": g.AcceptedTypes, "refusalMode": g.RefusalMode,
		}})
		return verdict{}, false
	}
	return t.end(&wire.NodeError{
		Code: string(fault.EnvelopeContractViolation), Message: fmt.Sprintf("the node's contract does not accept envelopes of type %s", g.RefusedType),
		Details: map[string]any{"refusedType": g.RefusedType, "acceptedTypes": g.AcceptedTypes}, CausationID: cause,
	}), true
}

// breached records the cap and fails the node; exactly one of each.
func (t *turn) breached(o Outcome, cause string) verdict {
	limit := map[string]int{
		"envelopes": t.limits.EnvelopesPerTurn, "schema": t.limits.SchemaRounds, "clarification": t.limits.ClarificationRounds,
	}[o.CapKind]
	t.caused(cause, wire.EventCapBreached, capPayload{Kind: o.CapKind, Limit: limit, Observed: limit + 1, NodeID: t.task.Input.NodeID})
	return t.end(&wire.NodeError{
		Code: string(fault.CapBreached), Message: "the host's limit of " + o.CapKind + " is reached", Details: map[string]any{"capKind": o.CapKind},
		CausationID: cause,
	})
}

// caused adds an event that an envelope causes (OpenWOP envelope contract §8, §10).
func (t *turn) caused(cause string, typ wire.EventType, payload any) {
	t.add(typ, payload)
	t.drafts[len(t.drafts)-1].CausationID = cause
}

// output is the payload of the first envelope of the kind asked for, else of
// the first one, and the list of all that are for the node.
func (t *turn) output() node.Output {
	return outputOf(t.want.kind, t.accepted)
}

func outputOf(kind string, accepted []acceptedEnvelope) node.Output {
	out := json.RawMessage("null")
	accepted = slices.DeleteFunc(slices.Clone(accepted), func(a acceptedEnvelope) bool { return sideChannel(a.Type) })
	for i, a := range accepted {
		if i == 0 || a.Type == kind {
			out = a.Payload
		}
		if a.Type == kind {
			break
		}
	}
	if accepted == nil {
		accepted = []acceptedEnvelope{}
	}
	list, err := json.Marshal(accepted)
	if err != nil { // payloads come from the log
		list = json.RawMessage("[]")
	}
	return node.Output{Ports: map[string]json.RawMessage{"output": out, "envelopes": list}}
}

// fromLog ends a node whose answer was recorded before its executor was lost:
// the model is not asked again for what the log has, also on a host that has the
// kind no more (OpenWOP envelope contract §26 case 23). If a part of an answer is
// missing the model is asked, and what it repeats is not recorded twice.
func (c *call) fromLog() (Result, bool) {
	if answer, whole := c.recorded(); whole {
		return Result{Output: outputOf(c.cfg.EnvelopeType, answer), Trust: wire.Trusted.Meet(c.task.Trust)}, true
	}
	return Result{}, false
}

// recorded is the answer that the log has of any round.
func (c *call) recorded() (answer []acceptedEnvelope, whole bool) {
	if c.task.TypeID == node.TypeStructuredOutput {
		return nil, false
	}
	for c.round = range c.tries {
		if answer, whole = c.recordedTurn(); whole {
			return answer, true
		}
	}
	c.round = 0
	return nil, false
}

// recordedTurn is the answer of a round as the log has it; whole is false unless
// all of it is there, with an envelope of the kind asked for or, where none was, one
// that ends the node.
func (c *call) recordedTurn() (answer []acceptedEnvelope, whole bool) {
	turn, ok := c.lastTurn()
	if !ok {
		return nil, false
	}
	for _, r := range turn {
		answer = append(answer, acceptedEnvelope{Type: r.Kind, EnvelopeID: r.EnvelopeID, Payload: r.Payload})
	}
	kind, asks := c.cfg.EnvelopeType, slices.ContainsFunc(answer, func(a acceptedEnvelope) bool { return a.Type == kindClarification })
	return answer, slices.ContainsFunc(answer, func(a acceptedEnvelope) bool {
		return a.Type == kind || kind == "" && !asks && !sideChannel(a.Type)
	})
}

// lastTurn is the latest answer of a round of which the log has anything; whole is
// false unless it surely has all of it. Envelopes of answers before it, which were
// refused for others, are no part of it, but for those that it repeats.
func (c *call) lastTurn() (answer []Recorded, whole bool) {
	last, ok := c.lastRecorded()
	if !ok {
		return nil, false
	}
	for _, seq := range last.Answer.With {
		before, ok := c.recordedAs(seq)
		if !ok {
			return nil, false
		}
		answer = append(answer, before)
	}
	return append(answer, last), last.Answer.Last()
}

// lastRecorded is the envelope of a round that was recorded last.
func (c *call) lastRecorded() (last Recorded, ok bool) {
	for id, r := range c.task.Recorded {
		if ok && r.Sequence <= last.Sequence {
			continue
		}
		if c.place(r.Answer.Index).correlationID(r.Kind) == id {
			last, ok = r, true
		}
	}
	return last, ok
}

// recordedAs is the envelope that the event of a sequence records.
func (c *call) recordedAs(sequence int) (Recorded, bool) {
	for _, r := range c.task.Recorded {
		if r.Sequence == sequence {
			return r, true
		}
	}
	return Recorded{}, false
}
