// Package store opens the places that keep archives: a directory, or an S3 bucket.
package store

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"waybill.dev/waybill/internal/archive"
	"waybill.dev/waybill/internal/s3bucket"
)

// InBucket reports whether a target is a bucket.
func InBucket(target string) bool { return strings.HasPrefix(target, s3bucket.Scheme) }

// Check reports a target that Open refuses, without opening it.
func Check(target string) error {
	if InBucket(target) {
		return s3bucket.Check(target)
	}
	switch scheme, _, isURL := strings.Cut(target, "://"); {
	case strings.TrimSpace(target) == "":
		return errors.New("empty: want a directory or s3://BUCKET/PREFIX")
	case isURL:
		return fmt.Errorf("scheme %q is not supported: want a directory or s3://BUCKET/PREFIX", scheme)
	}
	return nil
}

// Open opens a directory, or a bucket as s3://BUCKET/PREFIX. A bucket's region, endpoint and
// credentials are those of the AWS_ variables and files. It calls no server.
func Open(ctx context.Context, target string) (archive.Target, error) {
	if err := Check(target); err != nil {
		return nil, err
	}
	if InBucket(target) {
		return openBucket(ctx, target)
	}
	return Directory(target), nil
}
