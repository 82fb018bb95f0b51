package provider

import (
	"fmt"
	"maps"
	"slices"
)

// Registry holds providers by id. It is immutable after NewRegistry, so it needs no lock.
type Registry struct{ byID map[string]Provider }

// NewRegistry returns a registry of the given providers. Duplicate ids are an error, because
// workflows could not distinguish them.
func NewRegistry(providers ...Provider) (*Registry, error) {
	r := &Registry{byID: make(map[string]Provider, len(providers))}
	for _, p := range providers {
		id := p.ID()
		if _, taken := r.byID[id]; taken {
			return nil, fmt.Errorf("provider %q is configured twice; give each its own id", id)
		}
		r.byID[id] = p
	}
	return r, nil
}

// Lookup returns a provider by id.
func (r *Registry) Lookup(id string) (Provider, bool) {
	p, ok := r.byID[id]
	return p, ok
}

// IDs returns the ids of all providers, sorted.
func (r *Registry) IDs() []string { return slices.Sorted(maps.Keys(r.byID)) }
