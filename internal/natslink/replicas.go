package natslink

import (
	"context"
	"errors"

	js "github.com/nats-io/nats.go/jetstream"
)

// Replicas is how many replicas a stream gets: those it has, should these be more than are
// wanted. Whoever opens it with fewer, say with a default, does not take the copies of
// others away.
func Replicas(ctx context.Context, api js.JetStream, stream string, wanted int) (int, error) {
	s, err := Ensure(ctx, func(ctx context.Context) (js.Stream, error) { return api.Stream(ctx, stream) })
	if errors.Is(err, js.ErrStreamNotFound) {
		return wanted, nil
	}
	if err != nil {
		return 0, err
	}
	return max(wanted, s.CachedInfo().Config.Replicas), nil
}
