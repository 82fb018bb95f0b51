package jetstream

import (
	"context"
	"time"

	"waybill.dev/waybill/internal/lifecycle"
)

// lookAgain is the pause before the leader's position is read again: it costs the leader more than
// a frame, and frames arrive in batches.
const lookAgain = 5 * time.Millisecond

// settled waits until reads find a frame that a consumer has delivered. The consumer may be led by
// another server than the stream. That server delivers a frame as soon as it has stored it,
// possibly before the stream's leader has. Without the wait, a read from the leader would not find
// the run.
func (l *Log) settled(ctx context.Context, pos uint64) error {
	if l.alone || pos <= l.reached.Load() {
		return nil
	}
	for {
		if !lifecycle.Wait(ctx, time.Until(time.Unix(0, l.asked.Load()).Add(lookAgain))) {
			return ctx.Err()
		}
		l.asked.Store(time.Now().UnixNano())
		end, err := l.End(ctx)
		switch {
		case err != nil:
			return err
		case end >= pos:
			l.reached.Store(end) // it never goes back: a new leader has everything up to here
			return nil
		}
	}
}
