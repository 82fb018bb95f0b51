package model

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"waybill.dev/waybill/protocol/fault"
	"waybill.dev/waybill/protocol/wire"
	"waybill.dev/waybill/services/dispatcher/node"
	"waybill.dev/waybill/services/dispatcher/provider"
)

// acceptAnswer turns a clean answer into the node's result.
func (e *emission) acceptAnswer(ctx context.Context, a answer, out *outbox) verdict {
	switch {
	case a.Interim:
		return verdict{failure: interimFailure()}
	case e.expected.value != nil:
		return e.acceptValue(ctx, a, e.extract(a), out)
	case !e.wantsText() || len(a.Media) > 0:
		return e.acceptEnvelopes(ctx, a, e.extract(a), out)
	case strings.TrimSpace(a.Text) == "" && (a.Thought || a.Stop == provider.StopUnknown), // it thought, or called a tool
		strings.TrimSpace(a.Text) != "" && withoutThoughts(a.Text) == "":
		return verdict{failure: parseFailure(a.Text, e.extract(a))}
	default:
		return out.completeNode(e.task.textOutput(withoutThoughts(a.Text)))
	}
}

// wantsText reports whether the node asks for text, and for no document.
func (e *emission) wantsText() bool {
	return e.expected.value == nil && e.expected.kind == "" && e.contract == nil
}

func (t *Task) textOutput(text string) node.Output {
	out := t.outputOf("", nil)
	out.Ports["output"] = wire.AppendString(nil, text)
	return out
}

// acceptValue accepts the document that satisfies the node's output schema.
func (e *emission) acceptValue(ctx context.Context, a answer, x extraction, out *outbox) verdict {
	if len(x.documents) == 0 {
		return verdict{failure: parseFailure(a.Text, x)}
	}
	d, violations, err := e.newReader(a.Text).chooseValue(ctx, x.documents, e.expected.value)
	if err != nil {
		return verdict{done: &Result{Interrupted: err}}
	}
	a.addRecoveryEvent(d, out)
	if len(violations) > 0 {
		return verdict{failure: schemaFailure(violations)}
	}
	return out.completeNode(node.Output{Ports: map[string]json.RawMessage{"output": d.raw}})
}

// addRecoveryEvent records that lenient parsing was needed, without any of the text.
func (a answer) addRecoveryEvent(d document, out *outbox) {
	if d.path == pathDirect || a.shown {
		return
	}
	out.add(wire.EventEnvelopeRecovery, wire.EnvelopeRecovery{NodeID: out.nodeID, Path: d.path, ByteOffset: d.offset})
}

// acceptEnvelopes passes each envelope of the answer to the accept pipeline, in order. If one of
// them fails the node, the rest is not processed.
func (e *emission) acceptEnvelopes(ctx context.Context, a answer, x extraction, out *outbox) verdict {
	candidates, err := e.findCandidates(ctx, x.documents, a.Result)
	if f, ok := isFailure(err); ok {
		return verdict{failure: f}
	}
	if err != nil {
		return verdict{done: &Result{Interrupted: err}}
	}
	if len(candidates) == 0 {
		if e.expected.kind == "" && x.isText() { // without a requested kind, the text is the answer
			return out.completeNode(e.task.textOutput(withoutThoughts(a.Text)))
		}
		return verdict{failure: parseFailure(a.Text, x)}
	}
	a.addRecoveryEvent(candidates[0].doc, out)
	kind, err := e.unrequested(ctx, candidates)
	switch {
	case err != nil:
		return verdict{done: &Result{Interrupted: err}}
	case kind != "":
		return verdict{failure: driftFailure(kind, e.expected.kind)}
	}
	t := turn{emission: e, attempt: a.attempt, round: a.round, size: len(candidates), fresh: map[string]int{}}
	for i, c := range candidates {
		if v, ended := t.acceptEnvelope(ctx, i, c, out); ended {
			return v
		}
	}
	switch {
	case t.asksClarification():
		return verdict{done: &Result{Waits: true, Drafts: out.events}}
	case t.onlySideChannel():
		return t.requestSchemas(ctx)
	case len(t.accepted) == 0 && t.fragments > 0:
		return verdict{failure: fragmentFailure()}
	case len(t.accepted) == 0 && e.expected.kind != "": // an emission is complete only with an answer (§14)
		return verdict{failure: discardedFailure(e.expected.kind)}
	}
	return out.completeNode(e.task.outputOf(e.expected.kind, t.accepted))
}

// turn collects the outcomes of one answer's envelopes.
type turn struct {
	*emission
	attempt, round int
	size           int // envelopes in the answer
	accepted       []acceptedEnvelope
	// fresh counts the accepted envelopes of a kind that no previous owner recorded: the task counts
	// those (OpenWOP envelope contract §8).
	fresh map[string]int
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
	// Meta advises how to show it; nil for no hints.
	Meta *wire.Hints `json:"meta,omitempty"`
}

// accepted returns a recorded envelope as a part of an answer.
func (r Recorded) accepted() acceptedEnvelope {
	return acceptedEnvelope{Type: r.Kind, EnvelopeID: r.EnvelopeID, Payload: r.Payload, Meta: r.Hints.OrNil()}
}

// asksClarification reports whether the model requested a clarification.
func (t *turn) asksClarification() bool { return asksClarification(t.accepted) }

func asksClarification(accepted []acceptedEnvelope) bool {
	return slices.ContainsFunc(accepted, func(a acceptedEnvelope) bool {
		return a.Type == wire.KindClarificationRequest
	})
}

// acceptEnvelope runs one envelope through the pipeline. ended is false if the turn continues with
// the next one.
func (t *turn) acceptEnvelope(ctx context.Context, index int, c candidate, out *outbox) (v verdict, ended bool) {
	p := t.task.position(t.round, index)
	hints, dropped := keepHints(c.body["meta"])
	noteHints(out, dropped)
	o, err := t.journal.Accept(ctx, AcceptRequest{
		NodeID:          t.task.Input.NodeID,
		Envelope:        c.complete(p, t.schemaVersion(ctx, c.kind), hints, t.task.Trust, t.deps.Clock()),
		Contract:        t.contract,
		TurnCount:       len(t.accepted),
		Answer:          t.answerPart(index),
		SchemaRounds:    t.attempt - 1 + t.fresh[wire.KindSchemaRequest],
		Clarifications:  t.task.Clarifications + t.fresh[wire.KindClarificationRequest],
		QuestionTimeout: t.task.QuestionTimeout,
		Traceparent:     t.task.Trace.Attempt(t.task.Input.NodeID, t.task.Attempt),
		Preceding:       slices.Clone(out.events),
	})
	if o.Preceded {
		out.events = nil
	}
	if err != nil {
		return verdict{done: &Result{Interrupted: err}}, true
	}
	return t.applyOutcome(c, o, c.causationID(p), out)
}

// answerPart describes which part of the answer an envelope is.
func (t *turn) answerPart(index int) wire.AnswerPart {
	if t.size < 2 {
		return wire.AnswerPart{}
	}
	return wire.AnswerPart{Size: t.size, Index: index, With: slices.Clone(t.recorded)}
}

// schemaVersion returns the advertised version of a kind; 0 lets the kind step reject an unknown
// kind.
func (e *emission) schemaVersion(ctx context.Context, kind string) int {
	if kind == e.expected.kind {
		return e.expected.version
	}
	k, _, err := e.deps.Schemas.Kind(ctx, kind)
	if err != nil {
		return 0
	}
	return k.Version
}

// applyOutcome applies an outcome to the turn. cause is the envelope's correlationId.
func (t *turn) applyOutcome(c candidate, o Outcome, cause string, out *outbox) (v verdict, ended bool) {
	switch {
	case o.Status == wire.EnvelopeAccepted && c.fragment():
		t.fragments++
		return verdict{}, false
	case o.Status == wire.EnvelopeAccepted:
		if _, counted := t.task.Recorded[cause]; !counted {
			t.fresh[c.kind]++
		}
		t.accepted = append(t.accepted, acceptedEnvelope{
			Type: c.kind, EnvelopeID: o.EnvelopeID, Payload: o.Payload, Meta: o.Hints.OrNil(),
		})
		t.recorded = append(t.recorded, o.Sequence)
		return verdict{}, false
	case o.Status == wire.EnvelopeBreached:
		return t.failBreached(o, cause, out), true
	}
	if f, retry := outcomeFailure(o, t.acceptedKinds()); retry {
		if c.kind == wire.KindSchemaRequest && f.reason == reasonTypeDrift {
			f.detail = "it requests the schema of an unknown type; known are " + strings.Join(o.AllowedKinds, ", ")
		}
		return verdict{failure: f}, true
	}
	if o.Status == wire.EnvelopeGated {
		return applyGate(c, o, cause, out)
	}
	code, message := fault.Code(o.Reason), "the accept pipeline refused the envelope"
	if f, _ := outcomeFailure(o, nil); fault.Known(f.code) {
		code = f.code
	}
	return out.failNode(&wire.NodeError{Code: string(code), Message: message, CausationID: cause}), true
}

// applyGate applies the contract's refusal mode (OpenWOP envelope contract §7).
func applyGate(c candidate, o Outcome, cause string, out *outbox) (v verdict, ended bool) {
	g := o.Gate
	if g == nil {
		g = &Gate{RefusedType: c.kind, AcceptedTypes: o.AllowedKinds}
	}
	if g.RefusalMode == wire.DiscardAndWarn {
		out.addCaused(cause, wire.EventLogAppended, discardedPayload{
			Level:   "warn",
			Message: "envelope discarded: the node's contract does not accept its kind",
			NodeID:  out.nodeID,
			Fields: map[string]any{
				"kind": g.RefusedType, "allowedKinds": g.AcceptedTypes, "refusalMode": g.RefusalMode,
			},
		})
		return verdict{}, false
	}
	return out.failNode(&wire.NodeError{
		Code:        string(fault.EnvelopeContractViolation),
		Message:     fmt.Sprintf("the node's contract does not accept envelopes of type %s", g.RefusedType),
		Details:     map[string]any{"refusedType": g.RefusedType, "acceptedTypes": g.AcceptedTypes},
		CausationID: cause,
	}), true
}

type discardedPayload struct {
	Level   string         `json:"level"`
	Message string         `json:"message"`
	NodeID  string         `json:"nodeId"`
	Fields  map[string]any `json:"fields"`
}

// failBreached records the breached limit once and fails the node.
func (t *turn) failBreached(o Outcome, cause string, out *outbox) verdict {
	limit := map[string]int{
		"envelopes":     t.limits.EnvelopesPerTurn,
		"schema":        t.limits.SchemaRounds,
		"clarification": t.limits.ClarificationRounds,
	}[o.CapKind]
	out.addCaused(cause, wire.EventCapBreached, capPayload{
		Kind: o.CapKind, Limit: limit, Observed: limit + 1, NodeID: out.nodeID,
	})
	return out.failNode(&wire.NodeError{
		Code:        string(fault.CapBreached),
		Message:     "the host's limit of " + o.CapKind + " is reached",
		Details:     map[string]any{"capKind": o.CapKind},
		CausationID: cause,
	})
}

// outputOf returns the outputs of a node: the payload of the last envelope of the requested kind, else of the
// kind of the first one that is not universal, and the list of all envelopes. The list begins with those
// that the model sent together with its questions. The payload is one of these only if the last answer
// has none of the requested kind. An error of the model has a port of its own, so that nothing reads it
// as the payload.
func (t *Task) outputOf(kind string, accepted []acceptedEnvelope) node.Output {
	accepted = slices.DeleteFunc(slices.Clone(accepted), func(a acceptedEnvelope) bool { return sideChannel(a.Type) })
	early := t.sentWithQuestions()
	latest := slices.Concat(accepted, early)
	ports := map[string]json.RawMessage{"output": json.RawMessage("null"), "envelopes": json.RawMessage("[]")}
	if list, err := json.Marshal(slices.Concat(early, accepted)); err == nil && len(latest) > 0 { // recorded payloads always render
		ports["envelopes"] = list
	}
	take := func(port string, is func(acceptedEnvelope) bool) {
		if i := slices.IndexFunc(latest, is); i >= 0 {
			ports[port] = latest[i].Payload
		}
	}
	take("error", func(a acceptedEnvelope) bool { return a.Type == wire.KindError })
	if i := slices.IndexFunc(latest, func(a acceptedEnvelope) bool { return !wire.IsUniversal(a.Type) }); i >= 0 {
		if !slices.ContainsFunc(latest, func(a acceptedEnvelope) bool { return a.Type == kind }) {
			kind = latest[i].Type
		}
	}
	for _, list := range [][]acceptedEnvelope{early, accepted} { // the last of several
		for _, a := range list {
			if a.Type == kind {
				ports["output"] = a.Payload
			}
		}
	}
	return node.Output{Ports: ports}
}
