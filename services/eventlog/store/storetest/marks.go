package storetest

import (
	"testing"

	"github.com/stretchr/testify/require"

	"waybill.dev/waybill/protocol/modelgate"
	"waybill.dev/waybill/protocol/wire"
	"waybill.dev/waybill/services/eventlog/store"
)

func mark(r store.Run, name store.MarkName, value string) store.Mark {
	return store.Mark{Key: r.Key, CreatedAt: r.CreatedAt, Name: name, Value: value}
}

func listMarks(t *testing.T, s store.Store) {
	a, b, c, theirs := row("a", 1), row("b", 2), row("c", 3), row("d", 4)
	b.Status, theirs.Tenant = wire.StatusFailed, "other"
	const odd = "k\x00\xff' OR 1=1 --"
	batch := store.Batch{
		Runs: []store.Run{a, b, c, theirs},
		Marks: []store.Mark{
			mark(a, store.MarkKind, "error"), mark(b, store.MarkKind, "error"),
			mark(a, store.MarkProvider, "openai"),
			mark(c, store.MarkProvider, "openai"), mark(c, store.MarkProvider, "error"),
			mark(b, store.MarkKind, odd), mark(theirs, store.MarkKind, "error"),
		},
	}
	for pos := uint64(20); pos < 22; pos++ { // a repeated mark changes nothing
		batch.Tail = store.Tail{Pos: pos, Hash: "tail"}
		require.NoError(t, s.Apply(t.Context(), batch))
	}
	for _, tt := range []struct {
		q    store.Query
		want []string
	}{
		{store.Query{Kind: "error"}, []string{"b", "a"}},
		{store.Query{Kind: "error", Limit: 1}, []string{"b"}},
		{store.Query{Kind: "error", After: store.Place{CreatedAt: b.CreatedAt, RunID: "b"}}, []string{"a"}},
		{store.Query{Provider: "openai"}, []string{"c", "a"}},
		{store.Query{Kind: "error", Provider: "openai"}, []string{"a"}},
		{store.Query{Kind: "error", Status: wire.StatusFailed}, []string{"b"}},
		{store.Query{Kind: "error", Provider: "openai", Tag: "b c", WorkflowID: "flow", Since: a.CreatedAt}, []string{"a"}},
		{store.Query{Kind: "error", Tag: "x"}, nil},
		{store.Query{Provider: "error"}, []string{"c"}},
		{store.Query{Kind: odd}, []string{"b"}},
		{store.Query{Kind: "err"}, nil},
	} {
		tt.q.Tenant = "acme"
		if tt.q.Limit == 0 {
			tt.q.Limit = 10
		}
		runs, err := s.List(t.Context(), tt.q)
		require.NoError(t, err)
		require.Equal(t, tt.want, ids(runs), "%+v", tt.q)
	}
}

func substitutionsNewestFirst(t *testing.T, s store.Store) {
	at := func(n int, tenant, run string, seq int) store.Substitution {
		return store.Substitution{
			Key:      store.Key{Tenant: tenant, RunID: run},
			Sequence: seq,
			At:       row(run, n).CreatedAt,
			NodeID:   "n\x00",
			Original: modelgate.Model{Provider: "house", Model: "small"},
			Fallback: modelgate.Model{Provider: "openai", Model: "large"},
			Missing:  []modelgate.Capability{"reasoning", "vision-input"},
		}
	}
	old, first, second, later, theirs := at(0, "acme", "r1", 1), at(5, "acme", "r1", 4), at(5, "acme", "r1", 9), at(7, "acme", "r2", 1), at(8, "other", "r3", 1)
	for pos := uint64(20); pos < 23; pos++ { // applying again changes nothing
		require.NoError(t, s.Apply(t.Context(), store.Batch{
			Substitutions: []store.Substitution{old, first, later, second, theirs}, Tail: store.Tail{Pos: pos},
		}))
	}
	for _, tt := range []struct {
		since string
		limit int
		want  []store.Substitution
	}{
		{first.At, 10, []store.Substitution{later, second, first}},
		{first.At, 2, []store.Substitution{later, second}},
		{"", 10, []store.Substitution{later, second, first, old}},
		{theirs.At, 10, nil},
	} {
		got, err := s.Substitutions(t.Context(), "acme", tt.since, tt.limit)
		require.NoError(t, err)
		require.Equal(t, tt.want, got)
	}
	require.NoError(t, s.Rebuild(t.Context()))
	got, err := s.Substitutions(t.Context(), "acme", "", 10)
	require.NoError(t, err)
	require.Empty(t, got)
}
