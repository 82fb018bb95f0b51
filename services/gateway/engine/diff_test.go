package engine_test

import (
	"context"
	"encoding/json"
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	eventlogv1 "waybill.dev/waybill/proto/gen/go/waybill/eventlog/v1"
	hostv1 "waybill.dev/waybill/proto/gen/go/waybill/host/v1"
	"waybill.dev/waybill/protocol/fault"
)

// twoRuns are two runs of acme: the numbers in their events, and their states.
type twoRuns map[string]struct {
	status string
	values []int
}

// serve returns events in pages of three regardless of the request, as for large events.
func (runs twoRuns) serve(r *rig) {
	r.log.get = func(q *eventlogv1.GetRunRequest) (*eventlogv1.GetRunResponse, error) {
		run, ok := runs[q.GetRunId()]
		if !ok || q.GetTenant() != "acme" {
			return nil, fault.New(fault.RunNotFound, "no run of this id in your tenant")
		}
		return &eventlogv1.GetRunResponse{
			Snapshot:     fmt.Appendf(nil, `{"status":%q}`, run.status),
			LastSequence: int32(len(run.values)) - 1,
			Status:       run.status,
		}, nil
	}
	r.log.read = func(_ context.Context, q *eventlogv1.ReadEventsRequest) (*eventlogv1.ReadEventsResponse, error) {
		out := &eventlogv1.ReadEventsResponse{}
		for i, v := range append(runs[q.GetRunId()].values, 99) { // a later event
			if i > int(q.GetAfter()) && len(out.GetEvents()) < 3 {
				out.Events = append(out.Events, &eventlogv1.Event{
					Sequence: int32(i),
					Document: fmt.Appendf(nil, `{"type":"x","payload":{"v":%d}}`, v),
				})
			}
		}
		return out, nil
	}
}

func TestDiffRuns_ReadsBothLogsToTheirEnd(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	twoRuns{
		"one":  {"completed", []int{1, 2, 3, 4, 5, 6, 7}},
		"two":  {"failed", []int{1, 2, 3, 4, 0}},
		"live": {"running", []int{1, 2, 3, 4}},
		"new":  {"pending", nil},
	}.serve(r)
	for _, tc := range []struct{ a, b, want string }{
		{"one", "one", `null [] {}`},
		{"one", "two", `4 [4changed 5removed 6removed] {"/status":{"a":"completed","b":"failed"}}`},
		{"two", "one", `4 [4changed 5added 6added] {"/status":{"a":"failed","b":"completed"}}`},
		{"one", "live", `null [] {"/status":{"a":"completed","b":"running"}} truncated`},
		{"live", "one", `null [] {"/status":{"a":"running","b":"completed"}} truncated`},
		{"new", "live", `null [] {"/status":{"a":"pending","b":"running"}} truncated`},
	} {
		res, err := r.DiffRuns(as(t, liveKey), &hostv1.DiffRunsRequest{RunId: tc.a, Against: tc.b})
		require.NoError(t, err)
		var d struct {
			A, B          string
			DivergedAtSeq *int
			EventDiffs    []struct {
				Seq int
				Op  string
			}
			StateDiff json.RawMessage
			Truncated bool
		}
		require.NoError(t, json.Unmarshal(res.GetDiff().GetJson(), &d))
		require.Equal(t, [2]string{tc.a, tc.b}, [2]string{d.A, d.B})
		got, ops := "null", []string{}
		if d.DivergedAtSeq != nil {
			got = fmt.Sprint(*d.DivergedAtSeq)
		}
		for _, e := range d.EventDiffs {
			ops = append(ops, fmt.Sprint(e.Seq, e.Op))
		}
		got += fmt.Sprintf(" %s %s", ops, d.StateDiff)
		if d.Truncated {
			got += " truncated"
		}
		require.Equal(t, tc.want, got, "%s against %s", tc.a, tc.b)
	}
}

// Events of a fork of a fork may name each of its source runs, including one that cannot be read.
func TestDiffRuns_ResolvesTheSourcesOfAFork(t *testing.T) {
	t.Parallel()
	sources := map[string]string{"run_first": "run_gone", "run_second": "run_first", "run_third": "run_second"}
	for _, recorded := range []string{"run_second", "run_first", "run_gone"} {
		r := newRig(t)
		r.log.get = func(q *eventlogv1.GetRunRequest) (*eventlogv1.GetRunResponse, error) {
			source, ok := sources[q.GetRunId()]
			if !ok || q.GetTenant() != "acme" {
				return nil, fault.New(fault.RunNotFound, "no run of this id in your tenant")
			}
			return &eventlogv1.GetRunResponse{
				Snapshot: fmt.Appendf(nil, `{"status":"completed","sourceRunId":%q}`, source),
				Status:   "completed",
			}, nil
		}
		r.log.read = func(context.Context, *eventlogv1.ReadEventsRequest) (*eventlogv1.ReadEventsResponse, error) {
			return &eventlogv1.ReadEventsResponse{Events: []*eventlogv1.Event{{Document: fmt.Appendf(nil, `{"type":"x","payload":{"key":"%s:gate:0"}}`, recorded)}}}, nil
		}
		res, err := r.DiffRuns(as(t, liveKey), &hostv1.DiffRunsRequest{RunId: "run_second", Against: "run_third"})
		require.NoError(t, err)
		require.JSONEq(t, `{"a":"run_second","b":"run_third","divergedAtSeq":null,"eventDiffs":[],"stateDiff":{}}`, string(res.GetDiff().GetJson()), recorded)
	}
}

func TestDiffRuns_NeedsTwoRunsOfTheTenant(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	twoRuns{"one": {"completed", []int{1}}}.serve(r)
	ask := func(key, a, b string) error {
		_, err := r.DiffRuns(as(t, key), &hostv1.DiffRunsRequest{RunId: a, Against: b})
		return err
	}
	require.NoError(t, ask(liveKey, "one", "one"))
	require.Equal(t, fault.ValidationError, fault.CodeOf(ask(liveKey, "one", "")))
	require.Equal(t, fault.RunNotFound, fault.CodeOf(ask(liveKey, "one", "two")))
	require.Equal(t, fault.RunNotFound, fault.CodeOf(ask(liveKey, "two", "one")))
	require.Equal(t, fault.RunNotFound, fault.CodeOf(ask(betaKey, "one", "one")))
	for _, id := range badIDs[1:] {
		require.Equal(t, fault.RunNotFound, fault.CodeOf(ask(liveKey, "one", id)))
	}
}

// A log without an event that its snapshot includes has a gap; it is not shorter.
func TestDiffRuns_DistinguishesAGapFromTheEnd(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	twoRuns{"one": {"completed", []int{1, 2}}}.serve(r)
	r.log.read = func(context.Context, *eventlogv1.ReadEventsRequest) (*eventlogv1.ReadEventsResponse, error) {
		return &eventlogv1.ReadEventsResponse{}, nil
	}
	_, err := r.DiffRuns(as(t, liveKey), &hostv1.DiffRunsRequest{RunId: "one", Against: "one"})
	require.ErrorContains(t, err, "event 0 is missing")
}
