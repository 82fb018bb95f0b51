package engine_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"google.golang.org/protobuf/proto"

	openwopv1 "waybill.dev/waybill/proto/gen/go/openwop/v1"
	dispatcherv1 "waybill.dev/waybill/proto/gen/go/waybill/dispatcher/v1"
	"waybill.dev/waybill/protocol/fault"
)

// badIDs cannot be the id of a run, and must never reach a subject.
var badIDs = []string{"", ".", "*", ">", "a.b", "a b", "a/b", "ü", "run_1\n", "../etc"}

// states answers cancellations by the run's id: the status it has.
func states(m map[string]string) func(*dispatcherv1.CancelRunRequest) (*dispatcherv1.CancelRunResponse, error) {
	return func(r *dispatcherv1.CancelRunRequest) (*dispatcherv1.CancelRunResponse, error) {
		switch s := m[r.GetRunId()]; s {
		case "":
			return nil, fault.New(fault.RunNotFound, "no run of this id in your tenant")
		case "broken":
			return nil, errors.New("dial tcp 10.1.2.3: refused")
		case "running":
			return &dispatcherv1.CancelRunResponse{Status: "cancelling"}, nil
		default:
			return &dispatcherv1.CancelRunResponse{Status: s, AlreadyTerminal: true}, nil
		}
	}
}

func TestCancelRun_AnswersByTheStateOfTheRun(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.dispatcher.cancel = states(map[string]string{
		"live": "running",
		"done": "completed",
		"bad":  "failed",
		"gone": "cancelled",
	})
	cases := []struct {
		id, status string
		already    *bool
	}{
		{"live", "cancelling", nil},
		{"gone", "cancelled", nil},
		{"done", "completed", proto.Bool(true)},
		{"bad", "failed", proto.Bool(true)},
	}
	for _, c := range cases {
		res, err := r.CancelRun(as(t, liveKey), &openwopv1.CancelRunRequest{RunId: c.id})
		require.NoError(t, err)
		require.True(t, proto.Equal(&openwopv1.CancelRunResponse{
			RunId:           c.id,
			Status:          c.status,
			AlreadyTerminal: c.already,
		}, res), "%v", res)
	}
	_, err := r.CancelRun(as(t, liveKey), &openwopv1.CancelRunRequest{RunId: "absent"})
	require.Equal(t, fault.RunNotFound, fault.CodeOf(err))
}

func TestCancelRun_RecordsCallerAndReason(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	_, err := r.CancelRun(as(t, betaKey), &openwopv1.CancelRunRequest{
		RunId:  "run_1",
		Reason: proto.String("no longer needed"),
	})
	require.NoError(t, err)
	got := r.dispatcher.cancels[0]
	require.Equal(t, "beta", got.GetTenant())
	require.Equal(t, "no longer needed", got.GetReason())
	require.Regexp(t, `^key_`, got.GetCancelledBy())
}

func TestCancelRun_RejectsBeforeCallingTheDispatcher(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	for _, id := range badIDs {
		_, err := r.CancelRun(as(t, liveKey), &openwopv1.CancelRunRequest{RunId: id})
		require.Equal(t, fault.RunNotFound, fault.CodeOf(err), "%q", id)
	}
	_, err := r.CancelRun(as(t, liveKey), &openwopv1.CancelRunRequest{
		RunId:  "run_1",
		Reason: proto.String(strings.Repeat("ü", 513)),
	})
	require.Equal(t, fault.ValidationError, fault.CodeOf(err))
	require.Empty(t, r.dispatcher.cancels)
	_, err = r.CancelRun(as(t, liveKey), &openwopv1.CancelRunRequest{
		RunId:  "run_1",
		Reason: proto.String(strings.Repeat("ü", 512)),
	})
	require.NoError(t, err)
}

func TestBulkCancel_AnswersEachEntryOnItsOwn(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.dispatcher.cancel = states(map[string]string{
		"live":   "running",
		"done":   "completed",
		"bad":    "failed",
		"gone":   "cancelled",
		"broken": "broken",
	})
	ids := []string{"done", "live", "absent", "gone", "broken", "bad", "a.b", "live"}
	res, err := r.BulkCancelRuns(as(t, liveKey), &openwopv1.BulkCancelRunsRequest{RunIds: ids})
	require.NoError(t, err)
	want := []string{
		"run_terminal", "cancelling", "not_found", "cancelled", "internal_error", "run_terminal",
		"not_found", "cancelling",
	}
	require.Len(t, res.GetResults(), len(ids))
	for i, e := range res.GetResults() {
		require.Equal(t, ids[i], e.GetRunId(), "the request's order")
		if e.GetOk() {
			require.Equal(t, want[i], e.GetStatus())
			require.Nil(t, e.GetError())
			continue
		}
		require.Nil(t, e.Status)
		require.Equal(t, want[i], e.GetError().GetCode())
		require.Equal(t, want[i], e.GetError().GetError(), "both spellings of the code")
		require.NotEmpty(t, e.GetError().GetMessage())
		require.NotContains(t, e.GetError().GetMessage(), "10.1.2.3")
	}
	require.Len(t, r.dispatcher.cancels, 6, "a duplicate is asked once, an impossible id never")
}

func TestBulkCancel_RefusesListsOutOfBounds(t *testing.T) {
	t.Parallel()
	numbered := func(n int) []string {
		var out []string
		for i := range n {
			out = append(out, fmt.Sprintf("run_%d", i))
		}
		return out
	}
	r := newRig(t)
	for want, req := range map[string]*openwopv1.BulkCancelRunsRequest{
		"/runIds":   {},
		"/runIds/1": {RunIds: []string{"a", ""}},
		"/runIds/0": {RunIds: []string{strings.Repeat("r", 129)}},
		"/reason":   {RunIds: []string{"a"}, Reason: proto.String(strings.Repeat("x", 513))},
	} {
		_, err := r.BulkCancelRuns(as(t, liveKey), req)
		require.Equal(t, want, place(t, err))
	}
	_, err := r.BulkCancelRuns(as(t, liveKey), &openwopv1.BulkCancelRunsRequest{RunIds: numbered(101)})
	e, ok := fault.As(err)
	require.True(t, ok)
	require.Equal(t, fault.ValidationError, e.Code)
	require.Equal(t, 100, e.Details["maxRunIds"])
	require.Empty(t, r.dispatcher.cancels)
	res, err := r.BulkCancelRuns(as(t, liveKey), &openwopv1.BulkCancelRunsRequest{RunIds: numbered(100)})
	require.NoError(t, err)
	require.Len(t, res.GetResults(), 100)
}
