package definition

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	"waybill.dev/waybill/internal/kv"
	"waybill.dev/waybill/protocol/fault"
)

// EraseTenant erases the workflows of a tenant that has no runs, also the deleted ones, and returns
// their number. Documents that another workflow has, too, stay. erase erases a record of the store, and
// marks it as deleted even if it is absent. After an error, repeat the call: it completes what was begun.
// Errors: fault.ServiceUnavailable, fault.LogDamaged while a ref of others cannot be read, which may name
// any document, and those of erase.
func (r *Registry) EraseTenant(ctx context.Context, tenant string, erase func(ctx context.Context, key string) error) (int, error) {
	prefix := refPrefix + tenant + "."
	stored, err := r.stored(ctx, prefix)
	if err != nil {
		return 0, err
	}
	own := r.inMemory(prefix) // an earlier call may have erased their records and failed then
	for key, ref := range stored {
		if strings.HasPrefix(key, prefix) {
			if _, known := own[key]; !known || len(ref.digests()) > 0 {
				own[key] = ref
			}
		}
	}
	for _, key := range slices.Sorted(maps.Keys(own)) {
		for _, digest := range own[key].digests() {
			if err := r.eraseDoc(ctx, prefix, own, digest, erase); err != nil {
				return 0, err
			}
		}
		if err := erase(ctx, key); err != nil { // other dispatchers see it
			return 0, err
		}
		r.mu.Lock()
		delete(r.refs, key)
		r.mu.Unlock()
	}
	return len(own), nil
}

// eraseDoc erases a document unless a ref other than own names it now.
func (r *Registry) eraseDoc(ctx context.Context, prefix string, own map[string]Ref, digest string, erase func(ctx context.Context, key string) error) error {
	stored, err := r.stored(ctx, prefix)
	if err != nil {
		return err
	}
	for key, ref := range stored {
		if _, is := own[key]; !is && slices.Contains(ref.digests(), digest) {
			return nil
		}
	}
	if err := erase(ctx, docKey(digest)); err != nil {
		return err
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.entries, digest)
	return nil
}

// stored reads all refs from the store. Those under the prefix may be damaged, and are zero then.
func (r *Registry) stored(ctx context.Context, prefix string) (map[string]Ref, error) {
	keys, err := r.store.Keys(ctx, refPrefix)
	if err != nil {
		return nil, storeFault(err)
	}
	entries, err := kv.List(ctx, r.store, refPrefix)
	if err != nil {
		return nil, storeFault(err)
	}
	refs := make(map[string]Ref, len(entries))
	for _, e := range entries {
		var ref Ref
		if err := json.Unmarshal(e.Value, &ref); err != nil {
			ref = Ref{}
			if !strings.HasPrefix(e.Key, prefix) {
				return nil, unreadable(e.Key, err)
			}
		}
		refs[e.Key] = ref
	}
	for _, key := range keys {
		if _, listed := refs[key]; listed {
			continue
		}
		ref, err := r.readRecord(ctx, key) // it is damaged, or was deleted just now
		switch {
		case fault.CodeOf(err) == fault.LogDamaged && !strings.HasPrefix(key, prefix):
			return nil, unreadable(key, err)
		case err != nil && fault.CodeOf(err) != fault.LogDamaged:
			return nil, err
		case err != nil || ref.ID != "":
			refs[key] = ref
		}
	}
	return refs, nil
}

// inMemory returns the refs under a prefix that this process has read.
func (r *Registry) inMemory(prefix string) map[string]Ref {
	r.mu.RLock()
	defer r.mu.RUnlock()
	refs := map[string]Ref{}
	for key, ref := range r.refs {
		if strings.HasPrefix(key, prefix) && ref.ID != "" { // others were erased
			refs[key] = ref.Ref
		}
	}
	return refs
}

// unreadable is the error of an erasure while a ref of others cannot be read. Its text names no other
// tenant.
func unreadable(key string, err error) error {
	return fault.New(fault.LogDamaged, "the stored record of another workflow of this host is damaged, and may name documents of the tenant: "+
		"the operator registers it again, or restores it from a backup").Wrap(fmt.Errorf("record %s: %w", key, err))
}

// digests returns the documents of a workflow, also of its deleted versions.
func (r Ref) digests() []string {
	all := slices.Collect(maps.Values(r.Versions))
	all = slices.AppendSeq(all, maps.Values(r.Deleted))
	if r.Digest != "" {
		all = append(all, r.Digest)
	}
	slices.Sort(all)
	return slices.Compact(all)
}
