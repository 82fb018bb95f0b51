// Package kv is the port to small shared records: workflow definitions,
// idempotency records, dedup claims. Nothing of a run's state is ever kept here.
package kv

import (
	"context"
	"errors"
)

// ErrNotFound says that the key has no value.
var ErrNotFound = errors.New("key not found")

// ErrConflict says that the key has another revision than expected; nothing was written.
var ErrConflict = errors.New("key was changed by another writer")

// ErrUnavailable says that the store could not be reached in time.
var ErrUnavailable = errors.New("key-value store unavailable")

// Entry is a value and the revision it was written at.
type Entry struct {
	Key      string
	Value    []byte
	Revision uint64
}

// Store keeps records under keys. Keys are made of letters, digits, "-", "_",
// "=" and ".", which separates their parts.
type Store interface {
	// Get returns the entry. Errors: ErrNotFound, ErrUnavailable.
	Get(ctx context.Context, key string) (Entry, error)
	// Put writes the value whatever was there. Errors: ErrUnavailable.
	Put(ctx context.Context, key string, value []byte) (uint64, error)
	// Update writes the value if the key is at revision; 0: if it has no value.
	// Errors: ErrConflict, ErrUnavailable.
	Update(ctx context.Context, key string, value []byte, revision uint64) (uint64, error)
	// Delete takes the key's value away if the key is at revision. Errors:
	// ErrConflict, also when there is no value, and ErrUnavailable.
	Delete(ctx context.Context, key string, revision uint64) error
	// Watch calls handle for every entry whose key begins with prefix (ending in
	// "."), first the present ones, then changes, until ctx ends. ready is closed
	// once the present ones have been handled. A deleted key has a nil Value.
	Watch(ctx context.Context, prefix string, ready chan<- struct{}, handle func(Entry)) error
}
