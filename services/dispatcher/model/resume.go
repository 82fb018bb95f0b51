package model

import (
	"context"
	"slices"

	"waybill.dev/waybill/protocol/runstate"
	"waybill.dev/waybill/protocol/wire"
	"waybill.dev/waybill/services/dispatcher/node"
)

// Retry is a further call of an emission that the log announces.
type Retry struct {
	// Attempt is its number; the first call is 1. The extra call for prose has none.
	Attempt int
	// Reason and Detail describe the failure before it. runstate.ReasonProse marks the extra call.
	Reason, Detail string
}

// resume continues the emission of a previous owner. It returns the next attempt with its budget,
// correction and schemas. No retry is announced twice and the number of answered calls stays
// limited, however often the owner is lost (OpenWOP envelope contract §8, §14.3).
func (e *emission) resume(ctx context.Context) (progress, error) {
	p := progress{req: e.request, resumed: true}
	announced, wrong := 1, 0
	for _, r := range e.task.Retries {
		if r.Reason == runstate.ReasonProse { // the extra call does not count as an attempt
			continue
		}
		wrong++
		p.req = e.prepareRetry(p.req, failure{reason: r.Reason, detail: r.Detail})
		announced = r.Attempt
	}
	p, err := e.restoreSchemas(ctx, &e.task, p)
	if err != nil {
		return progress{}, err
	}
	// Each earlier turn either failed and announced a retry, or only exchanged schemas.
	p.attempt = max(announced, 1+wrong+p.round)
	if p.attempt > announced {
		p.req.Messages = e.request.Messages // a schema turn needs no correction
	}
	return p, nil
}

// restoreSchemas adds the schemas requested in recorded turns, and counts these turns.
func (l *Loop) restoreSchemas(ctx context.Context, t *Task, p progress) (progress, error) {
	for p.round = 0; ; p.round++ {
		asked := t.recordedSchemaTurn(p.round)
		if len(asked) == 0 {
			return p, nil
		}
		for _, a := range asked {
			if a.Kind != wire.KindSchemaRequest {
				continue
			}
			kinds, err := l.requestedKind(ctx, a.Payload)
			if err != nil {
				return progress{}, err
			}
			p = p.withSchemas(kinds)
		}
	}
}

// reformatPending reports whether the log announces the extra call for prose without an answer to
// it.
func reformatPending(retries []Retry) bool {
	return slices.ContainsFunc(retries, func(r Retry) bool { return r.Reason == runstate.ReasonProse })
}

// repeatReformat repeats the extra call of a lost owner. The prose is not recorded, so the model is
// called for it again with the same invocation id. Vendors that store answers return the same
// prose, and its usage is recorded once (OpenWOP host contract §5.5, envelope contract §14.7).
func (e *emission) repeatReformat(ctx context.Context, p progress, out *outbox) Result {
	again := *e
	again.maxAttempts = max(e.maxAttempts, p.attempt) // the host's limit may have been higher then
	n := again.nextCall(p)
	n.recorded = true
	a, fail := again.callModel(ctx, p, n)
	if fail != nil {
		return fail.with(out.events)
	}
	var v verdict
	if _, _, failed := classify(a.Result); !failed && isProse(a.Text) {
		v = again.callReformat(ctx, a.Text, p, out)
	} else { // the answer differs from the lost one
		v = again.judgeAnswer(ctx, a, out)
	}
	if v.done != nil {
		return *v.done
	}
	return again.failExhausted(v.failure, p.attempt, out)
}

// resultFromLog ends a node whose answer was recorded before its owner was lost. The model is not
// called again, even if the host no longer has the kind (OpenWOP envelope contract §26 case 23).
// With an incomplete answer the model is called, and repeated parts are not recorded twice.
func (t *Task) resultFromLog(kind string, rounds int) (Result, bool) {
	if t.TypeID == node.TypeStructuredOutput {
		return Result{}, false
	}
	for round := range rounds {
		if answer, whole := t.recordedTurn(kind, round); whole {
			return Result{Output: t.outputOf(kind, answer), Trust: wire.Trusted.Meet(t.Trust)}, true
		}
	}
	return Result{}, false
}

// recordedTurn returns the recorded answer of a round. whole is true only if all of it is recorded
// and it contains the requested kind, or without a requested kind an envelope that ends the node.
func (t *Task) recordedTurn(kind string, round int) (answer []acceptedEnvelope, whole bool) {
	turn, ok := t.lastRecordedTurn(round)
	if !ok {
		return nil, false
	}
	for _, r := range turn {
		answer = append(answer, r.accepted())
	}
	asks := asksClarification(answer)
	return answer, slices.ContainsFunc(answer, func(a acceptedEnvelope) bool {
		return a.Type == kind || kind == "" && !asks && !sideChannel(a.Type)
	})
}

// partiallyRecorded reports whether the log has only a part of the answer of a round. All of its
// text was streamed before that part was recorded.
func (t *Task) partiallyRecorded(round int) bool {
	last, ok := t.lastRecorded(round)
	return ok && !last.Answer.Last() && last.Sequence > t.Announced
}

// recordedSchemaTurn returns the recorded turn of a round that only exchanged schemas. It returns
// nil for other turns, and for incomplete ones: those failed and announced a retry, or were cut off
// and are repeated.
func (t *Task) recordedSchemaTurn(round int) []Recorded {
	turn, whole := t.lastRecordedTurn(round)
	if !whole || slices.ContainsFunc(turn, func(r Recorded) bool { return !sideChannel(r.Kind) }) {
		return nil
	}
	return turn
}

// lastRecordedTurn returns the latest recorded answer of a round. whole is true only if all of it
// is known to be recorded. Envelopes of earlier rejected answers belong to it only if it repeats
// them.
func (t *Task) lastRecordedTurn(round int) (answer []Recorded, whole bool) {
	last, ok := t.lastRecorded(round)
	if !ok {
		return nil, false
	}
	for _, seq := range last.Answer.With {
		before, ok := t.recordedAt(seq)
		if !ok {
			return nil, false
		}
		answer = append(answer, before)
	}
	return append(answer, last), last.Answer.Last()
}

// lastRecorded returns the envelope of a round that was recorded last.
func (t *Task) lastRecorded(round int) (last Recorded, ok bool) {
	for id, r := range t.Recorded {
		if ok && r.Sequence <= last.Sequence {
			continue
		}
		if t.position(round, r.Answer.Index).correlationID(r.Kind) == id {
			last, ok = r, true
		}
	}
	return last, ok
}

// recordedAt returns the envelope recorded by the event of a sequence.
func (t *Task) recordedAt(sequence int) (Recorded, bool) {
	for _, r := range t.Recorded {
		if r.Sequence == sequence {
			return r, true
		}
	}
	return Recorded{}, false
}
