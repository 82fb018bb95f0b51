package model

import (
	"context"
	"slices"

	"waybill.dev/waybill/protocol/runstate"
	"waybill.dev/waybill/protocol/wire"
	"waybill.dev/waybill/services/dispatcher/node"
	"waybill.dev/waybill/services/dispatcher/provider"
)

// Retry is a further call of an emission that the log announces.
type Retry struct {
	// Attempt is its number; the first call is 1. The extra call for prose has none.
	Attempt int
	// Reason and Detail describe the failure before it. runstate.ReasonProse marks the extra call.
	Reason, Detail string
}

// resume continues the emission of a previous owner. It returns the number of the next attempt and
// prepares its budget, correction and schemas. No retry is announced twice and the number of
// answered calls stays limited, however often the owner is lost (OpenWOP envelope contract §8,
// §14.3).
func (c *call) resume(ctx context.Context, base []provider.Message) (attempt int, err error) {
	announced, wrong := 1, 0
	for _, r := range c.task.Retries {
		if r.Reason == runstate.ReasonProse { // the extra call does not count as an attempt
			continue
		}
		wrong++
		c.prepareRetry(failure{reason: r.Reason, detail: r.Detail}, base)
		announced = r.Attempt
	}
	if err := c.restoreSchemas(ctx); err != nil {
		return 0, err
	}
	// Each earlier turn either failed and announced a retry, or only exchanged schemas.
	attempt = max(announced, 1+wrong+c.round)
	if attempt > announced {
		c.req.Messages = base // a schema turn needs no correction
	}
	c.callsMade = attempt - 1
	return attempt, nil
}

// restoreSchemas adds the schemas requested in recorded turns.
func (c *call) restoreSchemas(ctx context.Context) error {
	for c.round = 0; ; c.round++ {
		asked := c.recordedSchemaTurn()
		if len(asked) == 0 {
			return nil
		}
		for _, a := range asked {
			if a.Kind != wire.KindSchemaRequest {
				continue
			}
			if err := c.addSchema(ctx, a.Payload); err != nil {
				return err
			}
		}
	}
}

// partiallyRecorded reports whether the log has only a part of the current answer. All of its text
// was streamed before that part was recorded.
func (c *call) partiallyRecorded() bool {
	last, ok := c.lastRecorded()
	return ok && !last.Answer.Last() && last.Sequence > c.task.Announced
}

// recordedSchemaTurn returns a recorded turn that only exchanged schemas. It returns nil for other
// turns, and for incomplete ones: those failed and announced a retry, or were cut off and are
// repeated.
func (c *call) recordedSchemaTurn() []Recorded {
	turn, whole := c.lastRecordedTurn()
	if !whole || slices.ContainsFunc(turn, func(r Recorded) bool { return !sideChannel(r.Kind) }) {
		return nil
	}
	return turn
}

// reformatPending reports whether the log announces the extra call for prose without an answer to
// it.
func (c *call) reformatPending() bool {
	return slices.ContainsFunc(c.task.Retries, func(r Retry) bool { return r.Reason == runstate.ReasonProse })
}

// repeatReformat repeats the extra call of a lost owner. The prose is not recorded, so the model is
// called for it again with the same invocation id. Vendors that store answers return the same
// prose, and its usage is recorded once (OpenWOP host contract §5.5, envelope contract §14.7).
func (c *call) repeatReformat(ctx context.Context, attempt int, base []provider.Message) Result {
	c.maxAttempts = max(c.maxAttempts, attempt) // the host's limit may have been higher then
	c.ordinal = c.callOrdinal(attempt - 1)
	res, fail := c.callModel(ctx)
	if fail != nil {
		return *fail
	}
	var v verdict
	if _, _, failed := classify(res); !failed && isProse(res.Text) {
		v = c.callReformat(ctx, res.Text, base)
	} else { // the answer differs from the lost one
		v = c.judgeAnswer(ctx, res, attempt)
	}
	if v.done != nil {
		return *v.done
	}
	return c.failExhausted(v.failure, attempt)
}

// resultFromLog ends a node whose answer was recorded before its owner was lost. The model is not
// called again, even if the host no longer has the kind (OpenWOP envelope contract §26 case 23).
// With an incomplete answer the model is called, and repeated parts are not recorded twice.
func (c *call) resultFromLog() (Result, bool) {
	if answer, whole := c.recordedAnswer(); whole {
		return Result{Output: outputOf(c.cfg.EnvelopeType, answer), Trust: wire.Trusted.Meet(c.task.Trust)}, true
	}
	return Result{}, false
}

// recordedAnswer returns the recorded answer of any round.
func (c *call) recordedAnswer() (answer []acceptedEnvelope, whole bool) {
	if c.task.TypeID == node.TypeStructuredOutput {
		return nil, false
	}
	for c.round = range c.maxAttempts {
		if answer, whole = c.recordedTurn(); whole {
			return answer, true
		}
	}
	c.round = 0
	return nil, false
}

// recordedTurn returns the recorded answer of a round. whole is true only if all of it is recorded
// and it contains the requested kind, or without a requested kind an envelope that ends the node.
func (c *call) recordedTurn() (answer []acceptedEnvelope, whole bool) {
	turn, ok := c.lastRecordedTurn()
	if !ok {
		return nil, false
	}
	for _, r := range turn {
		answer = append(answer, acceptedEnvelope{Type: r.Kind, EnvelopeID: r.EnvelopeID, Payload: r.Payload})
	}
	kind, asks := c.cfg.EnvelopeType, slices.ContainsFunc(answer, func(a acceptedEnvelope) bool { return a.Type == wire.KindClarificationRequest })
	return answer, slices.ContainsFunc(answer, func(a acceptedEnvelope) bool {
		return a.Type == kind || kind == "" && !asks && !sideChannel(a.Type)
	})
}

// lastRecordedTurn returns the latest recorded answer of a round. whole is true only if all of it
// is known to be recorded. Envelopes of earlier rejected answers belong to it only if it repeats
// them.
func (c *call) lastRecordedTurn() (answer []Recorded, whole bool) {
	last, ok := c.lastRecorded()
	if !ok {
		return nil, false
	}
	for _, seq := range last.Answer.With {
		before, ok := c.recordedAt(seq)
		if !ok {
			return nil, false
		}
		answer = append(answer, before)
	}
	return append(answer, last), last.Answer.Last()
}

// lastRecorded returns the envelope of a round that was recorded last.
func (c *call) lastRecorded() (last Recorded, ok bool) {
	for id, r := range c.task.Recorded {
		if ok && r.Sequence <= last.Sequence {
			continue
		}
		if c.position(r.Answer.Index).correlationID(r.Kind) == id {
			last, ok = r, true
		}
	}
	return last, ok
}

// recordedAt returns the envelope recorded by the event of a sequence.
func (c *call) recordedAt(sequence int) (Recorded, bool) {
	for _, r := range c.task.Recorded {
		if r.Sequence == sequence {
			return r, true
		}
	}
	return Recorded{}, false
}
