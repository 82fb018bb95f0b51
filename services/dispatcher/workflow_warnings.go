package dispatcher

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"time"

	acceptorv1 "waybill.dev/waybill/proto/gen/go/waybill/acceptor/v1"
	"waybill.dev/waybill/protocol/fault"
	"waybill.dev/waybill/protocol/jsonpointer"
	"waybill.dev/waybill/protocol/workflow"
	"waybill.dev/waybill/services/dispatcher/lint"
	"waybill.dev/waybill/services/dispatcher/node"
)

// lintHost describes this host to the checker. Without an acceptor the kinds are unknown.
func (s *Service) lintHost(ctx context.Context) lint.Host {
	h := lint.Host{
		Types:     s.types.Current(),
		Models:    s.loop.Models(),
		Limits:    node.Limits{MaxNodeExecutions: s.cfg.Limits.MaxNodeExecutions, MaxRunDuration: s.cfg.Limits.MaxDuration},
		Complete:  true,
		TestSeams: s.deps.Seams != nil,
		Providers: s.deps.Providers.IDs(),
		Prompts:   s.prompts.Library,
		MaxTimeout: func(provider string) time.Duration {
			return s.cfg.Completion.Providers.For(provider).MaxTimeout()
		},
	}
	kinds, err := s.deps.Acceptor.ListKinds(ctx, &acceptorv1.ListKindsRequest{})
	if err != nil {
		s.deps.Logger.Warn("definition is registered without a check of its envelope kinds", "error", err)
		return h
	}
	h.Kinds, h.KindSchemas = []string{}, map[string]json.RawMessage{}
	for _, k := range kinds.GetKinds() {
		h.Kinds = append(h.Kinds, k.GetName())
		h.KindSchemas[k.GetName()] = k.GetSchema()
	}
	return h
}

// unknownChildren warns about nodes that run a workflow unknown to the tenant. It may be registered
// later: only a run of the node fails.
func (s *Service) unknownChildren(ctx context.Context, tenant string, def *workflow.Definition) []workflow.Problem {
	var out []workflow.Problem
	for i, n := range def.Nodes {
		t := s.types.Current()[n.TypeID]
		if t.Class != node.Spawns {
			continue
		}
		c, bad := node.ParseSubWorkflow(t.Configure(n.Config))
		if bad != nil || c.WorkflowID == def.ID {
			continue // run creation reports it
		}
		child, err := s.definitions.Get(ctx, tenant, c.WorkflowID)
		if fault.CodeOf(err) == fault.WorkflowNotFound {
			out = append(out, workflow.Problem{
				Path: fmt.Sprintf("/nodes/%d/config/workflowId", i), Rule: workflow.RuleReference,
				Message: fmt.Sprintf("there is no workflow %q yet; the node fails with %s as long as there is none", c.WorkflowID, fault.UnknownChildWorkflow),
			})
		}
		if err == nil {
			out = append(out, undeclaredInputs(child.Def, c, fmt.Sprintf("/nodes/%d/config/inputMapping/", i))...)
		}
	}
	return out
}

// undeclaredInputs warns about inputs that the child does not declare: it ignores them.
func undeclaredInputs(child *workflow.Definition, c node.SubWorkflow, at string) []workflow.Problem {
	var out []workflow.Problem
	for _, name := range slices.Sorted(maps.Keys(c.Inputs)) {
		if !slices.ContainsFunc(child.Variables, func(v workflow.Variable) bool { return v.Name == name }) {
			out = append(out, workflow.Problem{
				Path: at + jsonpointer.Escape(name), Rule: workflow.RuleReference,
				Message: fmt.Sprintf("workflow %s declares no variable of this name, so it gets no value; declare it there", child.ID),
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
