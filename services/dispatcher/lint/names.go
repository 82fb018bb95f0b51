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
	l.checkAnswerForm(at, config, nested)
	for k, q := range s.Questions {
		l.checkPlaceholders(i, fmt.Sprintf("%s/questions/%d/question", at, k), q.Question)
	}
}

// formMembers are members of questions in other programs. Here they are passed on, and check nothing.
var formMembers = []string{"type", "options", "choices", "enum", "required", "pattern", "format"}

// checkAnswerForm warns about questions whose members are meant to check the answer.
func (l *linter) checkAnswerForm(at string, config json.RawMessage, nested bool) {
	type form struct {
		Questions []map[string]json.RawMessage `json:"questions"`
	}
	var c struct {
		form

		Data form `json:"data"`
	}
	_ = strictjson.Read(config, &c) // other members are reported by the schema
	questions := c.Questions
	if nested {
		questions = c.Data.Questions
	}
	for k, q := range questions {
		for _, name := range formMembers {
			if _, set := q[name]; set && q["schema"] == nil {
				l.warn(fmt.Sprintf("%s/questions/%d/%s", at, k, name), RuleNoEffect,
					`checks nothing; set schema to the JSON Schema of the answer, such as {"type": "string", "enum": ["a", "b"]}`)
			}
		}
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
		l.checkDefault(variableOf(config), c.Default, at)
	case node.TypeSetVariable:
		l.checkSetVariable(n, variableOf(config), c.Value, member, at)
	case node.TypeMCPCallTool:
		l.checkDocumentPlaceholders(i, at+"/config/arguments", c.Arguments)
	case node.TypeA2ASendMessage:
		l.checkPlaceholders(i, at+"/config/message", c.Message)
		if c.Message == "" && !l.ports[i]["message"] {
			l.problem(at+"/config", node.RuleConfig, "the agent would get no message; set message, or fill the port message")
		}
	case interrupt.TypeApprovalGate, interrupt.TypeClarificationGate, interrupt.TypeInterrupt:
		l.checkQuestion(i, at+"/config", config, t.Executes() == interrupt.TypeInterrupt)
	case node.TypeFail:
		if names := placeholders(c.Message); len(names) > 0 {
			l.warn(at+"/config/message", RuleName, "{{%s}} is recorded as it is: placeholders are not replaced here", names[0])
		}
	case node.TypeConditional:
		l.checkDecision(i, at+"/config/expression", c.Expression)
		l.checkDecision(i, at+"/config/condition/expression", c.Condition.Expression)
		if port, below, _ := strings.Cut(c.Condition.Left, "."); port != "" {
			l.checkReadPorts(i, at+"/config/condition/left", expr.Members{Names: []string{port}})
			names := []string{rootInputs, port}
			if below != "" {
				names = append(names, strings.Split(below, ".")...)
			}
			l.checkCompared(&c.Condition, at+"/config/condition", l.readShape(i, names))
		}
	case node.TypeLoop:
		l.checkRounds(l.ports[l.at[n.ID]], config, at)
		l.checkFirstRound(i, config, at)
		if p, err := expr.Compile(expr.Item, c.Expression); err == nil {
			l.checkRead(at+"/config/expression", p.Reads()["variables"])
			l.checkReadPorts(i, at+"/config/expression", p.Reads()["inputs"])
			l.checkNodeReads(at+"/config/expression", i, p, false)
			l.checkDoubts(at+"/config/expression", i, p)
		}
		if p, err := expr.CompileBool(expr.Item, c.Until); err == nil && c.Until != "" {
			l.checkRead(at+"/config/until", p.Reads()["variables"])
			l.checkReadPorts(i, at+"/config/until", p.Reads()["inputs"])
			l.checkNodeReads(at+"/config/until", i, p, false)
			l.checkVerdict(at+"/config/until", p, func(names []string) expr.Shape { return l.readShape(i, names) },
				"the loop ends after one round; compare item, index or acc", "the loop never ends early; remove until, or compare item, index or acc")
		}
	case node.TypeMerge:
		l.checkMerge(i, config)
	case node.TypeSubWorkflow:
		l.checkMappings(config, at)
	case node.TypeDelay:
		l.checkDelay(n, config, at)
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
		l.checkNodeReads(path, i, p, false)
		l.checkVerdict(path, p, func(names []string) expr.Shape { return l.readShape(i, names) },
			"all runs take one branch; compare a port or a variable", "no run takes the branch of true; compare a port or a variable")
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
	l.checkSource(n, name, at)
	l.checkDotted(name, member)
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

// checkDotted warns about a name that is meant as a path: the whole text is the name. A placeholder can have
// a dot.
func (l *linter) checkDotted(name, member string) {
	head, below, dotted := strings.Cut(name, ".")
	if !dotted || below == "" || strings.Contains(string(l.def.Raw), "{{"+name+"}}") {
		return
	}
	switch {
	case head == "variables":
		l.warn(member, RuleName, "the name is the whole text, so expressions do not find it as %s; write %s", name, below)
	case slices.ContainsFunc(l.def.Variables, func(v workflow.Variable) bool { return v.Name == head }):
		l.warn(member, RuleName, "sets a variable of this whole name, and no member of %s; set %s to an object", head, head)
	}
}

// checkSource warns about a variable that gets an output of another type.
func (l *linter) checkSource(n *workflow.Node, name, at string) {
	for _, v := range l.def.Variables {
		if v.Name != name {
			continue
		}
		path, s := l.portPath(l.at[n.ID], "value"), expr.Shape{}
		if source, selected := l.sourceOf(l.at[n.ID], "value"); source != "" {
			s = l.outputShape(source, selected)
		} else if pv := n.Inputs["value"]; pv.Type == workflow.PortExpression {
			if p, err := expr.Compile(expr.Port, pv.Expression); err == nil && p.Path() != nil {
				path, s = at+"/inputs/value/expression", l.readShape(l.at[n.ID], p.Path())
			}
		}
		if !s.Has(v.Type) {
			l.warn(path, workflow.RuleValueType, "the value is of type %s, and the variable %s of type %s", s, name, v.Type)
		}
	}
}

// checkDefault warns about a default of another type than the variable's.
func (l *linter) checkDefault(name string, value json.RawMessage, at string) {
	for _, v := range l.def.Variables {
		if v.Name == name && isGiven(value) && !hasType(value, v.Type) {
			l.warn(at+"/config/default", workflow.RuleValueType, "want a value of type %s, that of the variable %s; got %s", v.Type, name, strictjson.KindOf(value))
		}
	}
}

// isGiven reports whether a value is set and not null.
func isGiven(value json.RawMessage) bool { return len(value) > 0 && string(value) != "null" }

// checkDelay warns about members that the first one overrides.
func (l *linter) checkDelay(n *workflow.Node, config json.RawMessage, at string) {
	first := ""
	for _, name := range []string{"delayMs", "ms", "durationMs"} { // the order in which they count
		switch {
		case !isSet(config, name):
		case first == "":
			first = name
		default:
			l.warn(at+"/config/"+name, workflow.RuleExclusive, "%s is used, and means the same; keep one", first)
		}
	}
	if first != "" && l.ports[l.at[n.ID]]["delayMs"] {
		l.warn(at+"/config/"+first, RuleNoEffect, "the port delayMs overrides it; keep one of the two")
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
