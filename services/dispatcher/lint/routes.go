package lint

import (
	"fmt"
	"slices"
	"strings"

	"waybill.dev/waybill/protocol/workflow"
	"waybill.dev/waybill/services/dispatcher/node"
)

// checkRoutes checks the trigger rules of all nodes. Branches of which one at most runs may join under any
// rule: a skipped branch blocks nothing (OpenWOP host contract §5.2).
func (l *linter) checkRoutes() {
	for _, s := range workflow.Compile(l.def).Steps {
		l.checkRules(s, fmt.Sprintf("/nodes/%d", l.at[s.Node.ID]))
	}
}

// checkRules warns about incoming edges with different trigger rules.
func (l *linter) checkRules(s workflow.Step, path string) {
	first := ""
	for _, link := range s.In {
		if link.Back {
			continue
		}
		if first == "" {
			first = link.Edge.ID
		}
		if link.Edge.TriggerRule != s.Rule {
			l.warn(path, RuleNoEffect, "edge %s has the trigger rule %s, and edge %s has %s, which is used because its id is first; give all edges into the node one rule",
				link.Edge.ID, link.Edge.TriggerRule, first, s.Rule)
			return
		}
	}
}

// checkDecisions warns about conditionals whose result nothing uses: all that follows them runs.
func (l *linter) checkDecisions() {
	for i := range l.def.Nodes {
		n := &l.def.Nodes[i]
		if l.Types[n.TypeID].Executes() != node.TypeConditional {
			continue
		}
		leads, used := false, false
		for _, e := range l.def.Edges {
			if e.SourceNodeID == n.ID {
				leads = true
				used = used || e.Condition != nil || e.SourceOutput == "result"
			}
		}
		if leads && !used && !l.reads(n.ID) {
			l.warn(fmt.Sprintf("/nodes/%d", i), RuleNoEffect, "nothing uses the result: all nodes after it run; give its edges conditions, such as "+
				`{"type": "equals", "left": "result", "right": true}`)
		}
	}
}

// reads reports whether a port of a node reads another one.
func (l *linter) reads(id string) bool {
	return slices.ContainsFunc(l.def.Nodes, func(n workflow.Node) bool {
		for _, pv := range n.Inputs {
			if pv.NodeID == id || strings.Contains(pv.Expression, id) {
				return true
			}
		}
		return false
	})
}
