package seam

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"net/http"

	acceptorv1 "waybill.dev/waybill/proto/gen/go/waybill/acceptor/v1"
	"waybill.dev/waybill/protocol/fault"
	"waybill.dev/waybill/protocol/untrusted"
	"waybill.dev/waybill/protocol/wire"
	"waybill.dev/waybill/services/gateway/auth"
)

// This file serves the wrapping of prompts and the storage of assets (OpenWOP envelope
// contract §23.4, §23.5).

// wrap returns a payload as it is written into a prompt.
func (h *Handler) wrap(_ context.Context, _ *http.Request, body []byte) (any, error) {
	var req struct {
		Payload      json.RawMessage   `json:"payload"`
		ContentTrust wire.Trust        `json:"contentTrust"`
		EventType    string            `json:"eventType"`
		Source       string            `json:"source"`
		Attributes   map[string]string `json:"attributes"`
	}
	if err := decodeBody(body, &req); err != nil {
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

// maxAssetText is the maximum size of an asset, in characters of base64.
const maxAssetText = 8 << 20

// putAsset stores an asset and returns its URL.
func (h *Handler) putAsset(ctx context.Context, _ *http.Request, body []byte) (any, error) {
	var req struct {
		ContentBase64 string  `json:"contentBase64"`
		ContentType   string  `json:"contentType"`
		TTLSeconds    float64 `json:"ttlSeconds"`
	}
	if err := decodeBody(body, &req); err != nil {
		return nil, err
	}
	if len(req.ContentBase64) > maxAssetText {
		return nil, fault.New(fault.PayloadTooLarge, "contentBase64: has %d characters; the limit is %d", len(req.ContentBase64), maxAssetText)
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
	return created(map[string]any{
		"url":         Prefix + "assets/" + res.GetToken(),
		"bytes":       len(data),
		"contentType": req.ContentType,
	}), nil
}
