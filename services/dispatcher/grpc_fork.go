package dispatcher

import (
	"context"

	dispatcherv1 "waybill.dev/waybill/proto/gen/go/waybill/dispatcher/v1"
	"waybill.dev/waybill/protocol/wire"
	"waybill.dev/waybill/protocol/workflow"
	"waybill.dev/waybill/services/dispatcher/create"
)

// ForkRun creates a fork of a run.
func (s *Service) ForkRun(ctx context.Context, req *dispatcherv1.ForkRunRequest) (*dispatcherv1.ForkRunResponse, error) {
	leave, err := s.intake.Enter(s.parked(req.GetTenant()))
	if err != nil {
		return nil, err
	}
	defer leave()
	over := create.Overlay{Configurable: req.GetConfigurable(), Metadata: req.GetMetadata()}
	if req.GetSetsTags() {
		tags := req.GetTags()
		over.Tags = &tags
	}
	fork := create.Fork{
		Tenant: req.GetTenant(), SourceRunID: req.GetSourceRunId(), RunID: req.GetRunId(),
		Digest: req.GetRequestDigest(), Mode: wire.ForkMode(req.GetMode()), FromSeq: int(req.GetFromSeq()), Overlay: over,
		TestKey: req.GetTestKey(), Traceparent: req.GetTraceparent(),
	}
	if edit := req.GetEdit(); edit != nil {
		fork.Edit = s.nodeEdit(req.GetTenant(), req.GetSourceRunId(), edit)
	}
	f, err := s.starter.Fork(ctx, fork)
	if err != nil {
		return nil, s.unlessLoading(err)
	}
	return &dispatcherv1.ForkRunResponse{
		RunId: f.RunID, Status: string(wire.StatusPending), Replayed: f.Replayed,
		FromSeq:      int32(f.Fork.FromSeq), //nolint:gosec // G115: it was given as one
		BeginDelayMs: s.beginDelay(),
	}, nil
}

// nodeEdit returns the edit of a request.
func (s *Service) nodeEdit(tenant, runID string, edit *dispatcherv1.NodeEdit) *create.Edit {
	return &create.Edit{
		NodeID: edit.GetNodeId(), Config: edit.GetConfig(), Inputs: edit.GetInputs(), Outputs: edit.GetOutputs(), Only: edit.GetOnly(),
		Node: func(ctx context.Context) (*create.NodeStart, error) {
			start, err := s.executor.NodeStart(ctx, tenant, runID, edit.GetNodeId())
			if err != nil {
				return nil, s.logFault(err)
			}
			return start, nil
		},
		Lint: func(ctx context.Context, base, doc []byte) ([]workflow.Problem, error) {
			report := s.lintHost(ctx).CheckEdit(base, doc, edit.GetNodeId())
			if len(report.Problems) > 0 {
				return report.Problems, nil
			}
			switch lacks, err := s.lacksSwitched(ctx, tenant, report.Def); {
			case err != nil:
				return nil, err
			case lacks != nil:
				return nil, lacks.fault()
			}
			return nil, s.checkSecrets(ctx, tenant, doc)
		},
	}
}
