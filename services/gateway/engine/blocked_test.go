package engine_test

import (
	"encoding/json"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"google.golang.org/protobuf/proto"

	openwopv1 "waybill.dev/waybill/proto/gen/go/openwop/v1"
	dispatcherv1 "waybill.dev/waybill/proto/gen/go/waybill/dispatcher/v1"
	eventlogv1 "waybill.dev/waybill/proto/gen/go/waybill/eventlog/v1"
	hostv1 "waybill.dev/waybill/proto/gen/go/waybill/host/v1"
	"waybill.dev/waybill/protocol/wire"
	"waybill.dev/waybill/services/gateway/engine"
)

// A run that waits for a limit or is quarantined is not shown as stalled.
func TestRuns_ThatAreBlockedAreNotStalled(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	hourAgo := wire.FormatTime(time.Unix(1_700_000_000, 0).Add(-time.Hour))
	r.dispatcher.blocked = map[string]*dispatcherv1.BlockedRun{
		"acme/limited": {
			RunId: "limited",
			Limit: &dispatcherv1.RunLimit{
				Reason:   "rate",
				Scope:    "workflow",
				Limit:    2,
				PeriodMs: 60_000,
				Since:    "then",
				Until:    "soon",
			},
		},
		"acme/broken": {
			RunId:      "broken",
			Quarantine: &dispatcherv1.QuarantinedRun{RunId: "broken", Reason: "panic", NextCheckAt: "later", Tries: 3},
		},
		"acme/approval": {RunId: "approval", Limit: &dispatcherv1.RunLimit{Reason: "capacity"}},
		"other/free":    {RunId: "free", Limit: &dispatcherv1.RunLimit{Reason: "capacity"}},
	}
	waits := map[string]string{"limited": "dispatcher", "broken": "node", "approval": "approval", "free": "node"}
	r.log.list = func(*eventlogv1.ListRunsRequest) (*eventlogv1.ListRunsResponse, error) {
		out := &eventlogv1.ListRunsResponse{}
		for id, w := range waits {
			out.Runs = append(out.Runs, &eventlogv1.RunSummary{
				RunId:       id,
				LastEventAt: hourAgo,
				Waits:       &eventlogv1.RunWait{For: w},
			})
		}
		return out, nil
	}
	list := func() map[string]*hostv1.RunSummary {
		res, err := r.ListRuns(as(t, liveKey), &hostv1.ListRunsRequest{})
		require.NoError(t, err)
		rows := map[string]*hostv1.RunSummary{}
		for _, row := range res.GetRuns() {
			rows[row.GetRunId()] = row
		}
		return rows
	}
	rows := list()
	limit := &hostv1.RunLimit{
		Reason:   "rate",
		Scope:    "workflow",
		Limit:    proto.Int32(2),
		PeriodMs: proto.Int64(60_000),
		Since:    "then",
		Until:    proto.String("soon"),
	}
	require.True(t, proto.Equal(limit, rows["limited"].GetWaits().GetLimit()), "%v", rows["limited"])
	require.Equal(t, "panic", rows["broken"].GetQuarantine().GetReason())
	for _, id := range []string{"limited", "broken", "approval"} {
		require.False(t, rows[id].GetStalled(), id)
		require.Nil(t, rows[id].StallsAt, id)
	}
	require.Nil(t, rows["approval"].GetWaits().GetLimit(), "a person has to act")
	require.True(t, rows["free"].GetStalled(), "the other tenant's run is blocked")

	r.log.get = func(q *eventlogv1.GetRunRequest) (*eventlogv1.GetRunResponse, error) {
		return &eventlogv1.GetRunResponse{
			Snapshot:     []byte(`{"runId":"r"}`),
			LastSequence: 7,
			Waits:        &eventlogv1.RunWait{For: waits[q.GetRunId()]},
			LastEventAt:  hourAgo,
		}, nil
	}
	get := func(id string) (waybill, tag string) {
		ctx := as(t, liveKey)
		res, err := r.GetRun(ctx, &openwopv1.GetRunRequest{RunId: id})
		require.NoError(t, err)
		var v struct{ Waybill json.RawMessage }
		require.NoError(t, json.Unmarshal(res.GetSnapshot().GetJson(), &v))
		return string(v.Waybill), ctx.metadata(engine.MetaETag)
	}
	limited, tag := get("limited")
	require.JSONEq(t, `{"lastEventAt":"`+hourAgo+`","waits":{"for":"dispatcher","limit":{"reason":"rate","scope":"workflow","limit":2,"periodMs":60000,"keyed":false,"since":"then","until":"soon"}}}`, limited)
	broken, _ := get("broken")
	require.Contains(t, broken, `"quarantine":{"runId":"broken","workflowId":"","reason":"panic","nextCheckAt":"later","checks":0,"tries":3}`)
	require.NotContains(t, broken, "stallsAt")

	owner, err := r.GetRunOwner(as(t, liveKey), &hostv1.GetRunOwnerRequest{RunId: "limited"})
	require.NoError(t, err)
	require.True(t, proto.Equal(limit, owner.GetLimit()))
	owner, err = r.GetRunOwner(as(t, liveKey), &hostv1.GetRunOwnerRequest{RunId: "broken"})
	require.NoError(t, err)
	require.Equal(t, "panic", owner.GetQuarantine().GetReason())

	// Without a dispatcher, runs are shown by their logs, under another ETag.
	r.dispatcher.away = true
	require.True(t, list()["limited"].GetStalled())
	unknown, other := get("limited")
	require.Contains(t, unknown, "stallsAt")
	require.Equal(t, `"limited.7"`, other)
	require.NotEqual(t, other, tag, "the documents differ")
}

// A cancelled run keeps its ticket until its turn.
func TestGetRunOwner_OfAnEndedRunNamesNoLimit(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.dispatcher.blocked = map[string]*dispatcherv1.BlockedRun{"acme/ended": {
		RunId: "ended",
		Limit: &dispatcherv1.RunLimit{Reason: "capacity"},
	}}
	got, err := r.GetRunOwner(as(t, liveKey), &hostv1.GetRunOwnerRequest{RunId: "ended"})
	require.NoError(t, err)
	require.Nil(t, got.GetLimit())
}
