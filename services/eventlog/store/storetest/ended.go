package storetest

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"waybill.dev/waybill/protocol/wire"
	"waybill.dev/waybill/services/eventlog/store"
)

// end returns a time n minutes after the epoch.
func end(n int) string { return wire.FormatTime(epoch.Add(time.Duration(n) * time.Minute)) }

// endedRuns applies runs of two tenants and three workflows; those with at < 0 have not ended.
func endedRuns(t *testing.T, s store.Store) {
	t.Helper()
	var rows []store.Run
	for i, r := range []struct {
		tenant, workflow, id string
		at                   int
	}{
		{"acme", "a", "r3", 3},
		{"acme", "a", "r1", 1},
		{"acme", "a", "going", -1},
		{"acme", "a", "r2", 2},
		{"acme", "a", "r2b", 2},
		{"acme", "b", "q1", 5},
		{"other", "a", "o1", 0},
		{"other", "c", "never", -1},
	} {
		one := row(r.id, i)
		one.Tenant, one.WorkflowID = r.tenant, r.workflow
		if r.at >= 0 {
			one.CompletedAt, one.Status = end(r.at), wire.StatusCompleted
		}
		rows = append(rows, one)
	}
	apply(t, s, 30, rows)
}

func endedOldest(t *testing.T, s store.Store) {
	endedRuns(t, s)
	var got []string
	for after := (store.Workflow{}); ; {
		page, err := s.Oldest(t.Context(), after, 2)
		require.NoError(t, err)
		for _, r := range page {
			got = append(got, fmt.Sprint(r.Tenant, " ", r.WorkflowID, " ", r.RunID))
			after = store.Workflow{Tenant: r.Tenant, WorkflowID: r.WorkflowID}
		}
		if len(page) < 2 {
			break
		}
	}
	require.Equal(t, []string{"acme a r1", "acme b q1", "other a o1"}, got)
}

func endedPages(t *testing.T, s store.Store) {
	endedRuns(t, s)
	flow := store.Workflow{Tenant: "acme", WorkflowID: "a"}
	for before, want := range map[string][]string{
		end(1): nil, end(2): {"r1"}, end(3): {"r1", "r2", "r2b"}, end(9): {"r1", "r2", "r2b", "r3"},
	} {
		var got []string
		for after := (store.End{}); ; {
			page, err := s.Ended(t.Context(), store.EndedQuery{Workflow: flow, Before: before, After: after, Limit: 1})
			require.NoError(t, err)
			if len(page) == 0 {
				break
			}
			got, after = append(got, page[0].RunID), store.End{CompletedAt: page[0].CompletedAt, RunID: page[0].RunID}
		}
		require.Equal(t, want, got, before)
	}
	counts, err := s.CountEnded(t.Context(), flow, []string{end(9), end(3), end(1)})
	require.NoError(t, err)
	require.Equal(t, []int64{4, 3, 0}, counts)
	counts, err = s.CountEnded(t.Context(), store.Workflow{Tenant: "other", WorkflowID: "c"}, []string{end(9)})
	require.NoError(t, err)
	require.Equal(t, []int64{0}, counts)
}
