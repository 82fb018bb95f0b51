package seam

import (
	"context"
	"encoding/json"
	"net/http"

	dispatcherv1 "waybill.dev/waybill/proto/gen/go/waybill/dispatcher/v1"
	eventlogv1 "waybill.dev/waybill/proto/gen/go/waybill/eventlog/v1"
	"waybill.dev/waybill/protocol/strictjson"
	"waybill.dev/waybill/services/gateway/auth"
)

// This file changes real runs, and lets executors race for one.

// setVariables sets variables of a live run, and returns all of them (RFC 0022 §B).
func (h *Handler) setVariables(ctx context.Context, r *http.Request, runID string, body []byte) (any, error) {
	var req struct {
		Variables *map[string]json.RawMessage `json:"variables"`
	}
	if err := decodeBody(body, &req); err != nil {
		return nil, err
	}
	if req.Variables == nil {
		return nil, argument("/variables: want an object of values by the names of variables")
	}
	msg := &dispatcherv1.SetVariablesRequest{
		Tenant:    auth.From(ctx).Tenant,
		RunId:     runID,
		Variables: make(map[string][]byte, len(*req.Variables)),
	}
	for name, v := range *req.Variables {
		msg.Variables[name] = v
	}
	if _, err := h.Dispatcher.SetVariables(ctx, msg); err != nil {
		return nil, err
	}
	return h.readVariables(ctx, r, runID, nil)
}

// readVariables returns the variables of a run as its snapshot shows them.
func (h *Handler) readVariables(ctx context.Context, _ *http.Request, runID string, _ []byte) (any, error) {
	res, err := h.EventLog.GetRun(ctx, &eventlogv1.GetRunRequest{Tenant: auth.From(ctx).Tenant, RunId: runID})
	if err != nil {
		return nil, err
	}
	var snapshot struct {
		Variables map[string]json.RawMessage `json:"variables"`
	}
	if err := strictjson.Read(res.GetSnapshot(), &snapshot); err != nil {
		return nil, err
	}
	if snapshot.Variables == nil {
		snapshot.Variables = map[string]json.RawMessage{}
	}
	return snapshot, nil
}

// defaultExecutors is the size of a race if the request has none.
const defaultExecutors = 2

// raceClaims lets executors race for one run. At most one of them may perform its effect, though
// all of them have the same id for it (RFC 0150 §B).
func (h *Handler) raceClaims(ctx context.Context, _ *http.Request, body []byte) (any, error) {
	var req struct {
		Executors *int32 `json:"executors"`
	}
	if err := decodeBody(body, &req); err != nil {
		return nil, err
	}
	msg := &dispatcherv1.RaceClaimsRequest{Tenant: auth.From(ctx).Tenant, Executors: defaultExecutors}
	if req.Executors != nil {
		msg.Executors = *req.Executors
	}
	res, err := h.Dispatcher.RaceClaims(ctx, msg)
	if err != nil {
		return nil, err
	}
	return map[string]any{
		"runId":               res.GetRunId(),
		"logicalInvocationId": res.GetInvocationId(),
		"mintedIds":           append([]string{}, res.GetMintedIds()...),
		"attempted":           len(res.GetMintedIds()),
		"delivered":           res.GetDelivered(),
	}, nil
}
