package postgres_test

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"waybill.dev/waybill/protocol/wire"
	"waybill.dev/waybill/services/eventlog/store"
)

// manyRuns stores runs of ten days. One in ten calls no model, one in a hundred fails, one in a
// thousand waits.
func manyRuns(b *testing.B, s store.Store, n int) (first time.Time) {
	b.Helper()
	first = time.Date(2026, 3, 1, 0, 0, 0, 0, time.UTC)
	dice := rand.New(rand.NewPCG(1, 2)) //nolint:gosec // G404: test data
	for done := 0; done < n; {
		var out store.Batch
		for range 1000 {
			at := wire.FormatTime(first.Add(time.Duration(done) * 240 * time.Hour / time.Duration(n)))
			in, ms, cost := dice.Int64N(5000), dice.Int64N(60_000), dice.Float64()
			r := store.Run{
				Key: store.Key{Tenant: "acme", RunID: fmt.Sprintf("run_%08d", done)}, WorkflowID: fmt.Sprint("flow-", done%20),
				Status: wire.StatusCompleted, CreatedAt: at, StartedAt: at, CompletedAt: at, Tags: []string{"nightly", fmt.Sprint("t", done%1000)},
				Head: 4, Pos: uint64(done) + 1, Hash: fmt.Sprint("hash-", done), LastEventAt: at, New: true,
				Facts: store.Facts{Known: true, LastNode: fmt.Sprint("node-", done%7), DurationMs: &ms, Inputs: "mail: I was charged twice for order 1234, please refund me."},
			}
			if done%10 != 0 {
				r.Facts.Model, r.Facts.TokensIn, r.Facts.TokensOut, r.Facts.Cost = fmt.Sprint("model-", done%5), &in, &in, &cost
				out.Marks = append(out.Marks, store.Mark{Key: r.Key, CreatedAt: at, Name: store.MarkModel, Value: r.Facts.Model})
			}
			switch {
			case done%1000 == 7:
				r.Status, r.CompletedAt, r.Facts.DurationMs, r.Facts.WaitingSince = wire.StatusWaitingApproval, "", nil, at
			case done%100 == 3:
				r.Status, r.ErrorCode = wire.StatusFailed, "run_timeout"
			}
			out.Runs = append(out.Runs, r)
			done++
		}
		out.Tail = store.Tail{Pos: uint64(done), Hash: "h"}
		require.NoError(b, s.Apply(b.Context(), out))
	}
	return first
}

// BenchmarkList_Sorted lists the first page of 100,000 runs in each order and with filters. Its bound
// is 200 ms a page.
func BenchmarkList_Sorted(b *testing.B) {
	each(b, func(b *testing.B, s store.Store) {
		first := manyRuns(b, s, 100_000)
		day := wire.FormatTime(first.Add(24 * time.Hour))
		half, most := 0.5, 0.9999
		queries := map[string]store.Query{
			"created": {}, "created asc": {Ascending: true},
			"waiting": {WaitingSince: wire.FormatTime(first.Add(240 * time.Hour))}, "cost at least": {MinCost: &half}, "cost at least, few": {MinCost: &most},
			"model mark": {Model: "model-2"},
		}
		for _, sort := range store.Sorts() {
			queries[string(sort)] = store.Query{Sort: sort}
			queries[string(sort)+" asc"] = store.Query{Sort: sort, Ascending: true}
			queries[string(sort)+" failed"] = store.Query{Sort: sort, Status: wire.StatusFailed}
			queries[string(sort)+" of a day"] = store.Query{Sort: sort, Until: day}
			queries[string(sort)+" workflow"] = store.Query{Sort: sort, WorkflowID: "flow-3"}
			queries[string(sort)+" rare tag"] = store.Query{Sort: sort, Tag: "t7"}
			queries[string(sort)+" tag"] = store.Query{Sort: sort, Tag: "nightly"}
			queries[string(sort)+" model"] = store.Query{Sort: sort, Model: "model-2"}
			queries[string(sort)+" code"] = store.Query{Sort: sort, ErrorCode: "run_timeout"}
			queries[string(sort)+" nothing"] = store.Query{Sort: sort, WorkflowID: "none"}
		}
		for name, q := range queries {
			q.Tenant, q.Limit = "acme", 51
			b.Run("list/"+name, func(b *testing.B) {
				for b.Loop() {
					_, err := s.List(b.Context(), q)
					require.NoError(b, err)
				}
			})
		}
		for name, q := range map[string]store.Query{
			"all": {}, "workflow": {WorkflowID: "flow-3"}, "tag": {Tag: "nightly"}, "day": {Until: day}, "cost": {MinCost: &half}, "model": {Model: "model-2"},
		} {
			q.Tenant = "acme"
			b.Run("count/"+name, func(b *testing.B) {
				for b.Loop() {
					_, err := s.Count(b.Context(), q, 20_000)
					require.NoError(b, err)
				}
			})
		}
	})
}

// BenchmarkApply_Facts is BenchmarkApply of runs that have ended and called no model: what facts cost
// every run.
func BenchmarkApply_Facts(b *testing.B) {
	ms := int64(12)
	for name, known := range map[string]bool{"none": false, "facts": true} {
		b.Run(name, func(b *testing.B) {
			each(b, func(b *testing.B, s store.Store) {
				for done := 0; b.Loop(); done += 50 {
					one := merged(done, 50, 4)
					for i := range one.Runs {
						if known {
							one.Runs[i].Facts = store.Facts{Known: true, LastNode: "n1", DurationMs: &ms, Inputs: "topic: tea"}
						}
					}
					require.NoError(b, s.Apply(b.Context(), one))
				}
			})
		})
	}
}
