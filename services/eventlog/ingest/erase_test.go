package ingest_test

import (
	"context"
	"errors"
	"testing"

	"github.com/stretchr/testify/require"

	"waybill.dev/waybill/internal/runlog/memory"
	"waybill.dev/waybill/protocol/frame"
	"waybill.dev/waybill/protocol/subject"
	"waybill.dev/waybill/services/eventlog/project"
	"waybill.dev/waybill/services/eventlog/store"
)

// erase marks runs as erased, and removes their frames.
func erase(t *testing.T, log *memory.Log, purge bool, runs ...subject.Run) {
	t.Helper()
	for _, run := range runs {
		_, err := log.Mark(t.Context(), run, frame.Requested)
		require.NoError(t, err)
		if purge {
			require.NoError(t, log.Purge(t.Context(), &frame.Frame{Run: run}))
		}
	}
}

// lacks checks that the store has nothing of a run.
func (r *rig) lacks(t *testing.T, run subject.Run) {
	t.Helper()
	_, err := r.store.Run(t.Context(), project.Key(run))
	require.ErrorIs(t, err, store.ErrNotFound)
	frames, err := r.store.Frames(t.Context(), project.Key(run), store.RecordFirst, 100)
	require.NoError(t, err)
	require.Empty(t, frames)
	all, err := r.store.List(t.Context(), store.Query{Tenant: run.Tenant, Tag: "nightly", Limit: 200})
	require.NoError(t, err)
	for _, row := range all {
		require.NotEqual(t, run.RunID, row.RunID)
	}
}

// endedOf returns the index of a run that has ended.
func endedOf(t *testing.T, log *memory.Log, writers []subject.Run) int {
	t.Helper()
	for i, run := range writers {
		last, err := log.Last(t.Context(), run)
		require.NoError(t, err)
		if last.Kind == subject.End {
			return i
		}
	}
	t.Fatal("no run has ended")
	return 0
}

func TestRun_DropsErasedRunsAndNothingElse(t *testing.T) {
	t.Parallel()
	for name, purge := range map[string]bool{"before their frames are removed": false, "afterwards": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			log := memory.New()
			r, writers := filled(t, log)
			runs := make([]subject.Run, len(writers))
			for i, w := range writers {
				runs[i] = w.Run()
			}
			i := endedOf(t, log, runs)
			erase(t, log, purge, runs[i])
			r.caughtUp(t, log)
			r.lacks(t, runs[i])
			rest := append(writers[:i:i], writers[i+1:]...)
			r.same(t, rest...)

			r.ing.Rebuild(errors.New("an operator's wish"))
			eventually(t, func() bool { return r.ing.Stats().Rebuilds == 1 && r.ing.Ready() == nil }, "rebuilt")
			r.lacks(t, runs[i])
			r.same(t, rest...)
			require.Zero(t, r.ing.Stats().Refused)
			require.Zero(t, r.ing.Stats().Lost)
		})
	}
}

// The last frame that was applied belongs to a run that is erased while the event log is down.
func TestRun_ContinuesWhenTheFrameAtItsPositionIsErased(t *testing.T) {
	t.Parallel()
	log := memory.New()
	r := newRig(t, log)
	writers := mixed(t, log, "a", 20)
	runs := make([]subject.Run, len(writers))
	for i, w := range writers {
		runs[i] = w.Run()
	}
	i := endedOf(t, log, runs)
	var at []*frame.Frame
	all := log.Frames()
	for _, f := range all { // the run's end comes last
		if f.Run == runs[i] && f.Kind == subject.End {
			at = append(at, f)
		}
	}
	require.Len(t, at, 1)
	log.CutOff(at[0].Pos)
	stop := r.run(t)
	r.caughtUp(t, log)
	require.Equal(t, at[0].Pos, r.tail(t).Pos)
	stop()
	r.close()
	erase(t, log, true, runs[i])
	after := mixed(t, log, "b", 4)

	again := openRig(t, log, r.path)
	again.run(t)
	again.caughtUp(t, log)
	again.lacks(t, runs[i])
	again.same(t, after...)
	require.Zero(t, again.ing.Stats().Rebuilds)
	require.NoError(t, again.ing.Compare(context.Background()))
	require.Zero(t, again.ing.Stats().Lost)
}
