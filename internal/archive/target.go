package archive

import (
	"context"
	"errors"
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
