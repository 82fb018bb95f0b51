package engine

import (
	"context"
	"encoding/json"
	"fmt"

	openwopv1 "waybill.dev/waybill/proto/gen/go/openwop/v1"
	eventlogv1 "waybill.dev/waybill/proto/gen/go/waybill/eventlog/v1"
	hostv1 "waybill.dev/waybill/proto/gen/go/waybill/host/v1"
	"waybill.dev/waybill/protocol/fault"
	"waybill.dev/waybill/services/gateway/auth"
)

// maxAnswerRuns is the largest number of runs on a page of answers.
const maxAnswerRuns = 100

// maxAnnotationBytes limits the annotations on a page of answers.
const maxAnnotationBytes = 2 << 20

// ListAnswers lists answers of models with their annotations.
func (s *Service) ListAnswers(ctx context.Context, req *hostv1.ListAnswersRequest) (*hostv1.ListAnswersResponse, error) {
	if l := req.Limit; l != nil && (*l < 1 || *l > maxAnswerRuns) {
		return nil, fault.InvalidQuery("limit", "want 1 to %d", maxAnswerRuns)
	}
	list := &eventlogv1.ListRunsRequest{Tenant: auth.From(ctx).Tenant, Limit: req.GetLimit(), Cursor: req.GetCursor()}
	if err := s.filter(list, &hostv1.ListRunsRequest{Filter: req.Filter}); err != nil {
		return nil, err
	}
	if req.Outcome != nil && req.GetOutcome() == "" {
		return nil, fault.OneOf("outcome", []string{"accepted", "refused"})
	}
	res, err := s.deps.EventLog.ListAnswers(ctx, &eventlogv1.ListAnswersRequest{Filters: list, Outcome: req.GetOutcome()})
	if err != nil {
		return nil, err
	}
	if err := s.annotateAnswers(ctx, res.GetAnswers()); err != nil {
		return nil, err
	}
	return &hostv1.ListAnswersResponse{Answers: res.GetAnswers(), NextCursor: stringOrNil(res.GetNextCursor())}, nil
}

// annotateAnswers adds the annotations that concern the answers. Answers of a run are neighbours.
func (s *Service) annotateAnswers(ctx context.Context, answers []*hostv1.ModelAnswer) error {
	if s.deps.Annotations == nil {
		return nil
	}
	var (
		of   string
		docs [][]byte
		left = maxAnnotationBytes
	)
	for _, a := range answers {
		if a.GetRunId() != of {
			list, err := s.deps.Annotations.List(ctx, auth.From(ctx).Tenant, a.GetRunId())
			if err != nil {
				return err
			}
			of, docs = a.GetRunId(), list
		}
		for _, doc := range docs {
			var n Annotation
			if err := json.Unmarshal(doc, &n); err != nil {
				return fmt.Errorf("read annotation of run %s: %w", of, err)
			}
			switch {
			case n.Target.NodeID != "" && n.Target.NodeID != a.GetNodeId():
			case left < len(doc):
				left, a.MoreAnnotations = 0, true
			default:
				left -= len(doc)
				a.Annotations = append(a.Annotations, &openwopv1.JsonDocument{Json: doc})
			}
		}
	}
	return nil
}
