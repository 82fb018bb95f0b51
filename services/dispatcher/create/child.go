package create

import (
	"context"
	"encoding/json"
	"errors"
	"slices"

	"waybill.dev/waybill/protocol/fault"
	"waybill.dev/waybill/protocol/strictjson"
	"waybill.dev/waybill/protocol/wire"
	"waybill.dev/waybill/protocol/workflow"
	"waybill.dev/waybill/services/dispatcher/definition"
	"waybill.dev/waybill/services/dispatcher/node"
)

// Child is a node's request for a child run.
type Child struct {
	// RunID is derived from parent and node, so that a repeated request finds the first child.
	RunID      string
	Parent     *wire.RunRecord
	NodeID     string
	Attempt    int
	WorkflowID string
	// Inputs are the parent's values. Unset are the names that the parent has no value for.
	Inputs map[string]json.RawMessage
	Unset  []string
	// Trust is the meet of all sources of the child.
	Trust            wire.Trust
	Awaited, Cascade bool
	Traceparent      string
}

// StartChild creates a child run, or finds the one that the same request created before. The child
// has the tenant, owner, scope, key, model selection and callbackUrl of its parent.
func (s *Starter) StartChild(ctx context.Context, c Child) error {
	req := Request{
		Tenant: c.Parent.Owner.Tenant, Principal: c.Parent.Owner.Principal, WorkflowID: c.WorkflowID, RunID: c.RunID,
		Digest: "child:" + c.RunID, ScopeID: c.Parent.ScopeID, TestKey: c.Parent.TestKey, Traceparent: c.Traceparent,
		CallbackURL: c.Parent.CallbackURL, // the parent's callback receives the questions of its children
	}
	if _, err := s.findRepeated(ctx, req); !errors.Is(err, errNoRun) {
		return err
	}
	depth := 1
	if p := c.Parent.Parent; p != nil {
		depth = p.Depth + 1
	}
	switch {
	case depth > s.deps.MaxDepth:
		return fault.New(fault.RecursionLimit, "runs may be nested %d deep; workflow %q would be one deeper", s.deps.MaxDepth, c.WorkflowID).
			With("maxDepth", s.deps.MaxDepth)
	case c.WorkflowID == c.Parent.WorkflowID:
		return selfReference(c.NodeID, c.WorkflowID)
	}
	e, err := s.deps.Definitions.Get(ctx, req.Tenant, c.WorkflowID)
	if err != nil {
		return err
	}
	rec, err := s.childRecord(req, c, e)
	if err != nil {
		return err
	}
	rec.Parent = &wire.Parent{
		RunID: c.Parent.RunID, WorkflowID: c.Parent.WorkflowID, NodeID: c.NodeID, Attempt: c.Attempt,
		Depth: depth, Awaited: c.Awaited, Cascade: c.Cascade,
	}
	body, err := s.renderBody(ctx, rec)
	if err != nil {
		return err
	}
	_, err = s.appendStart(ctx, req, rec, body, node.NewMaskPolicy(e.Def, node.CurrentOf(s.deps.Types)))
	return err
}

// childRecord checks the parent's values against the child's workflow.
func (s *Starter) childRecord(req Request, c Child, e *definition.Entry) (*wire.RunRecord, error) {
	if err := s.CheckExecutable(e.Def); err != nil {
		return nil, err
	}
	own, reserved := inheritConfigurable(c.Parent.Configurable, e.Def)
	if ps := e.Def.CheckConfigurable(strictjson.Render(own)); len(ps) > 0 {
		return nil, invalid("what the child inherits does not fit the configurableSchema of its workflow", ps)
	}
	for name, v := range reserved {
		own[name] = v
	}
	if len(own) > 0 {
		req.Configurable = strictjson.Render(own)
	}
	ref, err := s.checkOverlay(req)
	if err != nil {
		return nil, err
	}
	vars, problems := e.Def.SeedWithout(c.Inputs, c.Unset)
	if len(problems) > 0 {
		return nil, invalid("what inputMapping gives does not fit the child's variables", problems)
	}
	rec := s.buildRecord(req, e, ref, c.Inputs, vars)
	rec.Owner, rec.TrustBoundary = c.Parent.Owner, ""
	if c.Trust == wire.Untrusted {
		rec.TrustBoundary = wire.Untrusted
	}
	return rec, nil
}

// runKeys are the members of configurable that limit one run only. hostKeys are those that no
// workflow schema must declare.
var (
	runKeys  = []string{"recursionLimit", "runTimeoutMs"}
	hostKeys = []string{"ai", "ai.provider", "ai.model", "ai.credentialRef", "model", "mockProvider"}
)

// inheritConfigurable returns the members of a run's configurable for its child: the model
// selection and key, and the members that the child's workflow declares. A workflow without a
// schema gets all.
func inheritConfigurable(configurable json.RawMessage, def *workflow.Definition) (own, reserved map[string]json.RawMessage) {
	own, reserved = map[string]json.RawMessage{}, map[string]json.RawMessage{}
	var all map[string]json.RawMessage
	_ = json.Unmarshal(configurable, &all) // checked when the parent was created
	var declared struct {
		Properties map[string]json.RawMessage `json:"properties"`
	}
	_ = json.Unmarshal(def.ConfigurableSchema, &declared)
	for name, v := range all {
		_, known := declared.Properties[name]
		switch {
		case slices.Contains(runKeys, name):
		case slices.Contains(hostKeys, name):
			reserved[name] = v
		case known || def.ConfigurableSchema == nil:
			own[name] = v
		}
	}
	return own, reserved
}

// checkSelfReference rejects a workflow with a node that runs the workflow itself, which would
// never end.
func checkSelfReference(def *workflow.Definition, n workflow.Node, t node.Type) error {
	if t.Class != node.Spawns {
		return nil
	}
	if c, bad := node.ParseSubWorkflow(t.Configure(n.Config)); bad == nil && c.WorkflowID == def.ID {
		return selfReference(n.ID, def.ID)
	}
	return nil
}

func selfReference(nodeID, workflowID string) error {
	return fault.New(fault.ValidationError, "node %q, /config/workflowId: a workflow cannot run itself; name another than %q", nodeID, workflowID).
		With("nodeId", nodeID)
}
