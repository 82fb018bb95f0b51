package eventlog_test

import (
	"context"
	"database/sql"
	"encoding/json"
	"fmt"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"waybill.dev/waybill/internal/runlog/memory"
	eventlogv1 "waybill.dev/waybill/proto/gen/go/waybill/eventlog/v1"
	"waybill.dev/waybill/protocol/fault"
	"waybill.dev/waybill/protocol/wire"
	"waybill.dev/waybill/services/eventlog"
	"waybill.dev/waybill/services/eventlog/logtest"
	"waybill.dev/waybill/services/eventlog/store"
	"waybill.dev/waybill/services/eventlog/store/row"
	"waybill.dev/waybill/services/eventlog/store/sqlite"
)

func usage(node, model string, in, out int, cost string) wire.Draft {
	return wire.Draft{Type: wire.EventProviderUsage, NodeID: node, Payload: fmt.Appendf(nil,
		`{"nodeId":%q,"provider":"p","model":%q,"inputTokens":%d,"outputTokens":%d%s}`, node, model, in, out, cost)}
}

// modelRun appends a run that calls a model and ends.
func modelRun(t *testing.T, r *rig, id string, seconds, tokens int, model, cost string) {
	t.Helper()
	w := created(t, r, id, seconds, func(rec *wire.RunRecord) {
		rec.Inputs = map[string]json.RawMessage{
			"b": json.RawMessage(`{"k": [1]}`), "a": json.RawMessage(`"two\nlines  and \u0000 more"`),
		}
	})
	w.Step(logtest.RunStarted, logtest.Node("n1")[0], usage("n1", model, tokens, 1, cost))
	w.End(logtest.Node("n1")[1], logtest.RunCompleted)
}

func TestListRuns_HasTheFactsOfEachStage(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	w := created(t, r, "run-1", 0, func(*wire.RunRecord) {})
	facts := func() *eventlogv1.RunFacts {
		t.Helper()
		resp, err := r.ListRuns(within(t), &eventlogv1.ListRunsRequest{Tenant: logtest.Tenant})
		require.NoError(t, err)
		require.Len(t, resp.GetRuns(), 1)
		require.NotNil(t, resp.GetRuns()[0].GetFacts())
		return resp.GetRuns()[0].GetFacts()
	}
	f := facts()
	require.Equal(t, "topic: tea", f.GetInputPreview())
	require.Nil(t, f.InputTokens, "unknown is not zero")
	require.Nil(t, f.Cost)
	require.Nil(t, f.DurationMs)

	w.Step(logtest.RunStarted, logtest.Node("n1")[0], usage("n1", "small", 10, 2, ""))
	f = facts()
	require.Equal(t, "small", f.GetModel())
	require.Equal(t, "n1", f.GetLastNode())
	require.Equal(t, int64(10), f.GetInputTokens())
	require.Nil(t, f.Cost)

	w.Step(usage("n2", "large", 5, 3, `,"costEstimateUsd":0.25`), logtest.RunPaused)
	f = facts()
	require.Equal(t, "large", f.GetModel())
	require.Equal(t, "n2", f.GetLastNode())
	require.Equal(t, []int64{15, 5}, []int64{f.GetInputTokens(), f.GetOutputTokens()})
	require.InDelta(t, 0.25, f.GetCost(), 0)
	require.Equal(t, w.Events[len(w.Events)-1].Timestamp, f.GetWaitingSince())

	w.Step(logtest.RunResumed)
	require.Empty(t, facts().GetWaitingSince())
	w.End(logtest.RunCompleted)
	f = facts()
	require.Equal(t, int64(len(w.Events)-1), f.GetDurationMs(), "each event is a millisecond later")

	for model, want := range map[string]int{"small": 1, "large": 1, "other": 0} {
		require.Len(t, list(t, r, &eventlogv1.ListRunsRequest{Tenant: logtest.Tenant, Model: model}), want, model)
	}
}

func TestListRuns_PreviewsInputsOnOneBoundedLine(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	for id, input := range map[string]string{
		"long": `"` + strings.Repeat("é", 300) + `"`, "huge": `"` + strings.Repeat("x", 100_000) + `"`, "deep": strings.Repeat("[", 5000) + strings.Repeat("]", 5000),
	} {
		created(t, r, id, 0, func(rec *wire.RunRecord) { rec.Inputs = map[string]json.RawMessage{"in": json.RawMessage(input)} })
	}
	modelRun(t, r, "short", 0, 1, "m", "")
	resp, err := r.ListRuns(within(t), &eventlogv1.ListRunsRequest{Tenant: logtest.Tenant})
	require.NoError(t, err)
	require.Len(t, resp.GetRuns(), 4)
	for _, run := range resp.GetRuns() {
		p := run.GetFacts().GetInputPreview()
		require.LessOrEqual(t, len(p), 200)
		require.Equal(t, strings.ToValidUTF8(p, ""), p)
		if run.GetRunId() == "short" {
			require.Equal(t, `a: two lines and more, b: {"k":[1]}`, p)
			continue
		}
		require.True(t, strings.HasSuffix(p, "…"), p)
	}
}

func TestListRuns_SortsPagesAndFilters(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	modelRun(t, r, "cheap", 1, 30, "b", `,"costEstimateUsd":0.01`)
	modelRun(t, r, "dear", 2, 10, "a", `,"costEstimateUsd":1.5`)
	modelRun(t, r, "unpriced", 3, 20, "a", "")
	created(t, r, "none", 4, func(*wire.RunRecord) {})
	half := 0.5
	for _, tt := range []struct {
		req  *eventlogv1.ListRunsRequest
		want []string
	}{
		{&eventlogv1.ListRunsRequest{Sort: "cost"}, []string{"dear", "cheap", "none", "unpriced"}},
		{&eventlogv1.ListRunsRequest{Sort: "cost", Ascending: true}, []string{"cheap", "dear", "none", "unpriced"}},
		{&eventlogv1.ListRunsRequest{Sort: "tokens"}, []string{"cheap", "unpriced", "dear", "none"}},
		{&eventlogv1.ListRunsRequest{Sort: "model", Ascending: true}, []string{"dear", "unpriced", "cheap", "none"}},
		{&eventlogv1.ListRunsRequest{Ascending: true}, []string{"cheap", "dear", "unpriced", "none"}},
		{&eventlogv1.ListRunsRequest{Sort: "cost", MinCost: &half}, []string{"dear"}},
		{&eventlogv1.ListRunsRequest{Sort: "tokens", Model: "a"}, []string{"unpriced", "dear"}},
		{
			&eventlogv1.ListRunsRequest{Since: wire.FormatTime(logtest.Epoch.Add(2 * time.Second)), Until: wire.FormatTime(logtest.Epoch.Add(4 * time.Second))},
			[]string{"unpriced", "dear"},
		},
	} {
		tt.req.Tenant = logtest.Tenant
		for limit := range int32(5) {
			tt.req.Limit, tt.req.Cursor = limit, ""
			require.Equal(t, tt.want, list(t, r, tt.req), "%v", tt.req)
		}
	}
}

func TestListRuns_RefusesUnknownOrdersAndCursorsOfOthers(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	for i := range 3 {
		modelRun(t, r, fmt.Sprint("run-", i), i, i, "m", `,"costEstimateUsd":0.5`)
	}
	cursor := func(req *eventlogv1.ListRunsRequest) string {
		req.Tenant, req.Limit = logtest.Tenant, 1
		resp, err := r.ListRuns(within(t), req)
		require.NoError(t, err)
		require.NotEmpty(t, resp.GetNextCursor())
		return resp.GetNextCursor()
	}
	byCost, byTime := cursor(&eventlogv1.ListRunsRequest{Sort: "cost"}), cursor(&eventlogv1.ListRunsRequest{})
	for _, req := range []*eventlogv1.ListRunsRequest{
		{Sort: "status"},
		{Sort: "cost; DROP TABLE runs"},
		{Sort: "tokens", Cursor: byCost},
		{Sort: "cost", Ascending: true, Cursor: byCost},
		{Cursor: byCost},
		{Sort: "cost", Cursor: byTime},
		{Sort: "cost", Cursor: byCost[:len(byCost)-4]},
		{Until: "tomorrow"},
		{WaitingSince: "x"},
	} {
		req.Tenant = logtest.Tenant
		_, err := r.ListRuns(within(t), req)
		require.Equal(t, fault.ValidationError, fault.CodeOf(err), "%v", req)
	}
}

func TestCountRuns_CountsEachStatusOfTheTenant(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	modelRun(t, r, "done", 1, 1, "m", "")
	created(t, r, "pending-1", 2, func(*wire.RunRecord) {})
	created(t, r, "pending-2", 3, func(rec *wire.RunRecord) { rec.Tags = []string{"x"} })
	created(t, r, "theirs", 4, func(rec *wire.RunRecord) { rec.Owner.Tenant = "other" })
	for _, tt := range []struct {
		filters *eventlogv1.ListRunsRequest
		want    map[string]int64
	}{
		{&eventlogv1.ListRunsRequest{}, map[string]int64{"completed": 1, "pending": 2}},
		{&eventlogv1.ListRunsRequest{Status: "completed"}, map[string]int64{"completed": 1, "pending": 2}},
		{&eventlogv1.ListRunsRequest{Tag: "x"}, map[string]int64{"pending": 1}},
		{&eventlogv1.ListRunsRequest{Model: "m"}, map[string]int64{"completed": 1}},
	} {
		tt.filters.Tenant = logtest.Tenant
		resp, err := r.CountRuns(within(t), &eventlogv1.CountRunsRequest{Filters: tt.filters})
		require.NoError(t, err)
		require.Equal(t, tt.want, resp.GetCounts(), "%v", tt.filters)
		require.True(t, resp.GetComplete())
	}
	_, err := r.CountRuns(within(t), &eventlogv1.CountRunsRequest{})
	require.Equal(t, fault.ValidationError, fault.CodeOf(err))
}

// Rows that an older version has written get their facts without the log being read again.
func TestRun_CompletesRowsOfAnOlderVersion(t *testing.T) {
	t.Parallel()
	log, path := memory.New(), filepath.Join(t.TempDir(), "eventlog.db")
	first := openRig(t, log, path, eventlog.DefaultConfig())
	for i := range 100 {
		modelRun(t, first, fmt.Sprintf("run-%03d", i), i, i+1, "m", fmt.Sprintf(`,"costEstimateUsd":%d`, i))
	}
	want, err := first.ListRuns(within(t), &eventlogv1.ListRunsRequest{Tenant: logtest.Tenant, Sort: "cost", Limit: 200})
	require.NoError(t, err)
	first.stop()
	require.NoError(t, first.store.Close())
	forgetFacts(t, path)

	r := openRig(t, log, path, eventlog.DefaultConfig())
	require.Eventually(t, func() bool {
		rows, err := r.store.WithoutFacts(t.Context(), 1)
		return err == nil && len(rows) == 0
	}, patience, 10*time.Millisecond)
	got, err := r.ListRuns(within(t), &eventlogv1.ListRunsRequest{Tenant: logtest.Tenant, Sort: "cost", Limit: 200})
	require.NoError(t, err)
	require.Len(t, got.GetRuns(), 100)
	for i, run := range got.GetRuns() {
		require.Equal(t, want.GetRuns()[i].String(), run.String())
	}
	require.Len(t, list(t, r, &eventlogv1.ListRunsRequest{Tenant: logtest.Tenant, Model: "m"}), 100)
	require.NoError(t, r.svc.Ready())
}

// forgetFacts turns the rows of a file into those of an older version.
func forgetFacts(t *testing.T, path string) {
	t.Helper()
	ctx := context.Background()
	rows := readRows(t, path)
	db, err := sql.Open("sqlite", path)
	require.NoError(t, err)
	defer func() { require.NoError(t, db.Close()) }()
	for key, sum := range rows {
		_, err = db.ExecContext(ctx, `UPDATE runs SET facts = 0, model = NULL, last_node = NULL, tokens_in = NULL, tokens_out = NULL,
			tokens = NULL, cost = NULL, duration_ms = NULL, waiting_since = NULL, inputs = '', sum = ? WHERE tenant = ? AND run_id = ?`,
			sum, key.Tenant, key.RunID)
		require.NoError(t, err)
	}
	_, err = db.ExecContext(ctx, `DELETE FROM marks WHERE name = 'model'`)
	require.NoError(t, err)
}

// readRows returns the checksum that each row of a file has without its facts.
func readRows(t *testing.T, path string) map[store.Key]int64 {
	t.Helper()
	s, err := sqlite.Open(t.Context(), sqlite.Config{Path: path}, quiet, time.Now)
	require.NoError(t, err)
	defer func() { require.NoError(t, s.Close()) }()
	out := map[store.Key]int64{}
	runs, err := s.List(t.Context(), store.Query{Tenant: logtest.Tenant, Limit: 1000})
	require.NoError(t, err)
	for i := range runs {
		runs[i].Facts = store.Facts{}
		out[runs[i].Key] = int64(row.SumRun(&runs[i], row.JoinTags(runs[i].Tags)))
	}
	return out
}
