package natslink

import (
	"context"
	"errors"

	js "github.com/nats-io/nats.go/jetstream"
)

const (
	// maxConsumers is more than a server can handle; the operator sets the real limit.
	maxConsumers = 100_000
	// tooManyConsumers is the server's code for exceeding the account's limit. invalidStream is
	// that of servers before 2.12 for, among others, a changed limit.
	tooManyConsumers js.ErrorCode = 10026
	invalidStream    js.ErrorCode = 10052
)

// Stream creates a stream, or updates an existing one to cfg. It keeps a higher number of existing
// replicas: a process with a lower setting, such as a default, must not remove copies.
//
// It raises the limit of consumers far above the server's default of 1,000, beyond which the host's
// own consumers would be rejected, unless someone has set another limit. Older hosts set it back to
// the default.
//
// A server never allows again what an existing stream denies, so DenyDelete and DenyPurge stay set.
//
// With one copy reads are direct. With several they go to the leader unless cfg allows direct
// reads: any server with a copy answers those, and it may lack recently acknowledged data.
func Stream(ctx context.Context, api js.JetStream, cfg js.StreamConfig) (js.Stream, error) {
	there, err := Ensure(ctx, func(ctx context.Context) (js.Stream, error) { return api.Stream(ctx, cfg.Name) })
	cfg.MaxConsumers = maxConsumers
	switch {
	case err == nil:
		set := there.CachedInfo().Config
		cfg.Replicas = max(cfg.Replicas, set.Replicas)
		cfg.DenyDelete, cfg.DenyPurge = cfg.DenyDelete || set.DenyDelete, cfg.DenyPurge || set.DenyPurge
		if set.MaxConsumers > 0 {
			cfg.MaxConsumers = set.MaxConsumers
		}
	case !errors.Is(err, js.ErrStreamNotFound):
		return nil, err
	}
	cfg.AllowDirect = cfg.AllowDirect || cfg.Replicas <= 1
	update := func(ctx context.Context) (js.Stream, error) { return api.CreateOrUpdateStream(ctx, cfg) }
	s, err := Ensure(ctx, update)
	if e, ok := errors.AsType[*js.APIError](err); ok && (e.ErrorCode == tooManyConsumers || e.ErrorCode == invalidStream) {
		cfg.MaxConsumers = -1 // the limit of the account or the server applies
		return Ensure(ctx, update)
	}
	return s, err
}

// Leader returns a stream whose messages are read from its leader, although direct reads are
// allowed. Do not call its Info, which would switch it back to direct reads.
func Leader(ctx context.Context, api js.JetStream, name string) (js.Stream, error) {
	s, err := Ensure(ctx, func(ctx context.Context) (js.Stream, error) { return api.Stream(ctx, name) })
	if err != nil {
		return nil, err
	}
	s.CachedInfo().Config.AllowDirect = false // the client checks only this flag
	return s, nil
}
