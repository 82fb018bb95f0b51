package webhook

import (
	"context"
	"errors"
	"time"

	"waybill.dev/waybill/protocol/wire"
	"waybill.dev/waybill/services/gateway/webhook/subscription"
)

// reasonFailed is why pending events of a failed subscription are given up.
const reasonFailed = "the subscription failed too often"

// deliverEvent tries one event. It returns a result if the work on the lane must stop: the
// attempt failed, or the breaker is open.
func (w *worker) deliverEvent(ctx context.Context, held *heldLane, ev *event, stored time.Time) (*laneResult, error) {
	e, err := w.loadForAttempt(ctx, held.laneID)
	if err != nil {
		return nil, err
	}
	now := w.deps.Clock()
	switch e.State.Health.Condition(now) {
	case subscription.Failed:
		return nil, w.giveUp(ctx, held, ev, reasonFailed)
	case subscription.Open: // the scheduler knows until when
		return &laneResult{due: now, exists: true}, held.Release(ctx)
	case subscription.Active, subscription.HalfOpen:
	}
	r, err := w.send(ctx, e, ev)
	if err != nil {
		return nil, err
	}
	if r.Reason == "" {
		return nil, w.recordSuccess(ctx, held, e, ev)
	}
	if r.Refused && e.Callback { // give up now: the run's creator does not watch retries
		held.Attempts++
		return nil, w.giveUp(ctx, held, ev, r.Reason)
	}
	return w.recordFailure(ctx, held, ev, r, stored)
}

// loadForAttempt returns the subscription. If its breaker is half open, it claims the single
// probe.
func (w *worker) loadForAttempt(ctx context.Context, id laneID) (*subscription.Entry, error) {
	e, err := w.subscription(ctx, id)
	if errors.Is(err, subscription.ErrNotFound) {
		return nil, err // the next attempt deletes the lane
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

// send sends one request. An error means that the attempt does not count.
func (w *worker) send(ctx context.Context, e *subscription.Entry, ev *event) (Result, error) {
	h, err := headers(e, w.deps.Secrets, ev, w.deps.Clock())
	if err != nil {
		return Result{Reason: err.Error()}, nil //nolint:nilerr // an unusable secret fails the delivery
	}
	try, cancel := context.WithTimeout(ctx, w.policy.Timeout)
	defer cancel()
	r := w.deps.Poster.Post(try, ev.to, h, ev.body)
	if r.Reason != "" && ctx.Err() != nil { // the process is stopping: the outcome is unknown
		return r, ctx.Err()
	}
	return r, nil
}

// recordSuccess records a delivery, also if the process is stopping.
func (w *worker) recordSuccess(ctx context.Context, held *heldLane, e *subscription.Entry, ev *event) error {
	ctx = context.WithoutCancel(ctx)
	w.deps.Counts.Delivered.Add(1)
	if err := held.RecordDone(ctx, ev.sequence, w.deps.Clock()); err != nil {
		return err
	}
	if now := w.deps.View.Lookup(held.Tenant, held.Webhook); now != nil && now.State.Health.InRow == 0 && e.State.Health.InRow == 0 {
		return nil // the breaker is already reset
	}
	e, err := w.deps.Store.Succeed(ctx, held.Tenant, held.Webhook)
	if err != nil {
		return err
	}
	w.deps.View.Learn(e)
	return nil
}

// recordFailure records a failed attempt with the subscription, then schedules a retry or
// gives the event up.
func (w *worker) recordFailure(ctx context.Context, held *heldLane, ev *event, r Result, stored time.Time) (*laneResult, error) {
	w.deps.Counts.Failed.Add(1)
	e, err := w.deps.Store.Fail(ctx, held.Tenant, held.Webhook, w.deps.Clock())
	if err != nil {
		return nil, err
	}
	w.deps.View.Learn(e)
	return w.retryLater(ctx, held, ev, r, stored)
}

// retryLater postpones the lane for a retry of its event, or gives the event up. Later
// events of the run wait as well.
func (w *worker) retryLater(ctx context.Context, held *heldLane, ev *event, r Result, stored time.Time) (*laneResult, error) {
	now := w.deps.Clock()
	w.deps.Logger.Info("webhooks: delivery failed", "webhook", held.Webhook, "run", held.RunID, "sequence", ev.sequence, "reason", r.Reason)
	failures := held.Attempts + 1
	if failures >= w.policy.MaxAttempts || now.Sub(stored) > w.policy.MaxAge {
		held.Attempts = failures
		return nil, w.giveUp(ctx, held, ev, r.Reason)
	}
	at := now.Add(max(w.policy.backoff(held.laneID, ev.sequence, failures), r.After))
	return &laneResult{due: at, exists: true}, held.RecordFailure(ctx, ev.sequence, r.Reason, at)
}

// giveUp stores the event as a dead letter. The lane continues with the next event.
func (w *worker) giveUp(ctx context.Context, held *heldLane, ev *event, reason string) error {
	w.deps.Counts.Dead.Add(1)
	now := w.deps.Clock()
	err := w.deps.Dead.Put(ctx, held.laneID, DeadLetter{
		RunID:    held.RunID,
		Sequence: ev.sequence,
		Type:     ev.kind,
		Attempts: held.Attempts,
		Reason:   reason,
		At:       wire.FormatTime(now),
	})
	if err != nil {
		return err
	}
	w.deps.Logger.Warn("webhooks: delivery given up", "webhook", held.Webhook, "run", held.RunID, "sequence", ev.sequence, "reason", reason)
	return held.RecordDone(ctx, ev.sequence, now)
}
