package natslink

import (
	"context"
	"errors"
	"time"

	"github.com/nats-io/nats.go"
)

// Total wait, and time per attempt.
const (
	ensureTry   = time.Second
	ensureTries = 5
)

// Ensure calls f, which looks up or creates a stream, a bucket or a consumer, and retries. A
// cluster without a leader does not answer, and of several concurrent creations of the same object
// it answers only the last. Both happen when the processes of a host start together.
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
