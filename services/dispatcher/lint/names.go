package lint

import (
	"encoding/json"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"

	"waybill.dev/waybill/protocol/interrupt"
	"waybill.dev/waybill/protocol/jsonpointer"
	"waybill.dev/waybill/protocol/strictjson"
	"waybill.dev/waybill/protocol/workflow"
	"waybill.dev/waybill/services/dispatcher/expr"
	"waybill.dev/waybill/services/dispatcher/node"
)

// collectVariables finds the variables that the definition declares or sets.
func (l *linter) collectVariables() {
	for _, v := range l.def.Variables {
		l.variables[v.Name] = true
	}
	for name := range l.def.DeclaredChannels() { // a channel's value is stored in the variable of its name
		l.variables[name] = true
	}
	for i := range l.def.Nodes {
		n := &l.def.Nodes[i]
		t, known := l.Types[n.TypeID]
		if !known {
			l.unsure = true
			continue
		}
		switch t.Executes() {
		case node.TypeSetVariable:
			l.variables[variableOf(t.Configure(n.Config))] = true
		case node.TypeIdentity:
			maps.Copy(l.variables, l.ports[i])
		case node.TypeSubWorkflow:
			if c, bad := node.ParseSubWorkflow(t.Configure(n.Config)); bad == nil {
				for name := range c.Outputs {
					l.variables[name] = true
				}
			}
		case node.TypeSecretEcho:
			l.variables[n.ID] = true
		}
	}
	delete(l.variables, "")
}

// variableOf returns the name in the config of a node that reads or sets a variable.
func variableOf(config json.RawMessage) string {
	var c struct {
		Name         string `json:"name"`
		VariableName string `json:"variableName"`
	}
	if strictjson.Read(config, &c) != nil {
		return ""
	}
	if c.Name != "" {
		return c.Name
	}
	return c.VariableName
}

func (l *linter) variableNames() []string { return slices.Sorted(maps.Keys(l.variables)) }

// placeholder is that of prompts and tools.
var placeholder = regexp.MustCompile(`\{\{\s*([A-Za-z0-9_.-]+)\s*\}\}`)

// placeholders returns the names in a text.
func placeholders(text string) []string {
	var out []string
	for _, m := range placeholder.FindAllStringSubmatch(text, -1) {
		if !slices.Contains(out, m[1]) {
			out = append(out, m[1])
		}
	}
	return out
}

// checkPlaceholders finds names without a port and without a variable: the node fails.
func (l *linter) checkPlaceholders(i int, path, text string) {
	l.checkBraces(i, path, text)
	for _, name := range placeholders(text) {
		if l.ports[i][name] || l.variables[name] {
			continue
		}
		known := append(slices.Sorted(maps.Keys(l.ports[i])), l.variableNames()...)
		if head, _, dotted := strings.Cut(name, "."); dotted && slices.Contains(known, head) {
			l.problem(path, RuleName, "{{%s}}: placeholders name a whole port or variable, and no member of one; "+
				"fill a port with the expression that selects the member", name)
			continue
		}
		if _, tail, dotted := strings.Cut(name, "."); dotted && slices.Contains(known, tail) {
			l.problem(path, RuleName, "{{%s}}: placeholders have the name alone; write {{%s}}", name, tail)
			continue
		}
		l.report(!l.unsure, path, RuleName, "{{%s}}: no port and no variable has this name%s; declare it under variables, or lead an edge to the port",
			name, meant(name, known))
	}
}

// checkDocumentPlaceholders is checkPlaceholders for the strings of a JSON document.
func (l *linter) checkDocumentPlaceholders(i int, path string, doc json.RawMessage) {
	var object map[string]json.RawMessage
	var list []json.RawMessage
	if text, ok := strictjson.String(doc); ok {
		l.checkPlaceholders(i, path, text)
	} else if json.Unmarshal(doc, &object) == nil {
		for _, name := range slices.Sorted(maps.Keys(object)) {
			l.checkDocumentPlaceholders(i, path+"/"+jsonpointer.Escape(name), object[name])
		}
	} else if json.Unmarshal(doc, &list) == nil {
		for _, v := range list {
			l.checkDocumentPlaceholders(i, path, v)
		}
	}
}

// checkQuestion checks the placeholders of what a person reads.
func (l *linter) checkQuestion(i int, at string, config json.RawMessage, nested bool) {
	type shown struct {
		Title        string          `json:"title"`
		Description  string          `json:"description"`
		ArtifactData json.RawMessage `json:"artifactData"`
		Questions    []struct {
			Question string `json:"question"`
		} `json:"questions"`
	}
	var c struct {
		shown

		Kind interrupt.Kind `json:"kind"`
		Data shown          `json:"data"`
	}
	_ = strictjson.Read(config, &c) // other members are reported by the schema
	s := c.shown
	if nested {
		if c.Kind != interrupt.Approval && c.Kind != interrupt.Clarification {
			return // programs read it
		}
		s, at = c.Data, at+"/data"
	}
	l.checkPlaceholders(i, at+"/title", s.Title)
	l.checkPlaceholders(i, at+"/description", s.Description)
	l.checkDocumentPlaceholders(i, at+"/artifactData", s.ArtifactData)
	for k, q := range s.Questions {
		l.checkPlaceholders(i, fmt.Sprintf("%s/questions/%d/question", at, k), q.Question)
	}
}

// checkRead warns about variables that an expression reads and nothing sets. It may test for them.
func (l *linter) checkRead(path string, read expr.Members) {
	for _, name := range read.Names {
		if !l.variables[name] {
			l.warn(path, RuleName, "reads the variable %s, which nothing declares or sets%s; declare it under variables", name, meant(name, l.variableNames()))
		}
	}
}

// checkVariableNode checks the names in the configs of nodes that call no model.
func (l *linter) checkVariableNode(n *workflow.Node, t node.Type, at string) {
	config := t.Configure(n.Config)
	var c struct {
		Name       string          `json:"name"`
		Default    json.RawMessage `json:"default"`
		Value      json.RawMessage `json:"value"`
		Message    string          `json:"message"`
		Arguments  json.RawMessage `json:"arguments"`
		Expression string          `json:"expression"`
		Until      string          `json:"until"`

		Condition workflow.EdgeCondition `json:"condition"`
	}
	_ = strictjson.Read(config, &c) // members of other types are reported by the schema
	member := at + "/config/name"
	if c.Name == "" {
		member = at + "/config/variableName"
	}
	i := l.at[n.ID]
	switch t.Executes() {
	case node.TypeGetVariable:
		if name := variableOf(config); name != "" && !l.variables[name] && c.Default == nil {
			l.report(!l.unsure, member, RuleName, "no variable has this name%s; declare it under variables, or set default", meant(name, l.variableNames()))
		}
	case node.TypeSetVariable:
		l.checkSetVariable(n, variableOf(config), c.Value, member, at)
	case node.TypeMCPCallTool:
		l.checkDocumentPlaceholders(i, at+"/config/arguments", c.Arguments)
	case node.TypeA2ASendMessage:
		l.checkPlaceholders(i, at+"/config/message", c.Message)
	case interrupt.TypeApprovalGate, interrupt.TypeClarificationGate, interrupt.TypeInterrupt:
		l.checkQuestion(i, at+"/config", config, t.Executes() == interrupt.TypeInterrupt)
	case node.TypeFail:
		if names := placeholders(c.Message); len(names) > 0 {
			l.warn(at+"/config/message", RuleName, "{{%s}} is recorded as it is: placeholders are not replaced here", names[0])
		}
	case node.TypeConditional:
		l.checkDecision(i, at+"/config/expression", c.Expression)
		l.checkDecision(i, at+"/config/condition/expression", c.Condition.Expression)
		if port, _, _ := strings.Cut(c.Condition.Left, "."); port != "" {
			l.checkReadPorts(i, at+"/config/condition/left", expr.Members{Names: []string{port}})
		}
	case node.TypeLoop:
		l.checkRounds(l.ports[l.at[n.ID]], config, at)
		if p, err := expr.Compile(expr.Item, c.Expression); err == nil {
			l.checkRead(at+"/config/expression", p.Reads()["variables"])
			l.checkReadPorts(i, at+"/config/expression", p.Reads()["inputs"])
			l.checkNodeReads(at+"/config/expression", i, p, false)
		}
		if p, err := expr.CompileBool(expr.Item, c.Until); err == nil && c.Until != "" {
			l.checkRead(at+"/config/until", p.Reads()["variables"])
			l.checkReadPorts(i, at+"/config/until", p.Reads()["inputs"])
			l.checkNodeReads(at+"/config/until", i, p, false)
		}
	case node.TypeSubWorkflow:
		l.checkMappings(config, at)
	case workflow.TypeChannelWrite:
		l.checkWrite(n, at)
	}
	l.checkFixed(t, config, at)
}

// fixedMembers are the config members with values in which no placeholder is replaced.
var fixedMembers = map[string][]string{
	node.TypeSetVariable: {"value"}, node.TypeGetVariable: {"default"}, workflow.TypeChannelWrite: {"value"}, node.TypeLoop: {"items", "initial"},
}

// checkFixed warns about placeholders in values that are used as they are.
func (l *linter) checkFixed(t node.Type, config json.RawMessage, at string) {
	members, err := strictjson.Split(config, strictjson.Default)
	if err != nil {
		return
	}
	for _, name := range fixedMembers[t.Executes()] {
		for _, used := range placeholders(string(members[name])) {
			if l.variables[used] {
				l.warn(at+"/config/"+name, RuleName, "{{%s}} stays as it is: placeholders are not replaced here; fill a port with an expression, such as variables.%s", used, used)
				break
			}
		}
	}
}

// checkDecision checks what an expression of a conditional reads.
func (l *linter) checkDecision(i int, path, source string) {
	if p, err := expr.CompileBool(expr.Node, source); err == nil && source != "" {
		l.checkRead(path, p.Reads()["variables"])
		l.checkReadPorts(i, path, p.Reads()["inputs"])
		l.checkVariablePaths(path, p)
		l.checkTruth(path, source)
		l.checkNodeReads(path, i, p, false)
	}
}

// checkReadPorts warns about ports that an expression reads and nothing fills.
func (l *linter) checkReadPorts(i int, path string, read expr.Members) {
	for _, name := range read.Names {
		if !l.ports[i][name] {
			l.warn(path, RulePort, "reads the port %s, which nothing fills%s; lead an edge to it, or set it under inputs", name, meant(name, slices.Sorted(maps.Keys(l.ports[i]))))
		}
	}
}

// checkSetVariable finds values of another type than the variable's, and names that are almost declared.
func (l *linter) checkSetVariable(n *workflow.Node, name string, value json.RawMessage, member, at string) {
	declared := make([]string, 0, len(l.def.Variables))
	for _, v := range l.def.Variables {
		declared = append(declared, v.Name)
		if v.Name != name {
			continue
		}
		for path, raw := range map[string]json.RawMessage{at + "/config/value": value, at + "/inputs/value": static(n, "value")} {
			if raw != nil && !strings.Contains(string(raw), "{{") && !hasType(raw, v.Type) {
				l.warn(path, workflow.RuleValueType, "want a value of type %s, that of the variable %s; got %s", v.Type, name, strictjson.KindOf(raw))
			}
		}
		return
	}
	if like := near(name, declared); like != "" {
		l.warn(member, RuleName, "sets a variable that is not declared; did you mean %s?", like)
	}
}

// checkMappings finds variables of this workflow that a child gets and nothing sets.
func (l *linter) checkMappings(config json.RawMessage, at string) {
	c, bad := node.ParseSubWorkflow(config)
	if bad != nil {
		return
	}
	if !c.Wait && len(c.Outputs) > 0 {
		l.warn(at+"/config/outputMapping", RuleNoEffect, "the node does not wait for the other run, so it gets no values of it; set waitForCompletion to true, or remove the mapping")
	}
	if !c.Wait && c.Absorb {
		l.warn(at+"/config/onChildFailure", RuleNoEffect, "the node does not wait for the other run, so it ignores how that ends; remove the member")
	}
	for _, to := range slices.Sorted(maps.Keys(c.Inputs)) {
		from := c.Inputs[to]
		if names := placeholders(from); len(names) == 1 {
			l.warn(at+"/config/inputMapping/"+jsonpointer.Escape(to), RuleName, "names a variable, without braces; write %q", names[0])
		} else if !l.variables[from] {
			l.warn(at+"/config/inputMapping/"+jsonpointer.Escape(to), RuleName, "nothing declares or sets the variable %s of this workflow%s; the child gets no value", from, meant(from, l.variableNames()))
		}
	}
}

// static returns the value of a static port; nil if the port has another source.
func static(n *workflow.Node, port string) json.RawMessage {
	if pv, ok := n.Inputs[port]; ok && pv.Type == workflow.PortStatic {
		return pv.Value
	}
	return nil
}

// hasType reports whether a value has the type of a variable.
func hasType(raw json.RawMessage, typ string) bool {
	_, kind, _ := strings.Cut(strictjson.KindOf(raw), " ")
	return kind == typ
}
