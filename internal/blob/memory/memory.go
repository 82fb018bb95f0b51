// Package memory stores blobs in memory, for tests.
package memory

import (
	"context"
	"maps"
	"slices"
	"sync"

	"waybill.dev/waybill/internal/blob"
)

// Store is a blob.Store in memory.
type Store struct {
	mu    sync.Mutex // guards blobs
	blobs map[string]blob.Blob
}

// New returns an empty store.
func New() *Store { return &Store{blobs: map[string]blob.Blob{}} }

// Put stores a blob.
func (s *Store) Put(ctx context.Context, name string, b blob.Blob) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if _, there := s.blobs[name]; !there {
		s.blobs[name] = clone(b)
	}
	return nil
}

// Get returns a blob.
func (s *Store) Get(ctx context.Context, name string) (blob.Blob, error) {
	if err := ctx.Err(); err != nil {
		return blob.Blob{}, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	b, ok := s.blobs[name]
	if !ok {
		return blob.Blob{}, blob.ErrNotFound
	}
	return clone(b), nil
}

// Erase removes a blob.
func (s *Store) Erase(ctx context.Context, name string) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.blobs, name)
	return nil
}

// Len returns the number of blobs.
func (s *Store) Len() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.blobs)
}

func clone(b blob.Blob) blob.Blob {
	return blob.Blob{Data: slices.Clone(b.Data), Meta: maps.Clone(b.Meta)}
}
