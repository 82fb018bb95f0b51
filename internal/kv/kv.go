// Package kv is the port to small shared records: workflow definitions, idempotency records, dedup
// records. It never holds state of a run.
package kv

import (
	"context"
	"errors"
)

// ErrNotFound means that the key has no value.
var ErrNotFound = errors.New("key not found")

// ErrConflict means that the key has another revision than expected; nothing was written.
var ErrConflict = errors.New("key was changed by another writer")

// ErrUnavailable means that the store could not be reached in time.
var ErrUnavailable = errors.New("key-value store unavailable")

// ErrDamaged means that the key's value is lost, because a file of the store was damaged.
var ErrDamaged = errors.New("the stored value is damaged")

// Entry is a value and the revision it was written at.
type Entry struct {
	Key      string
	Value    []byte
	Revision uint64
}

// Store stores records under keys. Keys consist of letters, digits, "-", "_", "=" and ".", which
// separates their parts.
type Store interface {
	// Get returns the entry. Errors: ErrNotFound, ErrUnavailable, and ErrDamaged, with the entry's
	// revision, at which it can be replaced.
	Get(ctx context.Context, key string) (Entry, error)
	// Put writes the value unconditionally. Errors: ErrUnavailable.
	Put(ctx context.Context, key string, value []byte) (uint64, error)
	// Update writes the value if the key is at revision, where 0 means that it has no value.
	// Errors: ErrConflict, ErrUnavailable.
	Update(ctx context.Context, key string, value []byte, revision uint64) (uint64, error)
	// Delete deletes the key's value if the key is at revision. Errors: ErrConflict, also if there
	// is no value, and ErrUnavailable.
	Delete(ctx context.Context, key string, revision uint64) error
	// Watch calls handle for every entry whose key starts with prefix (ending in "."), first the
	// present ones, then changes, until ctx ends. ready is closed once the present ones were
	// handled. A deleted key has a nil Value. Damaged entries are left out.
	Watch(ctx context.Context, prefix string, ready chan<- struct{}, handle func(Entry)) error
	// Keys returns the keys with a value that start with prefix (ending in "."), also those of damaged
	// entries. Errors: ErrUnavailable.
	Keys(ctx context.Context, prefix string) ([]string, error)
}
