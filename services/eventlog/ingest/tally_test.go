package ingest_test

import (
	"errors"
	"testing"

	"github.com/stretchr/testify/require"

	"waybill.dev/waybill/internal/runlog/memory"
	"waybill.dev/waybill/protocol/subject"
	"waybill.dev/waybill/services/eventlog/logtest"
	"waybill.dev/waybill/services/eventlog/store"
	"waybill.dev/waybill/services/eventlog/tally"
)

// tallied adds up the tenant's tallies by day.
func (r *rig) tallied(t testing.TB) (sum tally.Tally) {
	t.Helper()
	q := store.TallyQuery{Tenant: logtest.Tenant, Grain: tally.Daily, Until: 1 << 40}
	require.NoError(t, r.store.Tallies(t.Context(), q, func(one *store.Tallied) error {
		sum.Merge(&one.Tally)
		return nil
	}))
	return sum
}

func TestRun_ARebuiltStoreHasTheSameTallies(t *testing.T) {
	t.Parallel()
	log := memory.New()
	r, writers := filled(t, log)
	want := r.tallied(t)
	require.Len(t, writers, int(want.Created))
	require.Positive(t, want.Completed)
	require.EqualValues(t, want.Completed, want.Took.Count())
	r.ing.Rebuild(errors.New("an operator's wish"))
	eventually(t, func() bool { return r.ing.Stats().Rebuilds == 1 && r.ing.Ready() == nil }, "rebuilt")
	require.Equal(t, want, r.tallied(t))
}

// Tallies name no run. They keep erased ones as long as the log is not read again.
func TestRun_TalliesOfErasedRunsStayUntilARebuild(t *testing.T) {
	t.Parallel()
	log := memory.New()
	r, writers := filled(t, log)
	runs := make([]subject.Run, len(writers))
	for i, w := range writers {
		runs[i] = w.Run()
	}
	want := r.tallied(t)
	erase(t, log, true, runs[endedOf(t, log, runs)])
	r.caughtUp(t, log)
	require.Equal(t, want, r.tallied(t))
	r.ing.Rebuild(errors.New("an operator's wish"))
	eventually(t, func() bool { return r.ing.Stats().Rebuilds == 1 && r.ing.Ready() == nil }, "rebuilt")
	require.Equal(t, want.Created-1, r.tallied(t).Created)
}
