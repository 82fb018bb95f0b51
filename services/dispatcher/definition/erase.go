package definition

import (
	"context"
	"encoding/json"
	"maps"
	"slices"
	"strings"

	"waybill.dev/waybill/internal/kv"
)

// EraseTenant erases the workflows of a tenant that has no runs, also the deleted ones, and returns
// their number. Documents that a workflow of another tenant has, too, stay. erase erases a record of the
// store. It may be repeated. Errors: fault.ServiceUnavailable, and those of erase.
func (r *Registry) EraseTenant(ctx context.Context, tenant string, erase func(ctx context.Context, key string) error) (int, error) {
	entries, err := kv.List(ctx, r.store, refPrefix)
	if err != nil {
		return 0, storeFault(err)
	}
	own, others := map[string]Ref{}, map[string]bool{}
	for _, e := range entries {
		var ref Ref
		if err := json.Unmarshal(e.Value, &ref); err != nil {
			continue // damaged: it names no documents
		}
		if strings.HasPrefix(e.Key, refPrefix+tenant+".") {
			own[e.Key] = ref
			continue
		}
		for _, digest := range ref.digests() {
			others[digest] = true
		}
	}
	for _, key := range slices.Sorted(maps.Keys(own)) {
		ref := own[key]
		for _, digest := range ref.digests() {
			if others[digest] {
				continue
			}
			if err := erase(ctx, docKey(digest)); err != nil {
				return 0, err
			}
			r.mu.Lock()
			delete(r.entries, digest)
			r.mu.Unlock()
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
