package webhook

import (
	"cmp"
	"context"
	"errors"
	"time"

	"waybill.dev/waybill/internal/runlog"
	"waybill.dev/waybill/protocol/frame"
	"waybill.dev/waybill/protocol/wire"
	"waybill.dev/waybill/services/gateway/webhook/subscription"
)

// laneRetry is the wait before a lane is tried again after a failure that its receiver did
// not cause.
const laneRetry = time.Second

// laneResult is the result of the work on a lane: when it is due again, and whether it still
// exists.
type laneResult struct {
	due    time.Time
	exists bool
}

// deliverLane delivers a lane as far as possible. It returns when the lane is due again, and
// whether it still exists.
func (w *worker) deliverLane(ctx context.Context, id laneID) (time.Time, bool) {
	now := w.deps.Clock()
	held, err := w.deps.Lanes.Claim(ctx, id, w.deps.Owner, now, w.policy.Lease)
	if err != nil {
		return w.afterError(ctx, id, err)
	}
	s, err := w.deliverFrames(ctx, held)
	if err != nil {
		w.release(ctx, held)
		return w.afterError(ctx, id, err)
	}
	return s.due, s.exists
}

// afterError decides when a lane is due again after an error.
func (w *worker) afterError(ctx context.Context, id laneID, err error) (time.Time, bool) {
	switch {
	case errors.Is(err, errLaneGone):
		return time.Time{}, false
	case errors.Is(err, errLaneTaken), errors.Is(err, subscription.ErrBusy), errors.Is(err, subscription.ErrNotFound), ctx.Err() != nil:
	default:
		w.deps.Logger.Warn("webhooks: delivery postponed", "webhook", id.Webhook, "run", id.RunID, "error", err)
	}
	return w.deps.Clock().Add(laneRetry), true
}

// release gives the lane back so that other workers need not wait for the lease. It runs
// also if the process is stopping.
func (w *worker) release(ctx context.Context, held *heldLane) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), laneRetry)
	defer cancel()
	_ = held.Release(ctx) // otherwise the lease expires
}

// framesPerRead limits how many frames of a run are read in one call.
const framesPerRead = 16

// deliverFrames delivers a lane's frames until none is left or a delivery fails.
func (w *worker) deliverFrames(ctx context.Context, held *heldLane) (laneResult, error) {
	e, err := w.subscription(ctx, held.laneID)
	if errors.Is(err, subscription.ErrNotFound) {
		return laneResult{}, held.Delete(ctx)
	}
	if err != nil {
		return laneResult{}, err
	}
	rec, err := w.deps.Records.Of(ctx, held.Run(held.laneID))
	if errors.Is(err, runlog.ErrUnavailable) {
		return laneResult{}, err
	}
	if err != nil || rec.Silent() { // nor is an unreadable record
		return laneResult{}, held.Delete(ctx)
	}
	for {
		frames, err := w.deps.Log.Page(ctx, held.Run(held.laneID), held.Pos, framesPerRead)
		if errors.Is(err, frame.ErrDamaged) {
			w.deps.Logger.Error("webhooks: cannot read a run, its remaining events are not delivered", "webhook", held.Webhook, "run", held.RunID, "error", err)
			return laneResult{}, held.Delete(ctx)
		}
		if err != nil {
			return laneResult{}, err
		}
		for _, f := range frames {
			if f.Pos > held.UpTo {
				break
			}
			if s, err := w.deliverFrame(ctx, held, e, rec, f); s != nil || err != nil {
				return orZero(s), err
			}
		}
		if len(frames) > 0 && held.Pos < held.UpTo && frames[len(frames)-1].Pos <= held.UpTo {
			continue
		}
		if s, err := w.finishLane(ctx, held); s != nil || err != nil {
			return orZero(s), err
		}
	}
}

// finishLane deletes a lane that is fully delivered. It returns nil if more frames were
// offered. The lane is kept while the feeder might offer its frames again after a crash.
func (w *worker) finishLane(ctx context.Context, held *heldLane) (*laneResult, error) {
	fed, err := w.deps.Fed(ctx, held.Tenant)
	if err != nil {
		return nil, err
	}
	if held.UpTo > fed {
		at := w.deps.Clock().Add(laneRetry)
		return &laneResult{due: at, exists: true}, held.Postpone(ctx, at)
	}
	gone, err := held.Finish(ctx)
	if gone || err != nil {
		return &laneResult{}, err
	}
	return nil, nil //nolint:nilnil // continue
}

func orZero(s *laneResult) laneResult {
	if s == nil {
		return laneResult{}
	}
	return *s
}

// subscription returns the subscription of a lane. It reads the store if the view has not
// seen it yet.
func (w *worker) subscription(ctx context.Context, id laneID) (*subscription.Entry, error) {
	if e := w.deps.View.Lookup(id.Tenant, id.Webhook); e != nil {
		return e, nil
	}
	return w.deps.Store.Get(ctx, id.Tenant, id.Webhook)
}

// deliverFrame delivers the events of one frame that the subscription wants. It returns a
// result if the work on the lane must stop.
func (w *worker) deliverFrame(ctx context.Context, held *heldLane, e *subscription.Entry, rec *wire.RunRecord, f *frame.Frame) (*laneResult, error) {
	if e.Wants(f.Types) {
		docs, err := wire.SplitArray(f.Body)
		if err != nil || len(docs) != len(f.Types) {
			w.deps.Logger.Error("webhooks: cannot read a frame, its events are not delivered", "run", f.Run.RunID, "position", f.Pos)
			docs = nil
		}
		for i, doc := range docs {
			seq := f.First + i
			if seq < held.Seq || !e.WantsType(f.Types[i]) {
				continue
			}
			ev := &event{
				to:       e.Target(rec),
				kind:     f.Types[i],
				runID:    rec.RunID,
				sequence: seq,
				trace:    cmp.Or(f.Trace, rec.Traceparent),
			}
			if s, err := w.renderEvent(ctx, held, e, rec, ev, doc, f.Stored); s != nil || err != nil {
				return s, err
			}
			if ev.body == nil {
				continue
			}
			if s, err := w.deliverEvent(ctx, held, ev, f.Stored); s != nil || err != nil {
				return s, err
			}
		}
	}
	held.SkipFrame(f.Pos, f.Last+1)
	return nil, nil //nolint:nilnil // continue
}
