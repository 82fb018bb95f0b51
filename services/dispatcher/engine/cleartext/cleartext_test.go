package cleartext_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"waybill.dev/waybill/internal/kv"
	"waybill.dev/waybill/internal/kv/memory"
	"waybill.dev/waybill/protocol/subject"
	"waybill.dev/waybill/services/dispatcher/engine/cleartext"
)

var (
	secret = []byte(strings.Repeat("k", 32))
	ours   = subject.Run{Tenant: "acme", WorkflowID: "wf", RunID: "run_1"}
)

func open(t *testing.T, store kv.Store, key []byte) *cleartext.Store {
	t.Helper()
	s, err := cleartext.New(store, key)
	require.NoError(t, err)
	return s
}

func TestGet_OpensWhatWasPutInItsPlaceOnly(t *testing.T) {
	t.Parallel()
	s := open(t, memory.New(), secret)
	require.NoError(t, s.Put(t.Context(), ours, 3, "w-1", []byte("clear")))
	got, err := s.Get(t.Context(), ours, 3, "w-1")
	require.NoError(t, err)
	require.Equal(t, "clear", string(got))
	for name, r := range map[string]subject.Run{
		"another tenant": {Tenant: "beta", RunID: "run_1"},
		"another run":    {Tenant: "acme", RunID: "run_2"},
	} {
		_, err := s.Get(t.Context(), r, 3, "w-1")
		require.ErrorIs(t, err, cleartext.ErrGone, name)
	}
	_, err = s.Get(t.Context(), ours, 3, "w-2")
	require.ErrorIs(t, err, cleartext.ErrGone, "another writer's frame")
	_, err = s.Get(t.Context(), ours, 4, "w-1")
	require.ErrorIs(t, err, cleartext.ErrGone, "another frame")
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
	require.ErrorIs(t, err, cleartext.ErrGone)
}

// An entry cannot be decrypted under another key.
func TestGet_KnowsWhereAnEntryBelongs(t *testing.T) {
	t.Parallel()
	store := memory.New()
	s := open(t, store, secret)
	require.NoError(t, s.Put(t.Context(), ours, 0, "w", []byte("zero")))
	require.NoError(t, s.Put(t.Context(), ours, 1, "w", []byte("one")))
	all, err := kv.List(t.Context(), store, "")
	require.NoError(t, err)
	_, err = store.Put(t.Context(), all[1].Key, all[0].Value)
	require.NoError(t, err)
	_, err = s.Get(t.Context(), ours, 1, "w")
	require.ErrorIs(t, err, cleartext.ErrGone)
}

func TestErase_LeavesNothingOfTheRunAndAllOfOthers(t *testing.T) {
	t.Parallel()
	s := open(t, memory.New(), secret)
	other := subject.Run{Tenant: "acme", RunID: "run_2"}
	for _, r := range []subject.Run{ours, other} {
		require.NoError(t, s.Put(t.Context(), r, 0, "w", []byte("clear")))
		require.NoError(t, s.Put(t.Context(), r, 1, "w", []byte("clear")))
	}
	require.NoError(t, s.Erase(t.Context(), ours))
	for _, first := range []int{0, 1} {
		_, err := s.Get(t.Context(), ours, first, "w")
		require.ErrorIs(t, err, cleartext.ErrGone)
		_, err = s.Get(t.Context(), other, first, "w")
		require.NoError(t, err)
	}
}
