package node

import (
	"regexp"
	"slices"
	"strconv"
	"strings"

	"waybill.dev/waybill/protocol/strictjson"
	"waybill.dev/waybill/protocol/workflow"
)

// RuleReasoning is the rule of a warning about a route that depends on a model's reasoning.
const RuleReasoning = "reasoning"

const reasoningMessage = "the route depends on a model's reasoning, which is informational and may be missing (OpenWOP envelope contract §5); " +
	"ask the model for a member of its own to decide by"

// memberReasoning matches a read of the member in an expression.
var memberReasoning = regexp.MustCompile(`(\.\s*\??\s*|\[\s*\??\s*["'])reasoning\b`)

// checkReasoning finds routes that depend on a model's reasoning: conditions of the edges that leave a
// model's node, and the expressions of conditionals and loops after one.
func (w *warnings) checkReasoning() {
	for i, e := range w.def.Edges {
		if e.Condition != nil && w.callsModel(e.SourceNodeID) && readsReasoning(e.Condition) {
			w.add("/edges/"+strconv.Itoa(i)+"/condition", RuleReasoning, reasoningMessage)
		}
	}
	for i := range w.def.Nodes {
		n := &w.def.Nodes[i]
		t := w.types[n.TypeID]
		if t.Executes() != TypeConditional && t.Executes() != TypeLoop || !w.followsModel(n.ID) {
			continue
		}
		cfg, _ := configMembers(t.Configure(n.Config))
		for _, name := range []string{"condition", "expression", "until"} {
			source, isText := strictjson.String(cfg[name])
			var c workflow.EdgeCondition
			switch {
			case isText:
				c.Expression = source
			case strictjson.Read(cfg[name], &c) != nil:
				continue
			}
			if readsReasoning(&c) {
				w.add(nodePath(i)+"/config/"+name, RuleReasoning, reasoningMessage)
			}
		}
	}
}

// callsModel reports whether a node calls a model.
func (w *warnings) callsModel(id string) bool {
	i, ok := w.at[id]
	return ok && w.types[w.def.Nodes[i].TypeID].AsksModel()
}

// followsModel reports whether a node that calls a model leads to the node.
func (w *warnings) followsModel(id string) bool {
	for before := range w.ancestors(id) {
		if w.callsModel(before) {
			return true
		}
	}
	return false
}

// readsReasoning reports whether a condition reads a member called reasoning.
func readsReasoning(c *workflow.EdgeCondition) bool {
	return slices.Contains(strings.Split(c.Left, "."), "reasoning") || memberReasoning.MatchString(c.Expression)
}
