package definition_test

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"waybill.dev/waybill/internal/kv"
	"waybill.dev/waybill/internal/kv/memory"
	"waybill.dev/waybill/protocol/fault"
	"waybill.dev/waybill/protocol/workflow"
	"waybill.dev/waybill/services/dispatcher/definition"
)

func parse(t *testing.T, id, version, name string) *workflow.Definition {
	t.Helper()
	def, problems := workflow.Parse([]byte(fmt.Sprintf(`{"id":%q,"name":%q,"version":%q,"nodes":[{"id":"a","typeId":"core.noop","name":"n",
		"position":{"x":0,"y":0},"config":{},"inputs":{}}],"edges":[],"triggers":[],"variables":[],"metadata":{},"settings":{}}`, id, name, version)))
	require.Empty(t, problems)
	return def
}

func put(t *testing.T, r *definition.Registry, tenant, id, version, name string) definition.Ref {
	t.Helper()
	ref, change, err := r.Put(t.Context(), tenant, parse(t, id, version, name), false)
	require.NoError(t, err)
	require.Equal(t, definition.Created, change)
	return ref
}

func TestPut_AVersionNeverChanges(t *testing.T) {
	t.Parallel()
	r := definition.New(memory.New())
	first := put(t, r, "acme", "wf", "1", "one")
	same, change, err := r.Put(t.Context(), "acme", parse(t, "wf", "1", "one"), false)
	require.NoError(t, err)
	require.Equal(t, definition.Unchanged, change)
	require.Equal(t, first.Digest, same.Digest)
	_, _, err = r.Put(t.Context(), "acme", parse(t, "wf", "1", "two"), false)
	require.Equal(t, fault.Conflict, fault.CodeOf(err))
	_, change, err = r.Put(t.Context(), "acme", parse(t, "wf", "1", "two"), true)
	require.NoError(t, err, "development may replace it")
	require.Equal(t, definition.Replaced, change)
}

func TestPut_OfAnOlderVersionMakesItCurrentAndCreatesNothing(t *testing.T) {
	t.Parallel()
	r := definition.New(memory.New())
	first := put(t, r, "acme", "wf", "1", "one")
	put(t, r, "acme", "wf", "2", "two")
	ref, change, err := r.Put(t.Context(), "acme", parse(t, "wf", "1", "one"), false)
	require.NoError(t, err)
	require.Equal(t, definition.Replaced, change)
	require.Equal(t, first.Digest, ref.Digest)
}

func TestByDigest_FindsReplacedVersions(t *testing.T) {
	t.Parallel()
	r := definition.New(memory.New())
	first := put(t, r, "acme", "wf", "1", "one")
	put(t, r, "acme", "wf", "2", "two")
	now, err := r.Get(t.Context(), "acme", "wf")
	require.NoError(t, err)
	require.Equal(t, "2", now.Def.Version)
	pinned, err := r.ByDigest(t.Context(), first.Digest)
	require.NoError(t, err)
	require.Equal(t, "1", pinned.Def.Version)
}

func TestGet_FindsOwnAndSharedDefinitions(t *testing.T) {
	t.Parallel()
	r := definition.New(memory.New())
	put(t, r, "", "shared", "1", "everybody's")
	put(t, r, "acme", "private", "1", "acme's")
	put(t, r, "acme", "shared", "1", "acme's own")
	_, err := r.Get(t.Context(), "beta", "private")
	require.Equal(t, fault.WorkflowNotFound, fault.CodeOf(err))
	theirs, err := r.Get(t.Context(), "beta", "shared")
	require.NoError(t, err)
	require.Equal(t, "everybody's", theirs.Def.Name)
	own, err := r.Get(t.Context(), "acme", "shared")
	require.NoError(t, err)
	require.Equal(t, "acme's own", own.Def.Name)
}

func TestList_PagesByIdWithinWhatATenantSees(t *testing.T) {
	t.Parallel()
	r := definition.New(memory.New())
	for _, id := range []string{"c", "a", "b"} {
		put(t, r, "", id, "1", id)
	}
	put(t, r, "other", "hidden", "1", "x")
	page, more := r.List("acme", "", 2)
	require.True(t, more)
	require.Equal(t, []string{"a", "b"}, []string{page[0].ID, page[1].ID})
	page, more = r.List("acme", "b", 2)
	require.False(t, more)
	require.Len(t, page, 1)
}

// A client registers a workflow with one replica, and runs it with the other at once.
func TestGet_FindsWhatAnotherDispatcherHasRegisteredJustNow(t *testing.T) {
	t.Parallel()
	store := memory.New()
	one, two := definition.New(store), definition.New(store)
	put(t, one, "acme", "theirs", "1", "x")
	put(t, one, "", "everybodys", "1", "x")
	for _, id := range []string{"theirs", "everybodys"} {
		e, err := two.Get(t.Context(), "acme", id)
		require.NoError(t, err)
		require.Equal(t, id, e.Def.ID)
	}
	for _, id := range []string{"none", "no/id", ""} {
		_, err := two.Get(t.Context(), "acme", id)
		require.Equal(t, fault.WorkflowNotFound, fault.CodeOf(err), id)
	}
	_, err := two.Get(t.Context(), "beta", "theirs")
	require.Equal(t, fault.WorkflowNotFound, fault.CodeOf(err))
}

func TestRun_SeesWhatAnotherDispatcherRegisters(t *testing.T) {
	t.Parallel()
	store := memory.New()
	one, two := definition.New(store), definition.New(store)
	put(t, one, "acme", "early", "1", "x")
	ctx, cancel := context.WithCancel(t.Context())
	ready, done := make(chan struct{}), make(chan error, 1)
	go func() { done <- two.Run(ctx, ready) }()
	<-ready
	_, err := two.Get(t.Context(), "acme", "early")
	require.NoError(t, err)
	put(t, one, "acme", "late", "1", "x")
	require.Eventually(t, func() bool {
		_, err := two.Get(t.Context(), "acme", "late")
		return err == nil
	}, 30*time.Second, time.Millisecond)
	cancel()
	require.ErrorIs(t, <-done, context.Canceled)
}

// Runs of an earlier version keep its settings.
func TestScheduled_IsSetByAnyVersion(t *testing.T) {
	t.Parallel()
	store := memory.New()
	r := definition.New(store)
	limited, problems := workflow.Parse([]byte(strings.Replace(string(parse(t, "wf", "1", "one").Raw), `"settings":{}`, `"settings":{"priority":1}`, 1)))
	require.Empty(t, problems)
	_, _, err := r.Put(t.Context(), "acme", limited, false)
	require.NoError(t, err)
	put(t, r, "acme", "wf", "2", "two")
	put(t, r, "acme", "plain", "1", "one")
	require.True(t, r.Scheduled("acme", "wf"))
	require.False(t, r.Scheduled("acme", "plain"))
	require.False(t, r.Scheduled("beta", "wf"))
	other := definition.New(store)
	_, err = other.Get(t.Context(), "acme", "wf")
	require.NoError(t, err)
	require.True(t, other.Scheduled("acme", "wf"))
}

// damagedStore returns an error for some keys, until they are written again.
type damagedStore struct {
	kv.Store
	mu      sync.Mutex // guards damaged
	damaged map[string]bool
}

func (s *damagedStore) Get(ctx context.Context, key string) (kv.Entry, error) {
	e, err := s.Store.Get(ctx, key)
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.damaged[key] {
		return kv.Entry{Key: key, Revision: e.Revision}, kv.ErrDamaged
	}
	return e, err
}

func (s *damagedStore) Put(ctx context.Context, key string, value []byte) (uint64, error) {
	s.set(key, false)
	return s.Store.Put(ctx, key, value)
}

func (s *damagedStore) Update(ctx context.Context, key string, value []byte, revision uint64) (uint64, error) {
	s.set(key, false)
	return s.Store.Update(ctx, key, value, revision)
}

func (s *damagedStore) Watch(ctx context.Context, prefix string, ready chan<- struct{}, handle func(kv.Entry)) error {
	return s.Store.Watch(ctx, prefix, ready, func(e kv.Entry) {
		s.mu.Lock()
		damaged := s.damaged[e.Key]
		s.mu.Unlock()
		if !damaged {
			handle(e)
		}
	})
}

func (s *damagedStore) set(key string, damaged bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.damaged[key] = damaged
}

// A damaged record is that of one workflow. It can be registered again.
func TestGet_RefusesADamagedWorkflowUntilItIsRegisteredAgain(t *testing.T) {
	t.Parallel()
	first := parse(t, "wf", "1", "one")
	for name, key := range map[string]string{
		"record": "ref.acme.wf", "document": "doc." + strings.TrimPrefix(first.Digest(), "sha256:"),
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			store := &damagedStore{Store: memory.New(), damaged: map[string]bool{}}
			put(t, definition.New(store), "acme", "wf", "1", "one")
			put(t, definition.New(store), "acme", "other", "1", "two")
			store.set(key, true)
			r := definition.New(store)
			_, err := r.Get(t.Context(), "acme", "wf")
			require.Equal(t, fault.LogDamaged, fault.CodeOf(err))
			_, err = r.Get(t.Context(), "acme", "other")
			require.NoError(t, err)
			_, _, err = r.Put(t.Context(), "acme", first, false)
			require.NoError(t, err)
			got, err := definition.New(store).Get(t.Context(), "acme", "wf")
			require.NoError(t, err)
			require.Equal(t, first.Digest(), got.Digest)
		})
	}
}

// A document is read under the digest of what was registered.
func TestByDigest_RefusesAChangedDocument(t *testing.T) {
	t.Parallel()
	store := memory.New()
	ref := put(t, definition.New(store), "acme", "wf", "1", "one")
	_, err := store.Put(t.Context(), "doc."+strings.TrimPrefix(ref.Digest, "sha256:"), parse(t, "wf", "1", "two").Raw)
	require.NoError(t, err)
	_, err = definition.New(store).ByDigest(t.Context(), ref.Digest)
	require.Equal(t, fault.LogDamaged, fault.CodeOf(err))
}
