package ingest_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"waybill.dev/waybill/internal/runlog"
	"waybill.dev/waybill/internal/runlog/memory"
	"waybill.dev/waybill/protocol/wire"
	"waybill.dev/waybill/services/eventlog/hub"
	"waybill.dev/waybill/services/eventlog/logtest"
	"waybill.dev/waybill/services/eventlog/project"
	"waybill.dev/waybill/services/eventlog/store"
)

// mixed writes runs in all sorts of states.
func mixed(t testing.TB, log *memory.Log, prefix string, n int) []*logtest.Writer {
	t.Helper()
	var all []*logtest.Writer
	for i := range n {
		w := logtest.Begin(t, log, logtest.Record(fmt.Sprintf("%s-%d", prefix, i)))
		all = append(all, w)
		if i%4 == 0 {
			continue // pending
		}
		w.Step(append([]wire.Draft{logtest.RunStarted}, logtest.Node("n1")...)...)
		if i%4 == 1 {
			continue // running
		}
		w.Step(logtest.RunPaused)
		w.Wake()
		w.Wake(logtest.RunResumed)
		if i%4 == 2 {
			continue
		}
		w.Step(logtest.Retry("n2", time.Hour)...)
		w.End(logtest.RunCompleted)
	}
	return all
}

func TestRun_AppliesTheLog(t *testing.T) {
	t.Parallel()
	log := memory.New()
	r := newRig(t, log)
	require.ErrorContains(t, r.ing.Ready(), "not started")
	before := mixed(t, log, "before", 40)
	r.run(t)
	r.caughtUp(t, log)
	r.same(t, before...)
	require.NoError(t, r.ing.Ready())

	after := mixed(t, log, "after", 40)
	r.caughtUp(t, log)
	r.same(t, append(before, after...)...)
	stats := r.ing.Stats()
	require.Equal(t, int64(len(log.Frames())), stats.Frames)
	require.Zero(t, stats.Damaged+stats.Refused+stats.Rebuilds)
}

func TestRun_GoesOnWhereItStopped(t *testing.T) {
	t.Parallel()
	log := memory.New()
	r := newRig(t, log)
	writers := mixed(t, log, "a", 10)
	stop := r.run(t)
	r.caughtUp(t, log)
	stop()
	require.Error(t, r.ing.Ready())
	r.close()

	w := writers[1] // a run that continues while no ingester runs
	w.Step(logtest.Node("later")...)
	writers = append(writers, mixed(t, log, "b", 10)...)
	again := openRig(t, log, r.path)
	again.run(t)
	again.caughtUp(t, log)
	again.same(t, writers...)
	newFrames := again.ing.Stats().Frames
	require.Less(t, newFrames, int64(len(log.Frames())), "only what is new is applied")
}

// What the release before stored has no marks.
func TestRun_MarksAnOlderRunWithItsNextFrame(t *testing.T) {
	t.Parallel()
	log := memory.New()
	r := newRig(t, log)
	used := wire.Draft{Type: wire.EventProviderUsage, Payload: []byte(`{"provider":"openai"}`)}
	var old store.Batch
	var writers []*logtest.Writer
	for _, id := range []string{"goes-on", "stays"} {
		w := logtest.Begin(t, log, logtest.Record(id))
		w.Step(logtest.RunStarted, used)
		frames := log.Frames()[2*len(writers):]
		run, err := project.Begin(frames[0])
		require.NoError(t, err)
		require.NoError(t, run.Apply(frames[1]))
		row := run.Row()
		row.New = true
		old.Runs = append(old.Runs, row)
		old.Frames = append(old.Frames, slices.Concat(project.Stored(frames[0]), project.Stored(frames[1]))...)
		old.Tail = store.Tail{Pos: frames[1].Pos, Hash: frames[1].Hash}
		writers = append(writers, w)
	}
	require.NoError(t, r.store.Apply(t.Context(), old))
	writers[0].Step(used)
	r.run(t)
	r.caughtUp(t, log)
	runs, err := r.store.List(t.Context(), store.Query{Tenant: writers[0].Run().Tenant, Provider: "openai", Limit: 10})
	require.NoError(t, err)
	require.Len(t, runs, 1)
	require.Equal(t, "goes-on", runs[0].RunID)

	writers[0].Step(used)
	r.caughtUp(t, log)
	batches := r.faults.batches()
	require.Empty(t, batches[len(batches)-1].Marks, "once is enough")
}

func TestRun_PutsManyFramesOfARunInOneRow(t *testing.T) {
	t.Parallel()
	log := memory.New()
	r := newRig(t, log)
	w := logtest.Begin(t, log, logtest.Record("run-1"))
	for range 500 {
		w.Step(logtest.Log("m"))
	}
	r.run(t)
	r.caughtUp(t, log)
	rows := 0
	for _, b := range r.faults.batches() {
		rows += len(b.Runs)
	}
	require.LessOrEqual(t, rows, len(r.faults.batches()), "one row for each batch")
	require.Less(t, rows, 10)
	r.same(t, w)
}

func TestRun_NotifiesFollowersAfterTheCommit(t *testing.T) {
	t.Parallel()
	log := memory.New()
	r := newRig(t, log)
	w := logtest.Begin(t, log, logtest.Record("run-1"))
	sub := r.hub.Subscribe(project.Key(w.Run()))
	defer sub.Close()
	r.run(t)
	last := -1
	for range 50 {
		w.Step(logtest.Log("a"), logtest.Log("b"))
		frames, err := sub.Next(within(t))
		require.NoError(t, err)
		for _, f := range frames {
			require.Equal(t, last+1, f.First)
			last = f.Last
		}
		row, err := r.store.Run(t.Context(), project.Key(w.Run()))
		require.NoError(t, err)
		require.GreaterOrEqual(t, row.Head, last, "what a follower sees can be read")
	}
}

func TestRun_MarksADamagedRunAndGoesOn(t *testing.T) {
	t.Parallel()
	log := memory.New()
	r := newRig(t, log)
	bad, good := logtest.Begin(t, log, logtest.Record("bad")), logtest.Begin(t, log, logtest.Record("good"))
	sub := r.hub.Subscribe(project.Key(bad.Run()))
	defer sub.Close()
	bad.Step(logtest.RunStarted)
	bad.Step(logtest.Log("lost"))
	log.Damage(bad.Head.Pos)
	bad.Step(logtest.Log("behind the damage"))
	good.Step(logtest.RunStarted)
	bad.Step(logtest.Log("more"))
	good.End(logtest.RunCompleted)
	r.run(t)
	r.caughtUp(t, log)

	r.same(t, good)
	row, err := r.store.Run(t.Context(), project.Key(bad.Run()))
	require.NoError(t, err)
	require.Contains(t, row.Damage, "event 2, event 1 is next")
	require.Equal(t, 0, row.Head, "the state up to the damage stays")
	stats := r.ing.Stats()
	require.Equal(t, int64(1), stats.Damaged)
	require.Equal(t, int64(2), stats.Refused)
	eventually(t, func() bool { _, err := sub.Next(t.Context()); return errors.Is(err, hub.ErrLagged) }, "followers look again")
	require.NoError(t, r.ing.Ready(), "one damaged run does not stop the host")
}

func TestRun_CountsDamagedFramesAtTheEndAsApplied(t *testing.T) {
	t.Parallel()
	log := memory.New()
	r := newRig(t, log)
	w := logtest.Begin(t, log, logtest.Record("run-1"))
	w.Step(logtest.RunStarted)
	for range 3 {
		w.Step(logtest.Log("lost"))
		log.Damage(w.Head.Pos)
	}
	r.run(t)
	r.caughtUp(t, log)
	require.NoError(t, r.ing.Ready())
	require.Equal(t, int64(3), r.ing.Stats().Damaged)

	stray := logtest.Begin(t, log, logtest.Record("run-2"))
	log.Damage(stray.Head.Pos) // may be read before or after it is damaged
	r.caughtUp(t, log)
}

func TestRun_MarksARunWhoseStartIsDamaged(t *testing.T) {
	t.Parallel()
	log := memory.New()
	r := newRig(t, log)
	w := logtest.Begin(t, log, logtest.Record("run-1"))
	log.Damage(w.Head.Pos)
	w.Step(logtest.RunStarted)
	w.Step(logtest.Log("m"))
	r.run(t)
	r.caughtUp(t, log)
	row, err := r.store.Run(t.Context(), project.Key(w.Run()))
	require.NoError(t, err)
	require.Contains(t, row.Damage, "no record")

	r.ing.Rebuild(errors.New("test"))
	eventually(t, func() bool { return r.ing.Stats().Rebuilds == 1 }, "rebuild begins")
	r.caughtUp(t, log)
	again, err := r.store.Run(t.Context(), project.Key(w.Run()))
	require.NoError(t, err)
	require.Equal(t, row, again, "a rebuild gives the same rows")
}

func TestRun_RetriesWhenTheStoreFails(t *testing.T) {
	t.Parallel()
	log := memory.New()
	r := newRig(t, log)
	full := errors.New("disk full")
	r.faults.fail(&r.faults.applies, full, full)
	r.faults.fail(&r.faults.runs, full)
	writers := mixed(t, log, "a", 12)
	r.run(t)
	eventually(t, func() bool { return errors.Is(r.ing.Ready(), full) }, "readiness says why")
	r.caughtUp(t, log)
	require.NoError(t, r.ing.Ready())
	r.same(t, writers...)
	require.Zero(t, r.ing.Stats().Rebuilds, "a full disk is no damage")
}

func TestRun_StopsWhileItRetries(t *testing.T) {
	t.Parallel()
	log := memory.New()
	r := newRig(t, log)
	full := errors.New("disk full")
	for range 100 {
		r.faults.fail(&r.faults.applies, full)
	}
	mixed(t, log, "a", 3)
	stop := r.run(t)
	eventually(t, func() bool { return errors.Is(r.ing.Ready(), full) }, "it is retrying")
	stop()
	require.Zero(t, r.tail(t))
}

func TestRun_RetriesWhenTheLogFails(t *testing.T) {
	t.Parallel()
	log := memory.New()
	log.FailReads(runlog.ErrUnavailable)
	r := newRig(t, log)
	r.run(t)
	eventually(t, func() bool { return errors.Is(r.ing.Ready(), runlog.ErrUnavailable) }, "readiness says why")
	writers := mixed(t, log, "a", 8)
	log.FailReads(nil)
	r.caughtUp(t, log)
	require.NoError(t, r.ing.Ready())

	log.FailReads(runlog.ErrUnavailable) // while it follows
	eventually(t, func() bool { return errors.Is(r.ing.Ready(), runlog.ErrUnavailable) }, "readiness says why")
	log.FailReads(nil)
	writers = append(writers, mixed(t, log, "b", 8)...)
	r.caughtUp(t, log)
	r.same(t, writers...)
}

func TestWait_EndsWithItsContext(t *testing.T) {
	t.Parallel()
	r := newRig(t, memory.New())
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	require.ErrorIs(t, r.ing.Wait(ctx, 1), context.Canceled)
	require.NoError(t, r.ing.Wait(ctx, 0))
}

func TestRun_IgnoresStrays(t *testing.T) {
	t.Parallel()
	log := memory.New()
	r := newRig(t, log)
	w := logtest.Begin(t, log, logtest.Record("run-1"))
	w.End(logtest.RunStarted, logtest.RunCompleted)
	ended := *w
	w.Step(logtest.Log("behind the end"))
	r.run(t)
	r.caughtUp(t, log)
	r.same(t, &ended)
	require.Equal(t, int64(1), r.ing.Stats().Refused)
	_, err := r.store.Run(t.Context(), store.Key{Tenant: "other", RunID: "run-1"})
	require.ErrorIs(t, err, store.ErrNotFound)
}
