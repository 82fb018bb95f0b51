// Package blob is the port to a store of data too large for a run's log: bytes under a name, written
// once.
package blob

import (
	"context"
	"errors"
)

// ErrNotFound means that no blob has the name.
var ErrNotFound = errors.New("blob not found")

// Blob is the content of a name.
type Blob struct {
	Data []byte
	// Meta describes the data; names and values are ASCII.
	Meta map[string]string
}

// Store keeps blobs. It is safe for concurrent use.
type Store interface {
	// Put stores a blob. All processes can read it when Put returns. A name always has the same
	// content, so a second Put changes nothing.
	Put(ctx context.Context, name string, b Blob) error
	// Get returns a blob. Errors: ErrNotFound.
	Get(ctx context.Context, name string) (Blob, error)
	// Erase removes a blob and its bytes. A blob that is gone is not an error.
	Erase(ctx context.Context, name string) error
}
