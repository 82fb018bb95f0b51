package engine

import (
	"context"
	"errors"
	"time"

	"waybill.dev/waybill/internal/retry"
)

// A session keeps its effects and their results while the log, the redactor or the acceptor cannot be
// reached. Dropping one would repeat the effect's call, or fail its node with an unknown outcome. So
// it also keeps a frame that starts calls, if the log may have stored it. No other dispatcher can
// take the run over unless this process loses its lease, which ends the session.

const (
	firstPause = 250 * time.Millisecond
	maxPause   = 5 * time.Second
)

// untilReachable repeats a call while a dependency cannot be reached, for at most HoldResults and one
// more call. The call must have its effect once, however often it is repeated. A session that has
// waited in vain waits no more.
func (s *session) untilReachable(ctx context.Context, call func() error) error {
	return s.repeatUntilReachable(ctx, call(), call)
}

// repeatUntilReachable is untilReachable after a first call with the result err.
func (s *session) repeatUntilReachable(ctx context.Context, err error, call func() error) error {
	if s.exec.cfg.HoldResults == 0 || s.impatient || !isUnanswered(ctx, err) {
		return err
	}
	defer s.delivery.keepExtended()()
	bounded, cancel := context.WithTimeout(ctx, s.exec.cfg.HoldResults)
	defer cancel()
	for waits := (retry.Policy{Base: firstPause, Max: maxPause}).Start(); isUnanswered(ctx, err) && waits.Wait(bounded); {
		err = call()
	}
	s.impatient = isUnanswered(ctx, err)
	return err
}

// mustHold reports that effects are in flight, or that their results are not in the log.
func (s *session) mustHold() bool { return s.effects.running > 0 || len(s.unflushed.inputs) > 0 }

// isUnanswered reports that a dependency was unreachable, stopped during a call, or was too slow.
func isUnanswered(ctx context.Context, err error) bool {
	return ctx.Err() == nil &&
		(isUnreachable(err) || errors.Is(err, context.DeadlineExceeded) || errors.Is(err, context.Canceled))
}
