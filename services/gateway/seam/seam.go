// Package seam serves the protocol's test seams, which call the same code as production. They
// are enabled with --test-seams only (OpenWOP envelope contract §23).
package seam

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"log/slog"
	"net/http"
	"slices"
	"strings"
	"time"

	acceptorv1 "waybill.dev/waybill/proto/gen/go/waybill/acceptor/v1"
	dispatcherv1 "waybill.dev/waybill/proto/gen/go/waybill/dispatcher/v1"
	eventlogv1 "waybill.dev/waybill/proto/gen/go/waybill/eventlog/v1"
	"waybill.dev/waybill/protocol/fault"
	"waybill.dev/waybill/protocol/modelgate"
	"waybill.dev/waybill/protocol/strictjson"
	"waybill.dev/waybill/services/gateway/auth"
	"waybill.dev/waybill/services/gateway/redaction"
)

// Prefix is the path prefix of the seams.
const Prefix = "/v1/host/sample/"

// maxBody limits the body of a request.
const maxBody = 9 << 20

// Handler serves the seams to an authenticated principal.
type Handler struct {
	Dispatcher dispatcherv1.DispatcherClient
	EventLog   eventlogv1.EventLogClient
	Acceptor   acceptorv1.AcceptorClient
	Bundles    redaction.BundleExporter
	Logger     *slog.Logger
	Clock      func() time.Time
	// Clean redacts errors.
	Clean func(context.Context, error) error
	// Redact redacts answers, because a seam may repeat its input.
	Redact func(context.Context, []byte) (json.RawMessage, error)
}

// seam answers one request with a document.
type seam struct {
	method string
	do     func(h *Handler, ctx context.Context, r *http.Request, body []byte) (any, error)
}

// routes are the seams of this host's features.
var routes = map[string]seam{
	"envelope/accept":                     {http.MethodPost, (*Handler).accept},
	"node-catalog":                        {http.MethodGet, (*Handler).catalog},
	"test/mock-ai/program":                {http.MethodPost, (*Handler).program},
	"test/mock-ai/reset":                  {http.MethodPost, (*Handler).resetMock},
	"test/mock-ai/last-dispatch-budget":   {http.MethodGet, (*Handler).budget},
	"test/reset":                          {http.MethodPost, (*Handler).reset},
	"test/panic":                          {http.MethodPost, (*Handler).panicOnRequest},
	"test/capability-toggle":              {http.MethodPost, (*Handler).toggle},
	"test/otel/spans":                     {http.MethodGet, (*Handler).spans},
	"test/debug-bundle/export":            {http.MethodPost, (*Handler).export},
	"test/llm-prompt-wrap":                {http.MethodPost, (*Handler).wrap},
	"test/emit-provider-usage":            {http.MethodPost, (*Handler).usage},
	"test/emit-envelope-reliability":      {http.MethodPost, (*Handler).reliability},
	"test/llm-cache-key":                  {http.MethodPost, (*Handler).cacheKey},
	"test/evaluate-model-capability-gate": {http.MethodPost, (*Handler).modelGate},
	"governance/approval-gate":            {http.MethodPost, (*Handler).approvalGate},
	"a2ui/emit-surface":                   {http.MethodPost, (*Handler).emitSurface},
	"prompt/compose":                      {http.MethodPost, (*Handler).composePrompt},
	"prompt/resolve":                      {http.MethodPost, (*Handler).resolvePrompt},
	"test/idempotency/concurrent-claim":   {http.MethodPost, (*Handler).raceClaims},
	"test/emit-envelope":                  {http.MethodPost, (*Handler).emitEnvelope},
	"test/synthesize-model-capability-event": {
		http.MethodPost, (*Handler).synthesizeGateEvent,
	},
	"workflows": {http.MethodPost, (*Handler).registerWorkflow},
	"media/put": {http.MethodPost, (*Handler).putAsset},
}

// ServeHTTP answers a seam's request.
func (h *Handler) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	s, ok := route(strings.TrimPrefix(r.URL.Path, Prefix), r.Method)
	switch {
	case !ok:
		h.answer(w, nil, fault.New(fault.NotFound, "no test seam at this path"))
	case s.method != r.Method:
		w.Header().Set("Allow", s.method)
		h.answer(w, nil, fault.New(fault.MethodNotAllowed, "this seam allows %s", s.method))
	default:
		body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, maxBody))
		if _, tooLarge := errors.AsType[*http.MaxBytesError](err); tooLarge {
			h.answer(w, nil, fault.New(fault.PayloadTooLarge, "the body exceeds %d bytes", maxBody))
			return
		}
		if err != nil {
			h.answer(w, nil, argument("the body cannot be read"))
			return
		}
		doc, err := s.do(h, r.Context(), r, body)
		if err == nil {
			doc, err = h.redactAnswer(r.Context(), doc)
		}
		if err != nil {
			err = h.Clean(r.Context(), err)
		}
		h.answer(w, doc, err)
	}
}

// redactAnswer redacts an answer.
func (h *Handler) redactAnswer(ctx context.Context, doc any) (any, error) {
	withStatus, hasStatus := doc.(reply)
	if hasStatus {
		doc = withStatus.doc
	}
	b, err := json.Marshal(doc)
	if err != nil {
		return nil, err
	}
	if b, err = h.Redact(ctx, b); err != nil {
		return nil, err
	}
	if hasStatus {
		return reply{withStatus.status, json.RawMessage(b)}, nil
	}
	return json.RawMessage(b), nil
}

// route finds the seam at a path. Of several methods it prefers the request's.
func route(name, method string) (seam, bool) {
	if s, ok := routes[name]; ok {
		return s, true
	}
	rest, ok := strings.CutPrefix(name, "test/runs/")
	runID, what, below := strings.Cut(rest, "/")
	if !ok || !below {
		return seam{}, false
	}
	switch {
	case what == "events":
		return runSeam(http.MethodGet, runID, (*Handler).listEvents), true
	case what == "variables" && method == http.MethodGet:
		return runSeam(http.MethodGet, runID, (*Handler).readVariables), true
	case what == "variables":
		return runSeam(http.MethodPost, runID, (*Handler).setVariables), true
	default:
		return seam{}, false
	}
}

// runSeam makes the seam of one run.
func runSeam(
	method, runID string, do func(h *Handler, ctx context.Context, r *http.Request, runID string, body []byte) (any, error),
) seam {
	return seam{method, func(h *Handler, ctx context.Context, r *http.Request, body []byte) (any, error) {
		return do(h, ctx, r, runID, body)
	}}
}

func argument(format string, args ...any) error {
	return fault.New(fault.InvalidArgument, format, args...)
}

// seamError is the error format of seams.
type seamError struct {
	Error struct {
		Code    fault.Code `json:"code"`
		Message string     `json:"message"`
	} `json:"error"`
}

// reply is an answer with a status other than 200.
type reply struct {
	status int
	doc    any
}

// created is the answer to a creation.
func created(doc any) reply { return reply{http.StatusCreated, doc} }

// rejected is a rejection with status 400, whose code has another status elsewhere.
func rejected(c fault.Code, message string) reply {
	var body seamError
	body.Error.Code, body.Error.Message = c, message
	return reply{http.StatusBadRequest, body}
}

func (h *Handler) answer(w http.ResponseWriter, doc any, err error) {
	status := http.StatusOK
	if r, ok := doc.(reply); ok {
		doc, status = r.doc, r.status
	}
	if err != nil {
		e, ok := fault.As(err)
		if !ok {
			h.Logger.Error("test seam failed", "error", err)
			e = fault.New(fault.InternalError, "internal error")
		}
		var body seamError
		body.Error.Code, body.Error.Message = e.Code, e.Message
		doc, status = body, statusOf(e.Code)
	}
	b, merr := json.Marshal(doc)
	if merr != nil {
		status, b = http.StatusInternalServerError, []byte(`{"error":{"code":"internal_error","message":"the answer is not JSON"}}`)
	}
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("Cache-Control", "no-store")
	w.WriteHeader(status)
	_, _ = w.Write(b) // the client may have gone
}

// statusOf returns the status of an error. Codes that only seams use have status 400.
func statusOf(c fault.Code) int {
	if !fault.Known(c) {
		return http.StatusBadRequest
	}
	return fault.Lookup(c).HTTP
}

// accept runs one document through the accept pipeline.
func (h *Handler) accept(ctx context.Context, _ *http.Request, body []byte) (any, error) {
	res, err := h.Acceptor.Exercise(ctx, &acceptorv1.ExerciseRequest{Tenant: auth.From(ctx).Tenant, Body: body})
	if err != nil {
		return nil, err
	}
	return json.RawMessage(res.GetOutcome()), nil
}

type catalogNode struct {
	TypeID   string           `json:"typeId"`
	Source   string           `json:"source,omitempty"`
	Required []string         `json:"requiredModelCapabilities,omitempty"`
	Fallback *modelgate.Model `json:"fallbackModel,omitempty"`
}

func (h *Handler) catalog(ctx context.Context, _ *http.Request, _ []byte) (any, error) {
	res, err := h.Dispatcher.Describe(ctx, &dispatcherv1.DescribeRequest{})
	if err != nil {
		return nil, err
	}
	nodes := []catalogNode{}
	for _, n := range res.GetNodeTypes() {
		described := catalogNode{TypeID: n.GetTypeId(), Source: n.GetSource(), Required: n.GetRequiredModelCapabilities()}
		if n.GetFallbackProvider() != "" {
			described.Fallback = &modelgate.Model{Provider: n.GetFallbackProvider(), Model: n.GetFallbackModel()}
		}
		nodes = append(nodes, described)
	}
	return map[string]any{"nodes": nodes}, nil
}

type mockEntry struct {
	StopReason   string `json:"stopReason"`
	Content      string `json:"content"`
	RefusalText  string `json:"refusalText"`
	OutputTokens int32  `json:"outputTokens"`
	InputTokens  int32  `json:"inputTokens"`
	// Panic is this host's own member: the model call panics with it.
	Panic string `json:"panic"`
}

// stopReasons are the stop reasons of an entry; absent means end_turn.
var stopReasons = []string{"", "end_turn", "max_tokens", "length", "stop_sequence", "safety"}

// program replaces the script of a node id.
func (h *Handler) program(ctx context.Context, _ *http.Request, body []byte) (any, error) {
	var req struct {
		NodeID  string       `json:"nodeId"`
		Program *[]mockEntry `json:"program"`
	}
	if err := strictjson.Decode(body, strictjson.Limits{MaxBytes: maxBody, MaxDepth: 16}, &req); err != nil {
		return nil, argument("%s", describe(err))
	}
	if req.NodeID == "" || req.Program == nil {
		return nil, argument("nodeId and program are required")
	}
	msg := &dispatcherv1.ProgramMockRequest{Tenant: auth.From(ctx).Tenant, NodeId: req.NodeID}
	for i, e := range *req.Program {
		if !slices.Contains(stopReasons, e.StopReason) {
			return nil, argument("/program/%d/stopReason: want one of end_turn, max_tokens, length, stop_sequence, safety", i)
		}
		if e.OutputTokens < 0 || e.InputTokens < 0 {
			return nil, argument("/program/%d: outputTokens and inputTokens must be 0 or more", i)
		}
		msg.Program = append(msg.Program, &dispatcherv1.MockEntry{
			StopReason:   e.StopReason,
			Content:      e.Content,
			RefusalText:  e.RefusalText,
			OutputTokens: e.OutputTokens,
			InputTokens:  e.InputTokens,
			Panic:        e.Panic,
		})
	}
	res, err := h.Dispatcher.ProgramMock(ctx, msg)
	if err != nil {
		return nil, err
	}
	return map[string]any{"ok": true, "count": res.GetCount()}, nil
}

func describe(err error) string {
	if e, ok := errors.AsType[*strictjson.Error](err); ok {
		return e.Path + ": " + e.Reason
	}
	return "the body is not valid JSON for this seam"
}

func (h *Handler) resetMock(ctx context.Context, _ *http.Request, _ []byte) (any, error) {
	res, err := h.Dispatcher.ResetMock(ctx, &dispatcherv1.ResetMockRequest{Tenant: auth.From(ctx).Tenant})
	if err != nil {
		return nil, err
	}
	return map[string]any{"ok": true, "cleared": res.GetCleared()}, nil
}

func (h *Handler) budget(ctx context.Context, r *http.Request, _ []byte) (any, error) {
	id := r.URL.Query().Get("nodeId")
	if id == "" {
		return nil, argument("the query parameter nodeId is required")
	}
	res, err := h.Dispatcher.LastMockBudget(ctx, &dispatcherv1.LastMockBudgetRequest{Tenant: auth.From(ctx).Tenant, NodeId: id})
	if err != nil {
		return nil, err
	}
	return map[string]any{"maxTokens": res.MaxTokens}, nil
}
