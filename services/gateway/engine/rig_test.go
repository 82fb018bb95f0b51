package engine_test

import (
	"context"
	"io"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"
	"google.golang.org/grpc"
	"google.golang.org/grpc/metadata"

	"waybill.dev/waybill/internal/kv"
	"waybill.dev/waybill/internal/kv/memory"
	openwopv1 "waybill.dev/waybill/proto/gen/go/openwop/v1"
	acceptorv1 "waybill.dev/waybill/proto/gen/go/waybill/acceptor/v1"
	dispatcherv1 "waybill.dev/waybill/proto/gen/go/waybill/dispatcher/v1"
	eventlogv1 "waybill.dev/waybill/proto/gen/go/waybill/eventlog/v1"
	"waybill.dev/waybill/services/gateway/auth"
	"waybill.dev/waybill/services/gateway/engine"
	"waybill.dev/waybill/services/gateway/idempotency"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// dispatcher is a dispatcher whose answers the test gives. A call the test did
// not expect panics on the nil interface.
type dispatcher struct {
	dispatcherv1.DispatcherClient
	mu        sync.Mutex // guards the lists
	starts    []*dispatcherv1.StartRunRequest
	cancels   []*dispatcherv1.CancelRunRequest
	puts      []*dispatcherv1.PutWorkflowRequest
	lists     []*dispatcherv1.ListWorkflowsRequest
	start     func(*dispatcherv1.StartRunRequest) (*dispatcherv1.StartRunResponse, error)
	cancel    func(*dispatcherv1.CancelRunRequest) (*dispatcherv1.CancelRunResponse, error)
	fork      func(*dispatcherv1.ForkRunRequest) (*dispatcherv1.ForkRunResponse, error)
	erase     func(*dispatcherv1.EraseRunRequest) (*dispatcherv1.EraseRunResponse, error)
	put       func(*dispatcherv1.PutWorkflowRequest) (*dispatcherv1.PutWorkflowResponse, error)
	list      func(*dispatcherv1.ListWorkflowsRequest) (*dispatcherv1.ListWorkflowsResponse, error)
	answers   int
	answered  *dispatcherv1.ResolveInterruptRequest // the last of them
	answering func() error                          // error of the run log for an answer
	workflows map[string]string                     // by tenant/id
	blocked   map[string]*dispatcherv1.BlockedRun   // by tenant/id
	away      bool                                  // no dispatcher reports blocked runs
}

func (d *dispatcher) ForkRun(_ context.Context, r *dispatcherv1.ForkRunRequest, _ ...grpc.CallOption) (*dispatcherv1.ForkRunResponse, error) {
	return d.fork(r)
}

func (d *dispatcher) StartRun(_ context.Context, r *dispatcherv1.StartRunRequest, _ ...grpc.CallOption) (*dispatcherv1.StartRunResponse, error) {
	d.mu.Lock()
	d.starts = append(d.starts, r)
	d.mu.Unlock()
	if d.start != nil {
		return d.start(r)
	}
	return &dispatcherv1.StartRunResponse{RunId: r.GetRunId(), WorkflowId: r.GetWorkflowId(), Status: "pending"}, nil
}

func (d *dispatcher) CancelRun(_ context.Context, r *dispatcherv1.CancelRunRequest, _ ...grpc.CallOption) (*dispatcherv1.CancelRunResponse, error) {
	d.mu.Lock()
	d.cancels = append(d.cancels, r)
	d.mu.Unlock()
	if d.cancel != nil {
		return d.cancel(r)
	}
	return &dispatcherv1.CancelRunResponse{Status: "cancelling"}, nil
}

func (d *dispatcher) EraseRun(_ context.Context, r *dispatcherv1.EraseRunRequest, _ ...grpc.CallOption) (*dispatcherv1.EraseRunResponse, error) {
	return d.erase(r)
}

// hunted is a secret of all runs.
const hunted = "hunter22"

func (*dispatcher) RedactTexts(_ context.Context, r *dispatcherv1.RedactTextsRequest, _ ...grpc.CallOption) (*dispatcherv1.RedactTextsResponse, error) {
	out := &dispatcherv1.RedactTextsResponse{}
	for _, text := range r.GetTexts() {
		out.Texts = append(out.Texts, strings.ReplaceAll(text, hunted, "[REDACTED:of "+r.GetTenant()+"/"+r.GetRunId()+"]"))
	}
	return out, nil
}

func (d *dispatcher) PutWorkflow(_ context.Context, r *dispatcherv1.PutWorkflowRequest, _ ...grpc.CallOption) (*dispatcherv1.PutWorkflowResponse, error) {
	d.puts = append(d.puts, r)
	return d.put(r)
}

func (d *dispatcher) ListWorkflows(_ context.Context, r *dispatcherv1.ListWorkflowsRequest, _ ...grpc.CallOption) (*dispatcherv1.ListWorkflowsResponse, error) {
	d.lists = append(d.lists, r)
	return d.list(r)
}

func (d *dispatcher) GetWorkflow(_ context.Context, r *dispatcherv1.GetWorkflowRequest, _ ...grpc.CallOption) (*dispatcherv1.GetWorkflowResponse, error) {
	return &dispatcherv1.GetWorkflowResponse{Definition: []byte(d.workflows[r.GetTenant()+"/"+r.GetWorkflowId()])}, nil
}

// eventLog answers reads from functions, and follows from a feed.
type eventLog struct {
	eventlogv1.EventLogClient
	get     func(*eventlogv1.GetRunRequest) (*eventlogv1.GetRunResponse, error)
	read    func(context.Context, *eventlogv1.ReadEventsRequest) (*eventlogv1.ReadEventsResponse, error)
	list    func(*eventlogv1.ListRunsRequest) (*eventlogv1.ListRunsResponse, error)
	count   func(*eventlogv1.CountRunsRequest) (*eventlogv1.CountRunsResponse, error)
	view    func(*eventlogv1.ViewRunRequest) (*eventlogv1.ViewRunResponse, error)
	follow  func(context.Context, *eventlogv1.FollowRequest) *feed
	mu      sync.Mutex // guards follows
	follows []*eventlogv1.FollowRequest
}

func (l *eventLog) GetRun(_ context.Context, r *eventlogv1.GetRunRequest, _ ...grpc.CallOption) (*eventlogv1.GetRunResponse, error) {
	return l.get(r)
}

func (l *eventLog) ReadEvents(ctx context.Context, r *eventlogv1.ReadEventsRequest, _ ...grpc.CallOption) (*eventlogv1.ReadEventsResponse, error) {
	return l.read(ctx, r)
}

func (l *eventLog) ListRuns(_ context.Context, r *eventlogv1.ListRunsRequest, _ ...grpc.CallOption) (*eventlogv1.ListRunsResponse, error) {
	return l.list(r)
}

func (l *eventLog) CountRuns(_ context.Context, r *eventlogv1.CountRunsRequest, _ ...grpc.CallOption) (*eventlogv1.CountRunsResponse, error) {
	return l.count(r)
}

func (l *eventLog) ViewRun(_ context.Context, r *eventlogv1.ViewRunRequest, _ ...grpc.CallOption) (*eventlogv1.ViewRunResponse, error) {
	return l.view(r)
}

func (l *eventLog) Follow(ctx context.Context, r *eventlogv1.FollowRequest, _ ...grpc.CallOption) (grpc.ServerStreamingClient[eventlogv1.FollowResponse], error) {
	l.mu.Lock()
	l.follows = append(l.follows, r)
	l.mu.Unlock()
	f := l.follow(ctx, r)
	f.ctx = ctx
	return f, nil
}

// feed is a client's end of a follow; the test sends what it receives.
type feed struct {
	grpc.ClientStream
	ctx context.Context //nolint:containedctx // what a client stream is
	in  chan *eventlogv1.FollowResponse
	err error // what follows the last response; nil means io.EOF
}

// open is a feed that stays open after these responses.
func open(list ...*eventlogv1.FollowResponse) *feed {
	f := &feed{in: make(chan *eventlogv1.FollowResponse, 64)}
	for _, r := range list {
		f.in <- r
	}
	return f
}

// ended is a feed that closes after these responses.
func ended(list ...*eventlogv1.FollowResponse) *feed {
	f := open(list...)
	close(f.in)
	return f
}

func failed(err error, list ...*eventlogv1.FollowResponse) *feed {
	f := ended(list...)
	f.err = err
	return f
}

func (f *feed) Recv() (*eventlogv1.FollowResponse, error) {
	select {
	case r, ok := <-f.in:
		if ok {
			return r, nil
		}
		if f.err != nil {
			return nil, f.err
		}
		return nil, io.EOF
	case <-f.ctx.Done():
		return nil, f.ctx.Err()
	}
}

type acceptor struct {
	acceptorv1.AcceptorClient
	kinds []*acceptorv1.Kind
}

func (a *acceptor) ListKinds(context.Context, *acceptorv1.ListKindsRequest, ...grpc.CallOption) (*acceptorv1.ListKindsResponse, error) {
	return &acceptorv1.ListKindsResponse{Kinds: a.kinds}, nil
}

type document struct{ json, etag string }

func (document) Changed() {}

func (d document) Document(context.Context) (engine.Document, error) {
	return engine.Document{JSON: []byte(d.json), ETag: d.etag}, nil
}

// rig is the service over fakes.
type rig struct {
	*engine.Service
	dispatcher *dispatcher
	log        *eventLog
	acceptor   *acceptor
	records    kv.Store
}

const maxStreams = 2

func newRig(t testing.TB) *rig {
	t.Helper()
	r := &rig{
		dispatcher: &dispatcher{workflows: map[string]string{}},
		log:        &eventLog{},
		acceptor:   &acceptor{},
		records:    memory.New(),
	}
	clock := func() time.Time { return time.Unix(1_700_000_000, 0) }
	r.Service = engine.New(engine.Config{
		RunKey:       []byte("0123456789abcdef0123456789abcdef"),
		BaseURL:      func() string { return "http://host:1" },
		MaxStreams:   maxStreams,
		StalledAfter: 5 * time.Minute,
	}, engine.Deps{
		Clients:     engine.Clients{Dispatcher: r.dispatcher, EventLog: r.log, Acceptor: r.acceptor},
		Discovery:   document{`{"protocolVersion":"1.1"}`, `"tag"`},
		Idempotency: idempotency.New(r.records, clock),
		Clock:       clock,
	})
	return r
}

// call is the context of a call: its credential and its response metadata.
type call struct {
	context.Context //nolint:containedctx // it is one, with a view of its headers
	mu              sync.Mutex
	header          metadata.MD
}

func (*call) Method() string { return "" }
func (c *call) SetHeader(md metadata.MD) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.header = metadata.Join(c.header, md)
	return nil
}
func (c *call) SendHeader(md metadata.MD) error { return c.SetHeader(md) }
func (*call) SetTrailer(metadata.MD) error      { return nil }

func (c *call) metadata(name string) string {
	c.mu.Lock()
	defer c.mu.Unlock()
	if v := c.header.Get(name); len(v) > 0 {
		return v[0]
	}
	return ""
}

const (
	liveKey = "live"
	// operatorKey may see the statistics of all tenants.
	operatorKey = "operator"
	testKey     = "hk_test_1"
	betaKey     = "beta"
	opsKey      = "hk_live_ops"
)

// as makes a call by the holder of a key, with metadata in pairs.
func as(t testing.TB, key string, md ...string) *call {
	t.Helper()
	keys, err := auth.NewKeys([]auth.Spec{
		{Key: liveKey, Tenant: "acme", All: true},
		{Key: operatorKey, Tenant: "acme", All: true, Scopes: []auth.Scope{auth.TenantsRead}},
		{Key: testKey, Tenant: "acme", All: true},
		{Key: betaKey, Tenant: "beta", All: true},
		{Key: opsKey, Tenant: "acme", All: true, User: "u-1", Groups: []string{"ops"}, Roles: []string{"releaser"}},
	})
	require.NoError(t, err)
	p, err := keys.Authenticate("Bearer " + key)
	require.NoError(t, err)
	c := &call{}
	ctx := auth.WithPrincipal(t.Context(), p)
	ctx = metadata.NewIncomingContext(ctx, metadata.Pairs(md...))
	c.Context = grpc.NewContextWithServerTransportStream(ctx, c)
	return c
}

func doc(s string) *openwopv1.JsonDocument { return &openwopv1.JsonDocument{Json: []byte(s)} }
