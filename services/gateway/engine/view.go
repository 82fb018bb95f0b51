package engine

import (
	"context"

	"google.golang.org/protobuf/proto"

	openwopv1 "waybill.dev/waybill/proto/gen/go/openwop/v1"
	eventlogv1 "waybill.dev/waybill/proto/gen/go/waybill/eventlog/v1"
	hostv1 "waybill.dev/waybill/proto/gen/go/waybill/host/v1"
	"waybill.dev/waybill/protocol/fault"
	"waybill.dev/waybill/services/gateway/auth"
)

// GetRunView returns the folded view of a run, also as of an earlier event. Like the events that it
// is folded from, it needs no further redaction.
func (s *Service) GetRunView(ctx context.Context, req *hostv1.GetRunViewRequest) (*hostv1.GetRunViewResponse, error) {
	if err := checkRunID(req.GetRunId()); err != nil {
		return nil, err
	}
	asked := &eventlogv1.ViewRunRequest{Tenant: auth.From(ctx).Tenant, RunId: req.GetRunId()}
	if req.At != nil {
		if req.GetAt() < 0 {
			return nil, fault.New(fault.ValidationError, "at: want the sequence of an event, at least 0").With("field", "at")
		}
		asked.At = proto.Int32(cursor(req.GetAt()))
	}
	res, err := s.deps.EventLog.ViewRun(ctx, asked)
	if err != nil {
		return nil, err
	}
	return &hostv1.GetRunViewResponse{View: &openwopv1.JsonDocument{Json: res.GetView()}}, nil
}
