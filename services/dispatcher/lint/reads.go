package lint

import (
	"maps"
	"slices"
	"strings"

	"waybill.dev/waybill/protocol/strictjson"
	"waybill.dev/waybill/protocol/workflow"
	"waybill.dev/waybill/services/dispatcher/expr"
	"waybill.dev/waybill/services/dispatcher/node"
)

// The names in expressions.
const (
	rootInputs  = "inputs"
	rootOutputs = "outputs"
	rootNodes   = "nodes"
)

// inputDelay is the run input that nodes of type core.delay read.
const inputDelay = "delaySeconds"

// collectInputs finds the inputs of a run that the definition declares: its variables, and the members of
// the schema of its form.
func (l *linter) collectInputs() {
	l.inputs = []string{inputDelay}
	for _, v := range l.def.Variables {
		l.inputs = append(l.inputs, v.Name)
	}
	var form struct {
		Properties map[string]any `json:"properties"`
	}
	if strictjson.Read(l.inputSchema(), &form) == nil {
		l.inputs = append(l.inputs, slices.Sorted(maps.Keys(form.Properties))...)
	}
}

// checkConditionReads checks what the condition of an edge reads of its source.
func (l *linter) checkConditionReads(path string, e *workflow.Edge, p *expr.Program) {
	for _, names := range p.Paths() {
		if names[0] == rootOutputs {
			l.checkSelected(path, e.SourceNodeID, names[1:])
		}
	}
}

// checkNodeReads checks what an expression of a node reads: its ports, and outputs of other nodes. Ports
// with an expression see only the values of edges.
func (l *linter) checkNodeReads(path string, i int, p *expr.Program, edgesOnly bool) {
	for _, names := range p.Paths() {
		switch {
		case names[0] == rootNodes && len(names) > 2:
			l.checkSelected(path, names[1], names[2:])
		case names[0] == rootInputs && edgesOnly && !slices.Contains(l.edgePorts(i), names[1]):
			l.warn(path, RulePort, "reads the port %s, which no edge fills%s; lead an edge to it, or read nodes.ID.PORT", names[1], meant(names[1], l.edgePorts(i)))
		case names[0] == rootInputs:
			if source, selected := l.sourceOf(i, names[1]); source != "" {
				l.checkSelected(path, source, append(selected, names[2:]...))
			}
		}
	}
}

// checkVariablePaths warns about members of variables that have none.
func (l *linter) checkVariablePaths(path string, p *expr.Program) {
	for _, names := range p.Paths() {
		if names[0] != "variables" || len(names) < 3 {
			continue
		}
		for _, v := range l.def.Variables {
			if v.Name == names[1] && v.Type != "object" {
				l.warn(path, workflow.RuleValueType, "reads the member %s of the variable %s, which is of type %s and has none; size(variables.%s) is the length of a text or a list",
					names[2], v.Name, v.Type, v.Name)
			}
		}
	}
}

// edgePorts lists the ports of a node that edges fill.
func (l *linter) edgePorts(i int) (out []string) {
	for _, e := range l.def.Edges {
		if e.TargetNodeID == l.def.Nodes[i].ID {
			out = append(out, e.TargetInput)
		}
	}
	return out
}

// sourceOf returns the node and the output that fill a port; empty if no node or several do.
func (l *linter) sourceOf(i int, port string) (source string, selected []string) {
	if pv, own := l.def.Nodes[i].Inputs[port]; own {
		if pv.Type != workflow.PortConnection {
			return "", nil
		}
		return pv.NodeID, []string{pv.OutputKey}
	}
	for _, e := range l.def.Edges {
		if e.TargetNodeID != l.def.Nodes[i].ID || e.TargetInput != port {
			continue
		}
		if source != "" {
			return "", nil
		}
		source, selected = e.SourceNodeID, []string{e.SourceOutput}
	}
	return source, selected
}

// maxPassed limits the nodes through which a value is followed.
const maxPassed = 16

// checkSelected warns about an output that a node never has, and an input of the run that nothing declares.
// selected is the output port and the members below.
func (l *linter) checkSelected(path, id string, selected []string) {
	i, rest, ok := l.follow(id, selected)
	if !ok {
		return
	}
	n := &l.def.Nodes[i]
	if l.Types[n.TypeID].Executes() == node.TypeStart {
		l.checkInput(path, rest)
		return
	}
	if outputs := l.outputsOf(i); outputs != nil && !slices.Contains(outputs, rest[0]) {
		l.warn(path, RulePort, "reads the output %s of node %s%s; its outputs are %s", rest[0], n.ID, meant(rest[0], outputs), orNone(outputs))
		return
	}
	if doc := l.outputSchema(i); doc != nil && rest[0] == "output" {
		l.checkMember(path, doc, rest[1:])
	}
}

// maxMembers limits the members among which a close name is searched.
const maxMembers = 256

// checkMember warns about a member that the schema of an output does not have.
func (l *linter) checkMember(path string, schema *document, selected []string) {
	for k, name := range selected {
		of := schema.member(selected[:k])
		if s := shapeOf(of); !s.Has("object") {
			l.warn(path, workflow.RuleValueType, "reads the member %s of %s, which is of type %s and has none%s", name, outputName(selected[:k]), s, sized(name, selected[:k]))
			return
		}
		properties, _ := of["properties"].(map[string]any)
		if _, known := properties[name]; known {
			continue
		}
		if len(properties) == 0 || len(properties) > maxMembers {
			return
		}
		known := slices.Sorted(maps.Keys(properties))
		switch {
		case of["additionalProperties"] == false && of["patternProperties"] == nil:
			l.warn(path, RulePort, "reads the member %s, which the schema of the output does not have%s; it has %s", name, meant(name, known), strings.Join(known, ", "))
		case name == "length":
			l.warn(path, RulePort, "reads the member length, which the schema of the output does not have; size(…) is the length of a text, a list or an object")
		case near(name, known) != "":
			l.warn(path, RulePort, "reads the member %s, which the schema of the output does not have%s", name, meant(name, known))
		}
		return
	}
}

// outputName names a member of an output.
func outputName(selected []string) string {
	return strings.Join(append([]string{"output"}, selected...), ".")
}

// sized explains lengths.
func sized(name string, selected []string) string {
	if name == "length" || name == "size" || name == "count" {
		return "; in an expression, size(…" + outputName(selected) + ") is the length"
	}
	return ""
}

func orNone(ports []string) string {
	if len(ports) == 0 {
		return "none"
	}
	return strings.Join(ports, ", ")
}

// checkInput warns about an input of the run that the definition does not declare. selected is the output
// of core.start that is read, and the members below.
func (l *linter) checkInput(path string, selected []string) {
	name := selected[0]
	if name == "output" && !slices.Contains(l.inputs, name) { // all inputs as an object
		if len(selected) == 1 {
			return
		}
		name = selected[1]
	}
	if !slices.Contains(l.inputs, name) {
		l.warn(path, RuleName, "reads the input %s of the run, which nothing declares%s; declare it under variables", name, meant(name, l.inputs))
	}
}
