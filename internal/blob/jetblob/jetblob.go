// Package jetblob stores blobs in a NATS JetStream object store.
package jetblob

import (
	"bytes"
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"time"

	"github.com/nats-io/nats.go"
	js "github.com/nats-io/nats.go/jetstream"

	"waybill.dev/waybill/internal/blob"
	"waybill.dev/waybill/internal/natslink"
)

// Config configures the bucket.
type Config struct {
	Bucket, Description string
	// Replicas of the bucket: 1, or 3 in a cluster.
	Replicas int
	// OnDisk is for a server that does not sync before it acknowledges; nil if it does, or if blobs
	// need not be on disk.
	OnDisk natslink.OnDisk
}

// Store is a blob.Store in a bucket.
type Store struct {
	bucket js.ObjectStore
	leader js.Stream
	link   *natslink.Link
	stream string
	onDisk natslink.OnDisk
}

// Stream returns the name of the stream behind a bucket.
func Stream(bucket string) string { return "OBJ_" + bucket }

// Open opens the bucket, and creates it if it does not exist.
func Open(ctx context.Context, nc *nats.Conn, cfg Config) (*Store, error) {
	api, err := js.New(nc)
	if err != nil {
		return nil, fmt.Errorf("open bucket %s: %w", cfg.Bucket, err)
	}
	// The configuration that the client uses for buckets, except that natslink sets direct reads.
	if _, err := natslink.Stream(ctx, api, js.StreamConfig{
		Name:        Stream(cfg.Bucket),
		Description: cfg.Description,
		Subjects:    []string{"$O." + cfg.Bucket + ".C.>", "$O." + cfg.Bucket + ".M.>"},
		MaxBytes:    -1,
		Storage:     js.FileStorage,
		Replicas:    cfg.Replicas,
		Discard:     js.DiscardNew,
		AllowRollup: true,
	}); err != nil {
		return nil, fmt.Errorf("open bucket %s: %w", cfg.Bucket, err)
	}
	b, err := natslink.Ensure(ctx, func(ctx context.Context) (js.ObjectStore, error) { return api.ObjectStore(ctx, cfg.Bucket) })
	if err != nil {
		return nil, fmt.Errorf("open bucket %s: %w", cfg.Bucket, err)
	}
	leader, err := natslink.Leader(ctx, api, Stream(cfg.Bucket))
	if err != nil {
		return nil, fmt.Errorf("open bucket %s: %w", cfg.Bucket, err)
	}
	return &Store{bucket: b, leader: leader, link: natslink.Watch(nc), stream: Stream(cfg.Bucket), onDisk: cfg.OnDisk}, nil
}

// Put stores a blob, unless the name exists.
func (s *Store) Put(ctx context.Context, name string, b blob.Blob) error {
	// A name always has the same content, so the call may be repeated.
	err := s.link.Ask(ctx, func(ctx context.Context) error {
		_, err := s.bucket.GetInfo(ctx, name)
		if err == nil {
			return nil
		}
		if !errors.Is(err, js.ErrObjectNotFound) {
			return fmt.Errorf("look for blob: %w", err)
		}
		if _, err := s.bucket.Put(ctx, js.ObjectMeta{Name: name, Metadata: b.Meta}, bytes.NewReader(b.Data)); err != nil {
			return fmt.Errorf("store blob: %w", err)
		}
		return nil
	})
	if err != nil {
		return err
	}
	if err := s.onDisk.Wait(ctx, s.stream, 0); err != nil { // also if another process has just stored the blob
		return fmt.Errorf("store blob: %w", err)
	}
	return nil
}

// Get returns a blob and checks the server's digest.
//
// Two concurrent writers of a blob both write its parts, and the server deletes those of the first
// writer when the second one is done. A reader that waits for deleted parts times out, looks the blob up
// again and reads the new ones.
func (s *Store) Get(ctx context.Context, name string) (blob.Blob, error) {
	for patience := firstPatience; ; patience *= 2 {
		var info *js.ObjectInfo
		err := s.link.Ask(ctx, func(ctx context.Context) (err error) {
			info, err = s.bucket.GetInfo(ctx, name)
			return err
		})
		if errors.Is(err, js.ErrObjectNotFound) {
			return blob.Blob{}, blob.ErrNotFound
		}
		if err != nil {
			return blob.Blob{}, fmt.Errorf("look for blob: %w", err)
		}
		data, err := s.read(ctx, name, patience)
		if err == nil {
			return blob.Blob{Data: data, Meta: info.Metadata}, nil
		}
		if ctx.Err() != nil || patience >= lastPatience {
			return blob.Blob{}, fmt.Errorf("read blob: %w", err)
		}
	}
}

// Erase removes a blob, and makes the server overwrite its bytes. A missing blob is not an error. The
// parts are removed first, so that a repeated call finds the others.
func (s *Store) Erase(ctx context.Context, name string) error {
	err := s.link.Ask(ctx, func(ctx context.Context) error {
		info, err := s.bucket.GetInfo(ctx, name)
		if errors.Is(err, js.ErrObjectNotFound) {
			return nil
		}
		if err != nil {
			return err
		}
		if err := natslink.Erase(ctx, s.leader, "$O."+info.Bucket+".C."+info.NUID); err != nil {
			return err
		}
		return natslink.Erase(ctx, s.leader, "$O."+info.Bucket+".M."+base64.URLEncoding.EncodeToString([]byte(name)))
	})
	if err == nil {
		err = s.onDisk.Wait(ctx, s.stream, 0)
	}
	if err != nil {
		return fmt.Errorf("erase blob: %w", err)
	}
	return nil
}

// How long the parts of a blob are waited for, the first time and the last.
const (
	firstPatience = time.Second
	lastPatience  = 8 * time.Second
)

func (s *Store) read(ctx context.Context, name string, patience time.Duration) ([]byte, error) {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	var data []byte
	err := s.link.Ask(ctx, func(ctx context.Context) (err error) {
		data, err = s.bucket.GetBytes(ctx, name)
		return err
	})
	return data, err
}
