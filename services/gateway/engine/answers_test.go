package engine_test

import (
	"context"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"google.golang.org/grpc"
	"google.golang.org/protobuf/proto"

	eventlogv1 "waybill.dev/waybill/proto/gen/go/waybill/eventlog/v1"
	hostv1 "waybill.dev/waybill/proto/gen/go/waybill/host/v1"
	"waybill.dev/waybill/protocol/fault"
)

func (*eventLog) ListAnswers(_ context.Context, r *eventlogv1.ListAnswersRequest, _ ...grpc.CallOption) (*eventlogv1.ListAnswersResponse, error) {
	f := r.GetFilters()
	return &eventlogv1.ListAnswersResponse{NextCursor: "next", Answers: []*hostv1.ModelAnswer{
		{RunId: "run_1", NodeId: "n", WorkflowId: f.GetWorkflowId() + " of " + f.GetTenant(), Outcome: r.GetOutcome()},
		{RunId: "run_1", NodeId: "other"},
	}}, nil
}

func TestListAnswers_AddsAnnotationsOfTheRunAndTheNode(t *testing.T) {
	t.Parallel()
	r, _ := annotated(t)
	for _, body := range []string{
		`{"signal":{"kind":"flag"}}`,
		`{"target":{"nodeId":"n"},"signal":{"kind":"label","label":"good"}}`,
	} {
		_, err := r.annotate(t, liveKey, body)
		require.NoError(t, err)
	}
	got, err := r.ListAnswers(as(t, liveKey), &hostv1.ListAnswersRequest{Filter: proto.String("workflow:wf"), Outcome: proto.String("accepted")})
	require.NoError(t, err)
	require.Equal(t, "next", got.GetNextCursor())
	first := got.GetAnswers()[0]
	require.Equal(t, "wf of acme", first.GetWorkflowId())
	require.Equal(t, "accepted", first.GetOutcome())
	require.Len(t, first.GetAnnotations(), 2)
	require.Len(t, got.GetAnswers()[1].GetAnnotations(), 1, "that of the whole run")
}

// A page does not have all annotations of its runs, whatever their number.
func TestListAnswers_BoundsTheBytesOfAnnotations(t *testing.T) {
	t.Parallel()
	r, _ := annotated(t)
	note := strings.Repeat("x", 8000)
	for range 270 {
		_, err := r.annotate(t, liveKey, `{"signal":{"kind":"flag"},"note":"`+note+`"}`)
		require.NoError(t, err)
	}
	got, err := r.ListAnswers(as(t, liveKey), &hostv1.ListAnswersRequest{})
	require.NoError(t, err)
	bytes := 0
	for _, a := range got.GetAnswers() {
		require.True(t, a.GetMoreAnnotations())
		for _, n := range a.GetAnnotations() {
			bytes += len(n.GetJson())
		}
	}
	require.Greater(t, bytes, 1<<20)
	require.LessOrEqual(t, bytes, 2<<20)
}

func TestListAnswers_RejectsInvalidParameters(t *testing.T) {
	t.Parallel()
	for _, req := range []*hostv1.ListAnswersRequest{
		{Limit: proto.Int32(0)},
		{Limit: proto.Int32(101)},
		{Outcome: proto.String("")},
		{Filter: proto.String("nonsense")},
	} {
		_, err := newRig(t).ListAnswers(as(t, liveKey), req)
		require.Equal(t, fault.ValidationError, fault.CodeOf(err), "%v", req)
	}
}
