package engine

import (
	"context"
	"errors"
	"time"

	"waybill.dev/waybill/internal/retry"
)

// A session keeps the results of its effects while the log, the redactor or the acceptor cannot be
// reached. Dropping one would repeat the effect's call, or fail its node with an unknown outcome. No
// other dispatcher can take the run over unless this process loses its lease, which ends the
// session.

const (
	firstPause = 250 * time.Millisecond
	maxPause   = 5 * time.Second
)

// untilReachable repeats a call while a dependency cannot be reached, for at most HoldResults. The
// call must have its effect once, however often it is repeated.
func (s *session) untilReachable(ctx context.Context, call func() error) error {
	waits := retry.Policy{Base: firstPause, Max: maxPause, Total: s.exec.cfg.HoldResults}.Start()
	for {
		err := call()
		if s.exec.cfg.HoldResults == 0 || !isUnanswered(ctx, err) || !waits.Wait(ctx) {
			return err
		}
		s.delivery.extendIfDue()
	}
}

// isUnanswered reports that a dependency was unreachable, stopped during a call, or was too slow.
func isUnanswered(ctx context.Context, err error) bool {
	return ctx.Err() == nil &&
		(isUnreachable(err) || errors.Is(err, context.DeadlineExceeded) || errors.Is(err, context.Canceled))
}
