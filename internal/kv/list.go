package kv

import (
	"context"
	"maps"
	"slices"
	"strings"
)

// List returns the entries whose key starts with prefix (ending in "."), sorted by key. Errors:
// ErrUnavailable.
func List(ctx context.Context, s Store, prefix string) ([]Entry, error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	ready, seen := make(chan struct{}), make(chan struct{})
	go func() { // a watch runs until its context ends
		defer close(seen)
		select {
		case <-ready:
			cancel()
		case <-ctx.Done():
		}
	}()
	found := map[string]Entry{}
	err := s.Watch(ctx, prefix, ready, func(e Entry) {
		found[e.Key] = e
		if e.Value == nil {
			delete(found, e.Key)
		}
	})
	cancel()
	<-seen
	select {
	case <-ready:
		return slices.SortedFunc(maps.Values(found), func(a, b Entry) int { return strings.Compare(a.Key, b.Key) }), nil
	default:
		return nil, err
	}
}
