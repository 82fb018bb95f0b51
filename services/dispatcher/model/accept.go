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

// acceptAnswer turns a clean answer into the node's result.
func (c *call) acceptAnswer(ctx context.Context, res provider.Result, attempt int) verdict {
	docs := c.restoreDocuments(extractDocuments(res.Text))
	switch {
	case c.expected.value != nil:
		return c.acceptValue(docs)
	case c.expected.kind != "" || c.contract() != nil || len(res.Media) > 0:
		return c.acceptEnvelopes(ctx, res, docs, attempt)
	default:
		return c.completeNode(textOutput(res.Text))
	}
}

func textOutput(text string) node.Output {
	return node.Output{Ports: map[string]json.RawMessage{
		"output": wire.AppendString(nil, text), "envelopes": json.RawMessage("[]"),
	}}
}

// acceptValue accepts the first document that satisfies the node's output schema.
func (c *call) acceptValue(docs []document) verdict {
	if len(docs) == 0 {
		return verdict{failure: parseFailure()}
	}
	d := docs[0]
	if violations := c.expected.value.Validate(d.raw); len(violations) > 0 {
		return verdict{failure: schemaFailure(violations)}
	}
	c.addRecoveryEvent(d)
	return c.completeNode(node.Output{Ports: map[string]json.RawMessage{"output": d.raw}})
}

// addRecoveryEvent records that lenient parsing was needed, without any of the text.
func (c *call) addRecoveryEvent(d document) {
	if d.path == pathDirect || c.answerShown {
		return
	}
	c.addEvent(wire.EventEnvelopeRecovery, wire.EnvelopeRecovery{NodeID: c.task.Input.NodeID, Path: d.path, ByteOffset: d.offset})
}

func (c *call) contract() *workflow.EnvelopeContract {
	if c.task.Contract != nil {
		return c.task.Contract
	}
	return c.cfg.Contract
}

// acceptEnvelopes passes each envelope of the answer to the accept pipeline, in order. If one of
// them fails the node, the rest is not processed.
func (c *call) acceptEnvelopes(ctx context.Context, res provider.Result, docs []document, attempt int) verdict {
	emissions, err := c.findEmissions(ctx, docs, res)
	if err != nil {
		return verdict{done: &Result{Interrupted: err}}
	}
	if len(emissions) == 0 {
		if c.expected.kind == "" { // without a requested kind, the text is the answer
			return c.completeNode(textOutput(res.Text))
		}
		return verdict{failure: parseFailure()}
	}
	c.addRecoveryEvent(emissions[0].doc)
	t := turn{call: c, attempt: attempt, size: len(emissions)}
	for i, e := range emissions {
		if v, ended := t.acceptEnvelope(ctx, i, e); ended {
			return v
		}
	}
	switch {
	case t.asksClarification():
		return verdict{done: &Result{Waits: true, Drafts: t.drafts}}
	case t.onlySideChannel():
		return t.addRequestedSchemas(ctx)
	case len(t.accepted) == 0 && t.fragments > 0:
		return verdict{failure: fragmentFailure()}
	}
	return c.completeNode(t.nodeOutput())
}

// asksClarification reports whether the model requested a clarification.
func (t *turn) asksClarification() bool {
	return slices.ContainsFunc(t.accepted, func(a acceptedEnvelope) bool { return a.Type == wire.KindClarificationRequest })
}

// turn collects the outcomes of one answer's envelopes.
type turn struct {
	*call
	attempt  int
	size     int // envelopes in the answer
	accepted []acceptedEnvelope
	// recorded are the sequences of the accepted envelopes' events.
	recorded []int
	// fragments counts partial envelopes. They are streamed and are no answer (OpenWOP envelope
	// contract §2, PartialInfo).
	fragments int
}

type acceptedEnvelope struct {
	Type       string          `json:"type"`
	EnvelopeID string          `json:"envelopeId"`
	Payload    json.RawMessage `json:"payload"`
}

// acceptEnvelope runs one envelope through the pipeline. ended is false if the turn continues with
// the next one.
func (t *turn) acceptEnvelope(ctx context.Context, index int, e emission) (verdict, bool) {
	p := t.position(index)
	t.markUntrusted(t.drafts)
	o, err := t.journal.Accept(ctx, AcceptRequest{
		NodeID: t.task.Input.NodeID, Envelope: e.complete(p, t.schemaVersion(ctx, e.kind), t.task.Trust, t.deps.Clock()),
		Contract: t.contract(), TurnCount: len(t.accepted), Answer: t.answerPart(index), SchemaRounds: t.attempt - 1, Clarifications: t.task.Clarifications,
		Traceparent: t.task.Trace.Attempt(t.task.Input.NodeID, t.task.Attempt), Preceding: slices.Clone(t.drafts),
	})
	if o.Preceded {
		t.drafts = nil
	}
	if err != nil {
		return verdict{done: &Result{Interrupted: err}}, true
	}
	return t.applyOutcome(e, o, e.causationID(p))
}

// answerPart describes which part of the answer an envelope is.
func (t *turn) answerPart(index int) wire.AnswerPart {
	if t.size < 2 {
		return wire.AnswerPart{}
	}
	return wire.AnswerPart{Size: t.size, Index: index, With: slices.Clone(t.recorded)}
}

func (c *call) position(index int) envelopePosition {
	return envelopePosition{
		runID: c.task.RunID, nodeID: c.task.Input.NodeID, attempt: c.task.Attempt, answered: len(c.task.Answered), round: c.round, index: index,
	}
}

// schemaVersion returns the advertised version of a kind; 0 lets the kind step reject an unknown
// kind.
func (c *call) schemaVersion(ctx context.Context, kind string) int {
	if kind == c.expected.kind {
		return c.expected.version
	}
	k, _, err := c.deps.Schemas.Kind(ctx, kind)
	if err != nil {
		return 0
	}
	return k.Version
}

// applyOutcome applies an outcome to the turn. cause is the envelope's correlationId.
func (t *turn) applyOutcome(e emission, o Outcome, cause string) (verdict, bool) {
	switch {
	case o.Status == wire.EnvelopeAccepted && e.fragment():
		t.fragments++
		return verdict{}, false
	case o.Status == wire.EnvelopeAccepted:
		t.accepted = append(t.accepted, acceptedEnvelope{Type: e.kind, EnvelopeID: o.EnvelopeID, Payload: o.Payload})
		t.recorded = append(t.recorded, o.Sequence)
		return verdict{}, false
	case o.Status == wire.EnvelopeBreached:
		return t.failBreached(o, cause), true
	}
	if f, retry := outcomeFailure(o); retry {
		return verdict{failure: f}, true
	}
	if o.Status == wire.EnvelopeGated {
		return t.applyGate(e, o, cause)
	}
	code, message := fault.Code(o.Reason), "the accept pipeline refused the envelope"
	if f, _ := outcomeFailure(o); fault.Known(f.code) {
		code = f.code
	}
	return t.failNode(&wire.NodeError{Code: string(code), Message: message, CausationID: cause}), true
}

// applyGate applies the contract's refusal mode (OpenWOP envelope contract §7).
func (t *turn) applyGate(e emission, o Outcome, cause string) (verdict, bool) {
	g := o.Gate
	if g == nil {
		g = &Gate{RefusedType: e.kind, AcceptedTypes: o.AllowedKinds}
	}
	if g.RefusalMode == wire.DiscardAndWarn {
		t.addCaused(cause, wire.EventLogAppended, struct {
			Level   string         `json:"level"`
			Message string         `json:"message"`
			NodeID  string         `json:"nodeId"`
			Fields  map[string]any `json:"fields"`
		}{"warn", "envelope discarded: the node's contract does not accept its kind", t.task.Input.NodeID, map[string]any{
			"kind": g.RefusedType, "allowedKinds": g.AcceptedTypes, "refusalMode": g.RefusalMode,
		}})
		return verdict{}, false
	}
	return t.failNode(&wire.NodeError{
		Code: string(fault.EnvelopeContractViolation), Message: fmt.Sprintf("the node's contract does not accept envelopes of type %s", g.RefusedType),
		Details: map[string]any{"refusedType": g.RefusedType, "acceptedTypes": g.AcceptedTypes}, CausationID: cause,
	}), true
}

// failBreached records the breached limit once and fails the node.
func (t *turn) failBreached(o Outcome, cause string) verdict {
	limit := map[string]int{
		"envelopes": t.limits.EnvelopesPerTurn, "schema": t.limits.SchemaRounds, "clarification": t.limits.ClarificationRounds,
	}[o.CapKind]
	t.addCaused(cause, wire.EventCapBreached, capPayload{Kind: o.CapKind, Limit: limit, Observed: limit + 1, NodeID: t.task.Input.NodeID})
	return t.failNode(&wire.NodeError{
		Code: string(fault.CapBreached), Message: "the host's limit of " + o.CapKind + " is reached", Details: map[string]any{"capKind": o.CapKind},
		CausationID: cause,
	})
}

// addCaused adds an event caused by an envelope (OpenWOP envelope contract §8, §10).
func (t *turn) addCaused(cause string, typ wire.EventType, payload any) {
	t.addEvent(typ, payload)
	t.drafts[len(t.drafts)-1].CausationID = cause
}

// nodeOutput returns the payload of the first envelope of the requested kind, else of the first
// envelope, and the list of all envelopes for the node.
func (t *turn) nodeOutput() node.Output {
	return outputOf(t.expected.kind, t.accepted)
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
	if err != nil { // recorded payloads always render
		list = json.RawMessage("[]")
	}
	return node.Output{Ports: map[string]json.RawMessage{"output": out, "envelopes": list}}
}
