package archive

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"waybill.dev/waybill/internal/s3bucket"
)

// ErrNotFound means that a target has no document with a name.
var ErrNotFound = errors.New("not in the archive")

// Target keeps documents under names. It is safe for concurrent use, also by several processes.
type Target interface {
	// Put stores a file under a name. It is durable when Put returns; before, it is not there at all, or
	// the previous file of that name still is.
	Put(ctx context.Context, name string, file []byte) error
	// Get reads a file. Errors: ErrNotFound.
	Get(ctx context.Context, name string) ([]byte, error)
	// List returns the names of all archives, in order.
	List(ctx context.Context) ([]string, error)
	// String describes the target, without credentials.
	String() string
}

// InBucket reports whether a target is a bucket.
func InBucket(target string) bool { return strings.HasPrefix(target, s3bucket.Scheme) }

// Check reports a target that OpenTarget refuses, without opening it.
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

// OpenTarget opens a directory, or a bucket as s3://BUCKET/PREFIX. A bucket's region, endpoint and
// credentials are those of the AWS_ variables and files. It calls no server.
func OpenTarget(ctx context.Context, target string) (Target, error) {
	if err := Check(target); err != nil {
		return nil, err
	}
	if InBucket(target) {
		return openBucket(ctx, target)
	}
	return Directory(target), nil
}
