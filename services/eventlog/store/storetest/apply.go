package storetest

import (
	"testing"

	"github.com/stretchr/testify/require"

	"waybill.dev/waybill/protocol/wire"
	"waybill.dev/waybill/services/eventlog/store"
)

func beginsAtZero(t *testing.T, s store.Store) {
	tail, err := s.Tail(t.Context())
	require.NoError(t, err)
	require.Zero(t, tail)
	_, err = s.Run(t.Context(), store.Key{Tenant: "acme", RunID: "r1"})
	require.ErrorIs(t, err, store.ErrNotFound)
}

func keepsBatch(t *testing.T, s store.Store) {
	want := row("r1", 1)
	want.CompletedAt, want.ErrorCode, want.Damage, want.DueMs, want.Asks = want.CreatedAt, "run_timeout", "frame 9", 77, 3
	want.LastEventAt, want.Waits = want.CreatedAt, `{"for":"node"}`
	want.Owner = store.Owner{Process: "d1", Epoch: 3, Since: want.CreatedAt}
	apply(t, s, 12, []store.Run{want}, record(want), frameOf(want, 0, 3))

	got, err := s.Run(t.Context(), want.Key)
	require.NoError(t, err)
	require.Equal(t, stored(want), got)
	tail, err := s.Tail(t.Context())
	require.NoError(t, err)
	require.Equal(t, store.Tail{Pos: 12, Hash: "tail-12"}, tail)
	frames, err := s.Frames(t.Context(), want.Key, store.RecordFirst, 100)
	require.NoError(t, err)
	require.Equal(t, []store.Frame{record(want), frameOf(want, 0, 3)}, frames)
}

func appliesOnce(t *testing.T, s store.Store) {
	r := row("r1", 1)
	for range 3 {
		apply(t, s, 12, []store.Run{r}, record(r), frameOf(r, 0, 3))
	}
	runs, err := s.List(t.Context(), store.Query{Tenant: "acme", Tag: "a", Limit: 10})
	require.NoError(t, err)
	require.Equal(t, []store.Run{stored(r)}, runs)
	frames, err := s.Frames(t.Context(), r.Key, store.RecordFirst, 100)
	require.NoError(t, err)
	require.Len(t, frames, 2)
}

func neverGoesBack(t *testing.T, s store.Store) {
	newer, older := row("r1", 1), row("r1", 1)
	newer.Pos, newer.Status = 20, wire.StatusCompleted
	apply(t, s, 20, []store.Run{newer})
	apply(t, s, 21, []store.Run{older})
	got, err := s.Run(t.Context(), newer.Key)
	require.NoError(t, err)
	require.Equal(t, stored(newer), got)
}

func tailNeverGoesBack(t *testing.T, s store.Store) {
	r := row("r1", 1)
	apply(t, s, 20, []store.Run{r}, record(r))
	apply(t, s, 12, nil)
	tail, err := s.Tail(t.Context())
	require.NoError(t, err)
	require.Equal(t, store.Tail{Pos: 20, Hash: "tail-20"}, tail)
}

// Text of clients and vendors is stored unchanged: a store that rejected a character would be stuck
// at that batch.
func keepsAnyText(t *testing.T, s store.Store) {
	r := row("r1", 1)
	r.Tags = []string{"a\x00b", "\x01", "\\x", "a\nb", "\xff\xfe", "\u2028\U0001f600", "' OR 1=1 --"}
	r.WorkflowID, r.ErrorCode, r.Damage = "f\x00", "\x01\x01", "bad \xc3\x28"
	apply(t, s, 20, []store.Run{r}, record(r))
	got, err := s.Run(t.Context(), r.Key)
	require.NoError(t, err)
	require.Equal(t, stored(r), got)
	for _, tag := range r.Tags {
		runs, err := s.List(t.Context(), store.Query{Tenant: "acme", Tag: tag, WorkflowID: r.WorkflowID, Limit: 10})
		require.NoError(t, err)
		require.Equal(t, []store.Run{stored(r)}, runs, "%q", tag)
	}
}

func updatesRow(t *testing.T, s store.Store) {
	r := row("r1", 1)
	apply(t, s, 11, []store.Run{r})
	r.New, r.Status, r.Head, r.Pos, r.Hash, r.CompletedAt = false, wire.StatusCompleted, 9, 30, "h30", r.StartedAt
	apply(t, s, 30, []store.Run{r})
	runs, err := s.List(t.Context(), store.Query{Tenant: "acme", Limit: 10})
	require.NoError(t, err)
	require.Equal(t, []store.Run{stored(r)}, runs)
}

func keepsTenantsApart(t *testing.T, s store.Store) {
	ours, theirs := row("r1", 1), row("r1", 2)
	theirs.Tenant, theirs.WorkflowID = "other", "their-flow"
	apply(t, s, 12, []store.Run{ours, theirs}, record(ours), frameOf(ours, 0, 1), record(theirs), frameOf(theirs, 0, 5))
	for _, want := range []store.Run{ours, theirs} {
		got, err := s.Run(t.Context(), want.Key)
		require.NoError(t, err)
		require.Equal(t, stored(want), got)
		runs, err := s.List(t.Context(), store.Query{Tenant: want.Tenant, Tag: "a", Limit: 10})
		require.NoError(t, err)
		require.Equal(t, []store.Run{stored(want)}, runs)
	}
	frames, err := s.Frames(t.Context(), ours.Key, 0, 100)
	require.NoError(t, err)
	require.Equal(t, []store.Frame{frameOf(ours, 0, 1)}, frames)
	_, err = s.Run(t.Context(), store.Key{Tenant: "third", RunID: "r1"})
	require.ErrorIs(t, err, store.ErrNotFound)
}

func rebuildEmpties(t *testing.T, s store.Store) {
	r := row("r1", 1)
	apply(t, s, 12, []store.Run{r}, record(r))
	require.NoError(t, s.Rebuild(t.Context()))
	beginsAtZero(t, s)
	r.Pos = 3
	apply(t, s, 3, []store.Run{r}, record(r))
	_, err := s.Run(t.Context(), r.Key)
	require.NoError(t, err)
}
