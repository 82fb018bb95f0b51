package deliver

import (
	"context"
	"errors"
	"time"

	"waybill.dev/waybill/protocol/wire"
	"waybill.dev/waybill/services/gateway/webhook/outbox"
	"waybill.dev/waybill/services/gateway/webhook/subscription"
)

// reasonFailed is why what is left of a failed subscription is given up.
const reasonFailed = "the subscription has failed too often"

// deliver tries one event. A stop ends the work on the lane: the event failed, or may
// not be tried now.
func (w *Worker) deliver(ctx context.Context, held *outbox.Held, ev *event, stored time.Time) (*stop, error) {
	e, err := w.admit(ctx, held.ID)
	if err != nil {
		return nil, err
	}
	now := w.deps.Clock()
	switch e.State.Health.Condition(now) {
	case subscription.Failed:
		return nil, w.bury(ctx, held, ev, reasonFailed)
	case subscription.Open: // the agenda knows until when
		return &stop{due: now, there: true}, held.Free(ctx)
	case subscription.Active, subscription.HalfOpen:
	}
	r, err := w.attempt(ctx, e, ev)
	if err != nil {
		return nil, err
	}
	if r.Reason == "" {
		return nil, w.taken(ctx, held, e, ev)
	}
	if r.Refused && e.Callback { // whoever created the run does not look: say so now
		held.Attempts++
		return nil, w.bury(ctx, held, ev, r.Reason)
	}
	return w.failed(ctx, held, ev, r, stored)
}

// admit gives the subscription as the breaker has it, and takes its one probe if it is
// half open.
func (w *Worker) admit(ctx context.Context, id outbox.ID) (*subscription.Entry, error) {
	e, err := w.subscription(ctx, id)
	if errors.Is(err, subscription.ErrNotFound) {
		return nil, err // the next look at the lane drops it
	}
	if err != nil || e.State.Health.Condition(w.deps.Clock()) != subscription.HalfOpen {
		return e, err
	}
	e, err = w.deps.Store.Probe(ctx, id.Tenant, id.Webhook, w.deps.Clock())
	if e != nil {
		w.deps.View.Learn(e)
	}
	return e, err
}

// attempt sends one request. An error says that it does not count.
func (w *Worker) attempt(ctx context.Context, e *subscription.Entry, ev *event) (Result, error) {
	h, err := headers(e, w.deps.Secrets, ev, w.deps.Clock())
	if err != nil {
		return Result{Reason: err.Error()}, nil //nolint:nilerr // an unusable secret is a failure of the delivery
	}
	try, cancel := context.WithTimeout(ctx, w.policy.Timeout)
	defer cancel()
	r := w.deps.Poster.Post(try, ev.to, h, ev.body)
	if r.Reason != "" && ctx.Err() != nil { // this process ends: nobody knows
		return r, ctx.Err()
	}
	return r, nil
}

// taken notes a success. It is noted also when this process is about to end.
func (w *Worker) taken(ctx context.Context, held *outbox.Held, e *subscription.Entry, ev *event) error {
	ctx = context.WithoutCancel(ctx)
	w.deps.Counts.Delivered.Add(1)
	if err := held.Done(ctx, ev.sequence, w.deps.Clock()); err != nil {
		return err
	}
	if now := w.deps.View.Lookup(held.Tenant, held.Webhook); now != nil && now.State.Health.InRow == 0 && e.State.Health.InRow == 0 {
		return nil // nothing to mend: no write
	}
	e, err := w.deps.Store.Succeed(ctx, held.Tenant, held.Webhook)
	if err != nil {
		return err
	}
	w.deps.View.Learn(e)
	return nil
}

// failed notes a failure: the event waits, and with it what follows in its run; or it
// is given up.
func (w *Worker) failed(ctx context.Context, held *outbox.Held, ev *event, r Result, stored time.Time) (*stop, error) {
	w.deps.Counts.Failed.Add(1)
	e, err := w.deps.Store.Fail(ctx, held.Tenant, held.Webhook, w.deps.Clock())
	if err != nil {
		return nil, err
	}
	w.deps.View.Learn(e)
	return w.again(ctx, held, ev, r, stored)
}

// again has an event wait, or gives it up.
func (w *Worker) again(ctx context.Context, held *outbox.Held, ev *event, r Result, stored time.Time) (*stop, error) {
	now := w.deps.Clock()
	w.deps.Logger.Info("webhooks: a delivery failed", "webhook", held.Webhook, "run", held.RunID, "sequence", ev.sequence, "reason", r.Reason)
	failures := held.Attempts + 1
	if failures >= w.policy.MaxAttempts || now.Sub(stored) > w.policy.MaxAge {
		held.Attempts = failures
		return nil, w.bury(ctx, held, ev, r.Reason)
	}
	at := now.Add(max(w.policy.backoff(held.ID, ev.sequence, failures), r.After))
	return &stop{due: at, there: true}, held.Fail(ctx, ev.sequence, r.Reason, at)
}

// bury gives an event up; what follows in its run goes on.
func (w *Worker) bury(ctx context.Context, held *outbox.Held, ev *event, reason string) error {
	w.deps.Counts.Dead.Add(1)
	now := w.deps.Clock()
	err := w.deps.Dead.Put(ctx, held.ID, outbox.Letter{
		RunID: held.RunID, Sequence: ev.sequence, Type: ev.kind, Attempts: held.Attempts, Reason: reason, At: wire.FormatTime(now),
	})
	if err != nil {
		return err
	}
	w.deps.Logger.Warn("webhooks: a delivery was given up", "webhook", held.Webhook, "run", held.RunID, "sequence", ev.sequence, "reason", reason)
	return held.Done(ctx, ev.sequence, now)
}
