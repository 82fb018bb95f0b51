package model

import (
	"context"
	"fmt"

	"waybill.dev/waybill/protocol/untrusted"
	"waybill.dev/waybill/protocol/wire"
	"waybill.dev/waybill/services/dispatcher/provider"
)

// exhausted ends an emission whose attempts are used up. If the last answer was
// plain prose, one extra call asks to put it into the schema first; it is none of
// the attempts.
func (c *call) exhausted(ctx context.Context, f failure, attempts int, last provider.Result, base []provider.Message) Result {
	if c.reformats(f, last) {
		v := c.reformat(ctx, last.Text, base)
		if v.done != nil {
			return *v.done
		}
		f = v.failure // reason and code are those of the last failure
	}
	return c.usedUp(f, attempts)
}

// usedUp fails the node after its attempts.
func (c *call) usedUp(f failure, attempts int) Result {
	c.add(wire.EventEnvelopeRetryExhausted, exhaustedPayload{
		NodeID: c.task.Input.NodeID, TotalAttempts: attempts, FinalReason: f.reason, FinalError: optional(f.detail),
	})
	if attempts >= c.tries {
		// Retry exhaustion also is a breach of the schema rounds. A model without more
		// room to give has breached none.
		c.add(wire.EventCapBreached, capPayload{Kind: "schema", Limit: attempts - 1, Observed: attempts, NodeID: c.task.Input.NodeID})
	}
	return Result{Drafts: c.drafts, Err: &wire.NodeError{Code: string(f.code), Message: c.exhaustedMessage(f)}}
}

// reformats reports whether an answer is prose that could be put into a schema: there
// must be one that was asked for.
func (c *call) reformats(f failure, last provider.Result) bool {
	return (f.reason == reasonParse || f.reason == reasonSchema) && c.want.name != "" && isProse(last.Text)
}

func (c *call) exhaustedMessage(f failure) string {
	switch {
	case c.full(f):
		return fmt.Sprintf("the model was cut off with all the room that it has, %d tokens", c.ceiling)
	case f.reason == reasonTruncation:
		return "the model was cut off, and no attempt is left to give it more room"
	}
	return "no attempt gave an acceptable answer: " + f.detail
}

// reformat announces the one extra call of the prose fallback, and makes it.
func (c *call) reformat(ctx context.Context, prose string, base []provider.Message) verdict {
	c.add(wire.EventEnvelopeNLToFormat, prosePayload{NodeID: c.task.Input.NodeID, OriginalEnvelopeType: c.want.name, FallbackCalls: 1})
	if err := c.flush(ctx); err != nil {
		return verdict{done: &Result{Interrupted: err}}
	}
	return c.convert(ctx, prose, base)
}

// convert asks to put prose into the schema: an invocation of its own, that follows those of
// the attempts. The quoted prose is untrusted content (OpenWOP envelope contract §14.7).
func (c *call) convert(ctx context.Context, prose string, base []provider.Message) verdict {
	c.ordinal = c.nth(c.tries)
	c.req.Messages = append(append([]provider.Message(nil), base...), userMessage(
		"Put the answer below into the schema. Answer with one JSON document and nothing else.\n"+untrusted.Wrap(prose, untrusted.Mark{Type: "model-answer"})))
	res, fail := c.ask(ctx)
	if fail != nil {
		return verdict{done: fail}
	}
	return c.judge(ctx, res, c.tries+1)
}
