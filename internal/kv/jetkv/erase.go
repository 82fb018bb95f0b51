package jetkv

import (
	"context"
	"errors"
	"strings"

	js "github.com/nats-io/nats.go/jetstream"

	"waybill.dev/waybill/internal/natslink"
)

// Erase removes the records of all keys that match a pattern, in which "*" is any part of a key and
// ">" any rest, and has the server overwrite their bytes. Watches see no change. In a bucket that an
// earlier build created without Config.Erasable, the records are deleted, and their bytes stay in the
// server's files until it compacts them. Errors: kv.ErrUnavailable.
func (s *Store) Erase(ctx context.Context, pattern string) error {
	err := s.link.Ask(ctx, func(ctx context.Context) error {
		return natslink.Erase(ctx, s.leader, "$KV."+s.kv.Bucket()+"."+pattern)
	})
	if errors.Is(err, natslink.ErrDenied) {
		err = s.purge(ctx, pattern)
	}
	if err != nil {
		return unavailable("erase", pattern, err)
	}
	return s.keep(ctx, "erase", pattern, 0)
}

// Forget erases the records of all keys that match a pattern as Erase does, and then marks the keys as
// deleted, so that watches see it. A pattern that is a key is marked even if it has no record: an
// earlier call may have erased it and failed before its mark. Errors: kv.ErrUnavailable.
func (s *Store) Forget(ctx context.Context, pattern string) error {
	keys := []string{pattern}
	if strings.ContainsAny(pattern, "*>") {
		var err error
		if keys, err = s.keys(ctx, pattern); err != nil {
			return err
		}
	}
	if err := s.Erase(ctx, pattern); err != nil {
		return err
	}
	for _, key := range keys {
		if err := s.mark(ctx, key); err != nil {
			return unavailable("delete", key, err)
		}
	}
	return s.keep(ctx, "delete", pattern, 0)
}

// mark deletes a key, so that watches see it.
func (s *Store) mark(ctx context.Context, key string) error {
	var opts []js.KVDeleteOpt
	if s.marker > 0 {
		opts = append(opts, js.PurgeTTL(s.marker))
	}
	return s.kv.Purge(ctx, key, opts...)
}

// purge deletes the records of all keys that match a pattern.
func (s *Store) purge(ctx context.Context, pattern string) error {
	keys, err := s.keys(ctx, pattern)
	if err != nil {
		return err
	}
	var errs []error
	for _, key := range keys {
		errs = append(errs, s.mark(ctx, key))
	}
	return errors.Join(errs...)
}
