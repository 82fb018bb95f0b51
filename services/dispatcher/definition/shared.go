package definition

import (
	"context"
	"slices"
)

// SetSource records the file of a workflow that all tenants see.
func (r *Registry) SetSource(ctx context.Context, ref Ref, file string) error {
	if ref.Source == file {
		return nil
	}
	return r.change(ctx, refKey("", ref.ID), func(old refAt) (Ref, error) {
		next := old.Ref
		next.Source = file
		return next, nil
	})
}

// Shared returns the workflow of an id that all tenants see. ok is false if there is none.
func (r *Registry) Shared(id string) (ref Ref, ok bool) {
	r.mu.RLock()
	defer r.mu.RUnlock()
	ref = r.refs[refKey("", id)].Ref
	return ref, ref.Digest != ""
}

// HiddenFrom lists the tenants that do not see a shared workflow, because they have registered another
// definition of its id.
func (r *Registry) HiddenFrom(id string) []string {
	shared, ok := r.Shared(id)
	if !ok {
		return nil
	}
	r.mu.RLock()
	defer r.mu.RUnlock()
	var out []string
	for _, ref := range r.refs {
		if ref.ID == id && ref.Tenant != "" && ref.Digest != "" && ref.Digest != shared.Digest {
			out = append(out, ref.Tenant)
		}
	}
	slices.Sort(out)
	return out
}
