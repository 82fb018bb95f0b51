package quarantine_test

import (
	"fmt"
	"log/slog"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"waybill.dev/waybill/internal/kv"
	"waybill.dev/waybill/internal/kv/memory"
	"waybill.dev/waybill/internal/runlog"
	"waybill.dev/waybill/protocol/fault"
	"waybill.dev/waybill/protocol/subject"
	"waybill.dev/waybill/services/dispatcher/engine/quarantine"
)

var failing = quarantine.Cause{Reason: quarantine.ReasonFailing, Tries: 10}

func listOf(q *queue) (*quarantine.List, *memory.Store) {
	store := memory.New()
	l := quarantine.New(quarantine.DefaultConfig(), store, time.Now, slog.New(slog.DiscardHandler))
	l.Bind(q)
	return l, store
}

func TestOf_ListsATenantsRunsByPages(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		l, _ := listOf(newQueue())
		for i := range 3 {
			require.NoError(t, l.Add(t.Context(), theRun(fmt.Sprint("run_", i)), failing))
		}
		require.NoError(t, l.Add(t.Context(), subject.Run{Tenant: "other", WorkflowID: "wf", RunID: "run_9"}, damaged))
		page, more, err := l.ForTenant(t.Context(), "acme", "", 2)
		require.NoError(t, err)
		require.True(t, more)
		require.Len(t, page, 2)
		require.Equal(t, quarantine.ReasonFailing, page[0].Reason)
		require.Equal(t, 10, page[0].Tries)
		require.Equal(t, time.Now().UTC(), page[0].Since)
		require.WithinRange(t, page[0].Next, time.Now().Add(time.Minute), time.Now().Add(75*time.Second))

		page, more, err = l.ForTenant(t.Context(), "acme", page[1].Run.RunID, 2)
		require.NoError(t, err)
		require.False(t, more)
		require.Len(t, page, 1)
		require.Equal(t, "run_2", page[0].Run.RunID)
	})
}

func TestGet_AnotherTenantsRunIsNotThere(t *testing.T) {
	t.Parallel()
	l, _ := listOf(newQueue())
	require.NoError(t, l.Add(t.Context(), theRun("run_1"), damaged))
	for _, tc := range [][2]string{{"other", "run_1"}, {"acme", "run_2"}, {"acme", "a.b"}, {"", ""}} {
		_, err := l.Get(t.Context(), tc[0], tc[1])
		require.Equal(t, fault.NotQuarantined, fault.CodeOf(err), tc)
		_, err = l.Retry(t.Context(), tc[0], tc[1])
		require.Equal(t, fault.NotQuarantined, fault.CodeOf(err), tc)
	}
	r, err := l.Get(t.Context(), "acme", "run_1")
	require.NoError(t, err)
	require.Equal(t, theRun("run_1"), r.Run)
}

// Records of older releases have no reason and no time.
func TestGet_ReadsARecordOfAnOlderRelease(t *testing.T) {
	t.Parallel()
	l, store := listOf(newQueue())
	_, err := store.Put(t.Context(), "run.acme.run_1", []byte(`{"tenant":"acme","workflowId":"wf","runId":"run_1","looks":2,"next":1}`))
	require.NoError(t, err)
	r, err := l.Get(t.Context(), "acme", "run_1")
	require.NoError(t, err)
	require.Equal(t, quarantine.ReasonDamaged, r.Reason)
	require.True(t, r.Since.IsZero())
	require.Equal(t, 2, r.Checks)
}

func TestRetry_RequeuesARunOrReportsTheReason(t *testing.T) {
	t.Parallel()
	q := newQueue("run_1")
	l, _ := listOf(q)
	require.NoError(t, l.Add(t.Context(), theRun("run_1"), damaged))
	_, err := l.Retry(t.Context(), "acme", "run_1")
	require.Equal(t, fault.Conflict, fault.CodeOf(err))
	require.ErrorContains(t, err, "restore the log from a backup")

	q.mend("run_1")
	back, err := l.Retry(t.Context(), "acme", "run_1")
	require.NoError(t, err)
	require.True(t, back)
	_, err = l.Get(t.Context(), "acme", "run_1")
	require.Equal(t, fault.NotQuarantined, fault.CodeOf(err))
	require.Equal(t, []string{"run_1"}, q.back())
}

func TestRelease_TakesAnEndedRunOffTheList(t *testing.T) {
	t.Parallel()
	l, _ := listOf(newQueue())
	require.NoError(t, l.Add(t.Context(), theRun("run_1"), failing))
	require.NoError(t, l.Release(t.Context(), "acme", "run_1"))
	require.NoError(t, l.Release(t.Context(), "acme", "run_1"), "twice is no error")
	page, _, err := l.ForTenant(t.Context(), "acme", "", 10)
	require.NoError(t, err)
	require.Empty(t, page)
}

// Each check of such a run is a frame in its log.
func TestList_ChecksARunThatKeepsFailingAtMostEverySixHours(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		q, store := newQueue(), memory.New()
		l, end := begin(t, store, q)
		defer end()
		q.then = func(r subject.Run) { require.NoError(t, l.Add(t.Context(), r, failing)) }
		require.NoError(t, l.Add(t.Context(), theRun("run_1"), failing))
		pass(7 * 24 * time.Hour)
		require.Less(t, len(q.back()), 40)
		require.Greater(t, len(q.back()), 20)
	})
}

func TestCounts_AreByReason(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		l, end := begin(t, memory.New(), newQueue("run_1", "run_2"))
		defer end()
		require.Len(t, l.Counts(), len(quarantine.Reasons()), "every reason is there before the list is read")
		require.NoError(t, l.Add(t.Context(), theRun("run_1"), damaged))
		require.NoError(t, l.Add(t.Context(), theRun("run_2"), quarantine.Cause{Reason: quarantine.ReasonEngine, Tries: 80}))
		pass(time.Minute)
		require.Equal(t, map[string]int{
			"log_damaged":        1,
			"definition_missing": 0,
			"engine_version":     1,
			"panic":              0,
			"cannot_continue":    0,
		}, l.Counts())
	})
}

// A run that an answer woke after its quarantine has left it. When the dispatcher that executes it
// dies, the run is enqueued immediately.
func TestHolds_NotARunWithALaterFrame(t *testing.T) {
	t.Parallel()
	l, _ := listOf(newQueue("run_1"))
	why := failing
	why.Pos = 7
	require.NoError(t, l.Add(t.Context(), theRun("run_1"), why))
	for last, want := range map[uint64]bool{0: true, 6: true, 7: true, 8: false} {
		held, err := l.Holds(t.Context(), theRun("run_1"), last)
		require.NoError(t, err)
		require.Equal(t, want, held, "last frame at %d", last)
	}
}

// A run counts as quarantined until a check may have requeued it. Otherwise the dispatcher that finds
// its owner dead would requeue a quarantined run, or skip one that is executed again.
func TestHolds_UntilACheckMayHavePutTheRunBack(t *testing.T) {
	t.Parallel()
	q := newQueue("run_1")
	l, store := listOf(q)
	holds := func() bool {
		held, err := l.Holds(t.Context(), theRun("run_1"), 0)
		require.NoError(t, err)
		return held
	}
	require.False(t, holds())
	require.NoError(t, l.Add(t.Context(), theRun("run_1"), failing))
	require.True(t, holds())
	elsewhere, err := l.Holds(t.Context(), subject.Run{Tenant: "other", WorkflowID: "wf", RunID: "run_1"}, 0)
	require.NoError(t, err)
	require.False(t, elsewhere)

	_, err = l.Retry(t.Context(), "acme", "run_1")
	require.Equal(t, fault.Conflict, fault.CodeOf(err))
	require.True(t, holds(), "it still cannot be loaded")
	q.fails = runlog.ErrUnavailable
	_, err = l.Retry(t.Context(), "acme", "run_1")
	require.ErrorIs(t, err, runlog.ErrUnavailable)
	require.False(t, holds(), "its wake frame may be in the log")
	require.NoError(t, l.Add(t.Context(), theRun("run_1"), failing))
	require.True(t, holds())

	q.mend("run_1")
	q.then = func(subject.Run) { require.False(t, holds(), "also if the checking dispatcher dies now") }
	back, err := l.Retry(t.Context(), "acme", "run_1")
	require.NoError(t, err)
	require.True(t, back)
	require.False(t, holds())

	entries, err := kv.List(t.Context(), store, "run.")
	require.NoError(t, err)
	_, err = store.Update(t.Context(), entries[0].Key, []byte("{"), entries[0].Revision)
	require.NoError(t, err)
	require.False(t, holds(), "an unreadable record keeps no run")
}
