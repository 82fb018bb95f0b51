package model

import (
	"context"
	"fmt"
	"slices"

	"waybill.dev/waybill/protocol/untrusted"
	"waybill.dev/waybill/protocol/wire"
	"waybill.dev/waybill/services/dispatcher/callguard"
)

// handleExhausted ends an emission without attempts left. If the last answer was prose, one extra
// call first asks to convert it to the schema. That call does not count as an attempt.
func (e *emission) handleExhausted(ctx context.Context, f failure, last answer, out *outbox) Result {
	if canReformat(f, last.Text, e.expected) {
		v := e.reformatProse(ctx, last.Text, last.progress, out)
		if v.done != nil {
			return *v.done
		}
		f = v.failure // reason and code come from the last failure
	}
	return e.failExhausted(f, last.attempt, out)
}

// failExhausted fails the node after its last attempt.
func (e *emission) failExhausted(f failure, attempts int, out *outbox) Result {
	out.add(wire.EventEnvelopeRetryExhausted, exhaustedPayload{
		NodeID: e.task.Input.NodeID, TotalAttempts: attempts, FinalReason: f.reason, FinalError: optional(f.detail),
	})
	// Exhausted retries also breach the limit of schema rounds. For a model that was cut off with all its
	// room, that limit is the attempts it had (OpenWOP envelope contract §14.5).
	out.add(wire.EventCapBreached, capPayload{
		Kind: "schema", Limit: attempts - 1, Observed: attempts, NodeID: e.task.Input.NodeID,
	})
	return *out.failNode(&wire.NodeError{Code: string(f.code), Message: exhaustedMessage(f, e.ceiling)}).done
}

// canReformat reports whether an answer is prose and the node requested a schema to convert it to.
func canReformat(f failure, text string, want expectation) bool {
	return (f.reason == reasonParse || f.reason == reasonSchema) && want.name != "" && isProse(text)
}

func exhaustedMessage(f failure, ceiling int) string {
	switch {
	case f.atCeiling:
		return fmt.Sprintf("the model was cut off with all the room that it has, %d tokens", ceiling)
	case f.reason == reasonTruncation:
		return "the model was cut off, and no attempt is left to give it more room"
	}
	return "no attempt gave an acceptable answer: " + f.detail
}

// reformatProse announces the extra call of the prose fallback and makes it.
func (e *emission) reformatProse(ctx context.Context, prose string, p progress, out *outbox) verdict {
	out.add(wire.EventEnvelopeNLToFormat, prosePayload{
		NodeID: e.task.Input.NodeID, OriginalEnvelopeType: e.expected.name, FallbackCalls: 1,
	})
	if err := out.flush(ctx, e.journal); err != nil {
		return verdict{done: &Result{Interrupted: err}}
	}
	return e.callReformat(ctx, prose, p, out)
}

// callReformat asks the model to convert prose to the schema. It is a separate invocation, numbered
// after the attempts. The quoted prose is untrusted content (OpenWOP envelope contract §14.7). last
// is the attempt that gave the prose.
func (e *emission) callReformat(ctx context.Context, prose string, last progress, out *outbox) verdict {
	n := callNumber{earlier: last.attempt, ordinal: e.callOrdinal(e.maxAttempts), resumed: last.resumed, converts: true}
	p := last
	p.attempt = e.maxAttempts + 1
	p.req.Messages = append(slices.Clone(e.request.Messages), userMessage(
		"Put the answer below into the schema. Answer with one JSON document and nothing else.\n"+
			untrusted.Wrap(prose, untrusted.Mark{Type: "model-answer"})))
	p.shown = false
	a, fail := e.callModel(callguard.Completing(ctx), p, n)
	if fail != nil {
		end := fail.with(out.events)
		return verdict{done: &end}
	}
	return e.judgeAnswer(ctx, a, out)
}
