package model

import (
	"context"

	"waybill.dev/waybill/protocol/wire"
	"waybill.dev/waybill/services/dispatcher/provider"
	"waybill.dev/waybill/services/dispatcher/provider/limit"
	"waybill.dev/waybill/services/dispatcher/replayguard"
)

// callModel calls the model once. A failed call does not count as a failed attempt: it has no
// envelope event (OpenWOP envelope contract §14.1). shown means that the call is repeated: its prompt is
// not recorded, and its answer not streamed.
func (e *emission) callModel(
	ctx context.Context, req provider.Request, n callNumber, shown bool,
) (provider.Result, *Result) {
	if ctx.Err() != nil { // the run ended between attempts
		return provider.Result{}, &Result{Interrupted: context.Cause(ctx)}
	}
	if err := replayguard.Check(ctx); err != nil {
		return provider.Result{}, unsentResult(err, n)
	}
	release, err := e.acquireSlot(ctx, req)
	if _, refused := provider.As(err); refused {
		return provider.Result{}, &Result{Err: e.callFailure(err)}
	}
	if err != nil {
		return provider.Result{}, unsentResult(err, n)
	}
	out := limit.Outcome{Tokens: unreported, Aborted: true}
	defer func() { release(out) }()
	if err := e.recordPrompt(ctx, req, n, shown); err != nil {
		return provider.Result{}, unsentResult(err, n)
	}
	callCtx, cancel := context.WithTimeout(ctx, req.Timeouts.Call)
	defer cancel()
	emit, wait, closeStream, err := e.openStream(ctx, shown)
	if err != nil {
		return provider.Result{}, unsentResult(err, n)
	}
	defer closeStream()
	req.Traceparent = e.task.Trace.Call(e.task.Input.NodeID, e.task.Attempt, n.earlier)
	req.InvocationID = InvocationID(e.task, n.ordinal, req.Provider+":"+req.Model)
	began := e.deps.Clock()
	res, err := e.provider.Call(callCtx, req, e.boundAnswer(emit))
	if e.deps.OnCall != nil {
		e.deps.OnCall(req.Provider, e.deps.Clock().Sub(began))
	}
	out = e.limiterOutcome(ctx, res, err)
	if werr := wait(); werr != nil {
		return res, &Result{Interrupted: werr}
	}
	if ctx.Err() != nil {
		return res, &Result{Interrupted: context.Cause(ctx)}
	}
	if err != nil {
		return res, &Result{Err: e.callFailure(err)}
	}
	return res, nil
}

// unsentResult ends a node before its next call. Nothing was sent if that is its first.
func unsentResult(err error, n callNumber) *Result {
	return &Result{Interrupted: err, Unsent: n.earlier == 0}
}

// with returns the result of a failed call with the events decided before it.
func (r *Result) with(events []wire.Draft) Result {
	out := *r
	if out.Err != nil {
		out.Drafts = events
	}
	return out
}
