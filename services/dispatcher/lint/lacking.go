package lint

import (
	"fmt"

	"waybill.dev/waybill/protocol/workflow"
	"waybill.dev/waybill/services/dispatcher/node"
)

// Lacking returns what a definition asks for that this host does not have. Runs leave it out, so that
// they do less than the definition says.
func Lacking(def *workflow.Definition, types node.Catalog) (found []workflow.Problem) {
	lacks := func(path, format string, args ...any) {
		found = append(found, workflow.Problem{Path: path, Rule: RuleNoEffect, Message: fmt.Sprintf(format, args...)})
	}
	if len(def.Defaults.PromptRefs) > 0 {
		lacks("/defaults/promptRefs", "this host reads the prompt references of nodes only; set systemPromptRef and userPromptRef in their config")
	}
	for i := range def.Nodes {
		n, at := &def.Nodes[i], fmt.Sprintf("/nodes/%d", i)
		t, known := types[n.TypeID]
		if n.Agent != nil && known {
			lacks(at+"/agent", "this host does not execute agents; remove the member, or use another host")
		}
		switch {
		case t.Executes() == node.TypeCallPrompt && isSet(n.Config, "mcp"):
			lacks(at+"/config/mcp", "this host does not offer tools to models; call the tool with a node of type %s", node.TypeMCPCallTool)
		case t.Executes() == node.TypeIdentity && isSet(n.Config, "memoryAction"):
			lacks(at+"/config/memoryAction", "this host has no memory of agents; remove the member, or use another host")
		}
	}
	return found
}
