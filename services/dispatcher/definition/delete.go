package definition

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"path"
	"slices"
	"strings"

	"waybill.dev/waybill/internal/kv"
	"waybill.dev/waybill/protocol/fault"
)

// SortedVersions lists the versions, the current one first, the others by name.
func (r Ref) SortedVersions() []string {
	rank := func(v string) int {
		if v == r.Version {
			return 0
		}
		return 1
	}
	out := slices.Sorted(maps.Keys(r.Versions))
	slices.SortStableFunc(out, func(a, b string) int { return cmp.Compare(rank(a), rank(b)) })
	return out
}

func noVersion(r Ref, version string) error {
	return fault.New(fault.WorkflowNotFound, "workflow %s has no version %s; it has %s", r.ID, version, strings.Join(r.SortedVersions(), ", ")).
		With("workflowId", r.ID)
}

// Delete deletes a tenant's workflow, or one version that is not the current one; an empty version means
// all. It returns the deleted versions. Their documents stay, because runs pin them by digest.
func (r *Registry) Delete(ctx context.Context, tenant, id, version string) ([]string, error) {
	found, err := r.Find(ctx, tenant, id)
	if err != nil {
		return nil, err
	}
	if found.Tenant != tenant {
		return nil, sharedFault(found)
	}
	var deleted []string
	err = r.change(ctx, refKey(tenant, id), func(old refAt) (ref Ref, err error) {
		ref, deleted, err = old.without(version)
		return ref, err
	})
	return deleted, err
}

// sharedFault is the error of a tenant that would delete a workflow of all tenants.
func sharedFault(ref Ref) error {
	f := fault.New(fault.Forbidden, "workflow %s is shared by all tenants", ref.ID)
	if ref.Source == "" {
		return f.With("remedy", "It comes with the host and stays. Register a workflow with the same id to use your own.")
	}
	return f.With("remedy", fmt.Sprintf("The operator removes its file, %s, from the folder of --workflows. "+
		"Register a workflow with the same id to use your own.", path.Base(ref.Source)))
}

// change replaces a ref. f is called again if another dispatcher has changed it.
func (r *Registry) change(ctx context.Context, key string, f func(old refAt) (Ref, error)) error {
	for {
		old, err := r.readRef(ctx, key)
		if err != nil {
			return err
		}
		ref, err := f(old)
		if err != nil {
			return err
		}
		value, err := json.Marshal(ref)
		if err != nil {
			return fmt.Errorf("render workflow ref: %w", err)
		}
		rev, err := r.store.Update(ctx, key, value, old.revision)
		if errors.Is(err, kv.ErrConflict) {
			continue
		}
		if err != nil {
			return storeFault(err)
		}
		r.setRef(key, ref, rev)
		return nil
	}
}

// without returns the ref without a version, or without all of them.
func (old refAt) without(version string) (ref Ref, deleted []string, err error) {
	ref = old.Ref
	_, has := ref.Versions[version]
	switch {
	case ref.Digest == "":
		return ref, nil, fault.New(fault.WorkflowNotFound, "no workflow of this id in your tenant; GET /v1/workflows lists them")
	case version == "":
		deleted = ref.SortedVersions()
	case !has:
		return ref, nil, noVersion(ref, version)
	case version == ref.Version && len(ref.Versions) > 1:
		return ref, nil, fault.New(fault.Conflict,
			"version %s of workflow %s is the current one; register another version first, or delete the workflow", version, ref.ID)
	default:
		deleted = []string{version}
	}
	ref.Versions, ref.Deleted = maps.Clone(ref.Versions), maps.Clone(ref.Deleted)
	if ref.Deleted == nil {
		ref.Deleted = map[string]string{}
	}
	for _, v := range deleted {
		ref.Deleted[v] = ref.Versions[v]
		delete(ref.Versions, v)
	}
	if len(ref.Versions) == 0 {
		ref.Digest, ref.Version, ref.Types = "", "", nil
	}
	return ref, deleted, nil
}
