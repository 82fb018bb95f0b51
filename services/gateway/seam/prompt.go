package seam

import (
	"context"
	"encoding/json"
	"maps"
	"net/http"
	"slices"
	"unicode/utf8"

	dispatcherv1 "waybill.dev/waybill/proto/gen/go/waybill/dispatcher/v1"
	"waybill.dev/waybill/protocol/fault"
	"waybill.dev/waybill/protocol/wire"
	"waybill.dev/waybill/services/gateway/auth"
)

// composePrompt composes a prompt template and returns the payload of prompt.composed
// (OpenWOP envelope contract §19.2, §23.4).
func (h *Handler) composePrompt(ctx context.Context, _ *http.Request, body []byte) (any, error) {
	var req struct {
		TemplateID    string                `json:"templateId"`
		Bindings      json.RawMessage       `json:"bindings"`
		BindingTrust  map[string]wire.Trust `json:"bindingTrust"`
		Observability string                `json:"observability"`
		NodeID        *string               `json:"nodeId"`
	}
	if err := decodeBody(body, &req); err != nil {
		return nil, err
	}
	nodeID := testNode
	if req.NodeID != nil {
		nodeID = *req.NodeID
	}
	switch {
	case req.TemplateID == "":
		return nil, argument("/templateId: required")
	case len(req.Bindings) > 0 && req.Bindings[0] != '{':
		return nil, argument("/bindings: want an object of values by the names of variables")
	case nodeID == "" || utf8.RuneCountInString(nodeID) > maxID:
		return nil, argument("/nodeId: want 1 to %d characters", maxID)
	}
	msg := &dispatcherv1.ComposePromptRequest{
		Tenant:        auth.From(ctx).Tenant,
		TemplateId:    req.TemplateID,
		Bindings:      req.Bindings,
		Observability: req.Observability,
		NodeId:        nodeID,
	}
	for _, name := range slices.Sorted(maps.Keys(req.BindingTrust)) {
		switch req.BindingTrust[name] {
		case wire.Untrusted:
			msg.Untrusted = append(msg.Untrusted, name)
		case wire.Trusted:
		default:
			return nil, argument("/bindingTrust: want trusted or untrusted for each name")
		}
	}
	res, err := h.Dispatcher.ComposePrompt(ctx, msg)
	if err != nil {
		return composeError(err)
	}
	return json.RawMessage(res.GetPayload()), nil
}

// composeError gives rejections of the template or its bindings the status 400, except for
// an unknown template.
func composeError(err error) (any, error) {
	e, ok := fault.As(err)
	if !ok {
		return nil, err
	}
	switch e.Code {
	case fault.ValidationError:
		return nil, argument("%s", e.Message)
	case fault.PromptVariable, fault.CredentialUnavailable, fault.ContentTooLong:
		return rejected(e.Code, e.Message), nil
	}
	return nil, err
}

// resolvePrompt resolves a reference to a template across the layers of the request: those of a
// node, its agent, its workflow and the host (RFC 0029 §A).
func (h *Handler) resolvePrompt(ctx context.Context, _ *http.Request, body []byte) (any, error) {
	res, err := h.Dispatcher.ResolvePrompt(ctx, &dispatcherv1.ResolvePromptRequest{
		Tenant: auth.From(ctx).Tenant,
		Body:   body,
	})
	if err != nil {
		return nil, err
	}
	return json.RawMessage(res.GetPayload()), nil
}
