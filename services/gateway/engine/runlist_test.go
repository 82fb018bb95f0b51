package engine_test

import (
	"encoding/json"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"google.golang.org/protobuf/proto"

	openwopv1 "waybill.dev/waybill/proto/gen/go/openwop/v1"
	eventlogv1 "waybill.dev/waybill/proto/gen/go/waybill/eventlog/v1"
	hostv1 "waybill.dev/waybill/proto/gen/go/waybill/host/v1"
	"waybill.dev/waybill/protocol/fault"
	"waybill.dev/waybill/protocol/wire"
	"waybill.dev/waybill/services/gateway/wirejson"
)

func TestListRuns_TakesAFilterOfWords(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	var asked *eventlogv1.ListRunsRequest
	r.log.list = func(q *eventlogv1.ListRunsRequest) (*eventlogv1.ListRunsResponse, error) {
		asked = q
		return &eventlogv1.ListRunsResponse{}, nil
	}
	_, err := r.ListRuns(as(t, liveKey), &hostv1.ListRunsRequest{
		Filter: proto.String("status:failed workflow:wf code:cap_breached kind:error provider:openai since:2026-11-20 until:2026-11-21 model:m cost:0.05 waiting:any"),
		Tag:    proto.String("t"),
	})
	require.NoError(t, err)
	want := &eventlogv1.ListRunsRequest{
		Tenant:     "acme",
		Limit:      50,
		Status:     "failed",
		WorkflowId: "wf",
		Tag:        "t",
		ErrorCode:  "cap_breached",
		Kind:       "error",
		Provider:   "openai",
		Since:      "2026-11-20T00:00:00Z",
		Until:      "2026-11-21T00:00:00Z",
		Model:      "m",
		MinCost:    proto.Float64(0.05),

		WaitingSince: "2023-11-14T22:13:20Z", // now
	}
	require.True(t, proto.Equal(want, asked), "%v", asked)

	for filter, says := range map[string]string{
		"color:x":     "unknown name",
		"status:done": "want one of",
		"tag:other":   "conflicts with the filter",
	} {
		_, err := r.ListRuns(as(t, liveKey), &hostv1.ListRunsRequest{Filter: &filter, Tag: proto.String("t")})
		require.Equal(t, fault.ValidationError, fault.CodeOf(err), filter)
		require.ErrorContains(t, err, says)
	}
}

func TestListRuns_Sorts(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	var asked *eventlogv1.ListRunsRequest
	r.log.list = func(q *eventlogv1.ListRunsRequest) (*eventlogv1.ListRunsResponse, error) {
		asked = q
		return &eventlogv1.ListRunsResponse{}, nil
	}
	for _, tt := range []struct {
		sort, order *string
		want        string
		ascending   bool
	}{
		{nil, nil, "", false},
		{proto.String("created"), proto.String("asc"), "", true},
		{proto.String("cost"), nil, "cost", false},
		{proto.String("waitingSince"), proto.String("asc"), "waitingSince", true},
		{proto.String("tokens"), proto.String("desc"), "tokens", false},
	} {
		_, err := r.ListRuns(as(t, liveKey), &hostv1.ListRunsRequest{Sort: tt.sort, Order: tt.order})
		require.NoError(t, err)
		require.Equal(t, tt.want, asked.GetSort())
		require.Equal(t, tt.ascending, asked.GetAscending())
	}
	for _, req := range []*hostv1.ListRunsRequest{
		{Sort: proto.String("status")}, {Sort: proto.String("")}, {Order: proto.String("up")}, {Order: proto.String("")},
	} {
		_, err := r.ListRuns(as(t, liveKey), req)
		require.Equal(t, fault.ValidationError, fault.CodeOf(err), "%v", req)
	}
}

func TestListRuns_ShowsFacts(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.log.list = func(*eventlogv1.ListRunsRequest) (*eventlogv1.ListRunsResponse, error) {
		return &eventlogv1.ListRunsResponse{Runs: []*eventlogv1.RunSummary{
			{RunId: "run_1", Status: "completed", Facts: &eventlogv1.RunFacts{
				Model: "m", LastNode: "n", InputTokens: proto.Int64(0), OutputTokens: proto.Int64(2), Cost: proto.Float64(0.5),
				DurationMs: proto.Int64(7), WaitingSince: "w", InputPreview: "a: b",
			}},
			{RunId: "run_2", Status: "completed", Facts: &eventlogv1.RunFacts{}},
			{RunId: "run_3", Status: "completed"},
		}}, nil
	}
	res, err := r.ListRuns(as(t, liveKey), &hostv1.ListRunsRequest{})
	require.NoError(t, err)
	doc, err := wirejson.Append(nil, res)
	require.NoError(t, err)
	const rest = `"workflowId":"","status":"completed","createdAt":"","tags":[],"lastSequence":0,"stalled":false`
	require.JSONEq(t, `{"runs":[{"runId":"run_1",`+rest+`,"model":"m","lastNode":"n","inputTokens":0,"outputTokens":2,"costUsd":0.5,
		"durationMs":7,"waitingSince":"w","inputPreview":"a: b"},{"runId":"run_2",`+rest+`},{"runId":"run_3",`+rest+`}]}`, string(doc))
}

func TestCountRuns_CountsByStatus(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	var asked *eventlogv1.CountRunsRequest
	r.log.count = func(q *eventlogv1.CountRunsRequest) (*eventlogv1.CountRunsResponse, error) {
		asked = q
		return &eventlogv1.CountRunsResponse{Counts: map[string]int64{"failed": 2, "running": 3}, Complete: true}, nil
	}
	res, err := r.CountRuns(as(t, liveKey), &hostv1.CountRunsRequest{Filter: proto.String("workflow:x")})
	require.NoError(t, err)
	require.Equal(t, "acme", asked.GetFilters().GetTenant())
	require.Equal(t, "x", asked.GetFilters().GetWorkflowId())
	require.Equal(t, int64(5), res.GetTotal())
	require.False(t, res.GetTruncated())
	require.Len(t, res.GetCounts(), 2)
	_, err = r.CountRuns(as(t, liveKey), &hostv1.CountRunsRequest{Filter: proto.String("color:x")})
	require.Equal(t, fault.ValidationError, fault.CodeOf(err))
}

// C3d: runs that the host must advance, without an event for too long.
func TestListRuns_MarksStalledRuns(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	ago := func(d time.Duration) string { return wire.FormatTime(time.Unix(1_700_000_000, 0).Add(-d)) }
	for _, tt := range []struct {
		waits           string
		last, due       string
		stalled, stalls bool
	}{
		{"node", ago(time.Second), "", false, true},
		{"node", ago(time.Hour), "", true, true},
		{"dispatcher", ago(time.Hour), "", true, true},
		{"cancellation", ago(time.Hour), "", true, true},
		{"timer", ago(time.Hour), ago(-time.Minute), false, true},
		{"timer", ago(2 * time.Hour), ago(time.Hour), true, true},
		{"approval", ago(time.Hour), "", false, false},
		{"run", ago(time.Hour), "", false, false},
		{"resume", ago(time.Hour), "", false, false},
		{"", ago(time.Hour), "", false, false},
	} {
		row := &eventlogv1.RunSummary{RunId: "r", LastEventAt: tt.last}
		if tt.waits != "" {
			row.Waits = &eventlogv1.RunWait{For: tt.waits, DueAt: tt.due, HeldBy: "holder"}
		}
		r.log.list = func(*eventlogv1.ListRunsRequest) (*eventlogv1.ListRunsResponse, error) {
			return &eventlogv1.ListRunsResponse{Runs: []*eventlogv1.RunSummary{row}}, nil
		}
		res, err := r.ListRuns(as(t, liveKey), &hostv1.ListRunsRequest{})
		require.NoError(t, err)
		got := res.GetRuns()[0]
		require.Equal(t, tt.stalled, got.GetStalled(), tt)
		require.Equal(t, tt.stalls, got.StallsAt != nil, tt)
		require.Equal(t, tt.waits, got.GetWaits().GetFor())

		// A snapshot has the time at which the run stalls; the reader compares it with its clock.
		r.log.get = func(*eventlogv1.GetRunRequest) (*eventlogv1.GetRunResponse, error) {
			return &eventlogv1.GetRunResponse{Snapshot: []byte(`{"runId":"r"}`), Waits: row.Waits, LastEventAt: tt.last}, nil
		}
		run, err := r.GetRun(as(t, liveKey), &openwopv1.GetRunRequest{RunId: "r"})
		require.NoError(t, err)
		var snapshot struct {
			RunID   string
			Waybill struct {
				LastEventAt, StallsAt string
				Waits                 struct{ For, DueAt, HeldBy string }
			}
		}
		require.NoError(t, json.Unmarshal(run.GetSnapshot().GetJson(), &snapshot))
		require.Equal(t, "r", snapshot.RunID)
		require.Equal(t, tt.last, snapshot.Waybill.LastEventAt)
		require.Equal(t, got.GetStallsAt(), snapshot.Waybill.StallsAt)
		require.Equal(t, tt.waits, snapshot.Waybill.Waits.For)
		require.Equal(t, got.GetWaits().GetHeldBy(), snapshot.Waybill.Waits.HeldBy)
	}
}
