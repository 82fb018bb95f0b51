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
		Filter: proto.String("status:failed workflow:wf code:cap_breached kind:error provider:openai since:2026-11-20"),
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
