package lint

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"

	"waybill.dev/waybill/protocol/jsonpointer"
	"waybill.dev/waybill/protocol/schema"
	"waybill.dev/waybill/protocol/strictjson"
	"waybill.dev/waybill/protocol/workflow"
	"waybill.dev/waybill/services/dispatcher/node"
)

// braces is text that looks like a placeholder; the placeholders themselves are removed first.
var braces = regexp.MustCompile(`\{%[^{}\n]{0,64}%\}|\{\{[^{}\n]{0,64}\}{0,2}|\$?\{\s*([A-Za-z0-9_.-]+)\s*\}`)

// checkBraces warns about text that is probably meant as a placeholder, and is none.
func (l *linter) checkBraces(i int, path, text string) {
	for _, m := range braces.FindAllStringSubmatch(placeholder.ReplaceAllString(text, ""), -1) {
		if m[1] != "" && !l.ports[i][m[1]] && !l.variables[m[1]] {
			continue // such as JSON
		}
		name := "NAME"
		if m[1] != "" {
			name = m[1]
		}
		l.warn(path, RuleName, "%s is no placeholder, and stays as it is; write {{%s}}: the name of a port or a variable, and nothing else", strings.TrimSpace(m[0]), name)
		return
	}
}

// checkStatics warns about placeholders in the fixed values of ports, where none is replaced.
func (l *linter) checkStatics(n *workflow.Node, at string) {
	for name, pv := range n.Inputs {
		text, isText := strictjson.String(pv.Value)
		if !isText || pv.Type != workflow.PortStatic {
			continue
		}
		for _, used := range placeholders(text) {
			if l.variables[used] {
				l.warn(at+"/inputs/"+jsonpointer.Escape(name)+"/value", RuleName, "{{%s}} stays as it is: placeholders are not replaced here; use the type variable or expression", used)
				break
			}
		}
	}
}

// checkKeywords finds mistakes in a JSON Schema of a definition, which would not check what its author wants.
func (l *linter) checkKeywords(path string, doc json.RawMessage) {
	if strictjson.KindOf(doc) != "an object" {
		return
	}
	for _, f := range schema.Mistakes(doc) {
		l.report(!f.Warning, path+f.Path, f.Rule, "%s", f.Message)
	}
}

// checkSchemas checks the schemas in the config of a node.
func (l *linter) checkSchemas(n *workflow.Node, at string) {
	type shown struct {
		Questions []struct {
			Schema json.RawMessage `json:"schema"`
		} `json:"questions"`
	}
	var c struct {
		Output    json.RawMessage `json:"outputSchema"`
		Resume    json.RawMessage `json:"resumeSchema"`
		Questions json.RawMessage `json:"questions"`
		Data      shown           `json:"data"`
	}
	var data struct {
		Data struct {
			Questions json.RawMessage `json:"questions"`
		} `json:"data"`
	}
	_ = strictjson.Read(n.Config, &c) // reported by the schema of the config
	_ = strictjson.Read(n.Config, &data)
	l.checkKeywords(at+"/outputSchema", c.Output)
	l.checkKeywords(at+"/resumeSchema", c.Resume)
	own := shown{}
	_ = json.Unmarshal(c.Questions, &own.Questions) // as above
	for k, q := range own.Questions {
		l.checkKeywords(fmt.Sprintf("%s/questions/%d/schema", at, k), q.Schema)
	}
	for k, q := range c.Data.Questions {
		l.checkKeywords(fmt.Sprintf("%s/data/questions/%d/schema", at, k), q.Schema)
	}
	l.checkQuestionMembers(at+"/questions", c.Questions)
	l.checkQuestionMembers(at+"/data/questions", data.Data.Questions)
}

// questionMembers are those of a question that a host reads. Clients may read others.
var questionMembers = []string{"id", "question", "schema"}

// checkQuestionMembers warns about members of questions that are probably misspelled.
func (l *linter) checkQuestionMembers(at string, doc json.RawMessage) {
	var list []map[string]json.RawMessage
	_ = json.Unmarshal(doc, &list) // the schema has checked it
	for k, q := range list {
		for _, name := range slices.Sorted(maps.Keys(q)) {
			near := schema.Near(name, questionMembers)
			if !slices.Contains(questionMembers, name) && near != "" && q[near] == nil {
				l.warn(fmt.Sprintf("%s/%d/%s", at, k, jsonpointer.Escape(name)), workflow.RuleUnknownMember, "hosts do not read it; did you mean %s?", near)
			}
		}
	}
}

// inputSchema returns the schema of the form for inputs; nil if there is none.
func (l *linter) inputSchema() json.RawMessage {
	var doc struct {
		Metadata struct {
			Form json.RawMessage `json:"x-inputSchema"`
		} `json:"metadata"`
	}
	_ = strictjson.Read(l.def.Raw, &doc) // the schema has checked it
	return doc.Metadata.Form
}

// checkOwnSchemas checks the schemas of the definition itself.
func (l *linter) checkOwnSchemas() {
	l.checkKeywords("/configurableSchema", l.def.ConfigurableSchema)
	for _, name := range slices.Sorted(maps.Keys(l.def.Channels)) {
		l.checkKeywords("/channels/"+jsonpointer.Escape(name)+"/schema", l.def.Channels[name].Schema)
	}
	l.checkForm("/metadata/x-inputSchema", l.inputSchema())
}

// checkForm checks the schema of the form for inputs. Only forms use it, so its mistakes are warnings.
func (l *linter) checkForm(path string, doc json.RawMessage) {
	if doc == nil {
		return
	}
	if _, err := schema.Compile("x-inputSchema", doc); err != nil {
		reason := err.Error()
		if e, ok := errors.AsType[*schema.Error](err); ok {
			path, reason = path+e.Path, e.Reason
		}
		l.warn(path, workflow.RuleSchema, "%s; forms ignore it", reason)
		return
	}
	for _, f := range schema.Mistakes(doc) {
		l.warn(path+f.Path, f.Rule, "%s", f.Message)
	}
	var form struct {
		Properties map[string]json.RawMessage `json:"properties"`
		Required   []string                   `json:"required"`
	}
	_ = strictjson.Read(doc, &form) // it compiles
	var declared []string
	for _, v := range l.def.Variables {
		declared = append(declared, v.Name)
	}
	for _, name := range slices.Sorted(maps.Keys(form.Properties)) {
		at := path + "/properties/" + jsonpointer.Escape(name)
		i := slices.Index(declared, name)
		if i < 0 {
			l.warn(at, RuleName, "no variable has this name%s; forms have the inputs of variables only", meant(name, declared))
			continue
		}
		var member struct {
			Type string `json:"type"`
		}
		_ = strictjson.Read(form.Properties[name], &member) // several types are left alone
		if want := l.def.Variables[i].Type; member.Type != "" && member.Type != want && (member.Type != "integer" || want != "number") {
			l.warn(at+"/type", workflow.RuleValueType, "is %s, and the variable is of type %s; use one type", member.Type, want)
		}
	}
	for i, name := range form.Required {
		if !slices.Contains(declared, name) {
			l.warn(fmt.Sprintf("%s/required/%d", path, i), RuleName, "no variable has the name %q%s; declare it under variables", name, meant(name, declared))
		}
	}
}

// checkValue finds nodes that need a value and get none from the config and no port.
func (l *linter) checkValue(n *workflow.Node, t node.Type, at string) {
	if len(l.ports[l.at[n.ID]]) > 0 {
		return
	}
	config := t.Configure(n.Config)
	has := func(name string) bool { return isSet(config, name) }
	switch {
	case t.Executes() == node.TypeSetVariable && !has("value"):
		l.problem(at+"/config", RulePort, "the variable gets no value; set value, or lead an edge to the port value")
	case t.Executes() == node.TypeLoop && !slices.ContainsFunc([]string{"items", "count", "until"}, has):
		l.problem(at+"/config", RulePort, "the loop has no rounds; set items, count or until, or lead an edge to the port items")
	}
}
