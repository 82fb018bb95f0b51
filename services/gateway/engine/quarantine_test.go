package engine_test

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"
	"google.golang.org/grpc"
	"google.golang.org/protobuf/proto"

	dispatcherv1 "waybill.dev/waybill/proto/gen/go/waybill/dispatcher/v1"
	hostv1 "waybill.dev/waybill/proto/gen/go/waybill/host/v1"
	"waybill.dev/waybill/protocol/fault"
)

func (*dispatcher) ListQuarantinedRuns(_ context.Context, r *dispatcherv1.ListQuarantinedRunsRequest, _ ...grpc.CallOption) (*dispatcherv1.ListQuarantinedRunsResponse, error) {
	return &dispatcherv1.ListQuarantinedRunsResponse{
		More: r.GetAfter() == "" && r.GetRunId() == "",
		Runs: []*dispatcherv1.QuarantinedRun{
			{RunId: "of_" + r.GetTenant(), WorkflowId: "wf", Reason: "panic", NextCheckAt: "soon", Checks: 2, Tries: 1},
		},
	}, nil
}

func (*dispatcher) RetryQuarantinedRun(_ context.Context, r *dispatcherv1.RetryQuarantinedRunRequest, _ ...grpc.CallOption) (*dispatcherv1.RetryQuarantinedRunResponse, error) {
	return &dispatcherv1.RetryQuarantinedRunResponse{Queued: r.GetRunId() == "stuck"}, nil
}

func (*dispatcher) EndQuarantinedRun(_ context.Context, r *dispatcherv1.EndQuarantinedRunRequest, _ ...grpc.CallOption) (*dispatcherv1.EndQuarantinedRunResponse, error) {
	if r.GetReason() != "no [REDACTED:of acme/stuck] left" || r.GetEndedBy() == "" {
		return nil, fault.New(fault.NotQuarantined, "this run is not in quarantine")
	}
	return &dispatcherv1.EndQuarantinedRunResponse{Status: "cancelled"}, nil
}

func (*dispatcher) GetOwnership(_ context.Context, r *dispatcherv1.GetOwnershipRequest, _ ...grpc.CallOption) (*dispatcherv1.GetOwnershipResponse, error) {
	if r.GetRunId() != "busy" {
		return &dispatcherv1.GetOwnershipResponse{State: "none", Ended: r.GetRunId() == "ended"}, nil
	}
	return &dispatcherv1.GetOwnershipResponse{
		State:     "owned",
		Owner:     "of " + r.GetTenant(),
		Host:      "pod-1",
		Epoch:     3,
		Since:     "then",
		ExpiresAt: "later",
	}, nil
}

func TestListQuarantinedRuns_PagesThroughTheCallersTenant(t *testing.T) {
	t.Parallel()
	s := newRig(t)
	got, err := s.ListQuarantinedRuns(as(t, liveKey), &hostv1.ListQuarantinedRunsRequest{})
	require.NoError(t, err)
	require.Len(t, got.GetRuns(), 1)
	require.True(t, proto.Equal(&hostv1.QuarantinedRun{
		RunId:       "of_acme",
		WorkflowId:  "wf",
		Reason:      "panic",
		NextCheckAt: "soon",
		Checks:      2,
		Tries:       1,
	}, got.Runs[0]))
	require.NotNil(t, got.NextCursor)
	got, err = s.ListQuarantinedRuns(as(t, liveKey), &hostv1.ListQuarantinedRunsRequest{Cursor: got.NextCursor})
	require.NoError(t, err)
	require.Nil(t, got.NextCursor)
	_, err = s.ListQuarantinedRuns(as(t, liveKey), &hostv1.ListQuarantinedRunsRequest{RunId: proto.String("a.b")})
	require.Equal(t, fault.RunNotFound, fault.CodeOf(err))
}

func TestQuarantinedRuns_AreRetriedAndEndedWithAnAuditEntry(t *testing.T) {
	t.Parallel()
	s, audit := withBook(t)
	for id, want := range map[string]string{"stuck": "queued", "done": "ended"} {
		got, err := s.RetryQuarantinedRun(as(t, liveKey), &hostv1.RetryQuarantinedRunRequest{RunId: id})
		require.NoError(t, err)
		require.Equal(t, want, got.GetOutcome())
	}
	got, err := s.EndQuarantinedRun(as(t, liveKey), &hostv1.EndQuarantinedRunRequest{
		RunId:  "stuck",
		Reason: proto.String("no " + hunted + " left"),
	})
	require.NoError(t, err, "secrets are taken out of the reason")
	require.Equal(t, "cancelled", got.GetStatus())
	_, err = s.EndQuarantinedRun(as(t, liveKey), &hostv1.EndQuarantinedRunRequest{RunId: "other"})
	require.Equal(t, fault.NotQuarantined, fault.CodeOf(err))
	require.ElementsMatch(t, []string{
		`acme run.quarantine.retried runs/stuck {"outcome":"queued"}`,
		`acme run.quarantine.retried runs/done {"outcome":"ended"}`,
		`acme run.quarantine.ended runs/stuck {"reason":"no [REDACTED:of acme/stuck] left"}`,
	}, audit.entries)
}

func TestGetRunOwner_LeavesOutWhatIsNotKnown(t *testing.T) {
	t.Parallel()
	s := newRig(t)
	got, err := s.GetRunOwner(as(t, liveKey), &hostv1.GetRunOwnerRequest{RunId: "busy"})
	require.NoError(t, err)
	require.True(t, proto.Equal(&hostv1.GetRunOwnerResponse{
		RunId:     "busy",
		State:     "owned",
		Owner:     proto.String("of acme"),
		Host:      proto.String("pod-1"),
		Epoch:     3,
		Since:     proto.String("then"),
		ExpiresAt: proto.String("later"),
	}, got), "%v", got)
	got, err = s.GetRunOwner(as(t, liveKey), &hostv1.GetRunOwnerRequest{RunId: "idle"})
	require.NoError(t, err)
	require.True(t, proto.Equal(&hostv1.GetRunOwnerResponse{RunId: "idle", State: "none"}, got), "%v", got)
}

func (d *dispatcher) FindBlockedRuns(_ context.Context, r *dispatcherv1.FindBlockedRunsRequest, _ ...grpc.CallOption) (*dispatcherv1.FindBlockedRunsResponse, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.away {
		return nil, fault.New(fault.ServiceUnavailable, "away")
	}
	out := &dispatcherv1.FindBlockedRunsResponse{}
	for _, id := range r.GetRunIds() {
		if b := d.blocked[r.GetTenant()+"/"+id]; b != nil {
			out.Runs = append(out.Runs, b)
		}
	}
	return out, nil
}
