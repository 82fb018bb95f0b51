package dispatcher

import (
	"context"

	dispatcherv1 "waybill.dev/waybill/proto/gen/go/waybill/dispatcher/v1"
	"waybill.dev/waybill/protocol/strictjson"
	"waybill.dev/waybill/services/dispatcher/model"
	"waybill.dev/waybill/services/dispatcher/tool"
)

// GetNodeInput returns what a node was given when an attempt started.
func (s *Service) GetNodeInput(ctx context.Context, req *dispatcherv1.GetNodeInputRequest) (*dispatcherv1.GetNodeInputResponse, error) {
	at := -1
	if req.At != nil {
		at = int(req.GetAt())
	}
	doc, in, err := s.executor.NodeInput(ctx, req.GetTenant(), req.GetRunId(), req.GetNodeId(), at)
	if err != nil {
		return nil, s.logFault(err)
	}
	if r, ok := s.deps.Tools[doc.TypeID].(tool.Limited); ok && doc.Error == nil {
		doc.Request = r.Arguments(in)
	}
	return &dispatcherv1.GetNodeInputResponse{Input: strictjson.RenderPlain(doc)}, nil
}

// ReadAnswer finds the documents of a text as for a node that calls a model.
func (s *Service) ReadAnswer(ctx context.Context, req *dispatcherv1.ReadAnswerRequest) (*dispatcherv1.ReadAnswerResponse, error) {
	read, err := s.loop.ReadAnswer(ctx, model.Question{Text: req.GetText(), Kind: req.GetKind(), Accepts: req.GetAccepts()})
	if err != nil {
		return nil, err
	}
	out := &dispatcherv1.ReadAnswerResponse{Reason: read.Reason, Detail: read.Detail}
	for _, d := range read.Documents {
		out.Documents = append(out.Documents, &dispatcherv1.AnswerDocument{
			Document: d.JSON, Envelope: d.Envelope, Kind: d.Kind, Path: d.Path,
			ByteOffset: int32(d.Offset), //nolint:gosec // G115: a request has a few MiB
		})
	}
	return out, nil
}
