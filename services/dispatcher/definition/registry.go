// Package definition stores workflow definitions. A stored document never changes. A run pins the
// digest of its definition.
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

// Entry is a parsed and compiled definition.
type Entry struct {
	Def    *workflow.Definition
	Graph  *workflow.Graph
	Flow   *Flow
	Digest string
}

// Ref maps a workflow id to its current document and to the document of each version.
type Ref struct {
	ID       string            `json:"id"`
	Name     string            `json:"name"`
	Version  string            `json:"version"`
	Digest   string            `json:"digest"`
	Versions map[string]string `json:"versions"`
	// Deleted are the deleted versions. A version never gets other content, also after its deletion.
	Deleted map[string]string `json:"deleted,omitempty"`
	// Types are the node types of the current document, sorted.
	Types []string `json:"types"`
	// Tenant is empty if every tenant sees the workflow.
	Tenant string `json:"tenant,omitempty"`
	// Scheduled means that a version has schedule settings.
	Scheduled bool `json:"scheduled,omitempty"`
	// Source is the file that the current document was read from; empty for others.
	Source string `json:"source,omitempty"`
}

// Key prefixes: doc.<hex of the digest> holds a document, ref.<tenant>.<id> a Ref.
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

// maxEntries limits the cached compiled documents.
const maxEntries = 4096

type refAt struct {
	Ref
	revision uint64
}

// New returns a registry over a store. It is empty until Run is ready.
func New(store kv.Store) *Registry {
	return &Registry{store: store, refs: map[string]refAt{}, entries: map[string]*Entry{}}
}

// Run watches the registrations of other dispatchers until ctx ends. ready is closed after
// everything stored has been read.
func (r *Registry) Run(ctx context.Context, ready chan<- struct{}) error {
	return r.store.Watch(ctx, refPrefix, ready, r.applyEntry)
}

func (r *Registry) applyEntry(e kv.Entry) {
	var ref Ref
	if e.Value == nil || json.Unmarshal(e.Value, &ref) == nil { // nil: it was erased with its tenant
		r.setRef(e.Key, ref, e.Revision)
	}
}

func (r *Registry) setRef(key string, ref Ref, revision uint64) {
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

// Change is the effect of a Put.
type Change int

const (
	// Unchanged means that the workflow already had the same document.
	Unchanged Change = iota
	// Created means that the workflow had no such version.
	Created
	// Replaced means that an existing version became current again, or, in development, got other content.
	Replaced
)

// Put registers a definition for a tenant, or for all tenants if tenant is empty. A document of an
// existing version with other content is a conflict, unless replace is set.
func (r *Registry) Put(ctx context.Context, tenant string, def *workflow.Definition, replace bool) (Ref, Change, error) {
	digest, key := def.Digest(), refKey(tenant, def.ID)
	for {
		old, err := r.readRef(ctx, key)
		if err != nil {
			return Ref{}, Unchanged, err
		}
		if old.Digest == digest {
			return old.Ref, Unchanged, r.restore(ctx, def, digest)
		}
		had, known := old.Versions[def.Version]
		if before, deleted := old.Deleted[def.Version]; deleted {
			had = before
		}
		if had != "" && had != digest && !replace {
			return Ref{}, Unchanged, fault.New(fault.Conflict,
				"workflow %s version %s is registered with other content; a stored version never changes: give the document a new version", def.ID, def.Version)
		}
		if _, err := r.store.Put(ctx, docKey(digest), def.Raw); err != nil {
			return Ref{}, Unchanged, storeFault(err)
		}
		ref := old.withVersion(tenant, def, digest)
		value, err := json.Marshal(ref)
		if err != nil {
			return Ref{}, Unchanged, fmt.Errorf("render workflow ref: %w", err)
		}
		rev, err := r.store.Update(ctx, key, value, old.revision)
		if errors.Is(err, kv.ErrConflict) {
			continue // another dispatcher registered a version; retry
		}
		if err != nil {
			return Ref{}, Unchanged, storeFault(err)
		}
		r.setRef(key, ref, rev)
		if known {
			return ref, Replaced, nil
		}
		return ref, Created, nil
	}
}

// restore stores the document of a registered workflow again if it is lost.
func (r *Registry) restore(ctx context.Context, def *workflow.Definition, digest string) error {
	_, err := r.ByDigest(ctx, digest)
	if code := fault.CodeOf(err); code != fault.LogDamaged && code != fault.WorkflowNotFound {
		return err
	}
	if _, err := r.store.Put(ctx, docKey(digest), def.Raw); err != nil {
		return storeFault(err)
	}
	return nil
}

func (old refAt) withVersion(tenant string, def *workflow.Definition, digest string) Ref {
	versions := maps.Clone(old.Versions)
	if versions == nil {
		versions = map[string]string{}
	}
	versions[def.Version] = digest
	deleted := maps.Clone(old.Deleted)
	delete(deleted, def.Version)
	types := map[string]bool{}
	for _, n := range def.Nodes {
		types[n.TypeID] = true
	}
	return Ref{
		ID: def.ID, Name: def.Name, Version: def.Version, Digest: digest, Versions: versions, Deleted: deleted,
		Types: slices.Sorted(maps.Keys(types)), Tenant: tenant, Scheduled: old.Scheduled || def.Scheduled(),
		Source: old.Source,
	}
}

// readRef reads a ref from the store; the zero ref if there is none.
func (r *Registry) readRef(ctx context.Context, key string) (refAt, error) {
	e, err := r.store.Get(ctx, key)
	switch {
	case errors.Is(err, kv.ErrNotFound):
		return refAt{}, nil
	case errors.Is(err, kv.ErrDamaged): // it can be registered again
		return refAt{revision: e.Revision}, nil
	case err != nil:
		return refAt{}, storeFault(err)
	}
	var ref Ref
	if err := json.Unmarshal(e.Value, &ref); err != nil {
		return refAt{revision: e.Revision}, nil //nolint:nilerr // as above
	}
	return refAt{ref, e.Revision}, nil
}

// docKey removes the "sha256:" of a digest, which is not allowed in a key.
func docKey(digest string) string { return docPrefix + strings.TrimPrefix(digest, "sha256:") }

func storeFault(err error) error {
	if errors.Is(err, kv.ErrDamaged) {
		return damaged().Wrap(err)
	}
	return fault.New(fault.ServiceUnavailable, "workflow definitions are unavailable; try again").Wrap(err)
}

// damaged is the error of a workflow whose record or document is lost.
func damaged() *fault.Error {
	return fault.New(fault.LogDamaged, "the stored definition of this workflow is damaged: register it again, with POST /v1/workflows, or restore it from a backup")
}

// Get returns a tenant's definition by id, preferring its own over a shared one.
func (r *Registry) Get(ctx context.Context, tenant, id string) (*Entry, error) {
	ref, err := r.Find(ctx, tenant, id)
	if err != nil {
		return nil, err
	}
	return r.ByDigest(ctx, ref.Digest)
}

// GetVersion is Get for a version; empty is the current one.
func (r *Registry) GetVersion(ctx context.Context, tenant, id, version string) (*Entry, error) {
	ref, err := r.Find(ctx, tenant, id)
	if err != nil || version == "" {
		if err != nil {
			return nil, err
		}
		return r.ByDigest(ctx, ref.Digest)
	}
	digest, ok := ref.Versions[version]
	if !ok {
		return nil, noVersion(ref, version)
	}
	return r.ByDigest(ctx, digest)
}

// Find returns the ref of a tenant's workflow, preferring its own over a shared one.
func (r *Registry) Find(ctx context.Context, tenant, id string) (Ref, error) {
	ref, ok := r.known(tenant, id)
	if !ok && subject.Token(id) { // another dispatcher may have registered it just now
		if err := r.readStore(ctx, tenant, id); err != nil {
			return Ref{}, err
		}
		ref, ok = r.known(tenant, id)
	}
	if !ok {
		return Ref{}, fault.New(fault.WorkflowNotFound, "no workflow of this id in your tenant; GET /v1/workflows lists them")
	}
	return ref.Ref, nil
}

// Scheduled reports whether a version of the workflow has schedule settings. A document registered
// by an older host counts after its first use here.
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
	ref := r.refs[refKey(tenant, id)]
	if ref.Digest == "" { // none, or deleted
		ref = r.refs[refKey("", id)]
	}
	return ref, ref.Digest != ""
}

// readStore reads an id from the store.
func (r *Registry) readStore(ctx context.Context, tenant, id string) error {
	for _, key := range []string{refKey(tenant, id), refKey("", id)} {
		e, err := r.store.Get(ctx, key)
		switch {
		case errors.Is(err, kv.ErrNotFound):
			continue
		case err != nil:
			return storeFault(err)
		}
		r.applyEntry(e)
	}
	return nil
}

// ByDigest returns a registered document, even if its id has another document now.
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
		return nil, storeFault(err)
	}
	def, problems := workflow.ParseStored(stored.Value)
	if len(problems) > 0 {
		return nil, damaged().Wrap(errors.New(problems[0].Message))
	}
	if def.Digest() != digest {
		return nil, damaged().Wrap(fmt.Errorf("document %s has the digest %s", digest, def.Digest()))
	}
	compiled, _ := Compile(def) // problems were rejected at registration, or fail their node
	e = &Entry{Def: def, Graph: workflow.Compile(def), Flow: compiled, Digest: digest}
	r.mu.Lock()
	defer r.mu.Unlock()
	if len(r.entries) >= maxEntries {
		clear(r.entries) // entries in use are read again
	}
	r.entries[digest] = e
	return e, nil
}

// List returns the definitions visible to a tenant with ids after a given one, by id. more reports
// whether others follow.
func (r *Registry) List(tenant, after string, limit int) (refs []Ref, more bool) {
	byID := map[string]Ref{}
	r.mu.RLock()
	for _, ref := range r.refs {
		if ref.Digest == "" || ref.ID <= after || (ref.Tenant != "" && ref.Tenant != tenant) {
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
