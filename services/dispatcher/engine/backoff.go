package engine

import (
	"context"
	"time"

	"waybill.dev/waybill/internal/lifecycle"
)

// A result that cannot be appended because the log or the redactor is unreachable is retried while
// the session lasts. Dropping it would repeat the effect's call, or fail its node with an unknown
// outcome. No other dispatcher can take the run over unless this process loses its lease, which
// ends the session.

const (
	firstPause = 250 * time.Millisecond
	maxPause   = 5 * time.Second
)

// wouldLoseResults reports that a failed append would lose results of effects, and that a retry may
// succeed.
func (s *session) wouldLoseResults(err error) bool {
	return len(s.unflushed.inputs) > 0 && isUnreachable(err)
}

// backoff computes the pause between retries, up to a total time.
type backoff struct{ pause, waited, most time.Duration }

// wait pauses before a retry. It returns false if ctx ended or the total time is used up.
func (b *backoff) wait(ctx context.Context) bool {
	if b.waited >= b.most {
		return false
	}
	b.pause = min(max(2*b.pause, firstPause), maxPause)
	b.waited += b.pause
	return lifecycle.Wait(ctx, b.pause)
}
