package dispatcher

import (
	"context"
	"fmt"
	"slices"

	"waybill.dev/waybill/protocol/fault"
	"waybill.dev/waybill/protocol/workflow"
	"waybill.dev/waybill/services/dispatcher/node"
)

// unknownChildren warns about nodes that run a workflow unknown to the tenant. It may be registered
// later: only a run of the node fails.
func (s *Service) unknownChildren(ctx context.Context, tenant string, def *workflow.Definition) []workflow.Problem {
	var out []workflow.Problem
	for i, n := range def.Nodes {
		t := s.types[n.TypeID]
		if t.Class != node.Spawns {
			continue
		}
		c, bad := node.ParseSubWorkflow(t.Configure(n.Config))
		if bad != nil || c.WorkflowID == def.ID {
			continue // run creation reports it
		}
		if _, err := s.definitions.Get(ctx, tenant, c.WorkflowID); fault.CodeOf(err) == fault.WorkflowNotFound {
			out = append(out, workflow.Problem{
				Path: fmt.Sprintf("/nodes/%d/config/workflowId", i), Rule: workflow.RuleReference,
				Message: fmt.Sprintf("there is no workflow %q yet; the node fails with %s as long as there is none", c.WorkflowID, fault.UnknownChildWorkflow),
			})
		}
	}
	return out
}

// unmaskable warns about a definition whose runs are rejected because its sensitive values cannot
// be masked in the log.
func (s *Service) unmaskable(def *workflow.Definition) []workflow.Problem {
	f, refused := fault.As(s.starter.CheckMaskable(def))
	if !refused {
		return nil
	}
	path := "/nodes"
	if i := slices.IndexFunc(def.Nodes, func(n workflow.Node) bool { return n.ID == f.Details["nodeId"] }); i >= 0 {
		path = fmt.Sprintf("/nodes/%d/typeId", i)
	}
	return []workflow.Problem{{
		Path:    path,
		Rule:    workflow.RuleCapability,
		Message: "no run of it can be created: " + f.Message,
	}}
}
