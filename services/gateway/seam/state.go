package seam

import (
	"context"
	"encoding/json"
	"net/http"
	"slices"
	"strings"

	"waybill.dev/waybill/internal/version"
	acceptorv1 "waybill.dev/waybill/proto/gen/go/waybill/acceptor/v1"
	dispatcherv1 "waybill.dev/waybill/proto/gen/go/waybill/dispatcher/v1"
	eventlogv1 "waybill.dev/waybill/proto/gen/go/waybill/eventlog/v1"
	"waybill.dev/waybill/protocol/fault"
	"waybill.dev/waybill/protocol/strictjson"
	"waybill.dev/waybill/protocol/wire"
	"waybill.dev/waybill/services/gateway/auth"
)

// This file reads and changes test state: logs, spans, bundles, and the overlay of
// capabilities (OpenWOP envelope contract §23.2, §23.3).

// decodeBody decodes a seam's body.
func decodeBody(body []byte, into any) error {
	if err := strictjson.Decode(body, strictjson.Limits{MaxBytes: maxBody, MaxDepth: 64}, into); err != nil {
		return argument("%s", describe(err))
	}
	return nil
}

// reset deletes the test state of the caller's tenant.
func (h *Handler) reset(ctx context.Context, _ *http.Request, _ []byte) (any, error) {
	tenant := auth.From(ctx).Tenant
	if _, err := h.Dispatcher.ResetMock(ctx, &dispatcherv1.ResetMockRequest{Tenant: tenant}); err != nil {
		return nil, err
	}
	if _, err := h.Acceptor.ResetSeam(ctx, &acceptorv1.ResetSeamRequest{Tenant: tenant}); err != nil {
		return nil, err
	}
	return map[string]any{"ok": true}, nil
}

// panicOnRequest makes a handler panic with the caller's text: this request's handler, or
// that of a call to another service. The text must not appear anywhere (OpenWOP envelope
// contract §11, sinks). This seam is the host's own.
func (h *Handler) panicOnRequest(ctx context.Context, _ *http.Request, body []byte) (any, error) {
	var req struct {
		Where string `json:"where"`
		Text  string `json:"text"`
	}
	if err := decodeBody(body, &req); err != nil {
		return nil, err
	}
	switch {
	case req.Text == "":
		return nil, argument("/text: required")
	case req.Where == "handler":
		panic(req.Text)
	case req.Where == "call":
		_, err := h.Dispatcher.ResetMock(ctx, &dispatcherv1.ResetMockRequest{Tenant: auth.From(ctx).Tenant, Panic: req.Text})
		return nil, err
	default:
		return nil, argument("/where: want handler or call")
	}
}

// maxSeamEvents limits the events that a seam returns.
const maxSeamEvents = 5000

// listEvents returns the filtered log of a real run, or the test log of a run id, which need
// not exist. An unknown run has no events.
func (h *Handler) listEvents(ctx context.Context, r *http.Request, runID string, _ []byte) (any, error) {
	docs, err := h.readLog(ctx, runID)
	if err != nil {
		return nil, err
	}
	q := r.URL.Query()
	events := []json.RawMessage{}
	for _, doc := range docs {
		var d struct{ Type, CausationID, NodeID string }
		if json.Unmarshal(doc, &d) != nil {
			continue
		}
		if matchesFilter(q.Get("type"), d.Type) && matchesFilter(q.Get("nodeId"), d.NodeID) &&
			matchesFilter(q.Get("causationId"), d.CausationID) && matchesFilter(q.Get("correlationId"), d.CausationID) {
			events = append(events, doc)
		}
	}
	return map[string]any{"events": events}, nil
}

func (h *Handler) readLog(ctx context.Context, runID string) ([]json.RawMessage, error) {
	var docs []json.RawMessage
	res, err := h.EventLog.ReadEvents(ctx, &eventlogv1.ReadEventsRequest{
		Tenant: auth.From(ctx).Tenant, RunId: runID, After: -1, Limit: maxSeamEvents,
	})
	if err != nil && fault.CodeOf(err) != fault.RunNotFound {
		return nil, err
	}
	for _, e := range res.GetEvents() {
		docs = append(docs, e.GetDocument())
	}
	test, err := h.Acceptor.Inspect(ctx, &acceptorv1.InspectRequest{Tenant: auth.From(ctx).Tenant, RunId: runID})
	if err != nil {
		return nil, err
	}
	for _, doc := range test.GetEvents() {
		docs = append(docs, doc)
	}
	return docs, nil
}

func matchesFilter(want, got string) bool { return want == "" || want == got }

// exportedBundle holds the parts of a debug bundle that seams return separately.
type exportedBundle struct {
	GeneratedAt string            `json:"generatedAt"`
	Events      []json.RawMessage `json:"events"`
	Spans       []struct {
		SpanID     string            `json:"spanId"`
		Name       string            `json:"name"`
		StartedAt  string            `json:"startedAt"`
		Attributes map[string]any    `json:"attributes"`
		Events     []json.RawMessage `json:"events"`
	} `json:"spans"`
}

func (h *Handler) exportBundle(ctx context.Context, runID string) ([]byte, exportedBundle, error) {
	var e exportedBundle
	doc, err := h.Bundles.Export(ctx, auth.From(ctx).Tenant, runID, 0)
	if err != nil {
		return nil, e, err
	}
	return doc, e, json.Unmarshal(doc, &e)
}

// spans returns the spans of a run: those of its log, and those of accepts projected to it.
// Without a run it returns the spans of all test logs.
func (h *Handler) spans(ctx context.Context, r *http.Request, _ []byte) (any, error) {
	q := r.URL.Query()
	runID := q.Get("runId")
	docs := []map[string]any{}
	var e exportedBundle
	if runID != "" {
		var err error
		if _, e, err = h.exportBundle(ctx, runID); err != nil && fault.CodeOf(err) != fault.RunNotFound {
			return nil, err
		}
	}
	for _, s := range e.Spans {
		d := map[string]any{
			"spanId":     s.SpanID,
			"name":       s.Name,
			"attributes": s.Attributes,
			"events":     emptyIfNil(s.Events),
			"runId":      runID,
			"timestamp":  s.StartedAt,
		}
		if id, ok := s.Attributes["openwop.envelope_id"].(string); ok {
			d["envelopeId"] = id
		}
		docs = append(docs, d)
	}
	test, err := h.Acceptor.Inspect(ctx, &acceptorv1.InspectRequest{Tenant: auth.From(ctx).Tenant, RunId: runID})
	if err != nil {
		return nil, err
	}
	for _, raw := range test.GetSpans() {
		var d map[string]any
		if err := json.Unmarshal(raw, &d); err != nil {
			return nil, err
		}
		docs = append(docs, d)
	}
	docs = slices.DeleteFunc(docs, func(d map[string]any) bool {
		id, _ := d["envelopeId"].(string)
		name, _ := d["name"].(string)
		return !matchesFilter(q.Get("envelopeId"), id) || !matchesFilter(q.Get("name"), name)
	})
	return map[string]any{"spans": docs}, nil
}

func emptyIfNil(list []json.RawMessage) []json.RawMessage {
	return append([]json.RawMessage{}, list...)
}

// export returns a run's debug bundle, both at the root and under bundle, because clients
// read either (OpenWOP envelope contract §24, C19).
func (h *Handler) export(ctx context.Context, _ *http.Request, body []byte) (any, error) {
	var req struct {
		RunID string `json:"runId"`
	}
	if err := decodeBody(body, &req); err != nil {
		return nil, err
	}
	if req.RunID == "" {
		return nil, argument("/runId: required")
	}
	raw, e, err := h.exportBundle(ctx, req.RunID)
	if fault.CodeOf(err) == fault.RunNotFound {
		return h.testBundle(ctx, req.RunID)
	}
	if err != nil {
		return nil, err
	}
	var root map[string]json.RawMessage
	if err := json.Unmarshal(raw, &root); err != nil {
		return nil, err
	}
	nested, err := json.Marshal(map[string]any{
		"runId":      req.RunID,
		"events":     e.Events,
		"spans":      root["spans"],
		"exportedAt": e.GeneratedAt,
	})
	if err != nil {
		return nil, err
	}
	root["bundle"] = nested
	return root, nil
}

// testBundle returns the bundle of a run that has only a test log. No dispatcher executes
// it, so its status is pending.
func (h *Handler) testBundle(ctx context.Context, runID string) (any, error) {
	test, err := h.Acceptor.Inspect(ctx, &acceptorv1.InspectRequest{Tenant: auth.From(ctx).Tenant, RunId: runID})
	if err != nil {
		return nil, err
	}
	if len(test.GetEvents())+len(test.GetSpans()) == 0 {
		return nil, fault.NoRun()
	}
	events, spans, now := rawMessages(test.GetEvents()), rawMessages(test.GetSpans()), wire.FormatTime(h.Clock())
	doc, err := json.Marshal(map[string]any{
		"bundleVersion":    "1.0",
		"generatedAt":      now,
		"host":             map[string]string{"name": version.Name, "version": version.Version},
		"run":              map[string]any{"runId": runID, "workflowId": testWorkflow, "status": wire.StatusPending},
		"events":           events,
		"spans":            spans,
		"metrics":          map[string]int{"nodeCount": 0, "eventCount": len(events)},
		"redactionApplied": true,
		"redactionMode":    "omit",
		"bundle":           map[string]any{"runId": runID, "events": events, "spans": spans, "exportedAt": now},
	})
	if err != nil {
		return nil, err
	}
	doc, err = h.Bundles.RedactDocument(ctx, auth.From(ctx).Tenant, runID, doc)
	return json.RawMessage(doc), err
}

// testWorkflow is the workflow id of a run that has only a test log.
const testWorkflow = "conformance-test-log"

func rawMessages(docs [][]byte) []json.RawMessage {
	out := make([]json.RawMessage, 0, len(docs))
	for _, d := range docs {
		out = append(out, d)
	}
	return out
}

// toggle changes the capabilities that the seams assume.
func (h *Handler) toggle(ctx context.Context, _ *http.Request, body []byte) (any, error) {
	var req struct {
		Name  string          `json:"name"`
		Value json.RawMessage `json:"value"`
		Reset bool            `json:"reset"`
	}
	if err := decodeBody(body, &req); err != nil {
		return nil, err
	}
	msg := &acceptorv1.OverlayRequest{Tenant: auth.From(ctx).Tenant, Name: req.Name, Clear: req.Reset}
	switch value := strings.TrimSpace(string(req.Value)); {
	case req.Reset:
	case req.Name == "":
		return nil, argument("/name: required, unless reset is true")
	case value == "true", value == "false":
		on := value == "true"
		msg.Value = &on
	case value != "null":
		return nil, argument("/value: want true, false, or null to remove it")
	}
	res, err := h.Acceptor.Overlay(ctx, msg)
	if err != nil {
		return nil, err
	}
	overlay := res.GetOverlay()
	if overlay == nil {
		overlay = map[string]bool{}
	}
	return map[string]any{"overlay": overlay}, nil
}
