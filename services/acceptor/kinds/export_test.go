package kinds

import "maps"

// Clone is a registry of its own with the same kinds: these take long to compile.
func (r *Registry) Clone() *Registry { return &Registry{lint: r.lint, kinds: maps.Clone(r.kinds)} }
