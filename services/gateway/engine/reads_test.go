package engine_test

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"google.golang.org/protobuf/proto"

	openwopv1 "waybill.dev/waybill/proto/gen/go/openwop/v1"
	acceptorv1 "waybill.dev/waybill/proto/gen/go/waybill/acceptor/v1"
	dispatcherv1 "waybill.dev/waybill/proto/gen/go/waybill/dispatcher/v1"
	eventlogv1 "waybill.dev/waybill/proto/gen/go/waybill/eventlog/v1"
	hostv1 "waybill.dev/waybill/proto/gen/go/waybill/host/v1"
	"waybill.dev/waybill/protocol/fault"
	"waybill.dev/waybill/protocol/wire"
	"waybill.dev/waybill/services/gateway/engine"
)

func TestGetRun_GivesTheSnapshotUnderAStrongTag(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	const snapshot = `{ "runId":"run_1", "n":1.50 }`
	r.log.get = func(q *eventlogv1.GetRunRequest) (*eventlogv1.GetRunResponse, error) {
		require.Equal(t, "acme", q.GetTenant())
		return &eventlogv1.GetRunResponse{Snapshot: []byte(snapshot), LastSequence: 7}, nil
	}
	ctx := as(t, liveKey)
	res, err := r.GetRun(ctx, &openwopv1.GetRunRequest{RunId: "run_1"})
	require.NoError(t, err)
	require.Equal(t, snapshot, string(res.GetSnapshot().GetJson()), "byte for byte")
	require.Equal(t, `"run_1.7"`, ctx.metadata(engine.MetaETag))
	require.Equal(t, "private, no-cache", ctx.metadata(engine.MetaCache))
}

func TestGetRun_FindsNothingUnderImpossibleIDs(t *testing.T) {
	t.Parallel()
	r := newRig(t) // without a reader: a call would panic
	for _, id := range badIDs {
		_, err := r.GetRun(as(t, liveKey), &openwopv1.GetRunRequest{RunId: id})
		require.Equal(t, fault.RunNotFound, fault.CodeOf(err), "%q", id)
		_, err = r.PollRunEvents(as(t, liveKey), &hostv1.PollRunEventsRequest{RunId: id})
		require.Equal(t, fault.RunNotFound, fault.CodeOf(err), "%q", id)
		_, err = r.GetRunView(as(t, liveKey), &hostv1.GetRunViewRequest{RunId: id})
		require.Equal(t, fault.RunNotFound, fault.CodeOf(err), "%q", id)
	}
}

func TestGetRunView_PassesTheEventOn(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	var asked *eventlogv1.ViewRunRequest
	r.log.view = func(req *eventlogv1.ViewRunRequest) (*eventlogv1.ViewRunResponse, error) {
		asked = req
		return &eventlogv1.ViewRunResponse{View: []byte(`{"runId":"run_1"}`)}, nil
	}
	for _, tc := range []struct {
		at   *int64
		want *int32
	}{
		{nil, nil}, {proto.Int64(0), proto.Int32(0)}, {proto.Int64(7), proto.Int32(7)}, {proto.Int64(1 << 40), proto.Int32(1<<31 - 1)},
	} {
		res, err := r.GetRunView(as(t, liveKey), &hostv1.GetRunViewRequest{RunId: "run_1", At: tc.at})
		require.NoError(t, err)
		require.JSONEq(t, `{"runId":"run_1"}`, string(res.GetView().GetJson()))
		require.Equal(t, "acme run_1", asked.GetTenant()+" "+asked.GetRunId())
		require.Equal(t, tc.want, asked.At)
	}
	_, err := r.GetRunView(as(t, liveKey), &hostv1.GetRunViewRequest{RunId: "run_1", At: proto.Int64(-1)})
	require.Equal(t, fault.ValidationError, fault.CodeOf(err))
}

func TestPoll_PassesCursorLimitAndWaitOn(t *testing.T) {
	t.Parallel()
	i := proto.Int32
	cases := []struct {
		name               string
		req                *hostv1.PollRunEventsRequest
		after, limit, wait int32
	}{
		{"defaults", &hostv1.PollRunEventsRequest{}, -1, 1000, 30_000},
		{"zero skips the first event", &hostv1.PollRunEventsRequest{LastSequence: proto.Int64(0)}, 0, 1000, 30_000},
		{"minus one", &hostv1.PollRunEventsRequest{LastSequence: proto.Int64(-1)}, -1, 1000, 30_000},
		{"since", &hostv1.PollRunEventsRequest{Since: proto.Int64(4)}, 4, 1000, 30_000},
		{
			"lastSequence takes precedence over since",
			&hostv1.PollRunEventsRequest{Since: proto.Int64(4), LastSequence: proto.Int64(9)},
			9, 1000, 30_000,
		},
		{
			"bad since is ignored, too",
			&hostv1.PollRunEventsRequest{Since: proto.Int64(-9), LastSequence: proto.Int64(9)},
			9, 1000, 30_000,
		},
		{"shortest", &hostv1.PollRunEventsRequest{Timeout: i(1), Limit: i(1)}, -1, 1, 1000},
		{"longest", &hostv1.PollRunEventsRequest{Timeout: i(60), Limit: i(5000)}, -1, 5000, 60_000},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			r := newRig(t)
			r.log.read = func(ctx context.Context, q *eventlogv1.ReadEventsRequest) (*eventlogv1.ReadEventsResponse, error) {
				want := &eventlogv1.ReadEventsRequest{
					Tenant: "acme",
					RunId:  "run_1",
					After:  c.after,
					Limit:  c.limit,
					WaitMs: c.wait,
				}
				require.True(t, proto.Equal(want, q), "%v", q)
				deadline, ok := ctx.Deadline()
				require.True(t, ok)
				require.Greater(t, time.Until(deadline), time.Duration(c.wait)*time.Millisecond, "the read may take longer than its wait")
				return &eventlogv1.ReadEventsResponse{Status: "running", Head: 3}, nil
			}
			c.req.RunId = "run_1"
			res, err := r.PollRunEvents(as(t, liveKey), c.req)
			require.NoError(t, err)
			require.Equal(t, c.after, res.GetLastEventSeq(), "without events it is the caller's cursor")
		})
	}
}

func TestPoll_RefusesParametersOutOfRange(t *testing.T) {
	t.Parallel()
	i := proto.Int32
	for want, list := range map[string][]*hostv1.PollRunEventsRequest{
		"lastSequence": {
			{LastSequence: proto.Int64(-2)},
			{LastSequence: proto.Int64(-1 << 31)},
			{LastSequence: proto.Int64(-2), Since: proto.Int64(1)},
		},
		"since":   {{Since: proto.Int64(-2)}},
		"timeout": {{Timeout: i(0)}, {Timeout: i(61)}, {Timeout: i(-1)}},
		"limit":   {{Limit: i(0)}, {Limit: i(5001)}, {Limit: i(-1)}},
	} {
		for _, req := range list {
			req.RunId = "run_1"
			_, err := newRig(t).PollRunEvents(as(t, liveKey), req)
			require.Equal(t, want, place(t, err))
		}
	}
}

func TestPoll_IsCompleteOnlyWhenNothingRemains(t *testing.T) {
	t.Parallel()
	events := []*eventlogv1.Event{
		{Sequence: 4, Document: []byte(`{"sequence": 4}`)},
		{Sequence: 5, Document: []byte(`{"sequence": 5}`)},
	}
	cases := []struct {
		name               string
		status             string
		head               int32
		events             []*eventlogv1.Event
		terminal, complete bool
		last               int32
	}{
		{"live", "running", 5, events, false, false, 5},
		{"waiting", "waiting-approval", 5, events, false, false, 5},
		{"cancelling", "cancelling", 5, events, false, false, 5},
		{"ended, all here", "completed", 5, events, true, true, 5},
		{"ended, more to come", "failed", 9, events, true, false, 5},
		{"ended, cursor at the head", "cancelled", 3, nil, true, true, 3},
		{"ended, cursor beyond the head", "completed", 1, nil, true, true, 3},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			r := newRig(t)
			r.log.read = func(context.Context, *eventlogv1.ReadEventsRequest) (*eventlogv1.ReadEventsResponse, error) {
				return &eventlogv1.ReadEventsResponse{Events: c.events, Status: c.status, Head: c.head}, nil
			}
			res, err := r.PollRunEvents(as(t, liveKey), &hostv1.PollRunEventsRequest{
				RunId:        "run_1",
				LastSequence: proto.Int64(3),
			})
			require.NoError(t, err)
			want := &hostv1.PollRunEventsResponse{
				RunId: "run_1", IsTerminal: c.terminal, IsComplete: c.complete, LastEventSeq: c.last, RunStatus: c.status,
			}
			if c.head < 3 {
				want.Notice = proto.String("lastSequence 3 is beyond the run's last event, 1; continue from there")
			}
			for _, e := range c.events {
				want.Events = append(want.Events, doc(string(e.GetDocument())))
			}
			require.True(t, proto.Equal(want, res), "%v", res)
		})
	}
}

func TestListRuns_TranslatesFiltersAndSummaries(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.log.list = func(q *eventlogv1.ListRunsRequest) (*eventlogv1.ListRunsResponse, error) {
		want := &eventlogv1.ListRunsRequest{
			Tenant:     "acme",
			Limit:      2,
			Cursor:     "c",
			Status:     "failed",
			WorkflowId: "wf",
			Tag:        "t",
		}
		require.True(t, proto.Equal(want, q), "%v", q)
		return &eventlogv1.ListRunsResponse{NextCursor: "next", Runs: []*eventlogv1.RunSummary{
			{
				RunId:       "a",
				WorkflowId:  "wf",
				Status:      "failed",
				CreatedAt:   "1",
				StartedAt:   "2",
				CompletedAt: "3",
				Tags:        []string{"t"},
				ErrorCode:   "run_timeout",
			},
			{RunId: "b", WorkflowId: "wf", Status: "pending", CreatedAt: "1"},
		}}, nil
	}
	p := proto.String
	res, err := r.ListRuns(as(t, liveKey), &hostv1.ListRunsRequest{
		Limit:      proto.Int32(2),
		Cursor:     p("c"),
		Status:     p("failed"),
		WorkflowId: p("wf"),
		Tag:        p("t"),
	})
	require.NoError(t, err)
	want := &hostv1.ListRunsResponse{NextCursor: p("next"), Runs: []*hostv1.RunSummary{
		{
			RunId:       "a",
			WorkflowId:  "wf",
			Status:      "failed",
			CreatedAt:   "1",
			StartedAt:   p("2"),
			CompletedAt: p("3"),
			Tags:        []string{"t"},
			ErrorCode:   p("run_timeout"),
		},
		{RunId: "b", WorkflowId: "wf", Status: "pending", CreatedAt: "1"},
	}}
	require.True(t, proto.Equal(want, res), "%v", res)
}

func TestLists_BoundTheirPages(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	var limit int32
	r.log.list = func(q *eventlogv1.ListRunsRequest) (*eventlogv1.ListRunsResponse, error) {
		limit = q.GetLimit()
		return &eventlogv1.ListRunsResponse{}, nil
	}
	r.dispatcher.list = func(q *dispatcherv1.ListWorkflowsRequest) (*dispatcherv1.ListWorkflowsResponse, error) {
		limit = q.GetLimit()
		return &dispatcherv1.ListWorkflowsResponse{}, nil
	}
	lists := map[string]func(*int32) error{
		"runs": func(n *int32) error {
			_, err := r.ListRuns(as(t, liveKey), &hostv1.ListRunsRequest{Limit: n})
			return err
		},
		"workflows": func(n *int32) error {
			_, err := r.ListWorkflows(as(t, liveKey), &hostv1.ListWorkflowsRequest{Limit: n})
			return err
		},
	}
	for name, list := range lists {
		require.NoError(t, list(nil), name)
		require.Equal(t, int32(50), limit, name)
		for _, n := range []int32{1, 200} {
			require.NoError(t, list(&n), name)
			require.Equal(t, n, limit, name)
		}
		for _, n := range []int32{0, -1, 201} {
			require.Equal(t, fault.ValidationError, fault.CodeOf(list(&n)), "%s %d", name, n)
		}
	}
}

func TestListRuns_KnowsTheStatuses(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.log.list = func(*eventlogv1.ListRunsRequest) (*eventlogv1.ListRunsResponse, error) {
		return &eventlogv1.ListRunsResponse{}, nil
	}
	for _, s := range wire.Statuses() {
		_, err := r.ListRuns(as(t, liveKey), &hostv1.ListRunsRequest{Status: proto.String(string(s))})
		require.NoError(t, err, s)
	}
	for _, s := range []string{"", "RUNNING", "done"} {
		_, err := r.ListRuns(as(t, liveKey), &hostv1.ListRunsRequest{Status: &s})
		require.Equal(t, fault.ValidationError, fault.CodeOf(err), "%q", s)
	}
}

func TestListWorkflows_PagesByACursorOfItsOwn(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.dispatcher.list = func(q *dispatcherv1.ListWorkflowsRequest) (*dispatcherv1.ListWorkflowsResponse, error) {
		require.Equal(t, "acme", q.GetTenant(), "never the list of all tenants")
		if q.GetAfter() == "" {
			return &dispatcherv1.ListWorkflowsResponse{
				More: true,
				Workflows: []*dispatcherv1.WorkflowSummary{
					{
						WorkflowId: "a", Name: "A", Version: "1", Digest: "d",
						Source: "/etc/flows/a.json", Warnings: []string{"w"},
					},
					{WorkflowId: "b/ü"},
				},
			}, nil
		}
		require.Equal(t, "b/ü", q.GetAfter())
		return &dispatcherv1.ListWorkflowsResponse{Workflows: []*dispatcherv1.WorkflowSummary{{WorkflowId: "c"}}}, nil
	}
	one, err := r.ListWorkflows(as(t, liveKey), &hostv1.ListWorkflowsRequest{})
	require.NoError(t, err)
	require.True(t, proto.Equal(&hostv1.WorkflowSummary{
		WorkflowId: "a",
		Name:       "A",
		Version:    "1",
		Digest:     "d",
		Origin:     "shared",
		File:       proto.String("a.json"),
		Warnings:   []string{"w"},
	}, one.GetWorkflows()[0]))
	require.Regexp(t, `^[A-Za-z0-9_-]+$`, one.GetNextCursor())
	two, err := r.ListWorkflows(as(t, liveKey), &hostv1.ListWorkflowsRequest{Cursor: one.NextCursor})
	require.NoError(t, err)
	require.Nil(t, two.NextCursor, "absent on the last page")
	_, err = r.ListWorkflows(as(t, liveKey), &hostv1.ListWorkflowsRequest{Cursor: proto.String("!!")})
	require.Equal(t, fault.ValidationError, fault.CodeOf(err))
}

func TestWorkflows_BelongToTheCallersTenant(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.dispatcher.workflows["beta/wf"] = `{"of": "beta"}`
	res, err := r.GetWorkflow(as(t, betaKey), &openwopv1.GetWorkflowRequest{WorkflowId: "wf"})
	require.NoError(t, err)
	require.Equal(t, `{"of": "beta"}`, string(res.GetDefinition().GetJson()))
	for created, status := range map[bool]string{true: "201", false: ""} {
		r.dispatcher.put = func(q *dispatcherv1.PutWorkflowRequest) (*dispatcherv1.PutWorkflowResponse, error) {
			require.True(t, proto.Equal(&dispatcherv1.PutWorkflowRequest{
				Tenant:     "beta",
				Definition: []byte(`{"x":1}`),
			}, q), "%v", q)
			return &dispatcherv1.PutWorkflowResponse{
				WorkflowId: "wf",
				Version:    "1",
				Digest:     "d",
				Unchanged:  !created,
				Created:    created,
			}, nil
		}
		ctx := as(t, betaKey)
		put, err := r.PutWorkflow(ctx, &hostv1.PutWorkflowRequest{Definition: doc(`{"x":1}`)})
		require.NoError(t, err)
		require.True(t, proto.Equal(&hostv1.PutWorkflowResponse{
			WorkflowId: "wf",
			Version:    "1",
			Digest:     "d",
			Created:    created,
		}, put))
		require.Equal(t, status, ctx.metadata(engine.MetaStatus))
	}
}

func TestGetCapabilities_CarriesItsValidators(t *testing.T) {
	t.Parallel()
	ctx := as(t, liveKey)
	res, err := newRig(t).GetCapabilities(ctx, &openwopv1.GetCapabilitiesRequest{})
	require.NoError(t, err)
	require.JSONEq(t, `{"protocolVersion":"1.1"}`, string(res.GetDocument().GetJson()))
	require.Equal(t, `"tag"`, ctx.metadata(engine.MetaETag))
	require.Equal(t, "tag", ctx.metadata(engine.MetaCapTag))
	require.Equal(t, "public, max-age=300", ctx.metadata(engine.MetaCache))
}

func TestGetEnvelopeSchema_ServesExactlyTheAdvertisedKinds(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.acceptor.kinds = []*acceptorv1.Kind{
		{Name: "error", Schema: []byte(`{"a": 1}`)},
		{Name: "vendor.acme.order", Schema: []byte(`{}`)},
	}
	ctx := as(t, liveKey)
	res, err := r.GetEnvelopeSchema(ctx, &hostv1.GetEnvelopeSchemaRequest{File: "error.schema.json"})
	require.NoError(t, err)
	require.Equal(t, `{"a": 1}`, string(res.GetSchema().GetJson()))
	require.Equal(t, "public, max-age=300", ctx.metadata(engine.MetaCache))
	_, err = r.GetEnvelopeSchema(ctx, &hostv1.GetEnvelopeSchemaRequest{File: "vendor.acme.order.schema.json"})
	require.NoError(t, err)
	for _, file := range []string{
		"", "error", "error.schema.json.schema.json", "ERROR.schema.json", ".schema.json",
		"../error.schema.json", "error.schema.jsonx",
	} {
		_, err := r.GetEnvelopeSchema(as(t, liveKey), &hostv1.GetEnvelopeSchemaRequest{File: file})
		require.Equal(t, fault.NotFound, fault.CodeOf(err), "%q", file)
	}
}
