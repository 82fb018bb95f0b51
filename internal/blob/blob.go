// Package blob is the port to a store of larger things than a run's log should
// hold: bytes under a name, written once.
package blob

import (
	"context"
	"errors"
)

// ErrNotFound says that there is nothing under the name.
var ErrNotFound = errors.New("blob not found")

// Blob is what is stored.
type Blob struct {
	Data []byte
	// Meta are a few words about it; names and values are ASCII.
	Meta map[string]string
}

// Store keeps blobs. It is safe for concurrent use.
type Store interface {
	// Put stores a blob; it is there for everybody when Put returns. A name is
	// only ever used for the same content, so a second Put changes nothing.
	Put(ctx context.Context, name string, b Blob) error
	// Get gives a blob. Errors: ErrNotFound.
	Get(ctx context.Context, name string) (Blob, error)
	// Erase removes a blob and its bytes. A blob that is gone is not an error.
	Erase(ctx context.Context, name string) error
}
