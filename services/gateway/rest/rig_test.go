package rest_test

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"
	"google.golang.org/grpc"

	"waybill.dev/waybill/internal/kv/memory"
	"waybill.dev/waybill/internal/rpc"
	"waybill.dev/waybill/internal/rpc/rpctest"
	"waybill.dev/waybill/internal/share"
	"waybill.dev/waybill/internal/token"
	acceptorv1 "waybill.dev/waybill/proto/gen/go/waybill/acceptor/v1"
	dispatcherv1 "waybill.dev/waybill/proto/gen/go/waybill/dispatcher/v1"
	eventlogv1 "waybill.dev/waybill/proto/gen/go/waybill/eventlog/v1"
	redactorv1 "waybill.dev/waybill/proto/gen/go/waybill/redactor/v1"
	"waybill.dev/waybill/protocol/fault"
	"waybill.dev/waybill/services/gateway"
	"waybill.dev/waybill/services/gateway/auth"
	"waybill.dev/waybill/services/gateway/rest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// snapshot is served byte for byte.
const snapshot = `{"runId":"run_1",  "status":"completed", "n":12345678901234567890}`

// dispatcher starts each run once.
type dispatcher struct {
	dispatcherv1.UnimplementedDispatcherServer
	mu      sync.Mutex // guards all below
	starts  []*dispatcherv1.StartRunRequest
	digests map[string]string
	cancels int
}

func (d *dispatcher) StartRun(_ context.Context, r *dispatcherv1.StartRunRequest) (*dispatcherv1.StartRunResponse, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	switch r.GetWorkflowId() {
	case "missing":
		return nil, fault.New(fault.WorkflowNotFound, "no workflow of this id in your tenant")
	case "active":
		return nil, fault.New(fault.RunAlreadyActive, "a run is active").With("activeHost", "cloud").After(1500 * time.Millisecond)
	case "panics":
		panic("secret detail")
	case "breaks":
		return nil, io.ErrUnexpectedEOF
	}
	old, found := d.digests[r.GetRunId()]
	if found && old != r.GetRequestDigest() {
		return nil, fault.New(fault.IdempotencyKeyMismatch, "another request")
	}
	d.digests[r.GetRunId()] = r.GetRequestDigest()
	d.starts = append(d.starts, r)
	return &dispatcherv1.StartRunResponse{
		RunId:      r.GetRunId(),
		WorkflowId: r.GetWorkflowId(),
		Status:     "pending",
		Replayed:   found,
	}, nil
}

func (d *dispatcher) lastStart() *dispatcherv1.StartRunRequest {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.starts[len(d.starts)-1]
}

func (d *dispatcher) CancelRun(_ context.Context, r *dispatcherv1.CancelRunRequest) (*dispatcherv1.CancelRunResponse, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.cancels++
	if r.GetTenant() != "acme" || r.GetRunId() != "run_1" {
		return nil, fault.New(fault.RunNotFound, "no run of this id in your tenant")
	}
	return &dispatcherv1.CancelRunResponse{Status: "cancelling"}, nil
}

func (*dispatcher) GetInterrupt(context.Context, *dispatcherv1.GetInterruptRequest) (*dispatcherv1.GetInterruptResponse, error) {
	return &dispatcherv1.GetInterruptResponse{}, nil
}

func (*dispatcher) ResolveInterrupt(_ context.Context, r *dispatcherv1.ResolveInterruptRequest) (*dispatcherv1.ResolveInterruptResponse, error) {
	return &dispatcherv1.ResolveInterruptResponse{NodeId: r.GetNodeId(), Status: "running", Kind: "custom"}, nil
}

func (*dispatcher) RedactTexts(_ context.Context, r *dispatcherv1.RedactTextsRequest) (*dispatcherv1.RedactTextsResponse, error) {
	return &dispatcherv1.RedactTextsResponse{Texts: r.GetTexts()}, nil
}

func (*dispatcher) GetWorkflow(_ context.Context, r *dispatcherv1.GetWorkflowRequest) (*dispatcherv1.GetWorkflowResponse, error) {
	if r.GetWorkflowId() != "wf" {
		return nil, fault.New(fault.WorkflowNotFound, "no workflow of this id in your tenant")
	}
	return &dispatcherv1.GetWorkflowResponse{Definition: []byte(`{"workflowId": "wf"}`)}, nil
}

func (*dispatcher) PutWorkflow(_ context.Context, r *dispatcherv1.PutWorkflowRequest) (*dispatcherv1.PutWorkflowResponse, error) {
	return &dispatcherv1.PutWorkflowResponse{
		WorkflowId: "wf",
		Version:    "1",
		Digest:     "d",
		Created:    !strings.Contains(string(r.GetDefinition()), "same"),
	}, nil
}

func (*dispatcher) ListWorkflows(context.Context, *dispatcherv1.ListWorkflowsRequest) (*dispatcherv1.ListWorkflowsResponse, error) {
	return &dispatcherv1.ListWorkflowsResponse{Workflows: []*dispatcherv1.WorkflowSummary{{WorkflowId: "wf"}}}, nil
}

func (*dispatcher) Describe(context.Context, *dispatcherv1.DescribeRequest) (*dispatcherv1.DescribeResponse, error) {
	return &dispatcherv1.DescribeResponse{
		NodeTypes:         []*dispatcherv1.NodeType{{TypeId: "core.noop", Source: "builtin"}},
		MaxNodeExecutions: 100, MaxRunDurationMs: 86400000, MaxRetryAttempts: 3, TruncationMultiplier: 2,
	}, nil
}

func (*dispatcher) ProgramMock(_ context.Context, r *dispatcherv1.ProgramMockRequest) (*dispatcherv1.ProgramMockResponse, error) {
	return &dispatcherv1.ProgramMockResponse{Count: int32(len(r.GetProgram()))}, nil
}

func (*dispatcher) ResetMock(context.Context, *dispatcherv1.ResetMockRequest) (*dispatcherv1.ResetMockResponse, error) {
	return &dispatcherv1.ResetMockResponse{Cleared: 2}, nil
}

func (*dispatcher) LastMockBudget(_ context.Context, r *dispatcherv1.LastMockBudgetRequest) (*dispatcherv1.LastMockBudgetResponse, error) {
	if r.GetNodeId() == "none" {
		return &dispatcherv1.LastMockBudgetResponse{}, nil
	}
	n := int32(64)
	return &dispatcherv1.LastMockBudgetResponse{MaxTokens: &n}, nil
}

// eventLog has one run of two events, run_1 of acme.
type eventLog struct {
	eventlogv1.UnimplementedEventLogServer
	// hold blocks reads until it is closed, and entered reports them; nil disables both.
	hold, entered chan struct{}
}

var theEvents = []*eventlogv1.Event{
	{Sequence: 0, Type: "run.started", Document: []byte(`{"sequence":0,"type":"run.started"}`)},
	{Sequence: 1, Type: "run.completed", Document: []byte(`{"sequence":1,"type":"run.completed","nodeId":"n"}`)},
}

func knows(tenant, run string) error {
	if tenant != "acme" || run != "run_1" {
		return fault.New(fault.RunNotFound, "no run of this id in your tenant")
	}
	return nil
}

func (l *eventLog) GetRun(ctx context.Context, r *eventlogv1.GetRunRequest) (*eventlogv1.GetRunResponse, error) {
	if l.hold != nil {
		l.entered <- struct{}{}
		select {
		case <-l.hold:
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
	return &eventlogv1.GetRunResponse{
		Snapshot:     []byte(snapshot),
		LastSequence: 1,
		Status:       "completed",
	}, knows(r.GetTenant(), r.GetRunId())
}

func (*eventLog) ReadEvents(_ context.Context, r *eventlogv1.ReadEventsRequest) (*eventlogv1.ReadEventsResponse, error) {
	out := &eventlogv1.ReadEventsResponse{Status: "completed", Head: 1}
	for _, e := range theEvents {
		if e.GetSequence() > r.GetAfter() {
			out.Events = append(out.Events, e)
		}
	}
	return out, knows(r.GetTenant(), r.GetRunId())
}

func (*eventLog) ViewRun(_ context.Context, r *eventlogv1.ViewRunRequest) (*eventlogv1.ViewRunResponse, error) {
	sequence := int32(1)
	if r.At != nil {
		sequence = r.GetAt()
	}
	return &eventlogv1.ViewRunResponse{View: fmt.Appendf(nil, `{"runId":"run_1","sequence":%d}`, sequence)}, knows(r.GetTenant(), r.GetRunId())
}

func (*eventLog) ListRuns(context.Context, *eventlogv1.ListRunsRequest) (*eventlogv1.ListRunsResponse, error) {
	return &eventlogv1.ListRunsResponse{}, nil
}

func (*eventLog) Follow(r *eventlogv1.FollowRequest, out grpc.ServerStreamingServer[eventlogv1.FollowResponse]) error {
	if err := knows(r.GetTenant(), r.GetRunId()); err != nil {
		return err
	}
	return out.Send(&eventlogv1.FollowResponse{Events: theEvents, Head: 1})
}

// planted is the registered secret of the tests; away makes the redactor fail.
const (
	planted = "hunter2-hunter2"
	away    = "redactor-away"
)

type redactor struct {
	redactorv1.UnimplementedRedactorServer
}

func (redactor) Redact(_ context.Context, req *redactorv1.RedactRequest) (*redactorv1.RedactResponse, error) {
	res := &redactorv1.RedactResponse{}
	for _, t := range req.GetTexts() {
		if strings.Contains(t, away) {
			return nil, fault.New(fault.ServiceUnavailable, "away")
		}
		res.Count += int32(strings.Count(t, planted)) //nolint:gosec // G115: a test
		res.Texts = append(res.Texts, strings.ReplaceAll(t, planted, "[REDACTED:planted]"))
	}
	for _, d := range req.GetDocuments() {
		res.Count += int32(strings.Count(string(d), planted)) //nolint:gosec // G115: a test
		res.Documents = append(res.Documents, []byte(strings.ReplaceAll(string(d), planted, "[REDACTED:planted]")))
	}
	return res, nil
}

type acceptor struct {
	acceptorv1.UnimplementedAcceptorServer
}

func (acceptor) Inspect(context.Context, *acceptorv1.InspectRequest) (*acceptorv1.InspectResponse, error) {
	return &acceptorv1.InspectResponse{}, nil
}

func (acceptor) ResetSeam(context.Context, *acceptorv1.ResetSeamRequest) (*acceptorv1.ResetSeamResponse, error) {
	return &acceptorv1.ResetSeamResponse{}, nil
}

func (acceptor) ListKinds(context.Context, *acceptorv1.ListKindsRequest) (*acceptorv1.ListKindsResponse, error) {
	return &acceptorv1.ListKindsResponse{
		Kinds:      []*acceptorv1.Kind{{Name: "error", Version: 1, Schema: []byte(`{"type": "object"}`), Universal: true}},
		Strictness: "warn", Subset: "warn", EnvelopesPerTurn: 5, SchemaRounds: 2, ClarificationRounds: 3,
	}, nil
}

func (acceptor) Exercise(_ context.Context, r *acceptorv1.ExerciseRequest) (*acceptorv1.ExerciseResponse, error) {
	return &acceptorv1.ExerciseResponse{Outcome: []byte(`{"tenant":"` + r.GetTenant() + `","body":` + strconv.Itoa(len(r.GetBody())) + `}`)}, nil
}

// host is a whole gateway with fake services.
type host struct {
	http.Handler
	svc        *gateway.Service
	dispatcher *dispatcher
	log        *eventLog
	ready      error
}

const maxBody = 4096

// keys by permission.
const (
	full   = "Bearer full"
	reader = "Bearer reader"
	beta   = "Bearer beta"
	tester = "Bearer hk_test_1"
)

// newHost serves a gateway; change alters its configuration before it starts.
func newHost(t testing.TB, change ...func(*gateway.Config)) *host {
	t.Helper()
	return newHostWith(t, func(*gateway.Deps) {}, change...)
}

// newHostWith is newHost with other collaborators.
func newHostWith(t testing.TB, with func(*gateway.Deps), change ...func(*gateway.Config)) *host {
	t.Helper()
	h := &host{dispatcher: &dispatcher{digests: map[string]string{}}, log: &eventLog{}}
	quiet := slog.New(slog.DiscardHandler)
	serve := func(srv *grpc.Server) *grpc.ClientConn {
		conn, _ := rpctest.Serve(t, srv)
		return conn
	}
	ds, es, as := rpc.NewServer(quiet, nil, nil), rpc.NewServer(quiet, nil, nil), rpc.NewServer(quiet, nil, nil)
	rs := rpc.NewServer(quiet, nil, nil)
	redactorv1.RegisterRedactorServer(rs, redactor{})
	dispatcherv1.RegisterDispatcherServer(ds, h.dispatcher)
	eventlogv1.RegisterEventLogServer(es, h.log)
	acceptorv1.RegisterAcceptorServer(as, acceptor{})
	cfg := gateway.Config{
		Keys: []auth.Spec{
			{Key: "full", Tenant: "acme", All: true},
			{Key: "reader", Tenant: "acme", Scopes: []auth.Scope{auth.RunsRead}},
			{Key: "beta", Tenant: "beta", All: true},
			{Key: "hk_test_1", Tenant: "acme", All: true},
		},
		REST:          rest.Config{MaxBodyBytes: maxBody},
		MaxStreams:    4,
		RunKey:        []byte(strings.Repeat("k", 32)),
		InterruptKeys: token.Keys{1: make([]byte, 32)},
		BaseURL:       func() string { return "http://host" },
		GRPCEndpoint:  func() string { return "grpc://host:1" },
	}
	for _, f := range change {
		f(&cfg)
	}
	deps := gateway.Deps{
		Clients: gateway.Clients{
			Dispatcher: dispatcherv1.NewDispatcherClient(serve(ds)),
			EventLog:   eventlogv1.NewEventLogClient(serve(es)),
			Acceptor:   acceptorv1.NewAcceptorClient(serve(as)),
			Redactor:   redactorv1.NewRedactorClient(serve(rs)),
		},
		Stores: gateway.Stores{Records: memory.New()},
		Ready:  func() error { return h.ready },
		Clock:  time.Now,
		Logger: quiet,
	}
	with(&deps)
	svc, err := gateway.New(cfg, deps)
	require.NoError(t, err)
	h.svc = svc
	local := svc.Local()
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- local.Serve(ctx) }()
	t.Cleanup(func() { stop(); require.NoError(t, <-ended) })
	h.Handler, err = svc.Handler(t.Context(), local)
	require.NoError(t, err)
	return h
}

// do makes a request; headers are in pairs.
func (h *host) do(t testing.TB, method, target, body string, headers ...string) *httptest.ResponseRecorder {
	t.Helper()
	r := httptest.NewRequestWithContext(t.Context(), method, target, strings.NewReader(body))
	for i := 0; i < len(headers); i += 2 {
		if headers[i+1] != "" {
			r.Header.Set(headers[i], headers[i+1])
		}
	}
	w := httptest.NewRecorder()
	h.ServeHTTP(w, r)
	return w
}

// as makes a JSON request with a credential.
func (h *host) as(t testing.TB, credential, method, target, body string, headers ...string) *httptest.ResponseRecorder {
	t.Helper()
	return h.do(t, method, target, body, append([]string{
		"Authorization", credential, "Content-Type", "application/json",
	}, headers...)...)
}

// newPool makes a pool of bytes that tenants share.
func newPool(limit int64) *share.Pool { return share.New(limit, false) }

// post makes a JSON request of a key with all scopes.
func post(t testing.TB, target, body string) *http.Request {
	t.Helper()
	r := httptest.NewRequestWithContext(t.Context(), http.MethodPost, target, strings.NewReader(body))
	r.Header.Set("Authorization", full)
	r.Header.Set("Content-Type", "application/json")
	return r
}

func serve(h http.Handler, r *http.Request) *httptest.ResponseRecorder {
	w := httptest.NewRecorder()
	h.ServeHTTP(w, r)
	return w
}

// header returns a header in any case: some keep the protocol's spelling.
func header(w *httptest.ResponseRecorder, name string) string {
	for k, v := range w.Header() {
		if strings.EqualFold(k, name) {
			return v[0]
		}
	}
	return ""
}

const replayHeader = "openwop-Idempotent-Replay"

type envelope struct {
	Error, Message string
	Details        map[string]any
}

// refused checks that an answer is an error in its canonical shape.
func refused(t testing.TB, w *httptest.ResponseRecorder, code fault.Code) envelope {
	t.Helper()
	require.Equal(t, fault.Lookup(code).HTTP, w.Code, "%s", w.Body)
	require.Equal(t, "application/json", w.Header().Get("Content-Type"))
	require.Equal(t, "no-store", w.Header().Get("Cache-Control"))
	require.Equal(t, "nosniff", w.Header().Get("X-Content-Type-Options"))
	var raw map[string]json.RawMessage
	require.NoError(t, json.Unmarshal(w.Body.Bytes(), &raw), "%s", w.Body)
	for name := range raw {
		require.Contains(t, []string{"error", "message", "details"}, name)
	}
	var e envelope
	require.NoError(t, json.Unmarshal(w.Body.Bytes(), &e))
	require.Equal(t, string(code), e.Error, "%s", w.Body)
	require.NotEmpty(t, e.Message)
	if w.Code == http.StatusUnauthorized {
		require.Equal(t, "Bearer", w.Header().Get("WWW-Authenticate"))
	}
	return e
}
