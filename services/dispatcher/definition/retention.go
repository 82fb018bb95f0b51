package definition

import (
	"context"
	"encoding/json"
	"errors"
	"maps"
	"slices"
	"time"

	"waybill.dev/waybill/internal/kv"
	"waybill.dev/waybill/protocol/fault"
)

// Retention returns how long runs of a workflow are kept after their end, 0 without limit. The current
// document decides. Of a deleted workflow it is the longest of its versions, so that a deletion does not
// shorten the life of runs. If a tenant has deleted a workflow that hid a shared one, its deleted versions
// and the shared document take part. unset is the retention of a document that sets none. ok is false if
// that decides. Errors: fault.ServiceUnavailable, and fault.LogDamaged, also if a document is lost.
func (r *Registry) Retention(ctx context.Context, tenant, id string, unset time.Duration) (keep time.Duration, ok bool, err error) {
	digests, err := r.retained(ctx, tenant, id)
	if err != nil {
		return 0, false, err
	}
	for i, digest := range digests {
		one, set, err := r.retention(ctx, digest)
		if err != nil {
			return 0, false, err
		}
		if !set {
			one = unset
		}
		if i == 0 || longer(one, keep) {
			keep, ok = one, set
		}
	}
	return keep, ok, nil
}

// longer compares retentions, of which 0 is without limit.
func longer(a, b time.Duration) bool { return b != 0 && (a == 0 || a > b) }

// retained returns the documents that take part in the retention of a workflow.
func (r *Registry) retained(ctx context.Context, tenant, id string) ([]string, error) {
	ref, err := r.Find(ctx, tenant, id)
	found := err == nil
	switch {
	case found && ref.Tenant != "":
		return []string{ref.Digest}, nil
	case !found && fault.CodeOf(err) != fault.WorkflowNotFound:
		return nil, err
	case found && !r.has(refKey(tenant, id)): // a record that is damaged is not in memory
		own, err := r.readRecord(ctx, refKey(tenant, id))
		switch {
		case err != nil:
			return nil, err
		case own.Digest != "": // another dispatcher has registered it just now
			return []string{own.Digest}, nil
		}
		return append(slices.Collect(maps.Values(own.Deleted)), ref.Digest), nil
	}
	r.mu.RLock()
	defer r.mu.RUnlock()
	digests := slices.Collect(maps.Values(r.refs[refKey(tenant, id)].Deleted))
	if found {
		return append(digests, ref.Digest), nil
	}
	return slices.AppendSeq(digests, maps.Values(r.refs[refKey("", id)].Deleted)), nil
}

func (r *Registry) has(key string) bool {
	r.mu.RLock()
	defer r.mu.RUnlock()
	return r.refs[key].revision > 0
}

// readRecord reads a ref from the store, the zero ref if there is none. Unlike readRef it returns an
// error if the ref is damaged.
func (r *Registry) readRecord(ctx context.Context, key string) (Ref, error) {
	var ref Ref
	e, err := r.store.Get(ctx, key)
	switch {
	case errors.Is(err, kv.ErrNotFound) || err == nil && e.Value == nil:
		return ref, nil
	case err != nil:
		return ref, storeFault(err)
	}
	if err := json.Unmarshal(e.Value, &ref); err != nil {
		return ref, damaged().Wrap(err)
	}
	return ref, nil
}

func (r *Registry) retention(ctx context.Context, digest string) (keep time.Duration, ok bool, err error) {
	e, err := r.ByDigest(ctx, digest)
	if fault.CodeOf(err) == fault.WorkflowNotFound {
		return 0, false, damaged().Wrap(err)
	}
	if err != nil {
		return 0, false, err
	}
	keep, ok = e.Def.Retention()
	return keep, ok, nil
}
