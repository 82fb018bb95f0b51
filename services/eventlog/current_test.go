package eventlog_test

import (
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/stretchr/testify/require"

	"waybill.dev/waybill/internal/runlog"
	"waybill.dev/waybill/internal/runlog/memory"
	eventlogv1 "waybill.dev/waybill/proto/gen/go/waybill/eventlog/v1"
	"waybill.dev/waybill/protocol/fault"
	"waybill.dev/waybill/services/eventlog"
	"waybill.dev/waybill/services/eventlog/logtest"
)

// everyRead is each RPC that names a run.
func everyRead(r *rig, ctx context.Context, tenant, runID string) map[string]error {
	_, get := r.GetRun(ctx, &eventlogv1.GetRunRequest{Tenant: tenant, RunId: runID})
	_, events := r.ReadEvents(ctx, &eventlogv1.ReadEventsRequest{Tenant: tenant, RunId: runID, WaitMs: 10_000, After: -1})
	return map[string]error{"GetRun": get, "ReadEvents": events, "Follow": firstError(r, ctx, tenant, runID)}
}

func firstError(r *rig, ctx context.Context, tenant, runID string) error {
	s, err := r.Follow(ctx, &eventlogv1.FollowRequest{Tenant: tenant, RunId: runID, After: -1})
	for err == nil {
		_, err = s.Recv()
	}
	if err == io.EOF {
		return nil
	}
	return err
}

func TestReads_SeeWhatWasAcknowledgedBefore(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	w := r.begin(t, "run-1")
	for i := range 100 {
		w.Step(logtest.Log(fmt.Sprint("step ", i)))
		got, err := r.get(t, "run-1")
		require.NoError(t, err)
		require.Equal(t, int32(i), got.GetLastSequence())
		require.Equal(t, w.Snapshot(), string(got.GetSnapshot()))
		page := r.read(t, "run-1", int32(i-1), 0)
		require.Len(t, page.GetEvents(), 1)
	}
}

func TestReads_OfAnUnknownRunAreNotFound(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	logtest.Whole(t, r.log, "run-1")
	r.begin(t, "live")
	for _, tt := range []struct{ tenant, run string }{
		{logtest.Tenant, "absent"},
		{"other", "run-1"},
		{"other", "live"},
		{logtest.Tenant, "*"},
		{"*", "run-1"},
		{logtest.Tenant, ">"},
		{logtest.Tenant, ""},
		{"", "run-1"},
		{logtest.Tenant, "a.b"},
		{logtest.Tenant, strings.Repeat("r", 200)},
	} {
		for name, err := range everyRead(r, within(t), tt.tenant, tt.run) {
			require.ErrorIs(t, err, fault.New(fault.RunNotFound, ""), "%s of %q of %q", name, tt.run, tt.tenant)
		}
	}
}

func TestReads_WithoutTheLogAreUnavailable(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	w := r.begin(t, "live")
	ended := logtest.Whole(t, r.log, "ended")
	_, err := r.get(t, "ended")
	require.NoError(t, err)
	r.log.FailReads(runlog.ErrUnavailable)
	for name, err := range everyRead(r, within(t), logtest.Tenant, "live") {
		f, ok := fault.As(err)
		require.True(t, ok, name)
		require.Equal(t, fault.ServiceUnavailable, f.Code, name)
		require.Equal(t, time.Second, f.RetryAfter, name)
	}
	_, err = r.ListRuns(within(t), &eventlogv1.ListRunsRequest{Tenant: logtest.Tenant})
	require.ErrorIs(t, err, fault.New(fault.ServiceUnavailable, ""))

	got, err := r.get(t, "ended")
	require.NoError(t, err, "nothing follows a terminal event, so the log is not needed")
	require.Equal(t, ended.Snapshot(), string(got.GetSnapshot()))

	r.log.FailReads(nil)
	got, err = r.get(t, "live")
	require.NoError(t, err)
	require.Equal(t, w.Snapshot(), string(got.GetSnapshot()))
}

func TestReads_BehindTheLogAreUnavailableInTime(t *testing.T) {
	t.Parallel()
	cfg := eventlog.DefaultConfig()
	cfg.FreshTimeout = 50 * time.Millisecond
	r := newStoppedRig(t, memory.New(), filepath.Join(t.TempDir(), "eventlog.db"), cfg)
	r.begin(t, "run-1")
	require.Error(t, r.svc.Ready())
	for name, err := range everyRead(r, within(t), logtest.Tenant, "run-1") {
		require.ErrorIs(t, err, fault.New(fault.ServiceUnavailable, ""), name)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Millisecond)
	defer cancel()
	_, err := r.GetRun(ctx, &eventlogv1.GetRunRequest{Tenant: logtest.Tenant, RunId: "run-1"})
	require.ErrorIs(t, err, context.DeadlineExceeded, "the caller's own deadline is returned as such")
}

func TestReads_OfADamagedRunFailAndOthersWork(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	middle, last, good := r.begin(t, "middle"), r.begin(t, "last"), r.begin(t, "good")
	middle.Step(logtest.RunStarted)
	// Written while reads fail, so that every reader meets the damage.
	r.log.FailReads(runlog.ErrUnavailable)
	require.Eventually(t, func() bool { return r.svc.Ready() != nil }, patience, time.Millisecond)
	middle.Step(logtest.Log("lost"))
	r.log.Damage(middle.Head.Pos)
	middle.Step(logtest.Log("behind"))
	last.Step(logtest.RunStarted)
	r.log.Damage(last.Head.Pos)
	good.Step(logtest.RunStarted)
	r.log.FailReads(nil)

	for _, id := range []string{"middle", "last"} {
		for name, err := range everyRead(r, within(t), logtest.Tenant, id) {
			f, ok := fault.As(err)
			require.True(t, ok, "%s of %s: %v", name, id, err)
			require.Equal(t, fault.LogDamaged, f.Code, "%s of %s", name, id)
			require.Equal(t, id, f.Details["runId"])
		}
	}
	got, err := r.get(t, "good")
	require.NoError(t, err)
	require.Equal(t, good.Snapshot(), string(got.GetSnapshot()))
	list, err := r.ListRuns(within(t), &eventlogv1.ListRunsRequest{Tenant: logtest.Tenant})
	require.NoError(t, err)
	require.Len(t, list.GetRuns(), 3)
	require.Eventually(t, func() bool { return r.svc.Ready() == nil }, patience, time.Millisecond)
}

// The file is damaged while the host runs. Reads answer right or "try again",
// never wrong, and in the end they are all right.
func TestReads_HealAfterTheFileIsDamaged(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	var writers []*logtest.Writer
	for i := range 300 {
		writers = append(writers, logtest.Whole(t, r.log, fmt.Sprint("run-", i)))
	}
	_, err := r.get(t, "run-299")
	require.NoError(t, err)
	for _, path := range []string{r.path, r.path + "-wal"} {
		overwrite(t, path)
	}
	for _, w := range writers {
		id := w.Record.RunID
		require.Eventually(t, func() bool {
			got, err := r.get(t, id)
			if err != nil {
				require.ErrorIs(t, err, fault.New(fault.ServiceUnavailable, ""))
				return false
			}
			require.Equal(t, w.Snapshot(), string(got.GetSnapshot()))
			return true
		}, patience, time.Millisecond)
		require.Equal(t, w.Docs(0), docs(t, w, r.read(t, id, -1, 0).GetEvents()))
	}
	moved, err := filepath.Glob(r.path + ".damaged-*")
	require.NoError(t, err)
	require.NotEmpty(t, moved)
}

func overwrite(t *testing.T, path string) {
	t.Helper()
	info, err := os.Stat(path)
	require.NoError(t, err)
	f, err := os.OpenFile(path, os.O_WRONLY, 0)
	require.NoError(t, err)
	_, err = f.WriteAt([]byte(strings.Repeat("\xA5", int(info.Size()))), 0)
	require.NoError(t, err)
	require.NoError(t, f.Close())
}

func TestReads_AreConsistentWhileTheLogGrows(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	const runs, steps = 6, 40
	var wg sync.WaitGroup
	for i := range runs {
		w := r.begin(t, fmt.Sprint("run-", i))
		wg.Go(func() {
			w.Step(logtest.RunStarted)
			for n := range steps {
				w.Step(logtest.Node(fmt.Sprint("n", n))...)
			}
			w.End(logtest.RunCompleted)
		})
		wg.Go(func() {
			after := int32(-1)
			for {
				page, err := r.ReadEvents(within(t), &eventlogv1.ReadEventsRequest{
					Tenant: logtest.Tenant, RunId: w.Record.RunID, After: after, Limit: 7, WaitMs: 5000,
				})
				if err != nil {
					t.Error(err)
					return
				}
				for _, e := range page.GetEvents() {
					if e.GetSequence() != after+1 {
						t.Errorf("event %d follows %d", e.GetSequence(), after)
					}
					after = e.GetSequence()
				}
				if page.GetStatus() == "completed" && after == page.GetHead() {
					return
				}
			}
		})
	}
	wg.Wait()
}

func TestNew_ReportsMissingDependencies(t *testing.T) {
	t.Parallel()
	_, err := eventlog.New(eventlog.Config{}, eventlog.Deps{})
	for _, name := range []string{"fresh_timeout", "hot_bytes", "view_bytes", "follow_queue"} {
		require.ErrorContains(t, err, name)
	}
	_, err = eventlog.New(eventlog.DefaultConfig(), eventlog.Deps{})
	require.ErrorContains(t, err, "required")
}

func TestCollectors_AreGathered(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	logtest.Whole(t, r.log, "run-1")
	_, err := r.get(t, "run-1")
	require.NoError(t, err)
	reg := prometheus.NewPedanticRegistry()
	for _, c := range r.svc.Collectors() {
		require.NoError(t, reg.Register(c))
	}
	families, err := reg.Gather()
	require.NoError(t, err)
	values := map[string]float64{}
	for _, f := range families {
		m := f.GetMetric()[0]
		values[f.GetName()] = m.GetCounter().GetValue() + m.GetGauge().GetValue()
	}
	require.Equal(t, 2.0, values["waybill_eventlog_frames_total"])
	require.Equal(t, 2.0, values["waybill_eventlog_applied_position"])
	require.Positive(t, values["waybill_eventlog_view_cache_bytes"])
}
