package definition

import (
	"context"
	"time"

	"waybill.dev/waybill/protocol/fault"
)

// Retention returns how long runs of a workflow are kept after their end, 0 without limit, according
// to its current document. Of a deleted workflow it is the longest of its versions, so that a deletion
// does not shorten the life of runs. ok is false if none sets it. Errors: fault.ServiceUnavailable, and
// fault.LogDamaged.
func (r *Registry) Retention(ctx context.Context, tenant, id string) (keep time.Duration, ok bool, err error) {
	ref, err := r.Find(ctx, tenant, id)
	if err == nil {
		return r.retention(ctx, ref.Digest)
	}
	if fault.CodeOf(err) != fault.WorkflowNotFound {
		return 0, false, err
	}
	for _, digest := range r.deletedVersions(tenant, id) {
		one, set, err := r.retention(ctx, digest)
		switch {
		case fault.CodeOf(err) == fault.WorkflowNotFound, err == nil && !set:
			continue
		case err != nil:
			return 0, false, err
		case one == 0:
			return 0, true, nil
		}
		keep, ok = max(keep, one), true
	}
	return keep, ok, nil
}

// deletedVersions returns the digests of the deleted versions of a workflow that has no others.
func (r *Registry) deletedVersions(tenant, id string) (digests []string) {
	r.mu.RLock()
	defer r.mu.RUnlock()
	for _, key := range []string{refKey(tenant, id), refKey("", id)} {
		for _, digest := range r.refs[key].Deleted {
			digests = append(digests, digest)
		}
	}
	return digests
}

func (r *Registry) retention(ctx context.Context, digest string) (keep time.Duration, ok bool, err error) {
	e, err := r.ByDigest(ctx, digest)
	if err != nil {
		return 0, false, err
	}
	keep, ok = e.Def.Retention()
	return keep, ok, nil
}
