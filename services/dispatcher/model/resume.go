package model

import (
	"context"
	"slices"

	"waybill.dev/waybill/protocol/runstate"
	"waybill.dev/waybill/protocol/wire"
	"waybill.dev/waybill/services/dispatcher/node"
	"waybill.dev/waybill/services/dispatcher/provider"
)

// Retry is a further call of an emission that is announced in the log.
type Retry struct {
	// Attempt is its number; the first call is 1. The extra call for prose has none.
	Attempt int
	// Reason and Detail are those of the failure before it; runstate.ReasonProse is
	// that of the extra call.
	Reason, Detail string
}

// resume goes on where an executor was lost, and gives the number of the attempt to make
// next, with the room, the correction and the schemas that it was to get. So nothing is
// announced twice, and an emission has no more calls with an answer than it may have,
// however often its executor is lost (OpenWOP envelope contract §8, §14.3).
func (c *call) resume(ctx context.Context, base []provider.Message) (attempt int, err error) {
	announced, wrong := 1, 0
	for _, r := range c.task.Retries {
		if r.Reason == runstate.ReasonProse { // the extra call is none of the attempts
			continue
		}
		wrong++
		c.prepareRetry(failure{reason: r.Reason, detail: r.Detail}, base)
		announced = r.Attempt
	}
	if err := c.restoreSchemas(ctx); err != nil {
		return 0, err
	}
	// Each turn before was wrong, and a retry announced, or went by in talk alone.
	attempt = max(announced, 1+wrong+c.round)
	if attempt > announced {
		c.req.Messages = base // the last turn was talk, and needs no correction
	}
	c.callsMade = attempt - 1
	return attempt, nil
}

// restoreSchemas gives the model the schemas that it asked for in the turns which the log has.
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

// partiallyRecorded reports that the log has a part of the answer that is asked for, and no more. All of
// its text has been shown before then.
func (c *call) partiallyRecorded() bool {
	last, ok := c.lastRecorded()
	return ok && !last.Answer.Last() && last.Sequence > c.task.Announced
}

// recordedSchemaTurn is what the log has of a turn that was about schemas alone; none if it was not,
// or if a part of it is missing: then it was wrong, and a retry is announced, or it was
// cut off, and the model is asked for it again.
func (c *call) recordedSchemaTurn() []Recorded {
	turn, whole := c.lastRecordedTurn()
	if !whole || slices.ContainsFunc(turn, func(r Recorded) bool { return !sideChannel(r.Kind) }) {
		return nil
	}
	return turn
}

// reformatPending reports that the log announces the extra call for prose, and has no answer
// to it.
func (c *call) reformatPending() bool {
	return slices.ContainsFunc(c.task.Retries, func(r Retry) bool { return r.Reason == runstate.ReasonProse })
}

// repeatReformat makes the extra call whose executor was lost. The prose is in no log: the model
// is asked for it again, as the same invocation, so that it is what it was where the vendor
// keeps answers, and it is told once (OpenWOP host contract §5.5, envelope contract §14.7).
func (c *call) repeatReformat(ctx context.Context, attempt int, base []provider.Message) Result {
	c.maxAttempts = max(c.maxAttempts, attempt) // the host may have allowed more of them then
	c.ordinal = c.callOrdinal(attempt - 1)
	res, fail := c.callModel(ctx)
	if fail != nil {
		return *fail
	}
	var v verdict
	if _, _, failed := classify(res); !failed && isProse(res.Text) {
		v = c.callReformat(ctx, res.Text, base)
	} else { // another answer than before
		v = c.judgeAnswer(ctx, res, attempt)
	}
	if v.done != nil {
		return *v.done
	}
	return c.failExhausted(v.failure, attempt)
}

// resultFromLog ends a node whose answer was recorded before its executor was lost:
// the model is not asked again for what the log has, also on a host that has the
// kind no more (OpenWOP envelope contract §26 case 23). If a part of an answer is
// missing the model is asked, and what it repeats is not recorded twice.
func (c *call) resultFromLog() (Result, bool) {
	if answer, whole := c.recordedAnswer(); whole {
		return Result{Output: outputOf(c.cfg.EnvelopeType, answer), Trust: wire.Trusted.Meet(c.task.Trust)}, true
	}
	return Result{}, false
}

// recordedAnswer is the answer that the log has of any round.
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

// recordedTurn is the answer of a round as the log has it; whole is false unless
// all of it is there, with an envelope of the kind asked for or, where none was, one
// that ends the node.
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

// lastRecordedTurn is the latest answer of a round of which the log has anything; whole is
// false unless it surely has all of it. Envelopes of answers before it, which were
// refused for others, are no part of it, but for those that it repeats.
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

// lastRecorded is the envelope of a round that was recorded last.
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

// recordedAt is the envelope that the event of a sequence records.
func (c *call) recordedAt(sequence int) (Recorded, bool) {
	for _, r := range c.task.Recorded {
		if r.Sequence == sequence {
			return r, true
		}
	}
	return Recorded{}, false
}
