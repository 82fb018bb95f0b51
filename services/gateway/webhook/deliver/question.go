package deliver

import (
	"context"
	"encoding/json"
	"time"

	"waybill.dev/waybill/protocol/wire"
	"waybill.dev/waybill/services/gateway/webhook/outbox"
	"waybill.dev/waybill/services/gateway/webhook/subscription"
)

// Questions renders what runs ask of those that they name as callbackUrl.
type Questions interface {
	// Ask renders a question for one attempt, of its interrupt.requested event, and gives
	// the key by which the receiver knows it again. The document is nil when nobody waits
	// for an answer any more. It holds a token: it is sent, and goes nowhere else.
	Ask(ctx context.Context, rec *wire.RunRecord, sequence int, event json.RawMessage) (document []byte, key string, err error)
}

// reasonUnread is why a question waits that this host cannot render. Its receiver has
// nothing to do with it.
const reasonUnread = "the host cannot read the question now"

// render gives an event its body; none: there is nothing to deliver any more.
func (w *Worker) render(ctx context.Context, held *outbox.Held, e *subscription.Entry, rec *wire.RunRecord, ev *event, doc json.RawMessage, stored time.Time) (*stop, error) {
	if !e.Callback {
		ev.body = body(rec, ev.kind, ev.sequence, doc)
		return nil, nil //nolint:nilnil // nothing stops the work
	}
	try, cancel := context.WithTimeout(ctx, w.policy.Timeout)
	defer cancel()
	var err error
	ev.body, ev.key, err = w.deps.Questions.Ask(try, rec, ev.sequence, doc)
	switch {
	case err != nil && ctx.Err() != nil: // this process ends
		return nil, ctx.Err()
	case err != nil:
		w.deps.Logger.Warn("webhooks: a question cannot be read", "run", held.RunID, "sequence", ev.sequence, "error", err)
		return w.again(ctx, held, ev, Result{Reason: reasonUnread}, stored)
	case ev.body == nil:
		held.Pass(ev.sequence)
	}
	return nil, nil //nolint:nilnil // nothing stops the work
}
