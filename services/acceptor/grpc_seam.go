package acceptor

import (
	"context"
	"encoding/json"
	"fmt"

	acceptorv1 "waybill.dev/waybill/proto/gen/go/waybill/acceptor/v1"
	"waybill.dev/waybill/protocol/fault"
	"waybill.dev/waybill/protocol/runspan"
	"waybill.dev/waybill/protocol/subject"
	"waybill.dev/waybill/protocol/wire"
	"waybill.dev/waybill/services/acceptor/accept"
)

// This file serves the test seams that read and change test state. Without the
// switch nothing is here.

// seams checks that there are any, and whose state is meant.
func (s *Service) seams(tenant string) error {
	if s.tests == nil {
		return fault.New(fault.NotFound, "test seams are off")
	}
	if !subject.Token(tenant) {
		return fault.New(fault.ValidationError, "tenant: must not be empty")
	}
	return nil
}

// Inspect reads a run's test log.
func (h handler) Inspect(_ context.Context, req *acceptorv1.InspectRequest) (*acceptorv1.InspectResponse, error) {
	if err := h.s.seams(req.GetTenant()); err != nil {
		return nil, err
	}
	resp := &acceptorv1.InspectResponse{}
	for _, e := range h.s.tests.Events(req.GetTenant(), req.GetRunId()) {
		resp.Events = append(resp.Events, e.AppendJSON(nil))
	}
	for i, s := range h.s.tests.Spans(req.GetTenant(), req.GetRunId()) {
		doc, err := json.Marshal(map[string]any{
			"spanId": runspan.AcceptSpan(req.GetRunId(), fmt.Sprint("test-", i)).String(), "name": s.Name, "attributes": s.Attributes,
			"events": []any{}, "runId": req.GetRunId(), "envelopeId": s.EnvelopeID, "timestamp": wire.FormatTime(s.At),
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
	if err := h.s.seams(req.GetTenant()); err != nil {
		return nil, err
	}
	scope := subject.Run{Tenant: req.GetTenant()}
	payload, _, err := h.s.redactor.Redact(ctx, scope, accept.Texts{Documents: []json.RawMessage{req.GetPayload()}})
	if err != nil {
		return nil, err
	}
	events, err := h.s.tests.Append(ctx, req.GetTenant(), req.GetRunId(), []wire.Draft{{
		Type: wire.EventType(req.GetType()), Payload: payload.Documents[0], NodeID: req.GetNodeId(), CausationID: req.GetCorrelationId(),
	}})
	if err != nil {
		return nil, err
	}
	return &acceptorv1.EmitResponse{Event: events[0].AppendJSON(nil)}, nil
}

// Overlay changes what the host is taken to be able to.
func (h handler) Overlay(_ context.Context, req *acceptorv1.OverlayRequest) (*acceptorv1.OverlayResponse, error) {
	if err := h.s.seams(req.GetTenant()); err != nil {
		return nil, err
	}
	if req.GetClear() {
		h.s.tests.ResetOverlay(req.GetTenant())
	} else {
		h.s.tests.SetCapability(req.GetTenant(), req.GetName(), req.Value)
	}
	return &acceptorv1.OverlayResponse{Overlay: h.s.tests.Overlay(req.GetTenant())}, nil
}

// ResetSeam forgets all test state.
func (h handler) ResetSeam(context.Context, *acceptorv1.ResetSeamRequest) (*acceptorv1.ResetSeamResponse, error) {
	if h.s.tests == nil {
		return nil, fault.New(fault.NotFound, "test seams are off")
	}
	h.s.tests.Reset()
	return &acceptorv1.ResetSeamResponse{}, nil
}
