package jetstream

import (
	"context"
	"time"

	"waybill.dev/waybill/internal/lifecycle"
)

// lookAgain is the pause before the leader is asked again how far it is: a question costs it
// more than a frame, and frames come in batches meanwhile.
const lookAgain = 5 * time.Millisecond

// settled waits until reads find a frame that a consumer has handed out. The consumer may be
// that of another server than the stream's leader, which hands a frame out as soon as it has
// stored it itself, be it before the leader has: who then asks the leader for the run is told
// that there is none.
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
			l.reached.Store(end) // it never falls behind that: a new leader has all of it
			return nil
		}
	}
}
