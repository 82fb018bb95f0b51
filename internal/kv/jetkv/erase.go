package jetkv

import (
	"context"
	"errors"
	"fmt"

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
// deleted, so that watches see it. Errors: kv.ErrUnavailable.
func (s *Store) Forget(ctx context.Context, pattern string) error {
	keys, err := s.kv.ListKeysFiltered(ctx, pattern)
	if err != nil {
		return unavailable("list", pattern, err)
	}
	var all []string
	for key := range keys.Keys() {
		all = append(all, key)
	}
	if err := s.Erase(ctx, pattern); err != nil {
		return err
	}
	var opts []js.KVDeleteOpt
	if s.marker > 0 {
		opts = append(opts, js.PurgeTTL(s.marker))
	}
	for _, key := range all {
		if err := s.kv.Purge(ctx, key, opts...); err != nil {
			return unavailable("delete", key, err)
		}
	}
	return nil
}

// purge deletes the records of all keys that match a pattern.
func (s *Store) purge(ctx context.Context, pattern string) error {
	keys, err := s.kv.ListKeysFiltered(ctx, pattern)
	if err != nil {
		return fmt.Errorf("list keys: %w", err)
	}
	var opts []js.KVDeleteOpt
	if s.marker > 0 {
		opts = append(opts, js.PurgeTTL(s.marker))
	}
	var errs []error
	for key := range keys.Keys() {
		errs = append(errs, s.kv.Purge(ctx, key, opts...))
	}
	return errors.Join(errs...)
}
