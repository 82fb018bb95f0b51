package definition_test

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"waybill.dev/waybill/internal/kv"
	"waybill.dev/waybill/internal/kv/memory"
	"waybill.dev/waybill/protocol/fault"
	"waybill.dev/waybill/services/dispatcher/definition"
)

// eraser erases the records of a store.
type eraser struct {
	store kv.Store
	keys  []string
	// before is called before a record is erased.
	before func(key string) error
}

func (e *eraser) erase(ctx context.Context, key string) error {
	if e.before != nil {
		if err := e.before(key); err != nil {
			return err
		}
	}
	e.keys = append(e.keys, key)
	old, err := e.store.Get(ctx, key)
	if errors.Is(err, kv.ErrNotFound) {
		return nil
	}
	return e.store.Delete(ctx, key, old.Revision)
}

func docOf(ref definition.Ref) string { return "doc." + strings.TrimPrefix(ref.Digest, "sha256:") }

func TestEraseTenant_KeepsWhatOthersHave(t *testing.T) {
	t.Parallel()
	store := memory.New()
	r := definition.New(store)
	first := put(t, r, "acme", "wf", "1", "one")
	second := put(t, r, "acme", "wf", "2", "two")
	both := put(t, r, "acme", "both", "1", "same")
	put(t, r, "beta", "both", "1", "same")
	_, err := r.Delete(t.Context(), "acme", "wf", "")
	require.NoError(t, err)
	e := &eraser{store: store}
	n, err := r.EraseTenant(t.Context(), "acme", e.erase)
	require.NoError(t, err)
	require.Equal(t, 2, n)
	require.ElementsMatch(t, []string{docOf(first), docOf(second), "ref.acme.wf", "ref.acme.both"}, e.keys)
	_, err = r.Get(t.Context(), "acme", "both")
	require.Equal(t, fault.WorkflowNotFound, fault.CodeOf(err))
	got, err := definition.New(store).Get(t.Context(), "beta", "both")
	require.NoError(t, err)
	require.Equal(t, both.Digest, got.Digest)
}

// A damaged ref of another tenant may name any document.
func TestEraseTenant_KeepsDocumentsWhileARefCannotBeRead(t *testing.T) {
	t.Parallel()
	store := &damagedStore{Store: memory.New(), damaged: map[string]bool{}}
	r := definition.New(store)
	both := put(t, r, "acme", "wf", "1", "same")
	put(t, definition.New(store), "beta", "wf", "1", "same")
	for name, lose := range map[string]func(){
		"damaged": func() { store.set("ref.beta.wf", true) },
		"not a ref": func() {
			_, err := store.Put(t.Context(), "ref.beta.wf", []byte("[]"))
			require.NoError(t, err)
		},
	} {
		lose()
		e := &eraser{store: store}
		_, err := r.EraseTenant(t.Context(), "acme", e.erase)
		require.Equal(t, fault.LogDamaged, fault.CodeOf(err), name)
		require.Empty(t, e.keys, name)
	}
	_, _, err := r.Put(t.Context(), "beta", parse(t, "wf", "1", "same"), false)
	require.NoError(t, err, "it is registered again")
	e := &eraser{store: store}
	_, err = r.EraseTenant(t.Context(), "acme", e.erase)
	require.NoError(t, err)
	require.Equal(t, []string{"ref.acme.wf"}, e.keys)
	_, err = r.ByDigest(t.Context(), both.Digest)
	require.NoError(t, err)
}

// An own ref that is damaged is erased, with the documents that are known to be its own.
func TestEraseTenant_ErasesItsDamagedRef(t *testing.T) {
	t.Parallel()
	store := &damagedStore{Store: memory.New(), damaged: map[string]bool{}}
	r := definition.New(store)
	ref := put(t, r, "acme", "wf", "1", "one")
	store.set("ref.acme.wf", true)
	for _, key := range []string{docOf(ref), "ref.acme.wf"} {
		_, err := store.Store.Get(t.Context(), key)
		require.NoError(t, err)
	}
	e := &eraser{store: store.Store}
	n, err := r.EraseTenant(t.Context(), "acme", e.erase)
	require.NoError(t, err)
	require.Equal(t, 1, n)
	require.Equal(t, []string{docOf(ref), "ref.acme.wf"}, e.keys)
}

// The record of a ref was erased, and the call failed before other dispatchers could see it.
func TestEraseTenant_IsCompletedByARepetition(t *testing.T) {
	t.Parallel()
	store := memory.New()
	r := definition.New(store)
	ref := put(t, r, "acme", "wf", "1", "one")
	put(t, r, "acme2", "wf", "1", "of a tenant with a similar name")
	away := errors.New("away")
	failing := func(ctx context.Context, key string) error {
		if err := (&eraser{store: store}).erase(ctx, key); err != nil || !strings.HasPrefix(key, "ref.") {
			return err
		}
		return away
	}
	_, err := r.EraseTenant(t.Context(), "acme", failing)
	require.ErrorIs(t, err, away)
	e := &eraser{store: store}
	_, err = r.EraseTenant(t.Context(), "acme", e.erase)
	require.NoError(t, err)
	require.Equal(t, []string{docOf(ref), "ref.acme.wf"}, e.keys)
	_, err = r.Get(t.Context(), "acme", "wf")
	require.Equal(t, fault.WorkflowNotFound, fault.CodeOf(err))
	n, err := r.EraseTenant(t.Context(), "acme", e.erase)
	require.NoError(t, err)
	require.Zero(t, n)
	_, err = r.Get(t.Context(), "acme2", "wf")
	require.NoError(t, err)
}

// Another tenant registers a document while the tenant's other documents are erased.
func TestEraseTenant_KeepsADocumentRegisteredConcurrently(t *testing.T) {
	t.Parallel()
	store := memory.New()
	r := definition.New(store)
	put(t, r, "acme", "a", "1", "first")
	late := put(t, r, "acme", "b", "1", "late")
	other := definition.New(store)
	e := &eraser{store: store}
	e.before = func(key string) error {
		if key == "ref.acme.a" {
			put(t, other, "beta", "b", "1", "late")
		}
		return nil
	}
	_, err := r.EraseTenant(t.Context(), "acme", e.erase)
	require.NoError(t, err)
	require.NotContains(t, e.keys, docOf(late))
	got, err := definition.New(store).Get(t.Context(), "beta", "b")
	require.NoError(t, err)
	require.Equal(t, late.Digest, got.Digest)
}
