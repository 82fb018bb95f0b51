package model

import (
	"context"
	"fmt"

	"waybill.dev/waybill/protocol/untrusted"
	"waybill.dev/waybill/protocol/wire"
	"waybill.dev/waybill/services/dispatcher/provider"
)

// handleExhausted ends an emission whose attempts are used up. If the last answer was
// plain prose, one extra call asks to put it into the schema first; it is none of
// the attempts.
func (c *call) handleExhausted(ctx context.Context, f failure, attempts int, last provider.Result, base []provider.Message) Result {
	if c.canReformat(f, last) {
		v := c.reformatProse(ctx, last.Text, base)
		if v.done != nil {
			return *v.done
		}
		f = v.failure // reason and code are those of the last failure
	}
	return c.failExhausted(f, attempts)
}

// failExhausted fails the node after its attempts.
func (c *call) failExhausted(f failure, attempts int) Result {
	c.addEvent(wire.EventEnvelopeRetryExhausted, exhaustedPayload{
		NodeID: c.task.Input.NodeID, TotalAttempts: attempts, FinalReason: f.reason, FinalError: optional(f.detail),
	})
	if attempts >= c.maxAttempts {
		// Retry exhaustion also is a breach of the schema rounds. A model without more
		// room to give has breached none.
		c.addEvent(wire.EventCapBreached, capPayload{Kind: "schema", Limit: attempts - 1, Observed: attempts, NodeID: c.task.Input.NodeID})
	}
	return Result{Drafts: c.drafts, Err: &wire.NodeError{Code: string(f.code), Message: c.exhaustedMessage(f)}}
}

// canReformat reports whether an answer is prose that could be put into a schema: there
// must be one that was asked for.
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

// reformatProse announces the one extra call of the prose fallback, and makes it.
func (c *call) reformatProse(ctx context.Context, prose string, base []provider.Message) verdict {
	c.addEvent(wire.EventEnvelopeNLToFormat, prosePayload{NodeID: c.task.Input.NodeID, OriginalEnvelopeType: c.expected.name, FallbackCalls: 1})
	if err := c.flushEvents(ctx); err != nil {
		return verdict{done: &Result{Interrupted: err}}
	}
	return c.callReformat(ctx, prose, base)
}

// callReformat asks to put prose into the schema: an invocation of its own, that follows those of
// the attempts. The quoted prose is untrusted content (OpenWOP envelope contract §14.7).
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
