package model

import (
	"context"
	"fmt"

	"waybill.dev/waybill/protocol/untrusted"
	"waybill.dev/waybill/protocol/wire"
	"waybill.dev/waybill/services/dispatcher/provider"
)

// handleExhausted ends an emission without attempts left. If the last answer was prose, one extra
// call first asks to convert it to the schema. That call does not count as an attempt.
func (c *call) handleExhausted(ctx context.Context, f failure, attempts int, last provider.Result, base []provider.Message) Result {
	if c.canReformat(f, last) {
		v := c.reformatProse(ctx, last.Text, base)
		if v.done != nil {
			return *v.done
		}
		f = v.failure // reason and code come from the last failure
	}
	return c.failExhausted(f, attempts)
}

// failExhausted fails the node after its last attempt.
func (c *call) failExhausted(f failure, attempts int) Result {
	c.addEvent(wire.EventEnvelopeRetryExhausted, exhaustedPayload{
		NodeID: c.task.Input.NodeID, TotalAttempts: attempts, FinalReason: f.reason, FinalError: optional(f.detail),
	})
	if attempts >= c.maxAttempts {
		// Exhausted retries also breach the limit of schema rounds. A model without more output
		// room has not breached it.
		c.addEvent(wire.EventCapBreached, capPayload{Kind: "schema", Limit: attempts - 1, Observed: attempts, NodeID: c.task.Input.NodeID})
	}
	return Result{Drafts: c.drafts, Err: &wire.NodeError{Code: string(f.code), Message: c.exhaustedMessage(f)}}
}

// canReformat reports whether an answer is prose and the node requested a schema to convert it to.
func (c *call) canReformat(f failure, last provider.Result) bool {
	return (f.reason == reasonParse || f.reason == reasonSchema) && c.expected.name != "" && isProse(last.Text)
}

func (c *call) exhaustedMessage(f failure) string {
	switch {
	case c.atOutputCeiling(f):
		return fmt.Sprintf("the model was cut off with all the room that it has, %d tokens", c.ceiling)
	case f.reason == reasonTruncation:
		return "the model was cut off, and no attempt is left to give it more room"
	}
	return "no attempt gave an acceptable answer: " + f.detail
}

// reformatProse announces the extra call of the prose fallback and makes it.
func (c *call) reformatProse(ctx context.Context, prose string, base []provider.Message) verdict {
	c.addEvent(wire.EventEnvelopeNLToFormat, prosePayload{NodeID: c.task.Input.NodeID, OriginalEnvelopeType: c.expected.name, FallbackCalls: 1})
	if err := c.flushEvents(ctx); err != nil {
		return verdict{done: &Result{Interrupted: err}}
	}
	return c.callReformat(ctx, prose, base)
}

// callReformat asks the model to convert prose to the schema. It is a separate invocation, numbered
// after the attempts. The quoted prose is untrusted content (OpenWOP envelope contract §14.7).
func (c *call) callReformat(ctx context.Context, prose string, base []provider.Message) verdict {
	c.ordinal = c.callOrdinal(c.maxAttempts)
	c.req.Messages = append(append([]provider.Message(nil), base...), userMessage(
		"Put the answer below into the schema. Answer with one JSON document and nothing else.\n"+untrusted.Wrap(prose, untrusted.Mark{Type: "model-answer"})))
	res, fail := c.callModel(ctx)
	if fail != nil {
		return verdict{done: fail}
	}
	return c.judgeAnswer(ctx, res, c.maxAttempts+1)
}
