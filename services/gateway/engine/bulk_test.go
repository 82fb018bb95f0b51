package engine_test

import (
	"context"
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"
	"google.golang.org/protobuf/proto"

	dispatcherv1 "waybill.dev/waybill/proto/gen/go/waybill/dispatcher/v1"
	eventlogv1 "waybill.dev/waybill/proto/gen/go/waybill/eventlog/v1"
	hostv1 "waybill.dev/waybill/proto/gen/go/waybill/host/v1"
	"waybill.dev/waybill/protocol/fault"
	"waybill.dev/waybill/services/gateway/engine"
)

func keyed(t *testing.T, key string) context.Context {
	t.Helper()
	return as(t, liveKey, engine.MetaIdempotencyKey, key)
}

func TestBulkRetry_StartsEachRunAgainOnceForAKey(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	var forks []*dispatcherv1.ForkRunRequest
	r.dispatcher.fork = func(q *dispatcherv1.ForkRunRequest) (*dispatcherv1.ForkRunResponse, error) {
		forks = append(forks, q)
		if q.GetSourceRunId() == "run_gone" {
			return nil, fault.NoRun()
		}
		return &dispatcherv1.ForkRunResponse{RunId: q.GetRunId(), Status: "pending"}, nil
	}
	req := &hostv1.BulkRetryRunsRequest{RunIds: []string{"run_1", "run_gone", "run_2"}}
	first, err := r.BulkRetryRuns(keyed(t, "k1"), req)
	require.NoError(t, err)
	require.Len(t, first.GetResults(), 3)
	require.True(t, first.GetResults()[0].GetOk())
	require.Equal(t, forks[0].GetRunId(), first.GetResults()[0].GetNewRunId())
	require.Equal(t, string(fault.RunNotFound), first.GetResults()[1].GetError().GetCode())
	require.True(t, first.GetResults()[2].GetOk(), "one failure does not stop the others")
	for _, f := range forks {
		require.Equal(t, "acme", f.GetTenant())
		require.Equal(t, "branch", f.GetMode())
		require.Zero(t, f.GetFromSeq())
		require.NotEmpty(t, f.GetRequestDigest())
	}
	require.NotEqual(t, forks[0].GetRunId(), forks[2].GetRunId())

	// A gateway that died before it recorded the answer repeats the requests with the same ids.
	only := &hostv1.BulkRetryRunsRequest{RunIds: []string{"run_2"}}
	other := newRig(t)
	other.dispatcher.fork = r.dispatcher.fork
	again, err := other.BulkRetryRuns(keyed(t, "k1"), only)
	require.NoError(t, err)
	require.Equal(t, first.GetResults()[2].GetNewRunId(), again.GetResults()[0].GetNewRunId())
	require.Equal(t, forks[2].GetRequestDigest(), forks[3].GetRequestDigest())
	_, err = r.BulkRetryRuns(as(t, liveKey), only)
	require.NoError(t, err)
	require.NotEqual(t, forks[3].GetRunId(), forks[4].GetRunId(), "without a key each request is a new one")
}

func TestBulkDelete_AnswersForEachRun(t *testing.T) {
	t.Parallel()
	r, b := withBook(t)
	r.log.get = func(*eventlogv1.GetRunRequest) (*eventlogv1.GetRunResponse, error) {
		return &eventlogv1.GetRunResponse{}, nil
	}
	r.log.list = func(*eventlogv1.ListRunsRequest) (*eventlogv1.ListRunsResponse, error) {
		return &eventlogv1.ListRunsResponse{}, nil
	}
	r.dispatcher.erase = func(q *dispatcherv1.EraseRunRequest) (*dispatcherv1.EraseRunResponse, error) {
		if q.GetRunId() == "run_active" {
			return nil, fault.New(fault.Conflict, "the run has not ended")
		}
		return &dispatcherv1.EraseRunResponse{Erased: true}, nil
	}
	res, err := r.BulkDeleteRuns(as(t, liveKey), &hostv1.BulkDeleteRunsRequest{RunIds: []string{"run_1", "run_active", "not an id", "run_2"}})
	require.NoError(t, err)
	var oks []bool
	for _, one := range res.GetResults() {
		oks = append(oks, one.GetOk())
	}
	require.Equal(t, []bool{true, false, false, true}, oks)
	require.Equal(t, "conflict", res.GetResults()[1].GetError().GetCode())
	require.NotEmpty(t, b.entries, "each erasure is in the audit log")
}

func TestBulkAnnotate_AnnotatesEachRun(t *testing.T) {
	t.Parallel()
	r, _ := annotated(t)
	label := &hostv1.AnnotationSignal{Kind: "label", Label: proto.String("reviewed")}
	res, err := r.BulkAnnotateRuns(as(t, liveKey), &hostv1.BulkAnnotateRunsRequest{RunIds: []string{"run_1", "run_ghost"}, Signal: label})
	require.NoError(t, err)
	require.True(t, res.GetResults()[0].GetOk())
	require.Equal(t, string(fault.RunNotFound), res.GetResults()[1].GetError().GetCode())
	list, err := r.ListAnnotations(as(t, liveKey), &hostv1.ListAnnotationsRequest{RunId: "run_1"})
	require.NoError(t, err)
	require.Len(t, list.GetAnnotations(), 1)

	_, err = r.BulkAnnotateRuns(as(t, liveKey), &hostv1.BulkAnnotateRunsRequest{RunIds: []string{"run_1"}})
	require.Equal(t, fault.ValidationError, fault.CodeOf(err), "without a signal")
}

func TestBulk_RefusesListsOutOfBounds(t *testing.T) {
	t.Parallel()
	r, _ := annotated(t)
	many := make([]string, 101)
	for i := range many {
		many[i] = fmt.Sprint("run_", i)
	}
	for _, ids := range [][]string{nil, many, {"run_1", "run_2", "run_1"}, {""}} {
		_, err := r.BulkDeleteRuns(as(t, liveKey), &hostv1.BulkDeleteRunsRequest{RunIds: ids})
		require.Equal(t, fault.ValidationError, fault.CodeOf(err))
		_, err = r.BulkRetryRuns(as(t, liveKey), &hostv1.BulkRetryRunsRequest{RunIds: ids})
		require.Equal(t, fault.ValidationError, fault.CodeOf(err))
		_, err = r.BulkAnnotateRuns(as(t, liveKey), &hostv1.BulkAnnotateRunsRequest{
			RunIds: ids, Signal: &hostv1.AnnotationSignal{Kind: "flag"},
		})
		require.Equal(t, fault.ValidationError, fault.CodeOf(err))
	}
}
