// Package memory stores records in memory: for tests, and for records that need not outlive the
// process.
package memory

import (
	"context"
	"fmt"
	"strings"
	"sync"

	"waybill.dev/waybill/internal/kv"
)

// Store is a kv.Store in memory. It is safe for concurrent use.
type Store struct {
	mu       sync.Mutex // guards the fields below
	entries  map[string]kv.Entry
	revision uint64
	changed  chan struct{} // closed and replaced at every write
	log      []kv.Entry    // every write, for watchers
}

// New returns an empty store.
func New() *Store { return &Store{entries: map[string]kv.Entry{}, changed: make(chan struct{})} }

// Get returns an entry; see kv.Store.
func (s *Store) Get(_ context.Context, key string) (kv.Entry, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	e, ok := s.entries[key]
	if !ok {
		return kv.Entry{}, fmt.Errorf("%w: %s", kv.ErrNotFound, key)
	}
	return e, nil
}

// Put writes a value; see kv.Store.
func (s *Store) Put(_ context.Context, key string, value []byte) (uint64, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.write(key, value), nil
}

// Update writes a value if the key is at revision; see kv.Store.
func (s *Store) Update(_ context.Context, key string, value []byte, revision uint64) (uint64, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.entries[key].Revision != revision {
		return 0, fmt.Errorf("%w: %s", kv.ErrConflict, key)
	}
	return s.write(key, value), nil
}

// Delete deletes a value; see kv.Store.
func (s *Store) Delete(_ context.Context, key string, revision uint64) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if revision == 0 || s.entries[key].Revision != revision {
		return fmt.Errorf("%w: %s", kv.ErrConflict, key)
	}
	s.write(key, nil)
	delete(s.entries, key)
	return nil
}

func (s *Store) write(key string, value []byte) uint64 {
	s.revision++
	e := kv.Entry{Key: key, Value: append([]byte(nil), value...), Revision: s.revision}
	s.entries[key] = e
	s.log = append(s.log, e)
	close(s.changed)
	s.changed = make(chan struct{})
	return s.revision
}

// Keys returns the keys under a prefix; see kv.Store.
func (s *Store) Keys(_ context.Context, prefix string) (keys []string, _ error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for key := range s.entries {
		if strings.HasPrefix(key, prefix) {
			keys = append(keys, key)
		}
	}
	return keys, nil
}

// Watch follows the keys under a prefix; see kv.Store.
func (s *Store) Watch(ctx context.Context, prefix string, ready chan<- struct{}, handle func(kv.Entry)) error {
	for next := 0; ; {
		s.mu.Lock()
		news, changed := s.log[next:], s.changed
		next = len(s.log)
		s.mu.Unlock()
		for _, e := range news {
			if strings.HasPrefix(e.Key, prefix) {
				handle(e)
			}
		}
		if ready != nil {
			close(ready)
			ready = nil
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-changed:
		}
	}
}
