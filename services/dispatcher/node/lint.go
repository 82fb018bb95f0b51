package node

import (
	"encoding/json"
	"maps"
	"slices"
	"strings"

	"waybill.dev/waybill/protocol/strictjson"
	"waybill.dev/waybill/protocol/workflow"
	"waybill.dev/waybill/services/dispatcher/definition"
	"waybill.dev/waybill/services/dispatcher/expr"
)

// Rules of problems with a node's config.
const (
	RuleConfig     = "config"
	RuleExpression = definition.RuleExpression
)

// lint collects the problems of a config.
type lint struct {
	cfg   map[string]json.RawMessage
	found []workflow.Problem
}

// newLint parses a config and reports unknown members.
func newLint(config json.RawMessage, known ...string) *lint {
	l := &lint{}
	var err error
	if l.cfg, err = configMembers(config); err != nil {
		l.add("", RuleConfig, "want an object: "+err.Error())
		return l
	}
	for _, name := range slices.Sorted(maps.Keys(l.cfg)) {
		if !slices.Contains(known, name) {
			l.add("/"+escapePointer(name), RuleConfig, "the node type has no such member; it has "+strings.Join(known, ", "))
		}
	}
	return l
}

func escapePointer(name string) string {
	return strings.NewReplacer("~", "~0", "/", "~1").Replace(name)
}

func (l *lint) add(path, rule, message string) {
	l.found = append(l.found, workflow.Problem{Path: path, Rule: rule, Message: message})
}

// expression compiles a member; false if it is absent.
func (l *lint) expression(name string, scope expr.Scope, boolean bool) bool {
	raw, given := l.cfg[name]
	if !given {
		return false
	}
	source, ok := strictjson.String(raw)
	if !ok {
		l.add("/"+name, RuleConfig, "want a string, an expression")
		return true
	}
	var err error
	if boolean {
		_, err = expr.CompileBool(scope, source)
	} else {
		_, err = expr.Compile(scope, source)
	}
	if err != nil {
		l.add("/"+name, RuleExpression, err.Error())
	}
	return true
}

func lintConditional(config json.RawMessage) []workflow.Problem {
	l := newLint(config, "expression", "condition")
	hasExpression := l.expression("expression", expr.Node, true)
	raw, hasCondition := l.cfg["condition"]
	switch {
	case hasExpression && hasCondition:
		l.add("/condition", workflow.RuleExclusive, "expression and condition exclude each other; keep one")
	case !hasExpression && !hasCondition:
		l.add("", RuleConfig, "needs expression, which gives true or false, or condition, written as that of an edge")
	case hasCondition:
		c, found := workflow.ReadCondition(raw)
		for _, p := range found {
			l.add("/condition"+p.Path, p.Rule, p.Message)
		}
		if len(found) == 0 {
			if _, err := definition.CompileCondition(c, expr.Node, "inputs"); err != nil {
				l.add("/condition", RuleExpression, err.Error())
			}
		}
	}
	return l.found
}

func lintMerge(config json.RawMessage) []workflow.Problem {
	l := newLint(config, "mode")
	if raw, given := l.cfg["mode"]; given {
		if mode, ok := strictjson.String(raw); !ok || !slices.Contains([]string{"object", "array", "members"}, mode) {
			l.add("/mode", RuleConfig, "want object, array or members")
		}
	}
	return l.found
}

func lintSetVariable(config json.RawMessage) []workflow.Problem {
	l := newLint(config, "name", "variableName", "value")
	l.variable()
	return l.found
}

func lintGetVariable(config json.RawMessage) []workflow.Problem {
	l := newLint(config, "name", "variableName", "default")
	l.variable()
	return l.found
}

func (l *lint) variable() {
	if variableName(l.cfg) == "" && len(l.found) == 0 {
		l.add("/name", RuleConfig, "want the name of a variable")
	}
}

func lintLoop(config json.RawMessage) []workflow.Problem {
	l := newLint(config, "items", "count", "expression", "until", "initial", "maxIterations")
	if !l.expression("expression", expr.Item, false) {
		l.add("/expression", RuleConfig, "want the expression to evaluate in each round; it sees item, index, acc, inputs and variables")
	}
	l.expression("until", expr.Item, true)
	if raw, given := l.cfg["items"]; given && !strings.HasPrefix(strings.TrimSpace(string(raw)), "[") {
		l.add("/items", RuleConfig, "want an array; a list that is made by another node comes in at the port items")
	}
	if raw, given := l.cfg["count"]; given {
		if n, ok := wholeNumber(raw); !ok || n < 0 {
			l.add("/count", RuleConfig, "want an integer of at least 0")
		}
		if _, both := l.cfg["items"]; both {
			l.add("/count", workflow.RuleExclusive, "items say how often already; keep one")
		}
	}
	if raw, given := l.cfg["maxIterations"]; given {
		if n, ok := wholeNumber(raw); !ok || n < 1 || n > MaxLoopIterations {
			l.add("/maxIterations", RuleConfig, "want an integer from 1 to 1000")
		}
	}
	return l.found
}
