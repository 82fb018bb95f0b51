package engine_test

import (
	"context"
	"errors"
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	dispatcherv1 "waybill.dev/waybill/proto/gen/go/waybill/dispatcher/v1"
	eventlogv1 "waybill.dev/waybill/proto/gen/go/waybill/eventlog/v1"
	hostv1 "waybill.dev/waybill/proto/gen/go/waybill/host/v1"
	"waybill.dev/waybill/protocol/fault"
)

func TestDeleteRun_RefusesBadIDs(t *testing.T) {
	t.Parallel()
	r, b := withBook(t)
	for _, id := range badIDs {
		_, err := r.DeleteRun(as(t, liveKey), &hostv1.DeleteRunRequest{RunId: id})
		require.Contains(t, []fault.Code{fault.ValidationError, fault.RunNotFound}, fault.CodeOf(err), "%q", id)
	}
	require.Empty(t, b.entries)
}

// Who erases a run is recorded before it is erased, and without the record nothing is erased.
func TestDeleteRun_RecordsWhoErases(t *testing.T) {
	t.Parallel()
	const erasing, erased = "acme run.erasing runs/run_1 null", "acme run.erased runs/run_1 null"
	for name, tt := range map[string]struct {
		read, failure, record error
		erased                bool
		want                  []string
		code                  fault.Code
	}{
		"an ended run":            {erased: true, want: []string{erasing, erased}},
		"an erased run":           {read: fault.NoRun()},
		"a run of another tenant": {read: fault.NoRun(), failure: fault.NoRun(), code: fault.RunNotFound},
		"a damaged run":           {read: fault.Damaged(), erased: true, want: []string{erasing, erased}},
		"an active run": {
			failure: fault.New(fault.Conflict, "it goes on"), code: fault.Conflict,
			want: []string{erasing, `acme run.erase.refused runs/run_1 {"code":"conflict"}`},
		},
		"an unknown outcome": {
			failure: fault.New(fault.ServiceUnavailable, "away"), code: fault.ServiceUnavailable, want: []string{erasing},
		},
		"no audit log": {
			record: fault.New(fault.ServiceUnavailable, "away"), code: fault.ServiceUnavailable, want: []string{erasing},
		},
		"no event log": {read: fault.New(fault.ServiceUnavailable, "away"), code: fault.ServiceUnavailable},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r, b := withBook(t)
			b.err = tt.record
			r.log.get = func(req *eventlogv1.GetRunRequest) (*eventlogv1.GetRunResponse, error) {
				require.Equal(t, "acme", req.GetTenant())
				return &eventlogv1.GetRunResponse{}, tt.read
			}
			waited := false
			r.log.list = func(*eventlogv1.ListRunsRequest) (*eventlogv1.ListRunsResponse, error) {
				waited = true
				return &eventlogv1.ListRunsResponse{}, nil
			}
			r.dispatcher.erase = func(req *dispatcherv1.EraseRunRequest) (*dispatcherv1.EraseRunResponse, error) {
				require.NoError(t, tt.record, "nothing is erased without a record")
				require.Equal(t, "acme", req.GetTenant())
				require.Equal(t, "run_1", req.GetRunId())
				return &dispatcherv1.EraseRunResponse{Erased: tt.erased}, tt.failure
			}
			_, err := r.DeleteRun(as(t, liveKey), &hostv1.DeleteRunRequest{RunId: "run_1"})
			require.Equal(t, tt.code, fault.CodeOf(err))
			require.Equal(t, tt.want, b.entries)
			require.Equal(t, tt.code == "", waited, "a read afterwards does not find the run")
		})
	}
}

// A run that cannot be erased is in the answer, and the others are erased.
func TestEraseRuns_PassesRunsThatFail(t *testing.T) {
	t.Parallel()
	failures := map[string]error{
		"run_1": fault.New(fault.ServiceUnavailable, "its hold is damaged"), "run_3": fault.New(fault.Conflict, "held"),
		"run_4": fault.NoRun(), "run_5": errors.New("a secret of the host"),
	}
	r := newRig(t)
	r.log.get = func(*eventlogv1.GetRunRequest) (*eventlogv1.GetRunResponse, error) {
		return &eventlogv1.GetRunResponse{}, nil
	}
	r.log.list = func(*eventlogv1.ListRunsRequest) (*eventlogv1.ListRunsResponse, error) {
		out := &eventlogv1.ListRunsResponse{}
		for i := range 6 {
			out.Runs = append(out.Runs, &eventlogv1.RunSummary{RunId: fmt.Sprint("run_", i+1), Status: "completed"})
		}
		return out, nil
	}
	r.dispatcher.erase = func(req *dispatcherv1.EraseRunRequest) (*dispatcherv1.EraseRunResponse, error) {
		return &dispatcherv1.EraseRunResponse{Erased: true}, failures[req.GetRunId()]
	}
	res, err := r.EraseRuns(as(t, liveKey), &hostv1.EraseRunsRequest{All: new(true)})
	require.NoError(t, err)
	require.Equal(t, int32(2), res.GetErased())
	var refused []string
	for _, f := range res.GetRefused() {
		refused = append(refused, f.GetRunId()+" "+f.GetError()+": "+f.GetMessage())
	}
	require.Equal(t, []string{
		"run_1 service_unavailable: its hold is damaged", "run_3 conflict: held", "run_5 internal_error: the run was not erased; try again",
	}, refused)

	ctx, cancel := context.WithCancel(as(t, liveKey))
	r.dispatcher.erase = func(*dispatcherv1.EraseRunRequest) (*dispatcherv1.EraseRunResponse, error) {
		cancel()
		return nil, failures["run_1"]
	}
	_, err = r.EraseRuns(ctx, &hostv1.EraseRunsRequest{All: new(true)})
	require.Equal(t, fault.ServiceUnavailable, fault.CodeOf(err))
}
