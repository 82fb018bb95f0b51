// Package jetkv stores records in a NATS JetStream key-value bucket.
package jetkv

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/nats-io/nats.go"
	js "github.com/nats-io/nats.go/jetstream"

	"waybill.dev/waybill/internal/kv"
	"waybill.dev/waybill/internal/natslink"
)

// Config configures a bucket.
type Config struct {
	Bucket      string
	Description string
	// TTL is the lifetime of a record; 0 means no expiry.
	TTL      time.Duration
	Replicas int
	// InMemory stores records in the server's memory only; they are lost when it stops.
	InMemory bool
	// MarkerTTL is how long the bucket keeps the marker of a deleted key; 0 means no expiry.
	// Buckets with changing keys need it, otherwise they grow.
	MarkerTTL time.Duration
	// Erasable allows Erase.
	Erasable bool
	// OnDisk is for a server that acknowledges before it syncs; nil disables the wait.
	OnDisk natslink.OnDisk
}

// Store is a bucket. It is safe for concurrent use.
type Store struct {
	kv     js.KeyValue
	link   *natslink.Link
	marker time.Duration
	stream string
	leader js.Stream
	onDisk natslink.OnDisk
}

// Stream returns the name of a bucket's stream.
func Stream(bucket string) string { return "KV_" + bucket }

// Open opens or creates the bucket.
func Open(ctx context.Context, nc *nats.Conn, cfg Config) (*Store, error) {
	api, err := js.New(nc)
	if err != nil {
		return nil, fmt.Errorf("open bucket %s: %w", cfg.Bucket, err)
	}
	storage := js.FileStorage
	if cfg.InMemory {
		storage, cfg.OnDisk = js.MemoryStorage, nil
	}
	// Same settings as the client's own, except for direct reads.
	if _, err := natslink.Stream(ctx, api, js.StreamConfig{
		Name: Stream(cfg.Bucket), Description: cfg.Description, Subjects: []string{"$KV." + cfg.Bucket + ".>"},
		MaxMsgsPerSubject: 1, MaxMsgs: -1, MaxBytes: -1, MaxMsgSize: 4 << 20, MaxAge: cfg.TTL,
		Storage: storage, Replicas: cfg.Replicas, Discard: js.DiscardNew, AllowRollup: true, DenyDelete: !cfg.Erasable,
		Duplicates: dedupWindow(cfg.TTL), AllowMsgTTL: cfg.MarkerTTL > 0, SubjectDeleteMarkerTTL: cfg.MarkerTTL,
	}); err != nil {
		return nil, fmt.Errorf("open bucket %s: %w", cfg.Bucket, err)
	}
	b, err := natslink.Ensure(ctx, func(ctx context.Context) (js.KeyValue, error) { return api.KeyValue(ctx, cfg.Bucket) })
	if err != nil {
		return nil, fmt.Errorf("open bucket %s: %w", cfg.Bucket, err)
	}
	leader, err := natslink.Leader(ctx, api, Stream(cfg.Bucket))
	if err != nil {
		return nil, fmt.Errorf("open bucket %s: %w", cfg.Bucket, err)
	}
	return &Store{
		leader: leader,
		kv:     b,
		link:   natslink.Watch(nc),
		marker: cfg.MarkerTTL,
		stream: Stream(cfg.Bucket),
		onDisk: cfg.OnDisk,
	}, nil
}

// dedupWindow is how long the server remembers message ids. Records have none. The server limits it
// to the records' TTL.
func dedupWindow(ttl time.Duration) time.Duration {
	const window = 2 * time.Minute
	if ttl > 0 {
		return min(ttl, window)
	}
	return window
}

// Get returns an entry; see kv.Store.
func (s *Store) Get(ctx context.Context, key string) (kv.Entry, error) {
	var e js.KeyValueEntry
	err := s.link.Ask(ctx, func(ctx context.Context) (err error) {
		e, err = s.kv.Get(ctx, key)
		return err
	})
	if errors.Is(err, js.ErrKeyNotFound) || errors.Is(err, js.ErrKeyDeleted) {
		return kv.Entry{}, fmt.Errorf("%w: %s", kv.ErrNotFound, key)
	}
	if err != nil {
		return kv.Entry{}, unavailable("get", key, err)
	}
	if damaged(e.Value()) {
		return kv.Entry{Key: key, Revision: e.Revision()}, fmt.Errorf("%w: %s", kv.ErrDamaged, key)
	}
	return kv.Entry{Key: key, Value: e.Value(), Revision: e.Revision()}, nil
}

// damaged reports whether a value was lost: package natsd replaces what it cannot repair with zero
// bytes, which nothing that is stored here consists of.
func damaged(value []byte) bool {
	return len(value) > 0 && len(bytes.Trim(value, "\x00")) == 0
}

// Put writes a value; see kv.Store.
func (s *Store) Put(ctx context.Context, key string, value []byte) (uint64, error) {
	var rev uint64
	err := s.link.Once(ctx, func(ctx context.Context) (err error) {
		rev, err = s.kv.Put(ctx, key, value)
		return err
	})
	if err != nil {
		return 0, unavailable("put", key, err)
	}
	return rev, s.keep(ctx, "put", key, rev)
}

// Update writes a value if the key is at revision; see kv.Store.
func (s *Store) Update(ctx context.Context, key string, value []byte, revision uint64) (uint64, error) {
	var rev uint64
	err := s.decided(ctx, func(ctx context.Context) (err error) {
		if revision == 0 {
			rev, err = s.kv.Create(ctx, key, value)
		} else {
			rev, err = s.kv.Update(ctx, key, value, revision)
		}
		return err
	})
	if isConflict(err) {
		return 0, s.overtaken(ctx, "update", key)
	}
	if err != nil {
		return 0, unavailable("update", key, err)
	}
	return rev, s.keep(ctx, "update", key, rev)
}

// Delete deletes a value; see kv.Store.
func (s *Store) Delete(ctx context.Context, key string, revision uint64) error {
	if revision == 0 { // the server would treat 0 as "any revision"
		return fmt.Errorf("%w: %s", kv.ErrConflict, key)
	}
	opts := []js.KVDeleteOpt{js.LastRevision(revision)}
	if s.marker > 0 {
		opts = append(opts, js.PurgeTTL(s.marker))
	}
	err := s.decided(ctx, func(ctx context.Context) error { return s.kv.Purge(ctx, key, opts...) })
	if isConflict(err) {
		return s.overtaken(ctx, "delete", key)
	}
	if err != nil {
		return unavailable("delete", key, err)
	}
	return s.keep(ctx, "delete", key, 0) // the client does not return the position
}

// overtaken returns ErrConflict once the other write is on disk, because the caller may act on it.
func (s *Store) overtaken(ctx context.Context, what, key string) error {
	if err := s.keep(ctx, what, key, 0); err != nil {
		return err
	}
	return fmt.Errorf("%w: %s", kv.ErrConflict, key)
}

// keep waits until a write is on disk.
func (s *Store) keep(ctx context.Context, what, key string, rev uint64) error {
	if err := s.onDisk.Wait(ctx, s.stream, rev); err != nil {
		return unavailable(what, key, err)
	}
	return nil
}

// decided runs a write that expects a revision.
func (s *Store) decided(ctx context.Context, write func(context.Context) error) error {
	return natslink.Decided(ctx, func(ctx context.Context) error { return s.link.Once(ctx, write) })
}

func isConflict(err error) bool { return errors.Is(err, js.ErrKeyExists) || natslink.Conflict(err) }

// Keys returns the keys under a prefix; see kv.Store.
func (s *Store) Keys(ctx context.Context, prefix string) ([]string, error) {
	return s.keys(ctx, prefix+">")
}

// keys returns the keys with a value that match a pattern.
func (s *Store) keys(ctx context.Context, pattern string) (all []string, err error) {
	w, err := s.kv.Watch(ctx, pattern, js.IgnoreDeletes(), js.MetaOnly())
	if err != nil {
		return nil, unavailable("list", pattern, err)
	}
	defer stop(w)
	for {
		select {
		case <-ctx.Done():
			return nil, unavailable("list", pattern, ctx.Err())
		case e, ok := <-w.Updates():
			switch {
			case !ok:
				return nil, unavailable("list", pattern, nats.ErrConnectionClosed)
			case e == nil: // these were all
				return all, nil
			}
			all = append(all, e.Key())
		}
	}
}

// stop ends a watch.
func stop(w js.KeyWatcher) {
	_ = w.Stop() // the watcher ends with the connection anyway
	go func() {
		for range w.Updates() { // drain pending updates, because the client blocks until they are read
		}
	}()
}

// Watch follows the keys under a prefix; see kv.Store.
func (s *Store) Watch(ctx context.Context, prefix string, ready chan<- struct{}, handle func(kv.Entry)) error {
	w, err := s.kv.Watch(ctx, prefix+">")
	if err != nil {
		return unavailable("watch", prefix, err)
	}
	defer stop(w)
	for {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case e, ok := <-w.Updates():
			switch {
			case !ok && ctx.Err() != nil: // the client ended the watch first
				return ctx.Err()
			case !ok:
				return unavailable("watch", prefix, nats.ErrConnectionClosed)
			case e == nil: // all present entries have been handled
				if ready != nil {
					close(ready)
					ready = nil
				}
			case e.Operation() == js.KeyValuePut && damaged(e.Value()):
			case e.Operation() == js.KeyValuePut:
				handle(kv.Entry{Key: e.Key(), Value: e.Value(), Revision: e.Revision()})
			default:
				handle(kv.Entry{Key: e.Key(), Revision: e.Revision()})
			}
		}
	}
}

func unavailable(what, key string, err error) error {
	return fmt.Errorf("%w: %s %s: %w", kv.ErrUnavailable, what, key, err)
}
