package storetest

import (
	"fmt"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"waybill.dev/waybill/protocol/wire"
	"waybill.dev/waybill/services/eventlog/store"
)

// walk lists page by page and calls between before each further page.
func walk(t *testing.T, s store.Store, q store.Query, between func(page int)) []string {
	t.Helper()
	var out []string
	for page := 1; ; page++ {
		runs, err := s.List(t.Context(), q)
		require.NoError(t, err)
		require.LessOrEqual(t, len(runs), q.Limit)
		out = append(out, ids(runs)...)
		if len(runs) < q.Limit {
			return out
		}
		last := runs[len(runs)-1]
		q.After = store.Place{CreatedAt: last.CreatedAt, RunID: last.RunID}
		between(page)
	}
}

// seedRuns stores runs r00 to r<n-1>, three per instant.
func seedRuns(t *testing.T, s store.Store, n int) (newestFirst []string) {
	t.Helper()
	for i := range n {
		r := row(fmt.Sprintf("r%02d", i), i/3)
		r.Pos = uint64(i) + 1
		apply(t, s, uint64(i)+1, []store.Run{r})
		newestFirst = append(newestFirst, r.RunID)
	}
	slices.Reverse(newestFirst)
	return newestFirst
}

func listPages(t *testing.T, s store.Store) {
	want := seedRuns(t, s, 20)
	for _, limit := range []int{1, 3, 7, 19, 20, 50} {
		got := walk(t, s, store.Query{Tenant: "acme", Limit: limit}, func(int) {})
		require.Equal(t, want, got, "limit %d", limit)
		got = walk(t, s, store.Query{Tenant: "acme", Tag: "b c", Limit: limit}, func(int) {})
		require.Equal(t, want, got, "by tag, limit %d", limit)
	}
}

func listIsStable(t *testing.T, s store.Store) {
	want := seedRuns(t, s, 12)
	got := walk(t, s, store.Query{Tenant: "acme", Limit: 5}, func(page int) {
		fresh := row(fmt.Sprintf("new-%d", page), 1000+page)
		fresh.Pos = uint64(1000 + 2*page)
		apply(t, s, fresh.Pos, []store.Run{fresh})
		moved := row("r01", 0) // an updated run keeps its position
		moved.Pos, moved.Status = uint64(1000+page), wire.StatusCompleted
		apply(t, s, uint64(1001+2*page), []store.Run{moved})
	})
	require.Equal(t, want, got)
}

func listFilters(t *testing.T, s store.Store) {
	a, b, c := row("a", 1), row("b", 2), row("c", 3)
	a.Status, a.Tags = wire.StatusFailed, nil
	b.WorkflowID, b.Tags = "flow-2", []string{"nightly"}
	c.Status, c.WorkflowID, c.Tags = wire.StatusFailed, "flow-2", []string{"nightly", "x"}
	a.Asks, b.Asks = 1, 2
	a.ErrorCode, c.ErrorCode = "run_timeout", "cap_breached"
	apply(t, s, 20, []store.Run{a, b, c})
	for _, tt := range []struct {
		q    store.Query
		want []string
	}{
		{store.Query{}, []string{"c", "b", "a"}},
		{store.Query{Status: wire.StatusFailed}, []string{"c", "a"}},
		{store.Query{WorkflowID: "flow-2"}, []string{"c", "b"}},
		{store.Query{Tag: "nightly"}, []string{"c", "b"}},
		{store.Query{Tag: "night"}, nil},
		{store.Query{Tag: "x", Status: wire.StatusRunning}, nil},
		{store.Query{Tag: "nightly", Status: wire.StatusRunning}, []string{"b"}},
		{store.Query{Tag: "nightly", WorkflowID: "flow-2", Status: wire.StatusFailed}, []string{"c"}},
		{store.Query{WorkflowID: "flow", Status: wire.StatusFailed}, []string{"a"}},
		{store.Query{WorkflowID: "' OR 1=1 --"}, nil},
		{store.Query{Asking: true}, []string{"b", "a"}},
		{store.Query{Asking: true, WorkflowID: "flow-2"}, []string{"b"}},
		{store.Query{Asking: true, Tag: "x"}, nil},
		{store.Query{ErrorCode: "run_timeout"}, []string{"a"}},
		{store.Query{ErrorCode: "cap_breached", Tag: "nightly"}, []string{"c"}},
		{store.Query{Since: b.CreatedAt}, []string{"c", "b"}},
		{store.Query{Since: b.CreatedAt, Tag: "nightly", Status: wire.StatusFailed}, []string{"c"}},
	} {
		tt.q.Tenant, tt.q.Limit = "acme", 10
		runs, err := s.List(t.Context(), tt.q)
		require.NoError(t, err)
		require.Equal(t, tt.want, ids(runs), "%+v", tt.q)
	}
}

func dueGivesEarliest(t *testing.T, s store.Store) {
	late, early, none, never := row("late", 1), row("early", 2), row("none", 3), row("future", 4)
	late.DueMs, early.DueMs, never.DueMs = 200, 100, 5000
	early.Tenant = "other"
	apply(t, s, 20, []store.Run{late, early, none, never})
	for _, tt := range []struct {
		before int64
		limit  int
		want   []string
	}{
		{1000, 10, []string{"early", "late"}}, {1000, 1, []string{"early"}}, {200, 10, []string{"early"}}, {100, 10, nil},
	} {
		runs, err := s.Due(t.Context(), tt.before, store.Timer{}, tt.limit)
		require.NoError(t, err)
		require.Equal(t, tt.want, ids(runs), "before %d limit %d", tt.before, tt.limit)
	}
	// More timers of one instant than an answer holds.
	var same []store.Run
	for _, id := range []string{"b", "c", "a"} {
		r := row(id, 5)
		r.DueMs, r.Pos = 100, 30
		same = append(same, r)
	}
	apply(t, s, 30, same)
	var got []string
	for after := (store.Timer{}); ; {
		runs, err := s.Due(t.Context(), 1000, after, 2)
		require.NoError(t, err)
		if len(runs) == 0 {
			break
		}
		got = append(got, ids(runs)...)
		last := runs[len(runs)-1]
		after = store.Timer{DueMs: last.DueMs, Tenant: last.Tenant, RunID: last.RunID}
	}
	require.Equal(t, []string{"a", "b", "c", "early", "late"}, got)
}

func dueForgets(t *testing.T, s store.Store) {
	r := row("r1", 1)
	r.DueMs = 100
	apply(t, s, 20, []store.Run{r})
	r.DueMs, r.Pos = 0, 30
	apply(t, s, 30, []store.Run{r})
	runs, err := s.Due(t.Context(), 1<<62, store.Timer{}, 10)
	require.NoError(t, err)
	require.Empty(t, runs)
}

// owned returns the row of a run that a process owns.
func owned(tenant, id, process string) store.Run {
	r := row(id, 1)
	r.Tenant, r.Owner = tenant, store.Owner{Process: process, Epoch: 1, Since: r.CreatedAt}
	return r
}

func ownedPages(t *testing.T, s store.Store) {
	apply(t, s, 20, []store.Run{
		owned("b", "r1", "d1"), owned("a", "r3", "d1"), owned("a", "r1", "d1"), owned("a", "r2", "d2"),
		row("free", 1), owned("a", "r4", "d1"),
	})
	var got []string
	for after := (store.Key{}); ; {
		runs, err := s.Owned(t.Context(), "d1", after, 2)
		require.NoError(t, err)
		if len(runs) == 0 {
			break
		}
		for _, r := range runs {
			got = append(got, r.Tenant+"/"+r.RunID)
		}
		after = runs[len(runs)-1].Key
	}
	require.Equal(t, []string{"a/r1", "a/r3", "a/r4", "b/r1"}, got)
	runs, err := s.Owned(t.Context(), "", store.Key{}, 10)
	require.NoError(t, err)
	require.Empty(t, runs, "no process has the empty name")
}

func ownedFollows(t *testing.T, s store.Store) {
	holds := func(process string, want ...string) {
		t.Helper()
		runs, err := s.Owned(t.Context(), process, store.Key{}, 10)
		require.NoError(t, err)
		require.Equal(t, want, ids(runs), process)
	}
	r := owned("acme", "r1", "d1")
	apply(t, s, 20, []store.Run{r})
	holds("d1", "r1")
	r.Pos, r.New, r.Owner = 30, false, store.Owner{Process: "d2", Epoch: 2, Since: r.CreatedAt}
	apply(t, s, 30, []store.Run{r})
	holds("d1")
	holds("d2", "r1")
	r.Pos, r.Owner = 40, store.Owner{}
	apply(t, s, 40, []store.Run{r})
	holds("d2")
}
