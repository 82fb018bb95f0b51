package store

import (
	"context"
	"errors"
	"fmt"

	"waybill.dev/waybill/internal/archive"
	"waybill.dev/waybill/internal/s3bucket"
)

// bucket is a target in an S3 bucket.
type bucket struct{ *s3bucket.Bucket }

func openBucket(ctx context.Context, target string) (archive.Target, error) {
	b, err := s3bucket.Open(ctx, target, "archive")
	if err != nil {
		return nil, err
	}
	return bucket{b}, nil
}

// Put stores a file; see archive.Target.
func (b bucket) Put(ctx context.Context, name string, file []byte) error {
	return b.Bucket.Put(ctx, name, "application/gzip", file)
}

// Get reads a file; see archive.Target.
func (b bucket) Get(ctx context.Context, name string) ([]byte, error) {
	file, err := b.Bucket.Get(ctx, name, archive.MaxBytes+1)
	if errors.Is(err, s3bucket.ErrNotFound) {
		return nil, fmt.Errorf("%w: %s", archive.ErrNotFound, name)
	}
	return file, err
}

// List returns the names of all archives, in order; see archive.Target.
func (b bucket) List(ctx context.Context) ([]string, error) {
	return b.Bucket.List(ctx, archive.Suffix)
}
