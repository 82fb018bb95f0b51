package seams

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"net/http"
	"slices"
	"strings"

	acceptorv1 "waybill.dev/waybill/proto/gen/go/waybill/acceptor/v1"
	"waybill.dev/waybill/protocol/fault"
	"waybill.dev/waybill/protocol/untrusted"
	"waybill.dev/waybill/protocol/wire"
	"waybill.dev/waybill/services/gateway/auth"
)

// This file serves pure functions, emitters and assets (OpenWOP envelope contract
// §23.4, §23.5).

// wrap shows a payload as a prompt would.
func (h *Handler) wrap(_ context.Context, _ *http.Request, body []byte) (any, error) {
	var req struct {
		Payload      json.RawMessage   `json:"payload"`
		ContentTrust wire.Trust        `json:"contentTrust"`
		EventType    string            `json:"eventType"`
		Source       string            `json:"source"`
		Attributes   map[string]string `json:"attributes"`
	}
	if err := read(body, &req); err != nil {
		return nil, err
	}
	switch {
	case req.Payload == nil:
		return nil, argument("/payload: required")
	case req.ContentTrust != "" && req.ContentTrust != wire.Trusted && req.ContentTrust != wire.Untrusted:
		return nil, argument("/contentTrust: want trusted or untrusted")
	}
	mark := untrusted.Mark{Source: req.Source, Type: req.EventType, Attributes: req.Attributes}
	return map[string]any{"prompt": untrusted.Prompt(req.Payload, req.ContentTrust, mark)}, nil
}

// emission is the body of an emitter.
type emission struct {
	RunID         string                     `json:"runId"`
	Type          string                     `json:"type"`
	Payload       map[string]json.RawMessage `json:"payload"`
	NodeID        string                     `json:"nodeId"`
	CorrelationID string                     `json:"correlationId"`
}

func (e *emission) check(required ...string) error {
	switch {
	case e.RunID == "":
		return argument("/runId: required")
	case e.Payload == nil:
		return argument("/payload: required")
	}
	for _, name := range required {
		if _, ok := e.Payload[name]; !ok {
			return argument("/payload/%s: required", name)
		}
	}
	return nil
}

// usage emits provider.usage, which may never hold a reference to a credential
// (OpenWOP envelope contract §19.1).
func (h *Handler) usage(ctx context.Context, _ *http.Request, body []byte) (any, error) {
	var e emission
	if err := read(body, &e); err != nil {
		return nil, err
	}
	if err := e.check("provider", "model", "inputTokens", "outputTokens"); err != nil {
		return nil, err
	}
	if _, has := e.Payload["credentialRef"]; has || holds(e.Payload, func(s string) bool { return strings.HasPrefix(s, "secret:") }) {
		return nil, leak("provider_usage_credential_leak", "provider.usage must not hold a reference to a credential")
	}
	e.Type = string(wire.EventProviderUsage)
	return h.emit(ctx, e)
}

// reliability are the six events and what each must have (OpenWOP envelope
// contract §15).
var reliability = map[wire.EventType][]string{
	wire.EventEnvelopeRetryAttempted: {"nodeId", "attempt", "reason"},
	wire.EventEnvelopeRetryExhausted: {"nodeId", "totalAttempts", "finalReason"},
	wire.EventEnvelopeRefusal:        {"nodeId", "provider", "model"},
	wire.EventEnvelopeTruncated:      {"nodeId", "provider", "model", "stopReason"},
	wire.EventEnvelopeNLToFormat:     {"nodeId", "originalEnvelopeType"},
	wire.EventEnvelopeRecovery:       {"nodeId", "path"},
}

// canary is how the protocol's suite marks a secret in a text.
const canary = "secret-canary-"

func (h *Handler) reliability(ctx context.Context, _ *http.Request, body []byte) (any, error) {
	var e emission
	if err := read(body, &e); err != nil {
		return nil, err
	}
	required, known := reliability[wire.EventType(e.Type)]
	if !known {
		return nil, argument("/type: want one of the six reliability events")
	}
	if err := e.check(required...); err != nil {
		return nil, err
	}
	if _, has := e.Payload["credentialRef"]; has || holds(e.Payload, func(s string) bool { return strings.Contains(s, canary) }) {
		return nil, leak("envelope_reliability_credential_leak", "a reliability event must not hold a credential")
	}
	if wire.EventType(e.Type) == wire.EventEnvelopeRecovery {
		for name := range e.Payload {
			if !slices.Contains([]string{"nodeId", "path", "byteOffset"}, name) {
				return nil, leak("envelope_recovery_content_leak", "a recovery tells nodeId, path and byteOffset, and nothing of the text")
			}
		}
	}
	return h.emit(ctx, e)
}

// leak is a refusal under a code of the seam's own.
func leak(code fault.Code, message string) error {
	return &leakError{code: code, message: message}
}

// holds looks for a text anywhere in the payload.
func holds(payload map[string]json.RawMessage, is func(string) bool) bool {
	var look func(v any) bool
	look = func(v any) bool {
		switch v := v.(type) {
		case string:
			return is(v)
		case []any:
			return slices.ContainsFunc(v, look)
		case map[string]any:
			for name, x := range v {
				if name == "credentialRef" || look(x) {
					return true
				}
			}
		}
		return false
	}
	for _, raw := range payload {
		var v any
		if json.Unmarshal(raw, &v) == nil && look(v) {
			return true
		}
	}
	return false
}

func (h *Handler) emit(ctx context.Context, e emission) (any, error) {
	payload, err := json.Marshal(e.Payload)
	if err != nil {
		return nil, err
	}
	node := e.NodeID
	if raw, ok := e.Payload["nodeId"]; ok && node == "" {
		_ = json.Unmarshal(raw, &node) // no text: no node
	}
	res, err := h.Acceptor.Emit(ctx, &acceptorv1.EmitRequest{
		Tenant: auth.From(ctx).Tenant, RunId: e.RunID, Type: e.Type, Payload: payload, NodeId: node, CorrelationId: e.CorrelationID,
	})
	if err != nil {
		return nil, err
	}
	return map[string]any{"event": json.RawMessage(res.GetEvent())}, nil
}

// maxAssetText is the largest asset that the seam takes, in characters of base64.
const maxAssetText = 8 << 20

// putAsset stores an asset and gives its URL.
func (h *Handler) putAsset(ctx context.Context, _ *http.Request, body []byte) (any, error) {
	var req struct {
		ContentBase64 string  `json:"contentBase64"`
		ContentType   string  `json:"contentType"`
		TTLSeconds    float64 `json:"ttlSeconds"`
	}
	if err := read(body, &req); err != nil {
		return nil, err
	}
	if len(req.ContentBase64) > maxAssetText {
		return nil, fault.New(fault.PayloadTooLarge, "contentBase64: at most %d characters are taken", maxAssetText)
	}
	data, err := base64.StdEncoding.DecodeString(req.ContentBase64)
	if err != nil || len(data) == 0 {
		return nil, argument("/contentBase64: want base64 of at least one byte")
	}
	if req.TTLSeconds < 0 || req.TTLSeconds > 1<<31 {
		return nil, argument("/ttlSeconds: want a number of seconds, 0 or more")
	}
	res, err := h.Acceptor.PutAsset(ctx, &acceptorv1.PutAssetRequest{
		Tenant: auth.From(ctx).Tenant, Data: data, MimeType: req.ContentType, TtlSeconds: int64(req.TTLSeconds),
	})
	if err != nil {
		return nil, err
	}
	return created{map[string]any{"url": Prefix + "assets/" + res.GetToken(), "bytes": len(data), "contentType": req.ContentType}}, nil
}
