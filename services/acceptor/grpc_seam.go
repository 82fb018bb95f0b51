package acceptor

import (
	"context"
	"encoding/json"
	"fmt"

	"waybill.dev/waybill/internal/obs/runspan"
	acceptorv1 "waybill.dev/waybill/proto/gen/go/waybill/acceptor/v1"
	"waybill.dev/waybill/protocol/fault"
	"waybill.dev/waybill/protocol/subject"
	"waybill.dev/waybill/protocol/wire"
	"waybill.dev/waybill/services/acceptor/accept"
)

// This file serves the test seams that read and change test state. With test seams off
// each method returns not found.

func seamsOff() *fault.Error { return fault.New(fault.NotFound, "test seams are off") }

// checkSeams checks that test seams are on, and the tenant.
func (s *Service) checkSeams(tenant string) error {
	if s.seams == nil {
		return seamsOff()
	}
	if !subject.Token(tenant) {
		return fault.Empty("tenant")
	}
	return nil
}

// Inspect reads a run's test log.
func (h handler) Inspect(ctx context.Context, req *acceptorv1.InspectRequest) (*acceptorv1.InspectResponse, error) {
	if err := h.s.checkSeams(req.GetTenant()); err != nil {
		return nil, err
	}
	resp := &acceptorv1.InspectResponse{}
	if req.GetRunId() != "" { // without a run: the spans of all runs, no events
		events, err := h.s.seams.State.Events(ctx, req.GetTenant(), req.GetRunId())
		if err != nil {
			return nil, err
		}
		for _, e := range events {
			resp.Events = append(resp.Events, e.AppendJSON(nil))
		}
	}
	spans, err := h.s.seams.State.Spans(ctx, req.GetTenant(), req.GetRunId())
	if err != nil {
		return nil, err
	}
	for _, s := range spans {
		doc, err := json.Marshal(map[string]any{
			"spanId":     runspan.AcceptSpan(s.RunID, fmt.Sprint("test-", s.Index)).String(),
			"name":       s.Name,
			"attributes": s.Attributes,
			"events":     []any{},
			"runId":      s.RunID,
			"envelopeId": s.EnvelopeID,
			"timestamp":  wire.FormatTime(s.At),
		})
		if err != nil {
			return nil, err
		}
		resp.Spans = append(resp.Spans, doc)
	}
	return resp, nil
}

// Emit writes an event into a run's test log.
func (h handler) Emit(ctx context.Context, req *acceptorv1.EmitRequest) (*acceptorv1.EmitResponse, error) {
	if err := h.s.checkSeams(req.GetTenant()); err != nil {
		return nil, err
	}
	scope := subject.Run{Tenant: req.GetTenant()}
	payload, _, err := h.s.redactor.Redact(ctx, scope, accept.Texts{Documents: []json.RawMessage{req.GetPayload()}})
	if err != nil {
		return nil, err
	}
	events, err := h.s.seams.State.Append(ctx, req.GetTenant(), req.GetRunId(), []wire.Draft{{
		Type:        wire.EventType(req.GetType()),
		Payload:     payload.Documents[0],
		NodeID:      req.GetNodeId(),
		CausationID: req.GetCorrelationId(),
	}})
	if err != nil {
		return nil, err
	}
	return &acceptorv1.EmitResponse{Event: events[0].AppendJSON(nil)}, nil
}

// Overlay changes the capabilities that the test seams assume, and returns them.
func (h handler) Overlay(ctx context.Context, req *acceptorv1.OverlayRequest) (*acceptorv1.OverlayResponse, error) {
	err := h.s.checkSeams(req.GetTenant())
	switch {
	case err != nil:
	case req.GetClear():
		err = h.s.seams.State.ResetOverlay(ctx, req.GetTenant())
	case req.GetName() == "": // nothing to change
	default:
		err = h.s.seams.State.SetCapability(ctx, req.GetTenant(), req.GetName(), req.Value)
	}
	if err != nil {
		return nil, err
	}
	overlay, err := h.s.seams.State.Overlay(ctx, req.GetTenant())
	if err != nil {
		return nil, err
	}
	return &acceptorv1.OverlayResponse{Overlay: overlay}, nil
}

// ResetSeam deletes the test state of a tenant.
func (h handler) ResetSeam(ctx context.Context, req *acceptorv1.ResetSeamRequest) (*acceptorv1.ResetSeamResponse, error) {
	if err := h.s.checkSeams(req.GetTenant()); err != nil {
		return nil, err
	}
	if err := h.s.seams.State.Reset(ctx, req.GetTenant()); err != nil {
		return nil, err
	}
	return &acceptorv1.ResetSeamResponse{}, nil
}
