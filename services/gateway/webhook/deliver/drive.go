package deliver

import (
	"cmp"
	"context"
	"errors"
	"time"

	"waybill.dev/waybill/internal/runlog"
	"waybill.dev/waybill/protocol/frame"
	"waybill.dev/waybill/protocol/wire"
	"waybill.dev/waybill/services/gateway/webhook/outbox"
	"waybill.dev/waybill/services/gateway/webhook/subscription"
)

// pause is how long a lane is left alone that could not be worked on, for a reason that
// lies not with its receiver.
const pause = time.Second

// stop says why the work on a lane ends, and when somebody should go on.
type stop struct {
	due   time.Time
	there bool
}

// drive works on a lane as far as it goes. It tells when the lane is due again; false:
// it is gone.
func (w *Worker) drive(ctx context.Context, id outbox.ID) (time.Time, bool) {
	now := w.deps.Clock()
	held, err := w.deps.Lanes.Claim(ctx, id, w.deps.Owner, now, w.policy.Lease)
	if err != nil {
		return w.left(ctx, id, err)
	}
	s, err := w.work(ctx, held)
	if err != nil {
		w.giveBack(ctx, held)
		return w.left(ctx, id, err)
	}
	return s.due, s.there
}

// left is what becomes of a lane that cannot be worked on now.
func (w *Worker) left(ctx context.Context, id outbox.ID, err error) (time.Time, bool) {
	switch {
	case errors.Is(err, outbox.ErrGone):
		return time.Time{}, false
	case errors.Is(err, outbox.ErrTaken), errors.Is(err, subscription.ErrBusy), errors.Is(err, subscription.ErrNotFound), ctx.Err() != nil:
	default:
		w.deps.Logger.Warn("webhooks: a delivery has to wait", "webhook", id.Webhook, "run", id.RunID, "error", err)
	}
	return w.deps.Clock().Add(pause), true
}

// giveBack frees a lane, so that nobody has to wait for the lease to pass; also when
// this process is about to end.
func (w *Worker) giveBack(ctx context.Context, held *outbox.Held) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), pause)
	defer cancel()
	_ = held.Free(ctx) // else the lease passes
}

// framesAtOnce bounds what is read of a run in one go.
const framesAtOnce = 16

// work delivers a lane's frames until there are none or one fails.
func (w *Worker) work(ctx context.Context, held *outbox.Held) (stop, error) {
	e, err := w.subscription(ctx, held.ID)
	if errors.Is(err, subscription.ErrNotFound) {
		return stop{}, held.Drop(ctx)
	}
	if err != nil {
		return stop{}, err
	}
	rec, err := w.deps.Records.Of(ctx, held.Run(held.ID))
	if errors.Is(err, runlog.ErrUnavailable) {
		return stop{}, err
	}
	if err != nil || rec.Replays() { // nothing can be told of it, or must be
		return stop{}, held.Drop(ctx)
	}
	for {
		frames, err := w.deps.Log.Page(ctx, held.Run(held.ID), held.Pos, framesAtOnce)
		if errors.Is(err, frame.ErrDamaged) {
			w.deps.Logger.Error("webhooks: a run cannot be read, the rest of it is not delivered", "webhook", held.Webhook, "run", held.RunID, "error", err)
			return stop{}, held.Drop(ctx)
		}
		if err != nil {
			return stop{}, err
		}
		for _, f := range frames {
			if f.Pos > held.UpTo {
				break
			}
			if s, err := w.frame(ctx, held, e, rec, f); s != nil || err != nil {
				return deref(s), err
			}
		}
		if len(frames) > 0 && held.Pos < held.UpTo && frames[len(frames)-1].Pos <= held.UpTo {
			continue
		}
		if s, err := w.finish(ctx, held); s != nil || err != nil {
			return deref(s), err
		}
	}
}

// finish ends a lane that is done; nil: there is more by now. It is kept while the feed
// could offer it again after a crash.
func (w *Worker) finish(ctx context.Context, held *outbox.Held) (*stop, error) {
	fed, err := w.deps.Fed(ctx)
	if err != nil {
		return nil, err
	}
	if held.UpTo > fed {
		at := w.deps.Clock().Add(pause)
		return &stop{due: at, there: true}, held.Wait(ctx, at)
	}
	gone, err := held.Finish(ctx)
	if gone || err != nil {
		return &stop{}, err
	}
	return nil, nil //nolint:nilnil // the work goes on
}

func deref(s *stop) stop {
	if s == nil {
		return stop{}
	}
	return *s
}

// subscription is what a lane is for. The view may not have seen it yet.
func (w *Worker) subscription(ctx context.Context, id outbox.ID) (*subscription.Entry, error) {
	if e := w.deps.View.Lookup(id.Tenant, id.Webhook); e != nil {
		return e, nil
	}
	return w.deps.Store.Get(ctx, id.Tenant, id.Webhook)
}

// frame delivers what one frame holds for the subscription; a stop ends the work.
func (w *Worker) frame(ctx context.Context, held *outbox.Held, e *subscription.Entry, rec *wire.RunRecord, f *frame.Frame) (*stop, error) {
	if e.Wants(f.Types) {
		docs, err := wire.SplitArray(f.Body)
		if err != nil || len(docs) != len(f.Types) {
			w.deps.Logger.Error("webhooks: a frame cannot be read, its events are not delivered", "run", f.Run.RunID, "position", f.Pos)
			docs = nil
		}
		for i, doc := range docs {
			seq := f.First + i
			if seq < held.Seq || !e.WantsType(f.Types[i]) {
				continue
			}
			ev := &event{to: e.Target(rec), kind: f.Types[i], sequence: seq, trace: cmp.Or(f.Trace, rec.Traceparent)}
			if s, err := w.render(ctx, held, e, rec, ev, doc, f.Stored); s != nil || err != nil {
				return s, err
			}
			if ev.body == nil {
				continue
			}
			if s, err := w.deliver(ctx, held, ev, f.Stored); s != nil || err != nil {
				return s, err
			}
		}
	}
	held.Skip(f.Pos, f.Last+1)
	return nil, nil //nolint:nilnil // nothing stops the work
}
