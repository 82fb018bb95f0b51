// Package definition keeps workflow definitions. A stored document never
// changes; a run pins the digest of the one it started with.
package definition

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"

	"waybill.dev/waybill/internal/kv"
	"waybill.dev/waybill/protocol/fault"
	"waybill.dev/waybill/protocol/subject"
	"waybill.dev/waybill/protocol/workflow"
)

// Entry is a definition ready to use.
type Entry struct {
	Def    *workflow.Definition
	Graph  *workflow.Graph
	Flow   *Flow
	Digest string
}

// Ref says which document a workflow id stands for now, and stood for at each version.
type Ref struct {
	ID       string            `json:"id"`
	Name     string            `json:"name"`
	Version  string            `json:"version"`
	Digest   string            `json:"digest"`
	Versions map[string]string `json:"versions"`
	// Types are the node types the current document uses, sorted.
	Types []string `json:"types"`
	// Tenant is empty when every tenant sees it.
	Tenant string `json:"tenant,omitempty"`
	// Scheduled says that a version has settings of when its runs are executed.
	Scheduled bool `json:"scheduled,omitempty"`
}

// Keys: doc.<hex of the digest> holds a document, ref.<tenant>.<id> a Ref.
const (
	docPrefix = "doc."
	refPrefix = "ref."
)

// Registry serves definitions from memory and keeps them in a kv.Store.
type Registry struct {
	store kv.Store

	mu      sync.RWMutex // guards refs and entries
	refs    map[string]refAt
	entries map[string]*Entry
}

// maxEntries bounds the compiled documents that are kept.
const maxEntries = 4096

type refAt struct {
	Ref
	revision uint64
}

// New makes a registry over a store. It serves nothing before Run is ready.
func New(store kv.Store) *Registry {
	return &Registry{store: store, refs: map[string]refAt{}, entries: map[string]*Entry{}}
}

// Run follows what other dispatchers register, until ctx ends. ready is closed
// once everything stored has been read.
func (r *Registry) Run(ctx context.Context, ready chan<- struct{}) error {
	return r.store.Watch(ctx, refPrefix, ready, r.take)
}

func (r *Registry) take(e kv.Entry) {
	var ref Ref
	if json.Unmarshal(e.Value, &ref) == nil {
		r.learn(e.Key, ref, e.Revision)
	}
}

func (r *Registry) learn(key string, ref Ref, revision uint64) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.refs[key].revision < revision {
		r.refs[key] = refAt{ref, revision}
	}
}

func refKey(tenant, id string) string {
	if tenant == "" {
		// "=" cannot be part of a tenant.
		return refPrefix + "=" + "." + id
	}
	return refPrefix + tenant + "." + id
}

// Change is what a Put came to.
type Change int

const (
	// Unchanged means: the workflow stood for the same document already.
	Unchanged Change = iota
	// Created means: the workflow had no such version.
	Created
	// Replaced means: a version that was there is the current one again, or, in
	// development, has got other content.
	Replaced
)

// Put registers a definition for a tenant, or for everybody if tenant is empty. A
// document of the same version but other content is a conflict, unless replace
// is set.
func (r *Registry) Put(ctx context.Context, tenant string, def *workflow.Definition, replace bool) (Ref, Change, error) {
	digest, key := def.Digest(), refKey(tenant, def.ID)
	for {
		old, err := r.stored(ctx, key)
		if err != nil {
			return Ref{}, Unchanged, err
		}
		if old.Digest == digest {
			return old.Ref, Unchanged, nil
		}
		had, known := old.Versions[def.Version]
		if known && had != digest && !replace {
			return Ref{}, Unchanged, fault.New(fault.Conflict,
				"workflow %s version %s is registered with other content; a stored version never changes: give the document a new version", def.ID, def.Version)
		}
		if _, err := r.store.Put(ctx, docKey(digest), def.Raw); err != nil {
			return Ref{}, Unchanged, unavailable(err)
		}
		ref := old.with(tenant, def, digest)
		value, err := json.Marshal(ref)
		if err != nil {
			return Ref{}, Unchanged, fmt.Errorf("render workflow ref: %w", err)
		}
		rev, err := r.store.Update(ctx, key, value, old.revision)
		if errors.Is(err, kv.ErrConflict) {
			continue // somebody else registered a version; look again
		}
		if err != nil {
			return Ref{}, Unchanged, unavailable(err)
		}
		r.learn(key, ref, rev)
		if known {
			return ref, Replaced, nil
		}
		return ref, Created, nil
	}
}

func (old refAt) with(tenant string, def *workflow.Definition, digest string) Ref {
	versions := maps.Clone(old.Versions)
	if versions == nil {
		versions = map[string]string{}
	}
	versions[def.Version] = digest
	types := map[string]bool{}
	for _, n := range def.Nodes {
		types[n.TypeID] = true
	}
	return Ref{
		ID: def.ID, Name: def.Name, Version: def.Version, Digest: digest, Versions: versions,
		Types: slices.Sorted(maps.Keys(types)), Tenant: tenant, Scheduled: old.Scheduled || def.Scheduled(),
	}
}

// stored reads a ref from the store; the zero ref when there is none.
func (r *Registry) stored(ctx context.Context, key string) (refAt, error) {
	e, err := r.store.Get(ctx, key)
	if errors.Is(err, kv.ErrNotFound) {
		return refAt{}, nil
	}
	if err != nil {
		return refAt{}, unavailable(err)
	}
	var ref Ref
	if err := json.Unmarshal(e.Value, &ref); err != nil {
		return refAt{}, fmt.Errorf("read workflow ref %s: %w", key, err)
	}
	return refAt{ref, e.Revision}, nil
}

// docKey drops the "sha256:" of a digest, which a key cannot hold.
func docKey(digest string) string { return docPrefix + strings.TrimPrefix(digest, "sha256:") }

func unavailable(err error) error {
	return fault.New(fault.ServiceUnavailable, "workflow definitions cannot be reached; try again").Wrap(err)
}

// Get finds a tenant's definition by id; its own before everybody's.
func (r *Registry) Get(ctx context.Context, tenant, id string) (*Entry, error) {
	ref, ok := r.known(tenant, id)
	if !ok && subject.Token(id) { // another replica may have been told of it just now
		if err := r.ask(ctx, tenant, id); err != nil {
			return nil, err
		}
		ref, ok = r.known(tenant, id)
	}
	if !ok {
		return nil, fault.New(fault.WorkflowNotFound, "no workflow of this id in your tenant; GET /v1/workflows lists them")
	}
	return r.ByDigest(ctx, ref.Digest)
}

// Scheduled reports whether a version of the workflow has settings of when its runs are executed. A
// document that a host of before registered counts once it was used here.
func (r *Registry) Scheduled(tenant, id string) bool {
	r.mu.RLock()
	defer r.mu.RUnlock()
	for _, key := range []string{refKey(tenant, id), refKey("", id)} {
		ref := r.refs[key]
		if e := r.entries[ref.Digest]; ref.Scheduled || e != nil && e.Def.Scheduled() {
			return true
		}
	}
	return false
}

func (r *Registry) known(tenant, id string) (refAt, bool) {
	r.mu.RLock()
	defer r.mu.RUnlock()
	ref, ok := r.refs[refKey(tenant, id)]
	if !ok {
		ref, ok = r.refs[refKey("", id)]
	}
	return ref, ok
}

// ask looks an id up in the store.
func (r *Registry) ask(ctx context.Context, tenant, id string) error {
	for _, key := range []string{refKey(tenant, id), refKey("", id)} {
		e, err := r.store.Get(ctx, key)
		switch {
		case errors.Is(err, kv.ErrNotFound):
			continue
		case err != nil:
			return unavailable(err)
		}
		r.take(e)
	}
	return nil
}

// ByDigest finds a document that was registered once, whatever its id stands
// for now.
func (r *Registry) ByDigest(ctx context.Context, digest string) (*Entry, error) {
	r.mu.RLock()
	e := r.entries[digest]
	r.mu.RUnlock()
	if e != nil {
		return e, nil
	}
	stored, err := r.store.Get(ctx, docKey(digest))
	if errors.Is(err, kv.ErrNotFound) {
		return nil, fault.New(fault.WorkflowNotFound, "the definition the run was started with is gone")
	}
	if err != nil {
		return nil, unavailable(err)
	}
	def, problems := workflow.ParseStored(stored.Value)
	if len(problems) > 0 {
		return nil, fault.New(fault.WorkflowNotFound, "the stored definition cannot be read: %s", problems[0].Message)
	}
	compiled, _ := Compile(def) // what is wrong with it was refused, or fails its node
	e = &Entry{Def: def, Graph: workflow.Compile(def), Flow: compiled, Digest: digest}
	r.mu.Lock()
	defer r.mu.Unlock()
	if len(r.entries) >= maxEntries {
		clear(r.entries) // those in use are read again
	}
	r.entries[digest] = e
	return e, nil
}

// List gives the definitions a tenant sees with ids after a given one, by id.
// more reports that others follow.
func (r *Registry) List(tenant, after string, limit int) (refs []Ref, more bool) {
	byID := map[string]Ref{}
	r.mu.RLock()
	for _, ref := range r.refs {
		if ref.ID <= after || (ref.Tenant != "" && ref.Tenant != tenant) {
			continue
		}
		if _, own := byID[ref.ID]; !own || ref.Tenant != "" {
			byID[ref.ID] = ref.Ref
		}
	}
	r.mu.RUnlock()
	for _, id := range slices.Sorted(maps.Keys(byID)) {
		if len(refs) == limit {
			return refs, true
		}
		refs = append(refs, byID[id])
	}
	return refs, false
}
