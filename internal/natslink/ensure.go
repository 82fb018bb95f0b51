package natslink

import (
	"context"
	"errors"
	"time"

	"github.com/nats-io/nats.go"
)

// How long an answer is waited for, and how often one is asked for.
const (
	ensureTry   = time.Second
	ensureTries = 5
)

// Ensure calls f, which looks for a stream, a bucket or a consumer, or makes it. A cluster
// that has no leader yet answers nobody, and of several who make the same one at the same
// time it answers the last alone: all processes of a host do when it starts. So it is asked
// again soon.
func Ensure[T any](ctx context.Context, f func(context.Context) (T, error)) (made T, err error) {
	for range ensureTries {
		made, err = ask(ctx, f)
		if err == nil || ctx.Err() != nil || !errors.Is(err, context.DeadlineExceeded) && !errors.Is(err, nats.ErrTimeout) {
			return made, err
		}
	}
	return made, err
}

func ask[T any](ctx context.Context, f func(context.Context) (T, error)) (T, error) {
	ctx, cancel := context.WithTimeout(ctx, ensureTry)
	defer cancel()
	return f(ctx)
}
