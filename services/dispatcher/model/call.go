package model

import (
	"context"
	"slices"

	"waybill.dev/waybill/protocol/wire"
	"waybill.dev/waybill/services/dispatcher/callguard"
	"waybill.dev/waybill/services/dispatcher/provider"
	"waybill.dev/waybill/services/dispatcher/provider/limit"
)

// callModel calls the model once. A server that refuses the form of the schema is called again with
// the next form: such a refusal is no answer, and uses up no attempt. A failed call does not count
// as a failed attempt: it has no envelope event (OpenWOP envelope contract §14.1). The prompt of a
// repeated call is not recorded, and its answer not streamed.
func (e *emission) callModel(ctx context.Context, p progress, n callNumber) (answer, *Result) {
	var refusals []provider.SchemaVia
	for forms := e.schemaForms; ; {
		form := e.nextForm(forms)
		a, refused, fail := e.callInForm(ctx, p, n, form)
		switch {
		case refused:
			forms = forms[slices.Index(forms, form)+1:]
			refusals = append(refusals, form)
			e.logRefusal(form, forms)
		case fail != nil:
			return a, fail
		default: // what another form does not mend was not about the form
			e.rememberRefusals(refusals)
			return a, e.recordForm(ctx, a)
		}
	}
}

// callInForm makes one call with the schema in a form. refused means that the server refused the
// form, and that there is another one.
func (e *emission) callInForm(
	ctx context.Context, p progress, n callNumber, form provider.SchemaVia,
) (a answer, refused bool, fail *Result) {
	req, projected := e.inForm(p.req, form)
	a = answer{progress: p, form: form, projection: projected}
	if ctx.Err() != nil { // the run ended between attempts
		return a, false, unsentResult(context.Cause(ctx), n)
	}
	if err := callguard.Check(ctx); err != nil {
		return a, false, unsentResult(err, n)
	}
	release, err := e.acquireSlot(ctx, req)
	if _, refused := provider.As(err); refused {
		return a, false, &Result{Err: e.callFailure(err)}
	}
	if err != nil {
		return a, false, unsentResult(err, n)
	}
	out := limit.Outcome{Tokens: unreported, Aborted: true}
	defer func() { release(out) }()
	if err := e.recordPrompt(ctx, req, n, p.shown); err != nil {
		return a, false, unsentResult(err, n)
	}
	callCtx, cancel := context.WithTimeout(ctx, req.Timeouts.Call)
	defer cancel()
	emit, wait, closeStream, err := e.openStream(ctx, p.shown, projected)
	if err != nil {
		return a, false, unsentResult(err, n)
	}
	defer closeStream()
	req.Traceparent = e.task.Trace.Call(e.task.Input.NodeID, e.task.Attempt, n.earlier)
	req.InvocationID = InvocationID(e.task, n.ordinal, e.invocationTarget(req))
	said := false
	bounded := e.boundAnswer(emit)
	if err := callguard.Begin(ctx); err != nil {
		return a, false, unsentResult(err, n)
	}
	began := e.deps.Clock()
	a.Result, err = e.provider.Call(callCtx, req, func(d provider.Delta) error {
		said = true
		return bounded(d)
	})
	if e.deps.OnCall != nil {
		e.deps.OnCall(req.Provider, e.deps.Clock().Sub(began))
	}
	out = e.limiterOutcome(ctx, a.Result, err)
	if werr := wait(); werr != nil {
		return a, false, &Result{Interrupted: werr}
	}
	if ctx.Err() != nil {
		return a, false, &Result{Interrupted: context.Cause(ctx)}
	}
	if err != nil {
		return a, !said && e.canStepDown(err, form), &Result{Err: e.callFailure(err)}
	}
	return a, false, nil
}

// unsentResult ends a node before its next call. The results of its earlier calls are recorded,
// except the prose that a last call converts.
func unsentResult(err error, n callNumber) *Result {
	return &Result{Interrupted: err, Unsent: !n.converts}
}

// with returns the result of a failed call with the events decided before it.
func (r *Result) with(events []wire.Draft) Result {
	out := *r
	if out.Err != nil {
		out.Drafts = events
	}
	return out
}
