package lint

import (
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"waybill.dev/waybill/protocol/strictjson"
	"waybill.dev/waybill/protocol/workflow"
	"waybill.dev/waybill/services/dispatcher/node"
)

// guard is a condition that holds whenever a node runs, or its opposite.
type guard struct {
	edge  string // the edge with the condition
	value string
	not   bool
}

// excludes reports whether two conditions over the same value never hold together.
func (g guard) excludes(other guard) bool {
	return g.not != other.not && g.value == other.value || !g.not && !other.not && g.value != other.value
}

// guards maps what is compared, an output of a node, to its condition.
type guards map[string]guard

// maxGuards limits the guards of a node: each node of a chain has those of all nodes before it.
const maxGuards = 32

// checkRoutes finds nodes that no run reaches because the branches before them exclude each other. Of a
// node with many guards, it compares some.
func (l *linter) checkRoutes() {
	graph := workflow.Compile(l.def)
	before, targets := make([]guards, len(graph.Steps)), make([]int, len(graph.Steps)) // sources come before their targets
	for _, s := range graph.Steps {
		for _, link := range s.In {
			targets[link.Step]++
		}
	}
	for i, s := range graph.Steps {
		path := fmt.Sprintf("/nodes/%d", l.at[s.Node.ID])
		l.checkRules(s, path)
		if s.Rule != workflow.AllSuccess {
			continue // of several branches, one suffices
		}
		before[i] = guards{}
		for _, link := range s.In {
			if !link.Back {
				l.joinRoutes(before[i], before[link.Step], link.Edge, path)
			}
			if targets[link.Step]--; targets[link.Step] == 0 {
				before[link.Step] = nil
			}
		}
	}
}

// joinRoutes adds the guards of an edge and of its source to those of its target, up to maxGuards.
func (l *linter) joinRoutes(all, source guards, e *workflow.Edge, path string) {
	own := make(guards, 1)
	if key, g, ok := guardOf(e); ok {
		own[key] = g
	}
	for _, from := range []guards{own, source} { // the nearest first
		for _, key := range slices.Sorted(maps.Keys(from)) {
			g := from[key]
			if nearer, ok := own[key]; ok {
				g = nearer
			}
			first, both := all[key]
			if both && first.excludes(g) {
				l.warn(path, node.RuleNeverRuns, "never runs: the conditions of edges %s and %s exclude each other; set triggerRule any_success", first.edge, g.edge)
				return
			}
			if both || len(all) < maxGuards {
				all[key] = g
			}
		}
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

// plainPath is an expression that only names a value.
var plainPath = regexp.MustCompile(`^!?[A-Za-z_][A-Za-z0-9_.]*$`)

// guardOf returns the condition of an edge as a guard of what it compares. Others than comparisons with a
// text or a truth value are left out.
func guardOf(e *workflow.Edge) (key string, g guard, ok bool) {
	c := e.Condition
	if c == nil {
		return "", guard{}, false
	}
	switch c.Type {
	case workflow.ConditionEquals, workflow.ConditionNotEquals:
		value := string(c.Right)
		text, isText := strictjson.String(c.Right)
		if isText {
			value = strconv.Quote(text)
		}
		key = e.SourceNodeID + " " + strings.TrimPrefix(c.Left, "output.")
		return key, guard{e.ID, value, c.Type == workflow.ConditionNotEquals}, isText || strictjson.KindOf(c.Right) == "a boolean"
	case workflow.ConditionExpression:
		path, negated := strings.CutPrefix(c.Expression, "!")
		key = e.SourceNodeID + " " + strings.TrimPrefix(strings.TrimPrefix(path, "outputs."), "output.")
		return key, guard{e.ID, strconv.FormatBool(!negated), false}, plainPath.MatchString(c.Expression)
	}
	return "", guard{}, false
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
