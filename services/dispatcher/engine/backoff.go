package engine

import (
	"context"
	"time"

	"waybill.dev/waybill/internal/lifecycle"
)

// A result that cannot be appended because the log or the redactor is unreachable is tried again
// while the session lasts: without it, the call that gave it would be repeated, or its node fail as
// one whose outcome is unknown. No other dispatcher can have the run meanwhile unless this one's
// lease is lost, which ends the session.

const (
	firstPause = 250 * time.Millisecond
	maxPause   = 5 * time.Second
)

// wouldLoseResults reports that a failed append would lose results of effects, and may pass.
func (s *session) wouldLoseResults(err error) bool {
	return len(s.unflushed) > 0 && isUnreachable(err)
}

// backoff is the pause between tries, until a time is over.
type backoff struct{ pause, waited, most time.Duration }

// wait pauses; false: ctx has ended, or it was tried for long enough.
func (b *backoff) wait(ctx context.Context) bool {
	if b.waited >= b.most {
		return false
	}
	b.pause = min(max(2*b.pause, firstPause), maxPause)
	b.waited += b.pause
	return lifecycle.Wait(ctx, b.pause)
}
