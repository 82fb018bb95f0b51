package kinds

import "maps"

// Clone returns a copy of the registry. Compiling the kinds again takes long.
func (r *Registry) Clone() *Registry { return &Registry{lint: r.lint, kinds: maps.Clone(r.kinds)} }
