package lint

import (
	"encoding/json"
	"fmt"
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
var braces = regexp.MustCompile(`\{\{[^{}\n]{0,64}\}{0,2}|\$?\{\s*([A-Za-z0-9_.-]+)\s*\}`)

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

// checkKeywords finds misspelled keywords of a JSON Schema in a definition, which would check nothing.
func (l *linter) checkKeywords(path string, doc json.RawMessage) {
	if strictjson.KindOf(doc) != "an object" {
		return
	}
	for _, f := range schema.UnknownKeywords(doc) {
		l.report(f.Meant != "", path+f.Path, schema.RuleUnknownKeyword, "%s", f.Message)
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
	_ = strictjson.Read(n.Config, &c) // reported by the schema of the config
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
