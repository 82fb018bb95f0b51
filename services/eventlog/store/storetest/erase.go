package storetest

import (
	"testing"

	"github.com/stretchr/testify/require"

	"waybill.dev/waybill/protocol/modelgate"
	"waybill.dev/waybill/services/eventlog/store"
)

func eraseRemoves(t *testing.T, s store.Store) {
	a, b, theirs := row("a", 1), row("b", 2), row("a", 3)
	theirs.Tenant = "other"
	var batch store.Batch
	for _, r := range []store.Run{a, b, theirs} {
		batch.Runs = append(batch.Runs, r)
		batch.Frames = append(batch.Frames, record(r), frameOf(r, 0, 3))
		batch.Marks = append(batch.Marks, mark(r, store.MarkKind, "error"), mark(r, store.MarkProvider, "p"))
		batch.Substitutions = append(batch.Substitutions, store.Substitution{
			Key: r.Key, Sequence: 2, At: r.CreatedAt, NodeID: "n", Original: modelgate.Model{Provider: "p", Model: "m"},
		})
	}
	batch.Tail = store.Tail{Pos: 20, Hash: "20"}
	require.NoError(t, s.Apply(t.Context(), batch))
	erased := store.Erasure{
		Key: a.Key, CreatedAt: a.CreatedAt, Tags: a.Tags, Marks: batch.Marks[:2], Substitutions: batch.Substitutions[:1],
	}
	for pos := uint64(21); pos < 23; pos++ { // a second time changes nothing
		require.NoError(t, s.Apply(t.Context(), store.Batch{Erased: []store.Erasure{erased}, Tail: store.Tail{Pos: pos, Hash: "h"}}))
		_, err := s.Run(t.Context(), a.Key)
		require.ErrorIs(t, err, store.ErrNotFound)
		frames, err := s.Frames(t.Context(), a.Key, store.RecordFirst, 100)
		require.NoError(t, err)
		require.Empty(t, frames)
	}
	for _, q := range []store.Query{{}, {Tag: "b c"}, {Kind: "error"}, {Provider: "p"}} {
		q.Tenant, q.Limit = "acme", 10
		runs, err := s.List(t.Context(), q)
		require.NoError(t, err)
		require.Equal(t, []string{"b"}, ids(runs), "%+v", q)
	}
	for tenant, want := range map[string]string{"acme": "b", "other": "a"} {
		found, err := s.Substitutions(t.Context(), tenant, "", 10)
		require.NoError(t, err)
		require.Len(t, found, 1)
		require.Equal(t, want, found[0].RunID)
	}
	for _, r := range []store.Run{b, theirs} {
		frames, err := s.Frames(t.Context(), r.Key, store.RecordFirst, 100)
		require.NoError(t, err)
		require.Len(t, frames, 2)
	}
}

func eraseIgnoresUnknown(t *testing.T, s store.Store) {
	r := row("a", 1)
	apply(t, s, 12, []store.Run{r}, record(r))
	unknown := store.Erasure{Key: store.Key{Tenant: "acme", RunID: "ghost"}}
	require.NoError(t, s.Apply(t.Context(), store.Batch{Erased: []store.Erasure{unknown}, Tail: store.Tail{Pos: 13, Hash: "h"}}))
	_, err := s.Run(t.Context(), r.Key)
	require.NoError(t, err)
}
