package model

import (
	"context"
	"slices"

	"waybill.dev/waybill/internal/projection"
	"waybill.dev/waybill/protocol/fault"
	"waybill.dev/waybill/protocol/wire"
	"waybill.dev/waybill/services/dispatcher/provider"
)

// emission makes the calls of one answer. It changes none of its fields: progress is the state of
// the calls, and outbox has the events to append.
type emission struct {
	*Loop
	spec
	bounds

	journal Journal
}

// progress is the state of an emission before its next call.
type progress struct {
	// attempt is the number of the call among the attempts; the first is 1.
	attempt int
	// round counts the earlier turns that only exchanged schemas.
	round int
	// shown means that the answer was streamed and its usage recorded before; the call is repeated.
	shown bool
	// resumed means that a previous owner may have recorded the prompt of the call.
	resumed bool
	// req is the request of the call.
	req provider.Request
	// schemas are the kinds whose schemas were added to the prompt.
	schemas []string
}

// answer is one answer of the model, and the call that it answers.
type answer struct {
	provider.Result
	progress

	// form is how the model got the schema. projection is set if the schema was converted to the
	// vendor's dialect.
	form       provider.SchemaVia
	projection *projection.Projection
}

// verdict is the result of one answer: the end of the node, a further turn, or a failed attempt.
type verdict struct {
	done      *Result
	continues bool
	// schemas are those that a further turn needs.
	schemas []Kind
	// failure also describes a turn that cannot continue because no attempt is left.
	failure failure
}

// runAttempts calls the model until the answer is accepted or refused, or no attempt is left.
func (e *emission) runAttempts(ctx context.Context, out *outbox) Result {
	p, err := e.resume(ctx)
	switch {
	case err != nil:
		return Result{Interrupted: err, Unsent: true}
	case reformatPending(e.task.Retries):
		return e.repeatReformat(ctx, p, out)
	case p.attempt > e.maxAttempts: // the previous owner stopped before recording that no attempt is left
		return e.failExhausted(schemaTalkFailure(), e.maxAttempts, out)
	}
	for p.shown = e.task.partiallyRecorded(p.round); ; p.attempt++ {
		a, fail := e.callModel(ctx, p, e.nextCall(p))
		if fail != nil {
			return fail.with(out.events)
		}
		v := e.judgeAnswer(ctx, a, out)
		if v.done != nil {
			return *v.done
		}
		p.shown, p.resumed = false, false
		if p.attempt >= e.maxAttempts || v.failure.atCeiling {
			a.progress = p
			return e.handleExhausted(ctx, v.failure, a, out)
		}
		if v.continues {
			if err := out.flush(ctx, e.journal); err != nil { // record each call's usage before the next call
				return Result{Interrupted: err}
			}
			p.round++
			p = p.withSchemas(v.schemas)
			p.req.Messages = e.request.Messages
			continue
		}
		out.add(wire.EventEnvelopeRetryAttempted, retryPayload{
			NodeID:        e.task.Input.NodeID,
			Attempt:       p.attempt + 1,
			Reason:        v.failure.reason,
			PreviousError: optional(v.failure.detail),
		})
		if err := out.flush(ctx, e.journal); err != nil { // record the retry before the call
			return Result{Interrupted: err}
		}
		p.req = e.prepareRetry(p.req, v.failure)
	}
}

// callNumber numbers a call.
type callNumber struct {
	// earlier counts the earlier calls of the emission, including those of previous owners.
	earlier int
	// ordinal counts the earlier calls of the node. Each answered clarification starts another
	// emission.
	ordinal int
	// resumed means that a previous owner may have recorded the prompt of the call, and recorded that
	// it has.
	resumed, recorded bool
	// converts means that the call converts prose which is not recorded.
	converts bool
}

// nextCall numbers the call of an attempt.
func (e *emission) nextCall(p progress) callNumber {
	return callNumber{earlier: p.attempt - 1, ordinal: e.callOrdinal(p.attempt - 1), resumed: p.resumed}
}

// callOrdinal numbers a call among all calls of the node. An emission can have one call more than
// attempts, for prose (OpenWOP host contract §5.5).
func (e *emission) callOrdinal(n int) int { return n + len(e.task.Answered)*(e.maxAttempts+1) }

// prepareRetry returns the request after a failed attempt. After a truncation it only raises the
// budget and drops any earlier correction. After any other failure it adds the correction at the
// same budget.
func (e *emission) prepareRetry(req provider.Request, f failure) provider.Request {
	req.Messages = e.request.Messages
	if f.reason == reasonTruncation {
		req.MaxTokens = capTokens(req.MaxTokens*e.cfg.Multiplier, e.ceiling)
		return req
	}
	if text := f.correction(e.wantsText()); text != "" {
		req.Messages = append(slices.Clone(req.Messages), userMessage(text))
	}
	return req
}

// judgeAnswer applies the truth table to one answer.
func (e *emission) judgeAnswer(ctx context.Context, a answer, out *outbox) verdict {
	if !a.shown {
		e.addUsage(a, out)
	}
	f, refused, failed := classify(a.Result)
	switch {
	case refused:
		refusal, err := e.refusalDraft(ctx, a)
		if err != nil {
			return verdict{done: &Result{Interrupted: err}}
		}
		out.addDraft(refusal)
		return out.failNode(&wire.NodeError{
			Code: string(fault.EnvelopeRefusal), Message: "the model refused to answer; refusals are not retried",
		})
	case failed:
		return verdict{failure: e.recordTruncation(a, f, out)}
	}
	v := e.acceptAnswer(ctx, a, out)
	if v.done != nil || v.continues {
		return v
	}
	if v.failure = contentFailure(a.Result, v.failure); v.failure.reason == reasonTruncation {
		v.failure = e.recordTruncation(a, v.failure, out)
	}
	return v
}

// recordTruncation adds the event of a truncated answer, and returns its failure.
func (e *emission) recordTruncation(a answer, f failure, out *outbox) failure {
	out.addDraft(e.task.truncatedDraft(a.req, a.Result, e.expected.containsDocument(a.Text)))
	f.atCeiling = atOutputCeiling(a.req.MaxTokens, e.ceiling)
	return f
}
