package natslink

import (
	"context"
	"errors"

	js "github.com/nats-io/nats.go/jetstream"
)

// Stream makes a stream, or sees to it that the one there is as it must be. Replicas are those
// it has, should these be more than cfg wants: whoever opens it with fewer, say with a
// default, does not take the copies of others away.
//
// Of one copy reads are direct. Of several they go to the leader unless cfg allows direct
// ones: any server that has a copy answers those, and one may not have yet what was
// acknowledged.
func Stream(ctx context.Context, api js.JetStream, cfg js.StreamConfig) (js.Stream, error) {
	there, err := Ensure(ctx, func(ctx context.Context) (js.Stream, error) { return api.Stream(ctx, cfg.Name) })
	switch {
	case err == nil:
		cfg.Replicas = max(cfg.Replicas, there.CachedInfo().Config.Replicas)
	case !errors.Is(err, js.ErrStreamNotFound):
		return nil, err
	}
	cfg.AllowDirect = cfg.AllowDirect || cfg.Replicas <= 1
	return Ensure(ctx, func(ctx context.Context) (js.Stream, error) { return api.CreateOrUpdateStream(ctx, cfg) })
}

// Leader gives a stream whose messages are read from its leader, although direct reads are
// allowed. Do not ask it for Info, after which it would read directly again.
func Leader(ctx context.Context, api js.JetStream, name string) (js.Stream, error) {
	s, err := Ensure(ctx, func(ctx context.Context) (js.Stream, error) { return api.Stream(ctx, name) })
	if err != nil {
		return nil, err
	}
	s.CachedInfo().Config.AllowDirect = false // which is all that the client goes by
	return s, nil
}
