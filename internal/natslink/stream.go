package natslink

import (
	"context"
	"errors"

	js "github.com/nats-io/nats.go/jetstream"
)

const (
	// maxConsumers is more than a server bears; what it bears is not for the host to say.
	maxConsumers = 100_000
	// tooManyConsumers is the server's code for more of them than the account allows, and invalidStream
	// that of a server before 2.12 for a limit that is to change, among others.
	tooManyConsumers js.ErrorCode = 10026
	invalidStream    js.ErrorCode = 10052
)

// Stream makes a stream, or sees to it that the one there is as it must be. Replicas are those
// it has, should these be more than cfg wants: whoever opens it with fewer, say with a
// default, does not take the copies of others away.
//
// It takes far more consumers than a server's default of 1,000, beyond which the host's own would be
// refused, unless somebody has set another limit. Hosts of before set it back to the default.
//
// Of one copy reads are direct. Of several they go to the leader unless cfg allows direct
// ones: any server that has a copy answers those, and one may not have yet what was
// acknowledged.
func Stream(ctx context.Context, api js.JetStream, cfg js.StreamConfig) (js.Stream, error) {
	there, err := Ensure(ctx, func(ctx context.Context) (js.Stream, error) { return api.Stream(ctx, cfg.Name) })
	cfg.MaxConsumers = maxConsumers
	switch {
	case err == nil:
		cfg.Replicas = max(cfg.Replicas, there.CachedInfo().Config.Replicas)
		if set := there.CachedInfo().Config.MaxConsumers; set > 0 {
			cfg.MaxConsumers = set
		}
	case !errors.Is(err, js.ErrStreamNotFound):
		return nil, err
	}
	cfg.AllowDirect = cfg.AllowDirect || cfg.Replicas <= 1
	update := func(ctx context.Context) (js.Stream, error) { return api.CreateOrUpdateStream(ctx, cfg) }
	s, err := Ensure(ctx, update)
	if e, ok := errors.AsType[*js.APIError](err); ok && (e.ErrorCode == tooManyConsumers || e.ErrorCode == invalidStream) {
		cfg.MaxConsumers = -1 // the limit of the account, or of the server, holds
		return Ensure(ctx, update)
	}
	return s, err
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
