package lint

import (
	"fmt"
	"slices"

	"waybill.dev/waybill/protocol/workflow"
	"waybill.dev/waybill/services/dispatcher/expr"
	"waybill.dev/waybill/services/dispatcher/node"
)

// maxOrdered limits the nodes whose order is checked: what runs after each of them is searched.
const maxOrdered = 512

// checkOrder finds nodes that read a variable which only later nodes set.
func (l *linter) checkOrder() {
	if l.unsure || len(l.def.Nodes) > maxOrdered {
		return
	}
	setters := l.setters()
	for i := range l.def.Nodes {
		n, at := &l.def.Nodes[i], fmt.Sprintf("/nodes/%d", i)
		t := l.Types[n.TypeID]
		late := func(name string) bool { return l.isLate(setters[name], n.ID) }
		const remedy = "the variable %s is set by a later node only; move that node before this one, or declare the variable with a defaultValue"
		switch config := t.Configure(n.Config); t.Executes() {
		case node.TypeGetVariable:
			if name := variableOf(config); late(name) && !isSet(config, "default") {
				l.problem(at+"/config", RuleName, remedy, name)
			}
		case node.TypeConditional:
			var c struct {
				Expression string `json:"expression"`
			}
			if p, err := expr.CompileBool(expr.Node, readMember(config, &c).Expression); err == nil {
				l.warnLate(at+"/config/expression", p, late)
			}
		}
		for _, name := range placeholders(textMember(t.Configure(n.Config), "prompt")) {
			if t.AsksModel() && !l.ports[i][name] && late(name) {
				l.problem(at+"/config/prompt", RuleName, remedy, name)
			}
		}
	}
	for k, e := range l.def.Edges {
		if e.Condition == nil || e.Condition.Type != workflow.ConditionExpression {
			continue
		}
		late := func(name string) bool { return l.isLate(setters[name], e.SourceNodeID) }
		if p, err := expr.CompileBool(expr.Condition, e.Condition.Expression); err == nil {
			l.warnLate(fmt.Sprintf("/edges/%d/condition/expression", k), p, func(name string) bool {
				return late(name) && !slices.ContainsFunc(setters[name], func(id string) bool { return id != e.TargetNodeID && !l.after(e.TargetNodeID)[id] })
			})
		}
	}
}

// warnLate warns about an expression that reads a variable which only later nodes set. It may test for it.
func (l *linter) warnLate(path string, p *expr.Program, late func(string) bool) {
	for _, name := range p.Reads()["variables"].Names {
		if late(name) {
			l.warn(path, RuleName, "reads the variable %s, which only a later node sets; declare it with a defaultValue, or move the node", name)
		}
	}
}

// setters maps the variables that only nodes set to these nodes.
func (l *linter) setters() map[string][]string {
	out := map[string][]string{}
	for i := range l.def.Nodes {
		n := &l.def.Nodes[i]
		switch t := l.Types[n.TypeID]; t.Executes() {
		case node.TypeSetVariable:
			name := variableOf(t.Configure(n.Config))
			out[name] = append(out[name], n.ID)
		case node.TypeSubWorkflow:
			if c, bad := node.ParseSubWorkflow(t.Configure(n.Config)); bad == nil {
				for name := range c.Outputs {
					out[name] = append(out[name], n.ID)
				}
			}
		case node.TypeIdentity:
			for name := range l.ports[i] {
				out[name] = append(out[name], n.ID)
			}
		case node.TypeSecretEcho:
			out[n.ID] = append(out[n.ID], n.ID)
		}
	}
	for _, v := range l.def.Variables {
		delete(out, v.Name)
	}
	for name := range l.def.DeclaredChannels() {
		delete(out, name)
	}
	delete(out, "")
	return out
}

// isLate reports whether all setters of a variable run after a node, or are the node.
func (l *linter) isLate(setters []string, id string) bool {
	if len(setters) == 0 {
		return false
	}
	after := l.after(id)
	return !slices.ContainsFunc(setters, func(s string) bool { return s != id && !after[s] })
}
