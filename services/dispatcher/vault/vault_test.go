package vault_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"waybill.dev/waybill/internal/kv"
	"waybill.dev/waybill/internal/kv/memory"
	"waybill.dev/waybill/protocol/subject"
	"waybill.dev/waybill/services/dispatcher/vault"
)

var (
	secret = []byte(strings.Repeat("k", 32))
	ours   = subject.Run{Tenant: "acme", WorkflowID: "wf", RunID: "run_1"}
)

func open(t *testing.T, store kv.Store, key []byte) *vault.Vault {
	t.Helper()
	v, err := vault.New(store, key)
	require.NoError(t, err)
	return v
}

func TestGet_OpensWhatWasPutInItsPlaceOnly(t *testing.T) {
	t.Parallel()
	v := open(t, memory.New(), secret)
	require.NoError(t, v.Put(t.Context(), ours, 3, "w-1", []byte("clear")))
	got, err := v.Get(t.Context(), ours, 3, "w-1")
	require.NoError(t, err)
	require.Equal(t, "clear", string(got))
	for name, r := range map[string]subject.Run{"another tenant": {Tenant: "beta", RunID: "run_1"}, "another run": {Tenant: "acme", RunID: "run_2"}} {
		_, err := v.Get(t.Context(), r, 3, "w-1")
		require.ErrorIs(t, err, vault.ErrGone, name)
	}
	_, err = v.Get(t.Context(), ours, 3, "w-2")
	require.ErrorIs(t, err, vault.ErrGone, "another writer's frame")
	_, err = v.Get(t.Context(), ours, 4, "w-1")
	require.ErrorIs(t, err, vault.ErrGone, "another frame")
}

func TestPut_KeepsNothingInTheClear(t *testing.T) {
	t.Parallel()
	store := memory.New()
	require.NoError(t, open(t, store, secret).Put(t.Context(), ours, 0, "w", []byte("the-clear-value")))
	all, err := kv.List(t.Context(), store, "")
	require.NoError(t, err)
	require.Len(t, all, 1)
	require.NotContains(t, string(all[0].Value), "clear")
	require.NotContains(t, all[0].Key, "acme")
}

func TestGet_NeedsTheKeyOfTheHost(t *testing.T) {
	t.Parallel()
	store := memory.New()
	require.NoError(t, open(t, store, secret).Put(t.Context(), ours, 0, "w", []byte("clear")))
	_, err := open(t, store, []byte(strings.Repeat("x", 32))).Get(t.Context(), ours, 0, "w")
	require.ErrorIs(t, err, vault.ErrGone)
}

// An entry moved to another place does not open there.
func TestGet_KnowsWhereAnEntryBelongs(t *testing.T) {
	t.Parallel()
	store := memory.New()
	v := open(t, store, secret)
	require.NoError(t, v.Put(t.Context(), ours, 0, "w", []byte("zero")))
	require.NoError(t, v.Put(t.Context(), ours, 1, "w", []byte("one")))
	all, err := kv.List(t.Context(), store, "")
	require.NoError(t, err)
	_, err = store.Put(t.Context(), all[1].Key, all[0].Value)
	require.NoError(t, err)
	_, err = v.Get(t.Context(), ours, 1, "w")
	require.ErrorIs(t, err, vault.ErrGone)
}

func TestErase_LeavesNothingOfTheRunAndAllOfOthers(t *testing.T) {
	t.Parallel()
	v := open(t, memory.New(), secret)
	other := subject.Run{Tenant: "acme", RunID: "run_2"}
	for _, r := range []subject.Run{ours, other} {
		require.NoError(t, v.Put(t.Context(), r, 0, "w", []byte("clear")))
		require.NoError(t, v.Put(t.Context(), r, 1, "w", []byte("clear")))
	}
	require.NoError(t, v.Erase(t.Context(), ours))
	for _, first := range []int{0, 1} {
		_, err := v.Get(t.Context(), ours, first, "w")
		require.ErrorIs(t, err, vault.ErrGone)
		_, err = v.Get(t.Context(), other, first, "w")
		require.NoError(t, err)
	}
}
