package webhook

import (
	"context"
	"encoding/json"
	"time"

	"waybill.dev/waybill/protocol/wire"
	"waybill.dev/waybill/services/gateway/webhook/subscription"
)

// QuestionRenderer renders the questions of runs that have a callbackUrl.
type QuestionRenderer interface {
	// RenderQuestion renders a question for one attempt, from its interrupt.requested event.
	// key identifies the question to its receiver. The document is nil if the question no
	// longer needs an answer. It holds a token, so it must not be logged or stored.
	RenderQuestion(ctx context.Context, rec *wire.RunRecord, sequence int, event json.RawMessage) (document []byte, key string, err error)
}

// reasonUnread is the failure of a question that this host cannot render now. The receiver
// did not cause it.
const reasonUnread = "the host cannot render the question"

// renderEvent sets the body of an event. The body stays nil if there is nothing to deliver.
func (w *worker) renderEvent(ctx context.Context, held *heldLane, e *subscription.Entry, rec *wire.RunRecord, ev *event, doc json.RawMessage, stored time.Time) (*laneResult, error) {
	if !e.Callback {
		ev.body = body(rec, ev.kind, ev.sequence, doc)
		return nil, nil //nolint:nilnil // continue
	}
	try, cancel := context.WithTimeout(ctx, w.policy.Timeout)
	defer cancel()
	var err error
	ev.body, ev.key, err = w.deps.Questions.RenderQuestion(try, rec, ev.sequence, doc)
	switch {
	case err != nil && ctx.Err() != nil: // the process is stopping
		return nil, ctx.Err()
	case err != nil:
		w.deps.Logger.Warn("webhooks: cannot render a question", "run", held.RunID, "sequence", ev.sequence, "error", err)
		return w.retryLater(ctx, held, ev, Result{Reason: reasonUnread}, stored)
	case ev.body == nil:
		held.SkipEvent(ev.sequence)
	}
	return nil, nil //nolint:nilnil // continue
}
