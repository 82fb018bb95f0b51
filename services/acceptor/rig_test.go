package acceptor_test

import (
	"bytes"
	"context"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/fstest"

	"github.com/stretchr/testify/require"
	"google.golang.org/grpc"

	"waybill.dev/waybill/internal/kv"
	kvmemory "waybill.dev/waybill/internal/kv/memory"
	"waybill.dev/waybill/internal/obs/runspan"
	"waybill.dev/waybill/internal/rpc"
	"waybill.dev/waybill/internal/rpc/rpctest"
	"waybill.dev/waybill/internal/runlog/memory"
	acceptorv1 "waybill.dev/waybill/proto/gen/go/waybill/acceptor/v1"
	redactorv1 "waybill.dev/waybill/proto/gen/go/waybill/redactor/v1"
	runlogv1 "waybill.dev/waybill/proto/gen/go/waybill/runlog/v1"
	"waybill.dev/waybill/protocol/fault"
	"waybill.dev/waybill/protocol/frame"
	"waybill.dev/waybill/protocol/subject"
	"waybill.dev/waybill/services/acceptor"
)

const (
	canary = "sk-canary-0001"
	note   = "vendor.acme.note"
)

// tenantScope is the run id of a tenant's registrations.
const tenantScope = ""

// maxItems is the real redactor's limit of texts per request.
const maxItems = 1024

// redactor is a small redactor service for one tenant. It replaces registered secrets, and
// like the real redactor fails while a required registration is missing.
type redactor struct {
	redactorv1.UnimplementedRedactorServer

	mu      sync.Mutex // guards what follows
	secrets map[string][]*redactorv1.Secret
	named   []string // the registrations of the last request
}

func (r *redactor) Redact(_ context.Context, req *redactorv1.RedactRequest) (*redactorv1.RedactResponse, error) {
	if n := len(req.GetDocuments()) + len(req.GetTexts()); n > maxItems {
		return nil, fault.New(fault.PayloadTooLarge, "%d documents and texts", n)
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.named = req.GetScope().GetRegistrations()
	var missing []string
	if _, known := r.secrets[req.GetScope().GetRunId()]; req.GetScope().GetRequireRegistered() && !known {
		missing = append(missing, "run")
	}
	if _, known := r.secrets[tenantScope]; req.GetScope().GetRequireTenantRegistered() && !known {
		missing = append(missing, "tenant")
	}
	if missing != nil {
		return nil, fault.New(fault.ServiceUnavailable, "not registered").With("unregistered", missing)
	}
	resp := &redactorv1.RedactResponse{}
	scrub := func(s string) string {
		for _, k := range append(slices.Clone(r.secrets[req.GetScope().GetRunId()]), r.secrets[tenantScope]...) {
			resp.Count += int32(strings.Count(s, k.GetValue())) //nolint:gosec // G115: a test
			s = strings.ReplaceAll(s, k.GetValue(), "[REDACTED:"+k.GetId()+"]")
		}
		return s
	}
	for _, d := range req.GetDocuments() {
		resp.Documents = append(resp.Documents, []byte(scrub(string(d))))
	}
	for _, s := range req.GetTexts() {
		resp.Texts = append(resp.Texts, scrub(s))
	}
	return resp, nil
}

func (r *redactor) Register(_ context.Context, req *redactorv1.RegisterRequest) (*redactorv1.RegisterResponse, error) {
	for _, s := range req.GetSecrets() {
		if s.GetId() == "" {
			return nil, fault.New(fault.ValidationError, "secret id: must not be empty")
		}
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.secrets[req.GetScope().GetRunId()] = req.GetSecrets()
	return &redactorv1.RegisterResponse{}, nil
}

func (r *redactor) Forget(_ context.Context, req *redactorv1.ForgetRequest) (*redactorv1.ForgetResponse, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.secrets, req.GetScope().GetRunId())
	return &redactorv1.ForgetResponse{}, nil
}

// host is an acceptor and a redactor behind in-memory listeners.
type host struct {
	acceptorv1.AcceptorClient

	log          *memory.Log
	redactor     *redactor
	stopRedactor func()
	lines        *lines
	spans        *spans
}

// spans has the exported spans.
type spans struct {
	mu  sync.Mutex // guards all
	all []*runspan.Span
}

func (s *spans) Accepted(span *runspan.Span, _ bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.all = append(s.all, span)
}

func (s *spans) String() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	var b strings.Builder
	for _, span := range s.all {
		fmt.Fprintf(&b, "%+v\n", *span)
	}
	return b.String()
}

// lines has the log lines.
type lines struct {
	mu sync.Mutex // guards b
	b  bytes.Buffer
}

func (l *lines) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.Write(p)
}

func (l *lines) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.String()
}

func start(t *testing.T, change func(*acceptor.Config)) *host {
	t.Helper()
	return startWith(t, change, kvmemory.New())
}

// startWith starts a host with a store for the test seam.
func startWith(t *testing.T, change func(*acceptor.Config), store kv.Store) *host {
	t.Helper()
	cfg := acceptor.DefaultConfig()
	cfg.KindsDir = fstest.MapFS{note + ".schema.json": {Data: []byte(`{"x-schemaVersion":2,"type":"object","required":["text"],"properties":{"text":{"type":"string"}}}`)}}
	if change != nil {
		change(&cfg)
	}
	h := &host{
		log:      memory.New(),
		redactor: &redactor{secrets: map[string][]*redactorv1.Secret{}},
		lines:    &lines{},
		spans:    &spans{},
	}
	redaction, stop := serve(t, func(s *grpc.Server) { redactorv1.RegisterRedactorServer(s, h.redactor) })
	h.stopRedactor = stop
	s, err := acceptor.New(cfg, acceptor.Deps{
		Log: h.log, Redactor: redactorv1.NewRedactorClient(redaction),
		Logger: slog.New(slog.NewJSONHandler(h.lines, nil)), Seam: store, Spans: h.spans,
	})
	require.NoError(t, err)
	conn, _ := serve(t, func(g *grpc.Server) { s.Register(g) })
	h.AcceptorClient = acceptorv1.NewAcceptorClient(conn)
	return h
}

func serve(t *testing.T, register func(*grpc.Server)) (conn *grpc.ClientConn, stop func()) {
	t.Helper()
	server := rpc.NewServer(slog.New(slog.DiscardHandler), nil, nil)
	register(server)
	return rpctest.Serve(t, server)
}

// request starts a run and returns a request at its head.
func (h *host) request(t *testing.T, envelope string) *acceptorv1.AcceptRequest {
	t.Helper()
	f := frame.NewStart(subject.Run{
		Tenant:     "acme",
		WorkflowID: "wf",
		RunID:      "run-1",
	}, []byte(`{"runId":"run-1","workflowId":"wf","owner":{"tenant":"acme"}}`))
	pos, err := h.log.Append(t.Context(), f, 0)
	require.NoError(t, err)
	return &acceptorv1.AcceptRequest{
		Run:    &runlogv1.RunRef{Tenant: "acme", WorkflowId: "wf", RunId: "run-1"},
		NodeId: "ask", Head: &runlogv1.Head{Pos: pos, Hash: f.Hash}, Envelope: []byte(envelope),
	}
}

const good = `{"type":"vendor.acme.note","schemaVersion":2,"envelopeId":"e","correlationId":"c","payload":{"text":"<hi>","n":12345678901234567890},"meta":{"source":"ai-generation","ts":"2026-01-31T12:00:00Z"}}`
