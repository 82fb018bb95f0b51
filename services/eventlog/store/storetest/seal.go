package storetest

import (
	"testing"

	"github.com/stretchr/testify/require"

	"waybill.dev/waybill/services/eventlog/store"
)

func sealRemovesFrames(t *testing.T, s store.Store) {
	a, b, theirs := row("a", 1), row("b", 2), row("a", 3)
	theirs.Tenant = "other"
	var batch store.Batch
	for _, r := range []store.Run{a, b, theirs} {
		batch.Runs = append(batch.Runs, r)
		batch.Frames = append(batch.Frames, record(r), frameOf(r, 0, 3))
	}
	batch.Tail = store.Tail{Pos: 20, Hash: "20"}
	require.NoError(t, s.Apply(t.Context(), batch))
	want, err := s.Run(t.Context(), a.Key)
	require.NoError(t, err)
	unknown := store.Key{Tenant: "acme", RunID: "ghost"}
	for pos := uint64(21); pos < 23; pos++ { // a second time changes nothing
		require.NoError(t, s.Apply(t.Context(), store.Batch{
			Sealed: []store.Key{a.Key, unknown}, Tail: store.Tail{Pos: pos, Hash: "h"},
		}))
		got, err := s.Run(t.Context(), a.Key)
		require.NoError(t, err)
		require.Equal(t, want, got)
		for key, n := range map[store.Key]int{a.Key: 0, b.Key: 2, theirs.Key: 2} {
			frames, err := s.Frames(t.Context(), key, store.RecordFirst, 100)
			require.NoError(t, err)
			require.Len(t, frames, n, key)
		}
	}
	runs, err := s.List(t.Context(), store.Query{Tenant: "acme", Limit: 10})
	require.NoError(t, err)
	require.ElementsMatch(t, []string{"a", "b"}, ids(runs))
}

// A run that is sealed in the batch that writes it.
func sealRemovesFramesOfTheBatch(t *testing.T, s store.Store) {
	r := row("a", 1)
	require.NoError(t, s.Apply(t.Context(), store.Batch{
		Runs: []store.Run{r}, Frames: []store.Frame{record(r), frameOf(r, 0, 3)}, Sealed: []store.Key{r.Key},
		Tail: store.Tail{Pos: 20, Hash: "20"},
	}))
	_, err := s.Run(t.Context(), r.Key)
	require.NoError(t, err)
	frames, err := s.Frames(t.Context(), r.Key, store.RecordFirst, 100)
	require.NoError(t, err)
	require.Empty(t, frames)
}
