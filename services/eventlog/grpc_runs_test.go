package eventlog_test

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"waybill.dev/waybill/internal/runlog/memory"
	eventlogv1 "waybill.dev/waybill/proto/gen/go/waybill/eventlog/v1"
	"waybill.dev/waybill/protocol/fault"
	"waybill.dev/waybill/protocol/wire"
	"waybill.dev/waybill/services/eventlog"
	"waybill.dev/waybill/services/eventlog/logtest"
)

func TestGetRun_ShowsEveryStageOfARun(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	w := r.begin(t, "run-1")
	for _, stage := range []struct {
		status wire.Status
		write  func()
	}{
		{wire.StatusPending, func() {}},
		{wire.StatusRunning, func() { w.Step(append([]wire.Draft{logtest.RunStarted}, logtest.Node("n1")...)...) }},
		{wire.StatusPaused, func() { w.Step(logtest.RunPaused) }},
		{wire.StatusPaused, func() { w.Wake() }},
		{wire.StatusRunning, func() { w.Step(logtest.RunResumed) }},
		{wire.StatusCompleted, func() { w.End(logtest.RunCompleted) }},
	} {
		stage.write()
		for range 2 { // the second answer comes from the cache
			got, err := r.get(t, "run-1")
			require.NoError(t, err)
			require.Equal(t, string(stage.status), got.GetStatus())
			require.Equal(t, int32(len(w.Events)-1), got.GetLastSequence())
			require.Equal(t, w.Snapshot(), string(got.GetSnapshot()))
		}
	}
}

func TestGetRun_WithATinyCacheIsStillRight(t *testing.T) {
	t.Parallel()
	cfg := eventlog.DefaultConfig()
	cfg.HotBytes, cfg.ViewBytes = 1, 1
	r := openRig(t, memory.New(), filepath.Join(t.TempDir(), "eventlog.db"), cfg)
	var writers []*logtest.Writer
	for i := range 5 {
		writers = append(writers, r.begin(t, fmt.Sprint("run-", i)))
	}
	for range 10 {
		for _, w := range writers {
			w.Step(logtest.Node(fmt.Sprint("n", len(w.Events)))...)
			got, err := r.get(t, w.Record.RunID)
			require.NoError(t, err)
			require.Equal(t, w.Snapshot(), string(got.GetSnapshot()))
		}
	}
}

func list(t *testing.T, r *rig, req *eventlogv1.ListRunsRequest) (ids []string) {
	t.Helper()
	for {
		resp, err := r.ListRuns(within(t), req)
		require.NoError(t, err)
		for _, run := range resp.GetRuns() {
			ids = append(ids, run.GetRunId())
		}
		if resp.GetNextCursor() == "" {
			return ids
		}
		require.NotEmpty(t, resp.GetRuns())
		req.Cursor = resp.GetNextCursor()
	}
}

// created appends the start of a run that was created some seconds after the epoch.
func created(t *testing.T, r *rig, id string, seconds int, edit func(rec *wire.RunRecord)) *logtest.Writer {
	t.Helper()
	rec := logtest.Record(id)
	rec.CreatedAt = wire.FormatTime(logtest.Epoch.Add(time.Duration(seconds) * time.Second))
	edit(rec)
	return logtest.Begin(t, r.log, rec)
}

func TestListRuns_SeesNewRunsAtOnceAndPagesThroughAll(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	var want []string
	for i := range 7 {
		created(t, r, fmt.Sprint("run-", i), i, func(*wire.RunRecord) {})
		want = append([]string{fmt.Sprint("run-", i)}, want...)
		require.Equal(t, want, list(t, r, &eventlogv1.ListRunsRequest{Tenant: logtest.Tenant}))
	}
	for limit := range int32(9) {
		require.Equal(t, want, list(t, r, &eventlogv1.ListRunsRequest{Tenant: logtest.Tenant, Limit: limit}))
	}
	require.Empty(t, list(t, r, &eventlogv1.ListRunsRequest{Tenant: "other"}))
}

func TestListRuns_BoundsThePage(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	for i := range 205 {
		r.begin(t, fmt.Sprintf("run-%03d", i))
	}
	for asked, want := range map[int32]int{0: 50, -3: 50, 1: 1, 200: 200, 10_000: 200} {
		resp, err := r.ListRuns(within(t), &eventlogv1.ListRunsRequest{Tenant: logtest.Tenant, Limit: asked})
		require.NoError(t, err)
		require.Len(t, resp.GetRuns(), want)
		require.NotEmpty(t, resp.GetNextCursor())
	}
}

func TestListRuns_FiltersAndSummarises(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	plain := func(*wire.RunRecord) {}
	failed := created(t, r, "failed", 1, plain)
	failed.End(logtest.RunStarted, logtest.RunFailed)
	created(t, r, "other-flow", 2, func(rec *wire.RunRecord) { rec.WorkflowID, rec.Tags = "flow-2", nil })
	created(t, r, "foreign", 3, func(rec *wire.RunRecord) { rec.Owner.Tenant = "other" })

	for _, tt := range []struct {
		req  *eventlogv1.ListRunsRequest
		want []string
	}{
		{&eventlogv1.ListRunsRequest{}, []string{"other-flow", "failed"}},
		{&eventlogv1.ListRunsRequest{Status: "failed"}, []string{"failed"}},
		{&eventlogv1.ListRunsRequest{Status: "pending"}, []string{"other-flow"}},
		{&eventlogv1.ListRunsRequest{WorkflowId: "flow-2"}, []string{"other-flow"}},
		{&eventlogv1.ListRunsRequest{Tag: "nightly"}, []string{"failed"}},
		{&eventlogv1.ListRunsRequest{Tag: "nightly", Status: "pending"}, nil},
	} {
		tt.req.Tenant = logtest.Tenant
		require.Equal(t, tt.want, list(t, r, tt.req), "%v", tt.req)
	}
	resp, err := r.ListRuns(within(t), &eventlogv1.ListRunsRequest{Tenant: logtest.Tenant, Status: "failed"})
	require.NoError(t, err)
	got := resp.GetRuns()[0]
	require.Equal(t, "flow", got.GetWorkflowId())
	require.Equal(t, "failed", got.GetStatus())
	require.Equal(t, failed.Record.CreatedAt, got.GetCreatedAt())
	require.Equal(t, failed.Events[0].Timestamp, got.GetStartedAt())
	require.Equal(t, failed.Events[1].Timestamp, got.GetCompletedAt())
	require.Equal(t, []string{"nightly"}, got.GetTags())
	require.Equal(t, "run_timeout", got.GetErrorCode())
}

func TestListRuns_RefusesWhatItCannotRead(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	for field, req := range map[string]*eventlogv1.ListRunsRequest{
		"status": {Status: "done"},
		"cursor": {Cursor: "page-2"},
	} {
		_, err := r.ListRuns(within(t), req)
		f, ok := fault.As(err)
		require.True(t, ok)
		require.Equal(t, fault.ValidationError, f.Code)
		problem := f.Details["problems"].([]any)[0].(map[string]any)
		require.Equal(t, field, problem["path"])
		require.Equal(t, "query", problem["in"])
	}
}

func FuzzListRuns_TakesNoForeignCursor(f *testing.F) {
	f.Add("")
	f.Add("page-2")
	f.Add(base64.RawURLEncoding.EncodeToString([]byte("2026-03-01T12:00:00.000Z run-1")))
	f.Add(base64.RawURLEncoding.EncodeToString([]byte("2026-03-01T12:00:00.000Z ' OR 1=1")))
	r := newRig(f)
	r.begin(f, "run-1")
	f.Fuzz(func(t *testing.T, cursor string) {
		resp, err := r.svc.ListRuns(within(t), &eventlogv1.ListRunsRequest{Tenant: logtest.Tenant, Cursor: cursor})
		if err != nil {
			require.ErrorIs(t, err, fault.New(fault.ValidationError, ""))
			return
		}
		require.LessOrEqual(t, len(resp.GetRuns()), 1)
	})
}

func TestListDueTimers_NamesRunsUntilTheyMoveOn(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	soon, late := r.begin(t, "soon"), r.begin(t, "late")
	late.Step(append([]wire.Draft{logtest.RunStarted}, logtest.Retry("n1", time.Hour)...)...)
	soon.Step(append([]wire.Draft{logtest.RunStarted}, logtest.Retry("n1", time.Minute)...)...)
	_, err := r.get(t, "soon") // waits for the read model
	require.NoError(t, err)
	due := func(before time.Time, limit int32) []*eventlogv1.DueTimer {
		resp, err := r.ListDueTimers(within(t), &eventlogv1.ListDueTimersRequest{
			BeforeUnixMs: before.UnixMilli(),
			Limit:        limit,
		})
		require.NoError(t, err)
		return resp.GetTimers()
	}
	require.Empty(t, due(logtest.Epoch.Add(time.Minute), 0))
	got := due(logtest.Epoch.Add(2*time.Hour), 0)
	require.Len(t, got, 2)
	require.Equal(t, "soon", got[0].GetRunId())
	require.Equal(t, logtest.Tenant, got[0].GetTenant())
	require.Equal(t, "flow", got[0].GetWorkflowId())
	require.Equal(t, logtest.Epoch.Add(time.Minute+2*time.Millisecond).UnixMilli(), got[0].GetDueUnixMs())
	require.Len(t, due(logtest.Epoch.Add(2*time.Hour), 1), 1)
	for i, behind := range [][]*eventlogv1.DueTimer{got[1:], nil} {
		resp, err := r.ListDueTimers(within(t), &eventlogv1.ListDueTimersRequest{
			BeforeUnixMs: logtest.Epoch.Add(2 * time.Hour).UnixMilli(),
			After:        got[i],
		})
		require.NoError(t, err)
		require.Len(t, resp.GetTimers(), len(behind))
		for k, timer := range resp.GetTimers() {
			require.Equal(t, behind[k].GetRunId(), timer.GetRunId())
		}
	}

	soon.End(logtest.RunCompleted)
	_, err = r.get(t, "soon")
	require.NoError(t, err)
	require.Len(t, due(logtest.Epoch.Add(2*time.Hour), 0), 1)
}

// A run is found as soon as one of its envelopes or calls has the word.
func TestListRuns_FindsRunsByKindAndProvider(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	w := r.begin(t, "run-1")
	r.begin(t, "run-2")
	usage := wire.Draft{Type: wire.EventProviderUsage, Payload: json.RawMessage(`{"provider":"openai"}`)}
	artifact := wire.Draft{
		Type:        wire.EventArtifactCreated,
		CausationID: "c",
		Payload:     json.RawMessage(`{"artifactType":"media.image","payload":{}}`),
	}
	for _, tt := range []struct {
		write wire.Draft
		asked *eventlogv1.ListRunsRequest
		want  []string
	}{
		{logtest.RunStarted, &eventlogv1.ListRunsRequest{Provider: "openai"}, nil},
		{usage, &eventlogv1.ListRunsRequest{Provider: "openai"}, []string{"run-1"}},
		{artifact, &eventlogv1.ListRunsRequest{Kind: "media.image", Provider: "openai"}, []string{"run-1"}},
		{usage, &eventlogv1.ListRunsRequest{Kind: "media.audio"}, nil},
	} {
		w.Step(tt.write)
		tt.asked.Tenant = logtest.Tenant
		require.Equal(t, tt.want, list(t, r, tt.asked), tt.asked)
		tt.asked.Tenant = "other"
		require.Empty(t, list(t, r, tt.asked))
	}
}
