package seam

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"net/http"
	"slices"
	"strings"
	"unicode/utf8"

	acceptorv1 "waybill.dev/waybill/proto/gen/go/waybill/acceptor/v1"
	"waybill.dev/waybill/protocol/fault"
	"waybill.dev/waybill/protocol/wire"
	"waybill.dev/waybill/services/gateway/auth"
)

// This file serves the emitters, which write one event to a test log. The payload must be one
// that the host itself could write (OpenWOP envelope contract §15, §19.1, §23.4).

// emission is the body of an emitter.
type emission struct {
	RunID         string                     `json:"runId"`
	Type          string                     `json:"type"`
	Payload       map[string]json.RawMessage `json:"payload"`
	NodeID        string                     `json:"nodeId"`
	CorrelationID string                     `json:"correlationId"`
}

// maxID limits the ids of an event (run-event.schema.json).
const maxID = 128

func (e *emission) check() error {
	switch {
	case e.RunID == "":
		return argument("/runId: required")
	case e.Payload == nil:
		return argument("/payload: required")
	}
	for name, id := range map[string]string{"runId": e.RunID, "nodeId": e.NodeID, "correlationId": e.CorrelationID} {
		if utf8.RuneCountInString(id) > maxID {
			return argument("/%s: want at most %d characters", name, maxID)
		}
	}
	return nil
}

// usage emits provider.usage, which must not contain a reference to a credential (OpenWOP
// envelope contract §19.1).
func (h *Handler) usage(ctx context.Context, _ *http.Request, body []byte) (any, error) {
	var e emission
	if err := decodeBody(body, &e); err != nil {
		return nil, err
	}
	if err := e.check(); err != nil {
		return nil, err
	}
	if e.contains(func(s string) bool { return strings.HasPrefix(s, "secret:") }) {
		return nil, leakError("provider_usage_credential_leak", "provider.usage must not contain a reference to a credential")
	}
	if err := checkMembers(e.Payload, usageMembers); err != nil {
		return nil, err
	}
	e.Type = string(wire.EventProviderUsage)
	return h.emit(ctx, e)
}

// canary is the protocol's test suite's mark of a secret.
const canary = "secret-canary-"

func (h *Handler) reliability(ctx context.Context, _ *http.Request, body []byte) (any, error) {
	var e emission
	if err := decodeBody(body, &e); err != nil {
		return nil, err
	}
	members, known := reliabilityMembers[wire.EventType(e.Type)]
	if !known {
		return nil, argument("/type: want one of the six reliability events")
	}
	if err := e.check(); err != nil {
		return nil, err
	}
	if e.contains(func(s string) bool { return strings.Contains(s, canary) }) {
		return nil, leakError("envelope_reliability_credential_leak", "a reliability event must not contain a credential")
	}
	if wire.EventType(e.Type) == wire.EventEnvelopeRecovery {
		for name := range e.Payload {
			if _, ok := members[name]; !ok {
				return nil, leakError("envelope_recovery_content_leak", "a recovery event contains nodeId, path and byteOffset only")
			}
		}
	}
	if err := checkMembers(e.Payload, members); err != nil {
		return nil, err
	}
	return h.emit(ctx, e)
}

// leakError is a rejection with a code of the seam's own.
func leakError(code fault.Code, message string) error {
	return fault.New(code, "%s", message)
}

// contains searches the payload for a matching string, including names of members, or for a
// member that refers to a credential.
func (e *emission) contains(is func(string) bool) bool {
	var look func(v any) bool
	look = func(v any) bool {
		switch v := v.(type) {
		case string:
			return is(v)
		case []any:
			return slices.ContainsFunc(v, look)
		case map[string]any:
			for name, x := range v {
				if name == "credentialRef" || is(name) || look(x) {
					return true
				}
			}
		}
		return false
	}
	for name, raw := range e.Payload {
		v, err := value(raw)
		if name == "credentialRef" || is(name) || err == nil && look(v) {
			return true
		}
	}
	return false
}

// value decodes JSON without losing digits.
func value(raw json.RawMessage) (v any, err error) {
	d := json.NewDecoder(bytes.NewReader(raw))
	d.UseNumber()
	err = d.Decode(&v)
	return v, err
}

func (h *Handler) emit(ctx context.Context, e emission) (any, error) {
	payload, err := json.Marshal(e.Payload)
	if err != nil {
		return nil, err
	}
	node := e.NodeID
	if raw, ok := e.Payload["nodeId"]; ok && node == "" {
		if err := json.Unmarshal(raw, &node); err != nil {
			return nil, argument("/payload/nodeId: want a string")
		}
	}
	res, err := h.Acceptor.Emit(ctx, &acceptorv1.EmitRequest{
		Tenant:        auth.From(ctx).Tenant,
		RunId:         e.RunID,
		Type:          e.Type,
		Payload:       payload,
		NodeId:        node,
		CorrelationId: e.CorrelationID,
	})
	if err != nil {
		return nil, err
	}
	return map[string]any{"event": json.RawMessage(res.GetEvent())}, nil
}

// emitEnvelope passes an envelope through the accept pipeline into a test log, and returns the
// events that it has there (RFC 0030 §E).
func (h *Handler) emitEnvelope(ctx context.Context, _ *http.Request, body []byte) (any, error) {
	var req struct {
		RunID        string          `json:"runId"`
		NodeID       string          `json:"nodeId"`
		Envelope     json.RawMessage `json:"envelope"`
		ByokCanaries json.RawMessage `json:"byokCanaries"`
	}
	if err := decodeBody(body, &req); err != nil {
		return nil, err
	}
	switch {
	case req.RunID == "" || utf8.RuneCountInString(req.RunID) > maxID:
		return nil, argument("/runId: want 1 to %d characters", maxID)
	case len(req.Envelope) == 0:
		return nil, argument("/envelope: required")
	}
	exercise := map[string]any{
		"envelope":  req.Envelope,
		"projectTo": map[string]string{"runId": req.RunID, "nodeId": cmp.Or(req.NodeID, testNode)},
	}
	if len(req.ByokCanaries) > 0 {
		exercise["byokCanaries"] = req.ByokCanaries
	}
	doc, err := json.Marshal(exercise)
	if err != nil {
		return nil, err
	}
	tenant := auth.From(ctx).Tenant
	inspect := &acceptorv1.InspectRequest{Tenant: tenant, RunId: req.RunID}
	before, err := h.Acceptor.Inspect(ctx, inspect)
	if err != nil {
		return nil, err
	}
	res, err := h.Acceptor.Exercise(ctx, &acceptorv1.ExerciseRequest{Tenant: tenant, Body: doc})
	if err != nil {
		return nil, err
	}
	var outcome struct {
		RecordedEventIDs []string `json:"recordedEventIds"`
	}
	if err := json.Unmarshal(res.GetOutcome(), &outcome); err != nil {
		return nil, err
	}
	log, err := h.Acceptor.Inspect(ctx, inspect)
	if err != nil {
		return nil, err
	}
	events := []json.RawMessage{}
	for i, raw := range log.GetEvents() {
		var e struct {
			EventID string `json:"eventId"`
		}
		// The events of a rejection are new, those of a repeated envelope may be older.
		isNew := i >= len(before.GetEvents())
		if isNew || json.Unmarshal(raw, &e) == nil && slices.Contains(outcome.RecordedEventIDs, e.EventID) {
			events = append(events, raw)
		}
	}
	return map[string]any{"outcome": json.RawMessage(res.GetOutcome()), "events": events}, nil
}
