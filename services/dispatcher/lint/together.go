package lint

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"waybill.dev/waybill/protocol/jsonpointer"
	"waybill.dev/waybill/protocol/workflow"
	"waybill.dev/waybill/services/dispatcher/node"
)

// CheckTogether returns warnings about definitions that call each other, in the order of the definitions:
// two with one id, workflows that start each other without end, and mappings to inputs and variables that
// the other one does not have. A host may have other definitions, which are not checked.
func (h Host) CheckTogether(all []*workflow.Definition) [][]workflow.Problem {
	g := group{Host: h, byID: map[string]*workflow.Definition{}, out: make([][]workflow.Problem, len(all))}
	first := map[[2]string]int{}
	for i, d := range all {
		if d == nil {
			continue
		}
		if k, twice := first[[2]string{d.ID, d.Version}]; twice {
			g.warn(i, "/id", workflow.RuleUnique, "file %d of those checked has the same id and version, and is used; give one another version or id", k+1)
			continue
		}
		first[[2]string{d.ID, d.Version}] = i
		if _, several := g.byID[d.ID]; several {
			d = nil // which of its versions is called is not known
		}
		g.byID[all[i].ID] = d
	}
	for i, d := range all {
		if d == nil {
			continue
		}
		for k := range d.Nodes {
			if c, ok := g.child(&d.Nodes[k]); ok {
				g.checkCall(i, d, fmt.Sprintf("/nodes/%d/config", k), c)
			}
		}
	}
	for i := range g.out {
		g.out[i] = atMost(sorted(g.out[i]))
	}
	return g.out
}

// group is one check of several definitions.
type group struct {
	Host

	// byID has nil for an id with several versions.
	byID map[string]*workflow.Definition
	out  [][]workflow.Problem
}

func (g *group) warn(i int, path, rule, format string, args ...any) {
	g.out[i] = append(g.out[i], workflow.Problem{Path: path, Rule: rule, Message: sentence(format, args)})
}

// child returns the call of another workflow by a node.
func (g *group) child(n *workflow.Node) (node.SubWorkflow, bool) {
	t := g.Types[n.TypeID]
	if n.Disabled || t.Executes() != node.TypeSubWorkflow {
		return node.SubWorkflow{}, false
	}
	c, bad := node.ParseSubWorkflow(t.Configure(n.Config))
	return c, bad == nil
}

func (g *group) checkCall(i int, d *workflow.Definition, at string, c node.SubWorkflow) {
	to, exists := g.byID[c.WorkflowID]
	if to == nil {
		if exists {
			return
		}
		if near := near(c.WorkflowID, slices.Sorted(maps.Keys(g.byID))); near != "" && near != d.ID {
			g.warn(i, at+"/workflowId", workflow.RuleReference, "none of the files has this id; did you mean %s?", near)
		}
		return
	}
	if path := g.endless(d.ID, to, []string{d.ID}); path != nil {
		g.warn(i, at+"/workflowId", workflow.RuleReference, "the workflows start each other, up to the host's limit of nested runs: %s; add a condition, or remove the node", strings.Join(path, "->"))
	}
	l := newLinter(g.Host, to)
	inputs := l.inputs
	for _, name := range slices.Sorted(maps.Keys(c.Inputs)) {
		if !slices.Contains(inputs, name) && !mentions(to.Raw, name) {
			g.warn(i, at+"/inputMapping/"+jsonpointer.Escape(name), RuleName, "the workflow %s does not use the input %s%s", to.ID, name, meant(name, inputs))
		}
	}
	for _, v := range to.Variables {
		if _, given := c.Inputs[v.Name]; v.Required && v.DefaultValue == nil && !given {
			g.warn(i, at+"/inputMapping", RuleName, "the workflow %s requires the input %s; map a variable to it", to.ID, v.Name)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(c.Outputs)) {
		if from := c.Outputs[name]; !l.unsure && !l.variables[from] {
			g.warn(i, at+"/outputMapping/"+jsonpointer.Escape(name), RuleName, "nothing in the workflow %s declares or sets the variable %s%s",
				to.ID, from, meant(from, l.variableNames()))
		}
	}
}

// endless returns the ids on the way back to a workflow, if all runs on it start the next one: no condition
// of an edge ends the chain. It is nil if there is none.
func (g *group) endless(back string, d *workflow.Definition, path []string) []string {
	if d == nil || d.ID == back && len(path) == 1 || slices.Contains(path[1:], d.ID) {
		return nil
	}
	if path = append(slices.Clone(path), d.ID); d.ID == back {
		return path
	}
	if g.byID[back] == nil || g.isConditional(g.byID[back]) || g.isConditional(d) {
		return nil
	}
	for k := range d.Nodes {
		if c, ok := g.child(&d.Nodes[k]); ok {
			if found := g.endless(back, g.byID[c.WorkflowID], path); found != nil {
				return found
			}
		}
	}
	return nil
}

// isConditional reports whether a run may leave out nodes of a definition, or wait for a person.
func (g *group) isConditional(d *workflow.Definition) bool {
	if slices.ContainsFunc(d.Nodes, func(n workflow.Node) bool { return isGate(g.Types[n.TypeID]) }) {
		return true
	}
	return slices.ContainsFunc(d.Edges, func(e workflow.Edge) bool { return e.Condition != nil || e.TriggerRule != workflow.AllSuccess })
}
