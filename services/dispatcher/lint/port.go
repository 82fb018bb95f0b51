package lint

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"waybill.dev/waybill/protocol/interrupt"
	"waybill.dev/waybill/protocol/jsonpointer"
	"waybill.dev/waybill/protocol/strictjson"
	"waybill.dev/waybill/protocol/workflow"
	"waybill.dev/waybill/services/dispatcher/expr"
	"waybill.dev/waybill/services/dispatcher/node"
)

// portsIn are the input ports of types that read these only. The port input may only order nodes.
var portsIn = map[string][]string{
	node.TypeDelay:                  {"delayMs"},
	node.TypeSetVariable:            {"value"},
	node.TypeGetVariable:            {},
	workflow.TypeChannelWrite:       {"value"},
	interrupt.TypeApprovalGate:      {"observed"},
	interrupt.TypeClarificationGate: {"observed"},
	interrupt.TypeInterrupt:         {"observed"},
	node.TypeSubWorkflow:            {},
}

// typesIn are the types of values at input ports, typesOut those at output ports.
var (
	typesIn = map[string]map[string]string{
		node.TypeDelay:            {"delayMs": "number"},
		node.TypeLoop:             {"items": "array", "count": "number"},
		node.TypeCallPrompt:       {"messages": "array"},
		node.TypeStructuredOutput: {"messages": "array"},
		node.TypeMCPCallTool:      {"arguments": "object"},
	}
	typesOut = map[string]map[string]string{
		node.TypeConditional:      {"result": "boolean"},
		node.TypeLoop:             {"count": "number"},
		node.TypeSubWorkflow:      {"childRunId": "string", "childStatus": "string"},
		node.TypeCallPrompt:       {"envelopes": "array"},
		interrupt.TypeInterrupt:   {},
		node.TypeMCPCallTool:      {"isError": "boolean"},
		node.TypeA2ASendMessage:   {"output": "string", "task": "object"},
		node.TypeStructuredOutput: {},
	}
)

// checkInputs checks the ports that the node fills itself.
func (l *linter) checkInputs(n *workflow.Node, t node.Type, at string) {
	known, fixed := portsIn[t.Executes()]
	for _, port := range slices.Sorted(maps.Keys(l.ports[l.at[n.ID]])) {
		if fixed && port != "input" && !slices.Contains(known, port) {
			l.warn(l.portPath(l.at[n.ID], port), RulePort, "nodes of type %s do not read the port %s%s; they read %s",
				n.TypeID, port, meant(port, known), strings.Join(append(slices.Clone(known), "input"), ", "))
		}
	}
	for _, port := range slices.Sorted(maps.Keys(n.Inputs)) {
		pv, path := n.Inputs[port], at+"/inputs/"+jsonpointer.Escape(port)
		want := typesIn[t.Executes()][port]
		switch pv.Type {
		case workflow.PortStatic:
			if want != "" && !hasType(pv.Value, want) && !strings.Contains(string(pv.Value), "{{") {
				l.problem(path+"/value", workflow.RuleValueType, "the port wants a value of type %s, got %s", want, strictjson.KindOf(pv.Value))
			}
		case workflow.PortVariable:
			l.checkPortVariable(pv, path, want)
		case workflow.PortExpression:
			if p, err := expr.Compile(expr.Port, pv.Expression); err == nil {
				l.checkRead(path+"/expression", p.Reads()["variables"])
				l.checkVariablePaths(path+"/expression", p)
				l.checkNodeReads(path+"/expression", l.at[n.ID], p, true)
				l.checkDoubts(path+"/expression", l.at[n.ID], p)
			}
		case workflow.PortConnection:
			l.checkTypes(pv.NodeID, pv.OutputKey, path+"/outputKey", want)
			l.checkOutput(pv.NodeID, pv.OutputKey, path+"/outputKey", pv.Optional)
		}
	}
}

// checkPortVariable checks a port with the value of a variable.
func (l *linter) checkPortVariable(pv workflow.PortValue, path, want string) {
	if !l.variables[pv.VariableName] {
		l.report(!l.unsure && !pv.Optional, path+"/variableName", RuleName,
			"no variable has this name%s; declare it under variables, or set optional", meant(pv.VariableName, l.variableNames()))
		return
	}
	for _, v := range l.def.Variables {
		if v.Name == pv.VariableName && want != "" && v.Type != want {
			l.problem(path+"/variableName", workflow.RuleValueType, "the port wants a value of type %s, and the variable has type %s", want, v.Type)
		}
	}
}

// checkTypes finds a value of another type than the port's.
func (l *linter) checkTypes(source, output, path, want string) {
	i, known := l.at[source]
	if !known || want == "" {
		return
	}
	typeID := l.def.Nodes[i].TypeID
	if s := l.outputShape(source, []string{output}); !s.Has(want) && typesOut[l.Types[typeID].Executes()][output] == "" {
		l.warn(path, workflow.RuleValueType, "the port wants a value of type %s, and %s of node %s is of type %s", want, output, source, s)
		return
	}
	if got := typesOut[l.Types[typeID].Executes()][output]; got != "" && got != want {
		l.problem(path, workflow.RuleValueType, "the port wants a value of type %s, and %s of nodes of type %s is of type %s", want, output, typeID, got)
	}
}

// checkOutput finds output ports that the source never has.
func (l *linter) checkOutput(source, output, path string, optional bool) {
	i, known := l.at[source]
	if !known {
		return
	}
	typeID := l.def.Nodes[i].TypeID
	if l.Types[typeID].Executes() == node.TypeStart {
		l.checkInput(path, []string{output})
	}
	outputs := l.outputsOf(i)
	if outputs == nil || slices.Contains(outputs, output) {
		return
	}
	if len(outputs) == 0 {
		l.report(!optional && !l.passes(i), path, RulePort, "nodes of type %s have no outputs; connect another node", typeID)
		return
	}
	l.report(!optional && !l.passes(i), path, RulePort, "nodes of type %s have no output port %s%s; they have %s", typeID, output, meant(output, outputs), strings.Join(outputs, ", "))
}

// passing are the types whose outputs are their ports. A run goes on without such an output.
var passing = []string{node.TypeIdentity, node.TypeParallel, node.TypeEnd}

// passes reports whether the outputs of a node are its ports.
func (l *linter) passes(i int) bool {
	t := l.Types[l.def.Nodes[i].TypeID]
	return t.Made == nil && slices.Contains(passing, t.Executes())
}

// outputsOf returns the output ports of a node; nil if they are unknown.
func (l *linter) outputsOf(i int) []string {
	if !l.passes(i) {
		return l.Types[l.def.Nodes[i].TypeID].Outputs
	}
	out := slices.Sorted(maps.Keys(l.ports[i]))
	if l.ports[i]["input"] && !l.ports[i]["output"] {
		out = append(out, "output")
	}
	return append([]string{}, out...)
}

// checkEdges checks the ports at both ends of edges, and what conditions compare.
func (l *linter) checkEdges() {
	seen := map[string]string{}
	for i, e := range l.def.Edges {
		path := fmt.Sprintf("/edges/%d", i)
		if e.SourceOutput != "output" {
			l.checkOutput(e.SourceNodeID, e.SourceOutput, path+"/sourceOutput", false)
		}
		if k, known := l.at[e.TargetNodeID]; known {
			want := typesIn[l.Types[l.def.Nodes[k].TypeID].Executes()][e.TargetInput]
			l.checkTypes(e.SourceNodeID, e.SourceOutput, path+"/targetInput", want)
			if l.Types[l.def.Nodes[k].TypeID].Executes() == node.TypeStart {
				l.warn(path+"/targetNodeId", RulePort, "%s reads the inputs of the run only; an edge only delays it", node.TypeStart)
			}
		}
		key := fmt.Sprintf("%q %q %q %q %v", e.SourceNodeID, e.SourceOutput, e.TargetNodeID, e.TargetInput, e.Condition == nil)
		if first, twice := seen[key]; twice && e.Condition == nil {
			l.warn(path, workflow.RuleUnique, "edge %s connects the same ports; remove one", first)
		}
		seen[key] = e.ID
		if e.Condition != nil {
			l.checkCondition(&e, path+"/condition")
		}
		l.checkOverridden(&e, path)
	}
}

// checkOverridden warns about an edge whose value the target never gets, because its own inputs override
// it. Edges to the port input may only order nodes. An expression may read the edge's value, and a connection
// needs an edge for its order.
func (l *linter) checkOverridden(e *workflow.Edge, path string) {
	i, known := l.at[e.TargetNodeID]
	if !known || e.TargetInput == "input" {
		return
	}
	pv, own := l.def.Nodes[i].Inputs[e.TargetInput]
	if own && !pv.Optional && (pv.Type == workflow.PortStatic || pv.Type == workflow.PortVariable) {
		l.warn(path+"/targetInput", RuleNoEffect, "the port %s has a value under inputs of node %s, which overrides that of the edge; remove one of the two", e.TargetInput, e.TargetNodeID)
	}
}

// checkLeft checks the path of a comparison, into the outputs of a node.
func (l *linter) checkLeft(i int, left, path string) {
	selected := strings.Split(left, ".")
	outputs := l.outputsOf(i)
	switch {
	case left == "", selected[0] == "output" && len(selected) > 1 && slices.Contains(outputs, selected[1]): // output. is ignored then
	case outputs == nil || slices.Contains(outputs, selected[0]) || l.Types[l.def.Nodes[i].TypeID].Executes() == node.TypeStart:
		l.checkSelected(path, l.def.Nodes[i].ID, selected)
	case selected[0] == "outputs" || selected[0] == "variables":
		l.warn(path, RulePort, "is a path into the outputs of node %s, such as output.kind; to read %s, write the condition as an expression", l.def.Nodes[i].ID, selected[0])
	case selected[0] == "output": // ignored in front of an output
		l.checkSelected(path, l.def.Nodes[i].ID, selected[1:])
	default:
		l.checkSelected(path, l.def.Nodes[i].ID, selected)
	}
}

// checkCondition finds comparisons that never hold, and variables that nothing sets.
func (l *linter) checkCondition(e *workflow.Edge, path string) {
	c := e.Condition
	if c.Type == workflow.ConditionAlways {
		l.warn(path, RuleNoEffect, `is empty, so it always holds; remove it, or add an expression or a comparison, such as {"type": "equals", "left": "output", "right": "yes"}`)
		return
	}
	if c.Type == workflow.ConditionExpression {
		if p, err := expr.CompileBool(expr.Condition, c.Expression); err == nil {
			l.checkRead(path+"/expression", p.Reads()["variables"])
			l.checkVariablePaths(path+"/expression", p)
			l.checkConditionReads(path+"/expression", e, p)
			l.checkVerdict(path+"/expression", p, func(names []string) expr.Shape {
				if names[0] == rootOutputs {
					return l.outputShape(e.SourceNodeID, names[1:])
				}
				return l.readShape(0, names)
			}, "the edge needs no condition; remove it", "nothing runs because of this edge; compare an output or a variable")
		}
		return
	}
	i, known := l.at[e.SourceNodeID]
	if !known {
		return
	}
	l.checkLeft(i, c.Left, path+"/left")
	port := strings.TrimPrefix(c.Left, "output.")
	want := typesOut[l.Types[l.def.Nodes[i].TypeID].Executes()][port]
	if want == "" {
		l.checkCompared(c, path, l.comparedShape(i, c.Left))
	}
	compares := c.Type == workflow.ConditionEquals || c.Type == workflow.ConditionNotEquals
	if want != "" && compares && c.Right != nil && !hasType(c.Right, want) {
		l.problem(path+"/right", workflow.RuleValueType, "%s is of type %s and never equals %s; compare it with a %s", port, want, strictjson.KindOf(c.Right), want)
	}
	if want == "boolean" && (c.Type == workflow.ConditionRegex || c.Type == workflow.ConditionContains) {
		l.problem(path+"/type", workflow.RuleValueType, "%s is true or false, which %s never matches; use equals", port, c.Type)
	}
}
