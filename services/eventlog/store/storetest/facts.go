package storetest

import (
	"fmt"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"waybill.dev/waybill/protocol/wire"
	"waybill.dev/waybill/services/eventlog/store"
)

func ref[T any](v T) *T { return &v }

// withFacts returns a row with all facts, which grow with n.
func withFacts(id string, n int) store.Run {
	r := row(id, n)
	r.Facts = store.Facts{
		Known: true, Model: fmt.Sprintf("model-%02d", n), LastNode: fmt.Sprintf("node-%02d", n),
		TokensIn: ref(int64(n)), TokensOut: ref(int64(10 * n)), Cost: ref(float64(n) / 3), DurationMs: ref(int64(1000 * n)),
		WaitingSince: r.CreatedAt, Inputs: "mail: \u0000 \xff",
	}
	return r
}

func factsComeBack(t *testing.T, s store.Store) {
	full, empty, old := withFacts("full", 7), row("empty", 2), row("old", 3)
	empty.Facts = store.Facts{Known: true}
	apply(t, s, 20, []store.Run{full, empty, old})
	for _, want := range []store.Run{full, empty, old} {
		got, err := s.Run(t.Context(), want.Key)
		require.NoError(t, err)
		require.Equal(t, stored(want), got)
	}
	full.Pos, full.New = 30, false
	full.Facts.Cost, full.Facts.WaitingSince, full.Facts.Model = ref(0.1), "", "another"
	apply(t, s, 30, []store.Run{full})
	got, err := s.Run(t.Context(), full.Key)
	require.NoError(t, err)
	require.Equal(t, full, got)
}

func listSorts(t *testing.T, s store.Store) {
	var batch []store.Run
	var with, without []string
	for n := range 9 { // equal values in pairs
		r := withFacts(fmt.Sprintf("r%d", n), n/2)
		r.CreatedAt, r.Pos = row("", n).CreatedAt, 20
		batch, with = append(batch, r), append(with, r.RunID)
	}
	for n := 10; n < 15; n++ {
		r := row(fmt.Sprintf("none%d", n), n)
		r.Pos, r.Facts = 20, store.Facts{Known: n%2 == 0}
		batch, without = append(batch, r), append(without, r.RunID)
	}
	theirs := withFacts("theirs", 5)
	theirs.Tenant, theirs.Pos = "other", 20
	apply(t, s, 20, append(batch, theirs))
	slices.Reverse(without)
	for _, sort := range store.Sorts() {
		for _, ascending := range []bool{false, true} {
			ordered := slices.Clone(with)
			if !ascending {
				slices.Reverse(ordered)
			}
			want := append(ordered, without...)
			for _, limit := range []int{1, 2, 8, 9, 10, 14, 50} {
				require.Equal(t, want, walkSorted(t, s, store.Query{Tenant: "acme", Sort: sort, Ascending: ascending, Limit: limit}),
					"%s, ascending %t, limit %d", sort, ascending, limit)
			}
		}
	}
	oldest := append(slices.Clone(with), without...)
	slices.Sort(oldest[len(with):])
	require.Equal(t, oldest, walkSorted(t, s, store.Query{Tenant: "acme", Ascending: true, Limit: 4}), "oldest first")
}

// walkSorted lists page by page.
func walkSorted(t *testing.T, s store.Store, q store.Query) (out []string) {
	t.Helper()
	for {
		runs, err := s.List(t.Context(), q)
		require.NoError(t, err)
		require.LessOrEqual(t, len(runs), q.Limit)
		out = append(out, ids(runs)...)
		if len(runs) < q.Limit {
			return out
		}
		q.After = store.PlaceOf(&runs[len(runs)-1], q.Sort)
	}
}

func listSortsAndFilters(t *testing.T, s store.Store) {
	a, b, c, d := withFacts("a", 1), withFacts("b", 2), withFacts("c", 3), row("d", 4)
	for _, r := range []*store.Run{&a, &b, &c, &d} {
		r.Pos = 20
	}
	a.Status, c.Status, c.WorkflowID, b.Tags = wire.StatusFailed, wire.StatusFailed, "flow-2", []string{"x"}
	c.ErrorCode, b.Facts.WaitingSince = "run_timeout", ""
	require.NoError(t, s.Apply(t.Context(), store.Batch{
		Runs:  []store.Run{a, b, c, d},
		Marks: []store.Mark{mark(a, store.MarkModel, "m"), mark(b, store.MarkModel, "m"), mark(b, store.MarkProvider, "p")},
		Tail:  store.Tail{Pos: 20, Hash: "h"},
	}))
	for _, tt := range []struct {
		q    store.Query
		want []string
	}{
		{store.Query{Sort: store.SortCost}, []string{"c", "b", "a", "d"}},
		{store.Query{Sort: store.SortCost, Status: wire.StatusFailed}, []string{"c", "a"}},
		{store.Query{Sort: store.SortCost, WorkflowID: "flow"}, []string{"b", "a", "d"}},
		{store.Query{Sort: store.SortCost, Tag: "b c"}, []string{"c", "a", "d"}},
		{store.Query{Sort: store.SortTokens, Model: "m", Ascending: true}, []string{"a", "b"}},
		{store.Query{Sort: store.SortTokens, Model: "m", Provider: "p"}, []string{"b"}},
		{store.Query{Sort: store.SortDuration, ErrorCode: "run_timeout"}, []string{"c"}},
		{store.Query{Sort: store.SortCost, Since: b.CreatedAt, Until: d.CreatedAt}, []string{"c", "b"}},
		{store.Query{Sort: store.SortDuration, MinCost: ref(2.0 / 3)}, []string{"c", "b"}},
		{store.Query{Sort: store.SortWaiting, Ascending: true, WaitingSince: b.CreatedAt}, []string{"a"}},
		{store.Query{Model: "m"}, []string{"b", "a"}},
		{store.Query{Until: b.CreatedAt}, []string{"a"}},
		{store.Query{MinCost: ref(0.0)}, []string{"c", "b", "a"}},
		{store.Query{MinCost: ref(0.9), Tag: "b c"}, []string{"c"}},
		{store.Query{WaitingSince: d.CreatedAt}, []string{"c", "a"}},
	} {
		tt.q.Tenant, tt.q.Limit = "acme", 10
		runs, err := s.List(t.Context(), tt.q)
		require.NoError(t, err)
		require.Equal(t, tt.want, ids(runs), "%+v", tt.q)
	}
}

func countsByStatus(t *testing.T, s store.Store) {
	var batch []store.Run
	for n := range 6 {
		r := withFacts(fmt.Sprint("r", n), n)
		r.Pos = 20
		if n < 4 {
			r.Status = wire.StatusFailed
		}
		if n == 0 {
			r.Tags = []string{"x"}
		}
		batch = append(batch, r)
	}
	theirs := row("theirs", 1)
	theirs.Tenant = "other"
	apply(t, s, 20, append(batch, theirs))
	for _, tt := range []struct {
		q     store.Query
		limit int
		want  store.Counts
	}{
		{store.Query{}, 6, counts(true, 4, 2)},
		{store.Query{Status: wire.StatusRunning, Sort: store.SortCost}, 6, counts(true, 4, 2)},
		{store.Query{Tag: "x"}, 10, counts(true, 1, 0)},
		{store.Query{MinCost: ref(1.0), WorkflowID: "flow"}, 10, counts(true, 1, 2)},
		{store.Query{WorkflowID: "none"}, 10, counts(true, 0, 0)},
	} {
		tt.q.Tenant = "acme"
		got, err := s.Count(t.Context(), tt.q, tt.limit)
		require.NoError(t, err)
		require.Equal(t, tt.want, got, "%+v", tt.q)
	}
	got, err := s.Count(t.Context(), store.Query{Tenant: "acme"}, 3)
	require.NoError(t, err)
	require.False(t, got.Complete)
	require.Equal(t, counts(false, 3, 2), got, "a status with many runs hides no other one")
	got, err = s.Count(t.Context(), store.Query{Tenant: "acme", WorkflowID: "flow"}, 3)
	require.NoError(t, err)
	require.False(t, got.Complete)
	require.Equal(t, 2, got.ByStatus[wire.StatusRunning], "the newest are counted")
	got, err = s.Count(t.Context(), store.Query{Tenant: "acme", Since: row("", 3).CreatedAt, Until: row("", 5).CreatedAt}, 3)
	require.NoError(t, err)
	require.Equal(t, counts(true, 1, 1), got)
}

func counts(complete bool, failed, running int) store.Counts {
	c := store.Counts{ByStatus: map[wire.Status]int{}, Complete: complete}
	for status, n := range map[wire.Status]int{wire.StatusFailed: failed, wire.StatusRunning: running} {
		if n > 0 {
			c.ByStatus[status] = n
		}
	}
	return c
}

func fillsFacts(t *testing.T, s store.Store) {
	old, moved, erased, fresh := row("old", 1), row("moved", 2), row("erased", 3), withFacts("fresh", 4)
	apply(t, s, 20, []store.Run{old, moved, erased, fresh})
	require.NoError(t, flush(t, s))
	rows, err := s.WithoutFacts(t.Context(), 2)
	require.NoError(t, err)
	require.Len(t, rows, 2)
	rows, err = s.WithoutFacts(t.Context(), 10)
	require.NoError(t, err)
	require.ElementsMatch(t, []string{"old", "moved", "erased"}, ids(rows))

	later := moved
	later.Pos, later.New, later.Facts = 30, false, withFacts("", 9).Facts
	require.NoError(t, s.Apply(t.Context(), store.Batch{
		Runs: []store.Run{later}, Tail: store.Tail{Pos: 30, Hash: "h"},
		Erased: []store.Erasure{{Key: erased.Key, CreatedAt: erased.CreatedAt, Tags: erased.Tags}},
	}))
	require.NoError(t, flush(t, s))
	var marks []store.Mark
	for i := range rows {
		rows[i].Facts = withFacts("", 5).Facts
		marks = append(marks, mark(rows[i], store.MarkModel, "m"))
	}
	for range 2 { // a second time changes nothing
		require.NoError(t, s.FillFacts(t.Context(), rows, marks))
		found, err := s.List(t.Context(), store.Query{Tenant: "acme", Model: "m", Limit: 10})
		require.NoError(t, err)
		require.Equal(t, []string{"old"}, ids(found), "neither a run that has moved nor an erased one gets marks")
		require.Equal(t, withFacts("", 5).Facts, found[0].Facts)
	}
	got, err := s.Run(t.Context(), moved.Key)
	require.NoError(t, err)
	require.Equal(t, later.Facts, got.Facts)
	_, err = s.Run(t.Context(), erased.Key)
	require.ErrorIs(t, err, store.ErrNotFound)
	rows, err = s.WithoutFacts(t.Context(), 10)
	require.NoError(t, err)
	require.Empty(t, rows)
}

// flush waits until the store has committed what it has applied: lists wait for that.
func flush(t *testing.T, s store.Store) error {
	t.Helper()
	_, err := s.List(t.Context(), store.Query{Tenant: "acme", Limit: 1})
	return err
}
