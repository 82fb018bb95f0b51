package definition_test

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"waybill.dev/waybill/internal/kv"
	"waybill.dev/waybill/internal/kv/memory"
	"waybill.dev/waybill/protocol/fault"
	"waybill.dev/waybill/protocol/workflow"
	"waybill.dev/waybill/services/dispatcher/definition"
)

const oneDay = 24 * time.Hour

// keeping registers a version with a retention; empty sets none.
func keeping(t *testing.T, r *definition.Registry, tenant, version, retention string) *workflow.Definition {
	t.Helper()
	raw := string(parse(t, "wf", version, tenant+version).Raw)
	if retention != "" {
		raw = strings.Replace(raw, `"settings":{}`, `"settings":{"retention":"`+retention+`"}`, 1)
	}
	def, problems := workflow.Parse([]byte(raw))
	require.Empty(t, problems)
	_, _, err := r.Put(t.Context(), tenant, def, false)
	require.NoError(t, err)
	return def
}

// remove deletes a workflow with all versions.
func remove(t *testing.T, r *definition.Registry, tenant string) {
	t.Helper()
	_, err := r.Delete(t.Context(), tenant, "wf", "")
	require.NoError(t, err)
}

// The retention of a workflow that is deleted, or no longer hides a shared one, is the longest that its
// runs may have had.
func TestRetention_IsTheLongestOfADeletedWorkflow(t *testing.T) {
	t.Parallel()
	type registry = definition.Registry
	for name, tt := range map[string]struct {
		setup func(t *testing.T, r *registry)
		unset time.Duration
		want  time.Duration
		ok    bool
	}{
		"unknown": {setup: func(*testing.T, *registry) {}, unset: 90 * oneDay},
		"current": {setup: func(t *testing.T, r *registry) {
			t.Helper()
			keeping(t, r, "acme", "1", "9d")
			keeping(t, r, "acme", "2", "1d")
		}, unset: 90 * oneDay, want: oneDay, ok: true},
		"current without": {setup: func(t *testing.T, r *registry) {
			t.Helper()
			keeping(t, r, "acme", "1", "1d")
			keeping(t, r, "acme", "2", "")
		}, unset: 90 * oneDay},
		"deleted": {setup: func(t *testing.T, r *registry) {
			t.Helper()
			keeping(t, r, "acme", "1", "9d")
			keeping(t, r, "acme", "2", "1d")
			remove(t, r, "acme")
		}, unset: 90 * oneDay, want: 9 * oneDay, ok: true},
		"deleted, one sets nothing": {setup: func(t *testing.T, r *registry) {
			t.Helper()
			keeping(t, r, "acme", "1", "1d")
			keeping(t, r, "acme", "2", "")
			remove(t, r, "acme")
		}, unset: 90 * oneDay, want: 90 * oneDay},
		"deleted, one sets nothing, which is without limit": {setup: func(t *testing.T, r *registry) {
			t.Helper()
			keeping(t, r, "acme", "1", "1d")
			keeping(t, r, "acme", "2", "")
			remove(t, r, "acme")
		}},
		"deleted, one sets nothing, which is shorter": {setup: func(t *testing.T, r *registry) {
			t.Helper()
			keeping(t, r, "acme", "1", "9d")
			keeping(t, r, "acme", "2", "")
			remove(t, r, "acme")
		}, unset: oneDay, want: 9 * oneDay, ok: true},
		"deleted, one without limit": {setup: func(t *testing.T, r *registry) {
			t.Helper()
			keeping(t, r, "acme", "1", "unlimited")
			keeping(t, r, "acme", "2", "")
			keeping(t, r, "acme", "3", "2d")
			remove(t, r, "acme")
		}, unset: oneDay, ok: true},
		"deleted, it hid a shared one that is shorter": {setup: func(t *testing.T, r *registry) {
			t.Helper()
			keeping(t, r, "", "1", "1d")
			keeping(t, r, "acme", "1", "9d")
			remove(t, r, "acme")
		}, unset: oneDay, want: 9 * oneDay, ok: true},
		"deleted, it hid a shared one that is longer": {setup: func(t *testing.T, r *registry) {
			t.Helper()
			keeping(t, r, "", "1", "30d")
			keeping(t, r, "acme", "1", "9d")
			remove(t, r, "acme")
		}, unset: oneDay, want: 30 * oneDay, ok: true},
		"deleted, it hid a shared one and set nothing": {setup: func(t *testing.T, r *registry) {
			t.Helper()
			keeping(t, r, "", "1", "1d")
			keeping(t, r, "acme", "1", "")
			remove(t, r, "acme")
		}, unset: 90 * oneDay},
		"deleted by another tenant": {setup: func(t *testing.T, r *registry) {
			t.Helper()
			keeping(t, r, "", "1", "1d")
			keeping(t, r, "beta", "1", "9d")
			remove(t, r, "beta")
		}, unset: 90 * oneDay, want: oneDay, ok: true},
		"both deleted": {setup: func(t *testing.T, r *registry) {
			t.Helper()
			keeping(t, r, "", "1", "30d")
			keeping(t, r, "acme", "1", "9d")
			remove(t, r, "acme")
			remove(t, r, "")
		}, unset: oneDay, want: 30 * oneDay, ok: true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			store := memory.New()
			r := definition.New(store)
			tt.setup(t, r)
			for _, r := range []*definition.Registry{r, definition.New(store)} { // with refs in memory, and without
				keep, ok, err := r.Retention(t.Context(), "acme", "wf", tt.unset)
				require.NoError(t, err)
				require.Equal(t, tt.ok, ok)
				if ok {
					require.Equal(t, tt.want, keep)
				}
			}
		})
	}
}

// lossy is a store that has lost a key.
type lossy struct {
	kv.Store
	key string
}

func (s lossy) Get(ctx context.Context, key string) (kv.Entry, error) {
	if key == s.key {
		return kv.Entry{}, kv.ErrNotFound
	}
	return s.Store.Get(ctx, key)
}

// While it is unknown how long a run should be kept, it is kept.
func TestRetention_IsAnErrorWithoutTheDocuments(t *testing.T) {
	t.Parallel()
	store := memory.New()
	r := definition.New(store)
	keeping(t, r, "", "1", "1d")
	first := keeping(t, r, "acme", "1", "unlimited")
	keeping(t, r, "acme", "2", "2d")
	remove(t, r, "acme")
	doc := "doc." + strings.TrimPrefix(first.Digest(), "sha256:")
	for name, s := range map[string]kv.Store{
		"lost":           lossy{store, doc},
		"damaged":        &damagedStore{Store: store, damaged: map[string]bool{doc: true}},
		"damaged record": &damagedStore{Store: store, damaged: map[string]bool{"ref.acme.wf": true}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := definition.New(s)
			_, err := r.Find(t.Context(), "beta", "wf") // the shared one is in memory
			require.NoError(t, err)
			_, _, err = r.Retention(t.Context(), "acme", "wf", oneDay)
			require.Equal(t, fault.LogDamaged, fault.CodeOf(err))
			_, _, err = r.Retention(t.Context(), "beta", "wf", oneDay)
			require.NoError(t, err)
		})
	}
}
