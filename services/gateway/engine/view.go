package engine

import (
	"context"

	"google.golang.org/protobuf/proto"

	openwopv1 "waybill.dev/waybill/proto/gen/go/openwop/v1"
	dispatcherv1 "waybill.dev/waybill/proto/gen/go/waybill/dispatcher/v1"
	eventlogv1 "waybill.dev/waybill/proto/gen/go/waybill/eventlog/v1"
	hostv1 "waybill.dev/waybill/proto/gen/go/waybill/host/v1"
	"waybill.dev/waybill/protocol/fault"
	"waybill.dev/waybill/protocol/view"
	"waybill.dev/waybill/services/gateway/auth"
)

// GetNodeInput returns what a node was given. It is computed from recorded values, so it needs no
// further redaction.
func (s *Service) GetNodeInput(ctx context.Context, req *hostv1.GetNodeInputRequest) (*hostv1.GetNodeInputResponse, error) {
	if err := checkRunID(req.GetRunId()); err != nil {
		return nil, err
	}
	asked := &dispatcherv1.GetNodeInputRequest{
		Tenant: auth.From(ctx).Tenant, RunId: req.GetRunId(), NodeId: req.GetNodeId(),
	}
	if req.At != nil {
		if req.GetAt() < 0 {
			return nil, negativeAt()
		}
		asked.At = proto.Int32(cursor(req.GetAt()))
	}
	res, err := s.deps.Dispatcher.GetNodeInput(ctx, asked)
	if err != nil {
		return nil, err
	}
	return &hostv1.GetNodeInputResponse{Input: &openwopv1.JsonDocument{Json: res.GetInput()}}, nil
}

func negativeAt() error {
	return fault.InvalidQuery("at", "want the sequence of an event, at least 0")
}

// ReadAnswer finds the documents of a text. Nothing of it is recorded.
func (s *Service) ReadAnswer(ctx context.Context, req *hostv1.ReadAnswerRequest) (*hostv1.ReadAnswerResponse, error) {
	res, err := s.deps.Dispatcher.ReadAnswer(ctx, &dispatcherv1.ReadAnswerRequest{
		Tenant: auth.From(ctx).Tenant, Text: req.GetText(), Kind: req.GetKind(), Accepts: req.GetAccepts(),
	})
	if err != nil {
		return nil, err
	}
	out := &hostv1.ReadAnswerResponse{Reason: res.GetReason(), Detail: res.GetDetail()}
	for _, d := range res.GetDocuments() {
		out.Documents = append(out.Documents, &hostv1.AnswerDocument{
			Document: &openwopv1.JsonDocument{Json: d.GetDocument()}, Envelope: d.GetEnvelope(), Kind: d.GetKind(),
			Path: d.GetPath(), Found: view.Recovered(d.GetPath()), ByteOffset: d.GetByteOffset(),
		})
	}
	return out, nil
}

// GetRunView returns the folded view of a run, also as of an earlier event. Like the events that it
// is folded from, it needs no further redaction.
func (s *Service) GetRunView(ctx context.Context, req *hostv1.GetRunViewRequest) (*hostv1.GetRunViewResponse, error) {
	if err := checkRunID(req.GetRunId()); err != nil {
		return nil, err
	}
	asked := &eventlogv1.ViewRunRequest{Tenant: auth.From(ctx).Tenant, RunId: req.GetRunId()}
	if req.At != nil {
		if req.GetAt() < 0 {
			return nil, negativeAt()
		}
		asked.At = proto.Int32(cursor(req.GetAt()))
	}
	res, err := s.deps.EventLog.ViewRun(ctx, asked)
	if err != nil {
		return nil, err
	}
	return &hostv1.GetRunViewResponse{View: &openwopv1.JsonDocument{Json: res.GetView()}}, nil
}
