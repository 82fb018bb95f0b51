package lint

import (
	"encoding/json"
	"slices"
	"strconv"
	"strings"

	"waybill.dev/waybill/protocol/interrupt"
	"waybill.dev/waybill/protocol/jsonpointer"
	"waybill.dev/waybill/protocol/strictjson"
	"waybill.dev/waybill/protocol/workflow"
	"waybill.dev/waybill/services/dispatcher/expr"
	"waybill.dev/waybill/services/dispatcher/node"
)

// RuleConstant is the rule of conditions that give the same in every run.
const RuleConstant = "constant"

// follow returns the node that makes the value at an output of a node: nodes that only pass a value are
// passed. selected is the output port and the members below. ok is false if the node is unknown.
func (l *linter) follow(id string, selected []string) (i int, rest []string, ok bool) {
	for range maxPassed {
		i, known := l.at[id]
		if !known || len(selected) == 0 {
			return 0, nil, false
		}
		executes := l.Types[l.def.Nodes[i].TypeID].Executes()
		passes := slices.Contains([]string{node.TypeParallel, node.TypeEnd, node.TypeConditional}, executes)
		if !passes || selected[0] != "output" {
			return i, selected, true
		}
		source, from := l.sourceOf(i, "input") // its output is the value of this port
		id, selected = source, append(from, selected[1:]...)
	}
	return 0, nil, false
}

// outputShape returns what is known of an output of a node, or of a member of it.
func (l *linter) outputShape(id string, selected []string) expr.Shape {
	i, rest, ok := l.follow(id, selected)
	if !ok {
		return expr.Shape{}
	}
	t := l.Types[l.def.Nodes[i].TypeID]
	if t.Executes() == node.TypeStart {
		if rest[0] == "output" && len(rest) > 1 {
			rest = rest[1:]
		}
		return l.variableShape(rest)
	}
	if doc := l.outputSchema(i); doc != nil && rest[0] == "output" {
		return shapeOf(doc.member(rest[1:]))
	}
	if t.Executes() == interrupt.TypeApprovalGate && slices.Equal(rest, []string{"action"}) {
		return actionShape(t.Configure(l.def.Nodes[i].Config))
	}
	if rest[0] == "output" && len(rest) == 1 && l.answersText(i) {
		return expr.Shape{Types: []string{"string"}}
	}
	if typ := typesOut[t.Executes()][rest[0]]; typ != "" && len(rest) == 1 {
		return expr.Shape{Types: []string{typ}}
	}
	return expr.Shape{}
}

// answersText reports whether the output of a node is the text of a model.
func (l *linter) answersText(i int) bool {
	n := &l.def.Nodes[i]
	t := l.Types[n.TypeID]
	config := t.Configure(n.Config)
	return t.Made == nil && t.Executes() == node.TypeCallPrompt && n.EnvelopeContract == nil && !isSet(config, "envelopeContract") && !isSet(config, "envelopeType")
}

// outputSchema returns the schema of the port output of a model node; nil if it is unknown.
func (l *linter) outputSchema(i int) *document {
	if d, read := l.outputs[i]; read {
		return d
	}
	n := &l.def.Nodes[i]
	t := l.Types[n.TypeID]
	var raw json.RawMessage
	switch config := t.Configure(n.Config); t.Executes() {
	case node.TypeStructuredOutput:
		var c struct {
			Schema json.RawMessage `json:"outputSchema"`
		}
		_ = strictjson.Read(config, &c) // otherwise nothing is known
		raw = c.Schema
	case node.TypeCallPrompt:
		if kinds := l.acceptedKinds(n.EnvelopeContract, config); len(kinds) == 1 {
			raw = l.KindSchemas[kinds[0]]
		}
	}
	d := &document{}
	if d.value, _ = strictjson.Value(raw, strictjson.Default); d.value == nil {
		d = nil
	}
	if l.outputs == nil {
		l.outputs = map[int]*document{}
	}
	l.outputs[i] = d
	return d
}

// actionShape returns the decisions after which an approval completes.
func actionShape(config json.RawMessage) expr.Shape {
	var c struct {
		Actions []string `json:"actions"`
	}
	if strictjson.Read(config, &c) != nil || len(c.Actions) == 0 {
		return expr.Shape{}
	}
	return expr.Shape{ // without values if it can only be rejected
		Types:  []string{"string"},
		Values: slices.DeleteFunc(c.Actions, func(a string) bool { return a == string(interrupt.Reject) }),
		Note:   "a rejected approval fails, and edges with the trigger rule any_failed go on from there",
	}
}

// acceptedKinds returns the kinds whose payloads can be the output of a node.
func (l *linter) acceptedKinds(contract, config json.RawMessage) []string {
	type accepting struct {
		Accepts []string `json:"accepts"`
	}
	var own accepting
	var c struct {
		Kind     string    `json:"envelopeType"`
		Contract accepting `json:"envelopeContract"`
	}
	_ = strictjson.Read(contract, &own) // both have been checked
	_ = strictjson.Read(config, &c)
	kinds := append(own.Accepts, c.Contract.Accepts...)
	if c.Kind != "" {
		kinds = append(kinds, c.Kind)
	}
	slices.Sort(kinds)
	return slices.Compact(kinds)
}

// variableShape returns what is known of a variable. It may be null.
func (l *linter) variableShape(selected []string) expr.Shape {
	for _, v := range l.def.Variables {
		if len(selected) == 1 && v.Name == selected[0] {
			return expr.Shape{Types: []string{v.Type, "null"}}
		}
	}
	return expr.Shape{}
}

// document is a parsed JSON Schema.
type document struct{ value any }

// member returns the schema of a member; nil if it is unknown.
func (d *document) member(selected []string) map[string]any {
	at := d.resolve(d.value)
	for _, name := range selected {
		properties, _ := at["properties"].(map[string]any)
		at = d.resolve(properties[name])
	}
	return at
}

// resolve follows references to other parts of the document.
func (d *document) resolve(at any) map[string]any {
	for range maxPassed {
		s, _ := at.(map[string]any)
		to, _ := s["$ref"].(string)
		if !strings.HasPrefix(to, "#/") {
			return s
		}
		at = d.value
		for _, token := range strings.Split(to[2:], "/") {
			object, _ := at.(map[string]any)
			at = object[jsonpointer.Unescape(token)]
		}
	}
	return nil
}

// shapeOf reads the keywords type, enum and const. Integers are numbers.
func shapeOf(schema map[string]any) (s expr.Shape) {
	add := func(typ string) {
		if typ == "integer" {
			typ = "number"
		}
		if !slices.Contains(s.Types, typ) {
			s.Types = append(s.Types, typ)
		}
	}
	values, _ := schema["enum"].([]any)
	if v, fixed := schema["const"]; fixed {
		values = []any{v}
	}
	if len(values) == 0 {
		switch t := schema["type"].(type) {
		case string:
			add(t)
		case []any:
			for _, one := range t {
				text, _ := one.(string)
				add(text)
			}
		}
		if slices.Equal(s.Types, []string{"number"}) {
			s.Whole, s.Least, s.Most = schema["type"] == "integer", numberOf(schema["minimum"]), numberOf(schema["maximum"])
		}
		return s
	}
	if len(values) > maxMembers {
		return expr.Shape{}
	}
	for _, v := range values {
		if text, ok := v.(string); ok {
			s.Values = append(s.Values, text)
		}
		_, typ, found := strings.Cut(strictjson.KindOf(strictjson.Render(v)), " ")
		if !found {
			typ = "null"
		}
		add(typ)
	}
	return s
}

// numberOf returns a number of a parsed document; nil if it is none.
func numberOf(v any) *float64 {
	n, err := strconv.ParseFloat(string(strictjson.Render(v)), 64)
	if err != nil {
		return nil
	}
	return &n
}

// readShape returns what is known of a value that an expression of a node reads.
func (l *linter) readShape(i int, path []string) expr.Shape {
	switch path[0] {
	case "variables":
		return l.variableShape(path[1:])
	case rootNodes:
		if len(path) > 2 {
			return l.outputShape(path[1], path[2:])
		}
	case rootInputs:
		if source, selected := l.sourceOf(i, path[1]); source != "" {
			return l.outputShape(source, append(selected, path[2:]...))
		}
	}
	return expr.Shape{}
}

// checkDoubts warns about operations of an expression that fail.
func (l *linter) checkDoubts(path string, i int, p *expr.Program) {
	for _, d := range p.Doubts(func(names []string) expr.Shape { return l.readShape(i, names) }) {
		l.warn(path, workflow.RuleValueType, "%s", d)
	}
}

// checkVerdict warns about a condition that gives the same in every run, and about its comparisons.
func (l *linter) checkVerdict(path string, p *expr.Program, shapeOf func([]string) expr.Shape, always, never string) {
	v, doubts := p.Judge(shapeOf)
	for _, d := range doubts {
		l.warn(path, workflow.RuleValueType, "%s", d)
	}
	switch v {
	case expr.Always:
		l.warn(path, RuleConstant, "is always true: %s", always)
	case expr.Never:
		l.warn(path, RuleConstant, "is always false: %s", never)
	case expr.Depends:
	}
}
