package eventlog_test

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"google.golang.org/protobuf/proto"

	"waybill.dev/waybill/internal/runlog"
	"waybill.dev/waybill/internal/runlog/cold"
	coldsqlite "waybill.dev/waybill/internal/runlog/cold/sqlite"
	"waybill.dev/waybill/internal/runlog/memory"
	eventlogv1 "waybill.dev/waybill/proto/gen/go/waybill/eventlog/v1"
	"waybill.dev/waybill/protocol/fault"
	"waybill.dev/waybill/protocol/frame"
	"waybill.dev/waybill/protocol/subject"
	"waybill.dev/waybill/protocol/wire"
	"waybill.dev/waybill/services/eventlog"
	"waybill.dev/waybill/services/eventlog/logtest"
	"waybill.dev/waybill/services/eventlog/store"
)

// tieredLog is a log in memory with a cold store.
type tieredLog struct {
	*cold.Log

	store *coldsqlite.Store
}

// newTiered returns a rig whose sealed runs are in a cold store.
func newTiered(t *testing.T) (*rig, tieredLog) {
	t.Helper()
	dir := t.TempDir()
	store, err := coldsqlite.Open(t.Context(), filepath.Join(dir, "cold.db"))
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, store.Close()) })
	hot := memory.New()
	var r *rig
	log := tieredLog{cold.NewLog(hot, store, func(ctx context.Context, pos uint64) error { return r.svc.Past(ctx, pos) }, cold.NewFaults(quiet)), store}
	r = openRigOn(t, log, hot, filepath.Join(dir, "eventlog.db"), eventlog.DefaultConfig())
	return r, log
}

// sealAll seals all ended runs.
func (r *rig) sealAll(t *testing.T, log tieredLog) {
	t.Helper()
	s := cold.NewSealer(time.Hour, cold.SealerDeps{
		Log: r.log, Store: log.store, Past: r.svc.Past, Clock: func() time.Time { return time.Now().Add(2 * time.Hour) }, Logger: quiet,
	})
	require.NoError(t, s.Sweep(within(t)))
	end, err := r.log.End(t.Context())
	require.NoError(t, err)
	require.NoError(t, r.svc.Past(within(t), end))
}

// endedRun writes a run with events of all kinds of content, in many frames.
func (r *rig) endedRun(t *testing.T, id string) *logtest.Writer {
	t.Helper()
	w := r.begin(t, id)
	w.Step(logtest.RunStarted)
	for i := range 30 {
		w.Step(append(logtest.Node(fmt.Sprintf("n%d", i)), logtest.Log("text "+id))...)
		w.Wake()
	}
	var many []wire.Draft
	for i := range 200 {
		many = append(many, logtest.Log(fmt.Sprintf("chunk %d of %s", i, id)))
	}
	w.Step(many...)
	w.End(logtest.RunCompleted)
	return w
}

// answers are what the service answers about a run.
func (r *rig) answers(t *testing.T, w *logtest.Writer) (all []proto.Message) {
	t.Helper()
	id := w.Record.RunID
	r.svc.ForgetViews()
	got, err := r.get(t, id)
	require.NoError(t, err)
	view, err := r.ViewRun(within(t), &eventlogv1.ViewRunRequest{Tenant: logtest.Tenant, RunId: id})
	require.NoError(t, err)
	early, err := r.ViewRun(within(t), &eventlogv1.ViewRunRequest{Tenant: logtest.Tenant, RunId: id, At: proto.Int32(40)})
	require.NoError(t, err)
	all = append(all, got, view, early)
	for after := int32(-1); ; {
		page := r.read(t, id, after, 37)
		all = append(all, page)
		if len(page.GetEvents()) == 0 {
			break
		}
		docs(t, w, page.GetEvents())
		after = page.GetEvents()[len(page.GetEvents())-1].GetSequence()
	}
	for _, snapshots := range []bool{false, true} {
		events := rest(t, r.follow(t, within(t), id, -1, snapshots))
		require.Len(t, docs(t, w, events), len(w.Events))
		for _, e := range events {
			all = append(all, e)
		}
	}
	return all
}

// hotFrames counts the frames of a run in the store of the read model.
func (r *rig) hotFrames(t *testing.T, run subject.Run) int {
	t.Helper()
	frames, err := r.store.Frames(t.Context(), store.Key{Tenant: run.Tenant, RunID: run.RunID}, -1, 10_000)
	require.NoError(t, err)
	return len(frames)
}

func TestSealedRun_IsReadAsBefore(t *testing.T) {
	t.Parallel()
	r, log := newTiered(t)
	a, b := r.endedRun(t, "a"), r.endedRun(t, "b")
	going := r.begin(t, "going")
	going.Step(logtest.RunStarted)
	want := map[*logtest.Writer][]proto.Message{a: r.answers(t, a), b: r.answers(t, b)}
	check := func() {
		t.Helper()
		for w, was := range want {
			got := r.answers(t, w)
			require.Len(t, got, len(was))
			for i := range was {
				require.True(t, proto.Equal(was[i], got[i]), "%v\n%v", was[i], got[i])
			}
		}
	}
	r.sealAll(t, log)
	require.Zero(t, r.hotFrames(t, a.Run()), "bodies are stored once")
	require.NotZero(t, r.hotFrames(t, going.Run()))
	check()

	// A read model that is filled again finds the runs in the cold store.
	r.svc.Rebuild(errors.New("an operator's wish"))
	require.Eventually(t, func() bool { return r.svc.Rebuilds() == 1 && r.svc.Ready() == nil }, patience, time.Millisecond)
	end, err := r.log.End(t.Context())
	require.NoError(t, err)
	require.NoError(t, r.svc.Past(within(t), end))
	require.Zero(t, r.hotFrames(t, a.Run()))
	check()
	require.Zero(t, r.svc.Refused())
	require.Zero(t, r.svc.Lost())
	going.End(logtest.RunCompleted)
	r.sealAll(t, log)
	require.Len(t, r.read(t, "going", -1, 100).GetEvents(), 2)
}

// A run is erased after it was sealed: the read model drops its row, its marks and its tags, and the
// object goes when it has done so.
func TestSealedRun_IsErased(t *testing.T) {
	t.Parallel()
	for name, rebuild := range map[string]bool{"from the start of the log": true, "from its position": false} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r, log := newTiered(t)
			gone, kept := r.endedRun(t, "gone"), r.endedRun(t, "kept")
			want := r.answers(t, kept)
			r.sealAll(t, log)
			marked, err := log.Mark(t.Context(), gone.Run(), frame.Requested)
			require.NoError(t, err)
			require.True(t, marked)
			end, err := r.log.End(t.Context())
			require.NoError(t, err)
			require.NoError(t, log.Purge(within(t), &frame.Frame{Run: gone.Run(), Kind: subject.Erase, Pos: end}))
			_, _, err = log.store.Blocks(t.Context(), gone.Run())
			require.ErrorIs(t, err, cold.ErrNotFound)
			if rebuild {
				r.svc.Rebuild(errors.New("an operator's wish"))
				require.Eventually(t, func() bool { return r.svc.Rebuilds() == 1 && r.svc.Ready() == nil }, patience, time.Millisecond)
			}
			require.NoError(t, r.svc.Past(within(t), end))
			_, err = r.get(t, "gone")
			require.Equal(t, fault.RunNotFound, fault.CodeOf(err))
			runs, err := r.ListRuns(within(t), &eventlogv1.ListRunsRequest{Tenant: logtest.Tenant, Tag: "nightly", Limit: 10})
			require.NoError(t, err)
			require.Len(t, runs.GetRuns(), 1)
			got := r.answers(t, kept)
			require.Len(t, got, len(want))
			for i := range want {
				require.True(t, proto.Equal(want[i], got[i]))
			}
			require.Equal(t, int64(map[bool]int{true: 1}[rebuild]), r.svc.Rebuilds())
		})
	}
}

// The object of a run is damaged. Reads say so, and do not rebuild the read model; a rebuilt one says so,
// too, and has all other runs.
func TestSealedRun_IsDamaged(t *testing.T) {
	t.Parallel()
	r, log := newTiered(t)
	bad, good := r.endedRun(t, "bad"), r.endedRun(t, "good")
	want := r.answers(t, good)
	r.sealAll(t, log)
	o, err := cold.Encode(mustRun(t, log, good.Run()))
	require.NoError(t, err)
	o.Run = bad.Run()
	require.NoError(t, log.store.Put(t.Context(), o))
	read := func() error {
		_, err := r.ReadEvents(within(t), &eventlogv1.ReadEventsRequest{Tenant: logtest.Tenant, RunId: "bad", After: -1, Limit: 10})
		return err
	}
	require.Equal(t, fault.LogDamaged, fault.CodeOf(read()))
	require.Zero(t, r.svc.Rebuilds())
	r.svc.Rebuild(errors.New("an operator's wish"))
	require.Eventually(t, func() bool { return r.svc.Rebuilds() == 1 && r.svc.Ready() == nil }, patience, time.Millisecond)
	end, err := r.log.End(t.Context())
	require.NoError(t, err)
	require.NoError(t, r.svc.Past(within(t), end))
	require.Equal(t, fault.LogDamaged, fault.CodeOf(read()))
	_, err = r.get(t, "bad")
	require.Equal(t, fault.LogDamaged, fault.CodeOf(err))
	got := r.answers(t, good)
	require.Len(t, got, len(want))
}

func mustRun(t *testing.T, log runlog.Reader, run subject.Run) []*frame.Frame {
	t.Helper()
	frames, err := log.Run(t.Context(), run)
	require.NoError(t, err)
	return frames
}
