package provider

import (
	"fmt"
	"maps"
	"slices"
)

// Registry finds providers by id. It does not change after NewRegistry, so it
// needs no lock.
type Registry struct{ byID map[string]Provider }

// NewRegistry holds the given providers. Two of one id are an error: a workflow
// could not say which one it means.
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

// Lookup finds a provider.
func (r *Registry) Lookup(id string) (Provider, bool) {
	p, ok := r.byID[id]
	return p, ok
}

// IDs lists the providers' ids, sorted.
func (r *Registry) IDs() []string { return slices.Sorted(maps.Keys(r.byID)) }
