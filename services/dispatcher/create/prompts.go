package create

import (
	"encoding/json"
	"fmt"

	"waybill.dev/waybill/protocol/fault"
	"waybill.dev/waybill/protocol/workflow"
	"waybill.dev/waybill/services/dispatcher/node"
)

// checkPrompts rejects a node whose prompt cannot be rendered from the templates it names.
func (s *Starter) checkPrompts(nodeID, at string, t node.Type, config json.RawMessage) error {
	if id := t.Executes(); id != node.TypeCallPrompt && id != node.TypeStructuredOutput {
		return nil
	}
	_, found := s.deps.Prompts.Plan(t.Configure(config))
	if len(found) == 0 {
		return nil
	}
	if s.deps.Prompts.Empty() {
		return fault.New(fault.CapabilityRequired, "node %q names a prompt template at %s%s, and this host has none; load them with --prompts", nodeID, at, found[0].Path).
			With("requiredCapability", "prompts").With("nodeId", nodeID)
	}
	wrong := make([]workflow.Problem, len(found))
	for i, p := range found {
		wrong[i] = workflow.Problem{Path: at + p.Path, Message: p.Message}
	}
	return invalid(fmt.Sprintf("the prompt of node %q cannot be made", nodeID), wrong)
}
