package ingest_test

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"waybill.dev/waybill/internal/runlog/cold"
	coldsqlite "waybill.dev/waybill/internal/runlog/cold/sqlite"
	"waybill.dev/waybill/internal/runlog/memory"
	"waybill.dev/waybill/services/eventlog/ingest"
	"waybill.dev/waybill/services/eventlog/logtest"
)

// seal moves the ended runs of a log to a cold store, and returns a log that reads both.
func seal(t *testing.T, hot *memory.Log) *cold.Log {
	t.Helper()
	s, err := coldsqlite.Open(t.Context(), filepath.Join(t.TempDir(), "cold.db"))
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, s.Close()) })
	past := func(context.Context, uint64) error { return nil }
	sealer := cold.NewSealer(time.Hour, cold.SealerDeps{
		Log: hot, Store: s, Past: past, Clock: func() time.Time { return time.Now().Add(2 * time.Hour) }, Logger: quiet,
	})
	require.NoError(t, sealer.Sweep(within(t)))
	return cold.NewLog(hot, s, past, cold.NewFaults(quiet))
}

// The tallies of a store that is filled from sealed runs, and some that are not, are those from before.
func TestRun_ARebuiltStoreCountsSealedRuns(t *testing.T) {
	t.Parallel()
	hot := memory.New()
	large := logtest.Begin(t, hot, logtest.Record("large")) // it fills a batch of its own
	large.Step(logtest.RunStarted)
	for range 5 {
		large.Step(logtest.Log(strings.Repeat("x", 1<<20)))
	}
	large.End(logtest.RunCompleted)
	r, writers := filled(t, hot)
	log := seal(t, hot)
	logtest.Whole(t, hot, "later")
	r.caughtUp(t, hot)
	want := r.tallied(t)
	require.EqualValues(t, want.Created, len(writers)+2)

	again := newRig(t, hot)
	again.ing = ingest.New(log, again.faults, again.hub, 1<<20, func() {}, nil, quiet)
	again.run(t)
	again.caughtUp(t, hot)
	require.Equal(t, want, again.tallied(t))
	again.ing.Rebuild(errors.New("an operator's wish"))
	eventually(t, func() bool { return again.ing.Stats().Rebuilds == 1 && again.ing.Ready() == nil }, "rebuilt")
	require.Equal(t, want, again.tallied(t))
}

// The seals of many large runs are one batch of the log. Their frames are not: they are applied in
// batches of limited size.
func TestRun_LimitsTheMemoryForSealedRuns(t *testing.T) {
	t.Parallel()
	hot := memory.New()
	const runs, size = 10, 1 << 20
	for n := range runs {
		w := logtest.Begin(t, hot, logtest.Record(fmt.Sprintf("r%d", n)))
		w.Step(logtest.RunStarted, logtest.Log(strings.Repeat("x", size)))
		w.End(logtest.RunCompleted)
	}
	log := seal(t, hot)
	r := newRig(t, hot)
	r.ing = ingest.New(log, r.faults, r.hub, 1<<20, func() {}, nil, quiet)
	r.run(t)
	r.caughtUp(t, hot)
	r.faults.mu.Lock()
	defer r.faults.mu.Unlock()
	total := 0
	for _, b := range r.faults.applied {
		n := 0
		for _, f := range b.Frames {
			n += len(f.Body)
		}
		require.LessOrEqual(t, n, 4<<20+2*size, "a batch and its last run")
		total += n
	}
	require.Greater(t, total, runs*size)
	require.EqualValues(t, runs, r.tallied(t).Completed)
}
