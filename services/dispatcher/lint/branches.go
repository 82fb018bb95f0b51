package lint

import (
	"fmt"
	"slices"

	"waybill.dev/waybill/protocol/interrupt"
	"waybill.dev/waybill/protocol/strictjson"
	"waybill.dev/waybill/protocol/workflow"
	"waybill.dev/waybill/services/dispatcher/node"
)

// checkBranches finds routes that no run takes.
func (l *linter) checkBranches() {
	if len(l.def.Nodes) > 0 && !slices.ContainsFunc(l.def.Nodes, func(n workflow.Node) bool { return !n.Disabled }) {
		l.warn("/nodes", node.RuleNeverRuns, "all nodes are disabled, so a run does nothing; enable one")
	}
	into, fails := map[string][]*workflow.Edge{}, map[string]bool{}
	for k := range l.def.Edges {
		e := &l.def.Edges[k]
		into[e.TargetNodeID] = append(into[e.TargetNodeID], e)
	}
	for id, edges := range into {
		fails[id] = slices.ContainsFunc(edges, func(e *workflow.Edge) bool { return l.mayFail(e.SourceNodeID, into) })
	}
	for i, e := range l.def.Edges {
		if e.TriggerRule != workflow.AnyFailed {
			continue
		}
		path := fmt.Sprintf("/edges/%d", i)
		if e.Condition != nil && len(into[e.TargetNodeID]) == 1 {
			l.warn(path+"/condition", node.RuleNeverRuns, "with the trigger rule any_failed the node runs after a failure of %s, which has no output to compare; remove the condition or the rule", e.SourceNodeID)
		}
		if !fails[e.TargetNodeID] {
			l.warn(path+"/triggerRule", node.RuleNeverRuns, "the node runs after a failure, and no node before it can fail; remove the rule")
		}
	}
	if len(l.def.Nodes) <= maxOrdered {
		l.checkElse(into)
	}
}

// harmless are types whose nodes cannot fail.
var harmless = []string{node.TypeStart, node.TypeEnd, node.TypeParallel, node.TypeIdentity, "core.noop"}

// mayFail reports whether a node can fail: all but those of harmless types without ports and conditions,
// whose values may be missing or wrong.
func (l *linter) mayFail(id string, into map[string][]*workflow.Edge) bool {
	i, known := l.at[id]
	if !known {
		return true
	}
	n := &l.def.Nodes[i]
	t := l.Types[n.TypeID]
	return t.Made != nil || !slices.Contains(harmless, t.Executes()) || len(n.Inputs) > 0 ||
		slices.ContainsFunc(into[id], func(e *workflow.Edge) bool { return e.Condition != nil })
}

// checkElse warns about a conditional with a branch for one result, and one without a condition, which runs
// for both. A branch that joins the other one later may do so.
func (l *linter) checkElse(into map[string][]*workflow.Edge) {
	for _, n := range l.def.Nodes {
		if l.Types[n.TypeID].Executes() != node.TypeConditional {
			continue
		}
		var branches, plain []int
		for k, e := range l.def.Edges {
			switch {
			case e.SourceNodeID != n.ID:
			case e.Condition != nil:
				branches = append(branches, k)
			default:
				plain = append(plain, k)
			}
		}
		if len(branches) != 1 || len(plain) != 1 {
			continue
		}
		branch, other := l.def.Edges[branches[0]], l.def.Edges[plain[0]]
		after := l.after(branch.TargetNodeID)
		isElse := branch.Condition.Type == workflow.ConditionEquals && strictjson.KindOf(branch.Condition.Right) == "a boolean" &&
			other.SourceOutput == "output" && other.TriggerRule == workflow.AllSuccess && len(into[other.TargetNodeID]) == 1
		if isElse && !after[other.TargetNodeID] && other.TargetNodeID != branch.TargetNodeID && !l.after(other.TargetNodeID)[branch.TargetNodeID] {
			l.warn(fmt.Sprintf("/edges/%d", plain[0]), RuleNoEffect, "the edge has no condition, so both branches run if edge %s carries; "+
				`for the other result, add {"type": "equals", "left": "result", "right": %t}`, branch.ID, string(branch.Condition.Right) != "true")
		}
	}
}

// after returns the nodes that run after a node.
func (l *linter) after(id string) map[string]bool {
	if l.next == nil {
		l.next = map[string][]string{}
		for _, e := range l.def.Edges {
			l.next[e.SourceNodeID] = append(l.next[e.SourceNodeID], e.TargetNodeID)
		}
	}
	found, todo := map[string]bool{}, []string{id}
	for len(todo) > 0 {
		last := todo[len(todo)-1]
		todo = todo[:len(todo)-1]
		for _, to := range l.next[last] {
			if !found[to] {
				found[to] = true
				todo = append(todo, to)
			}
		}
	}
	return found
}

// isGate reports whether a type waits for a person or a program.
func isGate(t node.Type) bool {
	return slices.Contains([]string{interrupt.TypeApprovalGate, interrupt.TypeClarificationGate, interrupt.TypeInterrupt}, t.Executes())
}
