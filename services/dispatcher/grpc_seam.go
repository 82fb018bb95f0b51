package dispatcher

import (
	"context"
	"encoding/json"
	"fmt"

	acceptorv1 "waybill.dev/waybill/proto/gen/go/waybill/acceptor/v1"
	dispatcherv1 "waybill.dev/waybill/proto/gen/go/waybill/dispatcher/v1"
	"waybill.dev/waybill/protocol/fault"
	"waybill.dev/waybill/protocol/workflow"
	"waybill.dev/waybill/services/dispatcher/node"
	"waybill.dev/waybill/services/dispatcher/prompt"
	"waybill.dev/waybill/services/dispatcher/seam"
)

// This file serves the test seams that act where runs are executed (OpenWOP envelope contract §23).

// ProgramMock scripts the mock provider.
func (s *Service) ProgramMock(
	ctx context.Context, req *dispatcherv1.ProgramMockRequest,
) (*dispatcherv1.ProgramMockResponse, error) {
	return s.deps.Seams.ProgramMock(ctx, req)
}

// ResetMock clears the scripts of a tenant.
func (s *Service) ResetMock(
	ctx context.Context, req *dispatcherv1.ResetMockRequest,
) (*dispatcherv1.ResetMockResponse, error) {
	return s.deps.Seams.ResetMock(ctx, req)
}

// LastMockBudget returns the maxTokens of a node's latest mock call.
func (s *Service) LastMockBudget(
	ctx context.Context, req *dispatcherv1.LastMockBudgetRequest,
) (*dispatcherv1.LastMockBudgetResponse, error) {
	return s.deps.Seams.LastMockBudget(ctx, req)
}

// RaceClaims lets several executors claim one run (RFC 0150 §B).
func (s *Service) RaceClaims(
	ctx context.Context, req *dispatcherv1.RaceClaimsRequest,
) (*dispatcherv1.RaceClaimsResponse, error) {
	if err := s.deps.Seams.Check(req.GetTenant()); err != nil {
		return nil, err
	}
	race := seam.Race{Log: s.deps.Log, Redactor: s.redactor, Clock: s.deps.Clock, Logger: s.deps.Logger}
	c, err := race.Run(ctx, req.GetTenant(), int(req.GetExecutors()))
	if err != nil {
		return nil, s.logFault(err)
	}
	return &dispatcherv1.RaceClaimsResponse{
		RunId:        c.RunID,
		InvocationId: c.InvocationID,
		MintedIds:    c.Minted,
		Delivered:    int32(c.Delivered), //nolint:gosec // G115: at most the number of executors
	}, nil
}

// SetVariables sets variables of a live run (RFC 0022 §B).
func (s *Service) SetVariables(
	ctx context.Context, req *dispatcherv1.SetVariablesRequest,
) (*dispatcherv1.SetVariablesResponse, error) {
	if err := s.deps.Seams.Check(req.GetTenant()); err != nil {
		return nil, err
	}
	values := make(map[string]json.RawMessage, len(req.GetVariables()))
	for name, v := range req.GetVariables() {
		if name == "" || !json.Valid(v) {
			return nil, fault.New(fault.InvalidArgument, "/variables: want JSON values by names that are not empty")
		}
		values[name] = v
	}
	err := s.executor.SetVariables(ctx, req.GetTenant(), req.GetRunId(), values)
	return &dispatcherv1.SetVariablesResponse{}, s.logFault(err)
}

// ResolvePrompt resolves a reference across its layers (RFC 0029 §A).
func (s *Service) ResolvePrompt(
	_ context.Context, req *dispatcherv1.ResolvePromptRequest,
) (*dispatcherv1.ResolvePromptResponse, error) {
	if err := s.deps.Seams.Check(req.GetTenant()); err != nil {
		return nil, err
	}
	res, wrong := prompt.ParseLayers(req.GetBody())
	if wrong != nil {
		return nil, fault.New(fault.InvalidArgument, "%s: %s", wrong[0].Path, wrong[0].Message)
	}
	payload, err := json.Marshal(res.Resolve())
	return &dispatcherv1.ResolvePromptResponse{Payload: payload}, err
}

// capInputMapping is the capability to seed the variables of child runs.
const capInputMapping = "subWorkflow.inputMapping"

// lacking is a node that uses a capability which is switched off.
type lacking struct{ capability, nodeID, path string }

func (l *lacking) problem() workflow.Problem {
	message := "this host does not have the capability " + l.capability + "; remove the member"
	return workflow.Problem{Path: l.path, Rule: workflow.RuleCapability, Message: message}
}

// fault is the rejection of the definition (RFC 0022 §C).
func (l *lacking) fault() error {
	p := l.problem()
	return fault.Invalid(fault.Problem{Path: p.Path, Message: p.Message, Rule: p.Rule}).
		With("requiredCapability", l.capability).With("nodeId", l.nodeID)
}

// lacksSwitched returns the first node that uses a capability which the test seams have switched off
// for the tenant; nil if there is none.
func (s *Service) lacksSwitched(ctx context.Context, tenant string, def *workflow.Definition) (*lacking, error) {
	if s.deps.Seams == nil || tenant == "" || def == nil {
		return nil, nil
	}
	at := s.firstInputMapping(def)
	if at < 0 {
		return nil, nil
	}
	res, err := s.deps.Acceptor.Overlay(ctx, &acceptorv1.OverlayRequest{Tenant: tenant})
	if err != nil {
		return nil, err
	}
	if on, set := res.GetOverlay()[capInputMapping]; !set || on {
		return nil, nil
	}
	return &lacking{capInputMapping, def.Nodes[at].ID, fmt.Sprintf("/nodes/%d/config/inputMapping", at)}, nil
}

// firstInputMapping returns the index of the first node that seeds a child's variables; -1 if there
// is none.
func (s *Service) firstInputMapping(def *workflow.Definition) int {
	for i, n := range def.Nodes {
		t := s.types.Current()[n.TypeID]
		var c struct {
			Inputs map[string]json.RawMessage `json:"inputMapping"`
		}
		if t.Class == node.Spawns && json.Unmarshal(t.Configure(n.Config), &c) == nil && len(c.Inputs) > 0 {
			return i
		}
	}
	return -1
}
