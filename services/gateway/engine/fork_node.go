package engine

import (
	"context"

	openwopv1 "waybill.dev/waybill/proto/gen/go/openwop/v1"
	dispatcherv1 "waybill.dev/waybill/proto/gen/go/waybill/dispatcher/v1"
	hostv1 "waybill.dev/waybill/proto/gen/go/waybill/host/v1"
	"waybill.dev/waybill/protocol/fault"
	"waybill.dev/waybill/protocol/wire"
	"waybill.dev/waybill/services/gateway/auth"
)

// forkNodeOperation is the operation name of idempotency keys of edited forks.
const forkNodeOperation = "POST /v1/runs/{runId}/nodes/{nodeId}/fork"

// ForkNode starts a branch in which a node is edited, or a run of that node alone. A repeated request finds
// the run that the first one has started, because its id follows from the key.
func (s *Service) ForkNode(ctx context.Context, req *hostv1.ForkNodeRequest) (*hostv1.ForkNodeResponse, error) {
	over, err := checkForkNode(req)
	if err != nil {
		return nil, err
	}
	if err := checkRunID(req.GetRunId()); err != nil {
		return nil, err
	}
	runID, digest := "run_"+newID(), ""
	if key, keyed := metaValue(ctx, MetaIdempotencyKey); keyed {
		runID, digest = s.derivedID(forkNodeOperation, auth.From(ctx).Tenant, key), forkNodeOperation
	}
	edit := &dispatcherv1.NodeEdit{
		NodeId: req.GetNodeId(), Config: req.GetConfig().GetJson(), Inputs: req.GetInputs().GetJson(),
		Outputs: req.GetOutputs().GetJson(), Only: req.GetOnly(),
	}
	made, err := s.fork(ctx, &openwopv1.ForkRunRequest{RunId: req.GetRunId(), Mode: string(wire.ForkBranch)}, over, edit, runID, digest)
	if err != nil {
		return nil, err
	}
	return &hostv1.ForkNodeResponse{
		RunId: made.GetRunId(), SourceRunId: made.GetSourceRunId(), FromSeq: made.GetFromSeq(), Status: made.GetStatus(), EventsUrl: made.GetEventsUrl(),
	}, nil
}

// checkForkNode validates a request as far as possible without the run.
func checkForkNode(req *hostv1.ForkNodeRequest) (overlay, error) {
	var p problems
	for _, part := range []struct {
		path string
		doc  *openwopv1.JsonDocument
	}{{"/config", req.GetConfig()}, {"/inputs", req.GetInputs()}, {"/outputs", req.GetOutputs()}} {
		if part.doc != nil {
			checkDocument(&p, part.path, part.doc)
		}
	}
	if req.Config == nil && req.Inputs == nil && req.Outputs == nil && !req.GetOnly() {
		p.add("/config", "want config, inputs or outputs, or only: true")
	}
	if req.Outputs != nil && (req.Config != nil || req.Inputs != nil || req.GetOnly()) {
		p.add("/outputs", "outputs cannot be combined with config, inputs or only")
	}
	over, _ := readOverlay(&p, req.GetRunOptionsOverlay())
	if req.GetNodeId() == "" {
		return over, fault.New(fault.NotFound, "the node has not started in this run")
	}
	return over, p.err()
}

// editedParts names what an edit changes.
func editedParts(edit *dispatcherv1.NodeEdit) []string {
	parts := []string{}
	for _, part := range []struct {
		name string
		doc  []byte
	}{{"config", edit.GetConfig()}, {"inputs", edit.GetInputs()}, {"outputs", edit.GetOutputs()}} {
		if len(part.doc) > 0 {
			parts = append(parts, part.name)
		}
	}
	return parts
}
