package node

import (
	"encoding/json"

	"waybill.dev/waybill/protocol/workflow"
	"waybill.dev/waybill/services/dispatcher/definition"
	"waybill.dev/waybill/services/dispatcher/expr"
)

// Rules of problems with a node's config.
const (
	RuleConfig     = "config"
	RuleExpression = definition.RuleExpression
)

// lint collects the problems of a config that its schema cannot express. Members of another type than
// the schema's are reported by the schema.
type lint struct{ found []workflow.Problem }

func (l *lint) add(path, rule, message string) {
	l.found = append(l.found, workflow.Problem{Path: path, Rule: rule, Message: message})
}

// expression compiles a member.
func (l *lint) expression(name, source string, scope expr.Scope, boolean bool) {
	compile := expr.Compile
	if boolean {
		compile = expr.CompileBool
	}
	if _, err := compile(scope, source); err != nil {
		l.add("/"+name, RuleExpression, err.Error())
	}
}

func lintConditional(config json.RawMessage) []workflow.Problem {
	l := &lint{}
	cfg, err := readConfig[conditionalConfig](config)
	if err != nil {
		return nil
	}
	if cfg.Expression != nil {
		l.expression("expression", *cfg.Expression, expr.Node, true)
	}
	switch {
	case cfg.Expression != nil && cfg.Condition != nil:
		l.add("/condition", workflow.RuleExclusive, "expression and condition exclude each other; keep one")
	case cfg.Expression == nil && cfg.Condition == nil:
		l.add("", RuleConfig, "needs expression, which gives true or false, or condition, written as that of an edge")
	case cfg.Condition != nil:
		c, found := workflow.ReadCondition(cfg.Condition)
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

func lintSetVariable(config json.RawMessage) []workflow.Problem {
	cfg, err := readConfig[setVariableConfig](config)
	return lintVariable(cfg.variable(), cfg.Name, cfg.VariableName, err)
}

func lintGetVariable(config json.RawMessage) []workflow.Problem {
	cfg, err := readConfig[getVariableConfig](config)
	return lintVariable(cfg.variable(), cfg.Name, cfg.VariableName, err)
}

func lintVariable(name, own, other string, err error) []workflow.Problem {
	l := &lint{}
	switch {
	case err != nil:
	case name == "":
		l.add("/name", RuleConfig, "want the name of a variable")
	case own != "" && other != "" && own != other:
		l.add("/variableName", workflow.RuleExclusive, "name and variableName mean the same; keep one")
	}
	return l.found
}

func lintLoop(config json.RawMessage) []workflow.Problem {
	cfg, err := readConfig[loopConfig](config)
	if err != nil {
		return nil
	}
	l := &lint{}
	if cfg.Expression != "" { // else the schema reports it
		l.expression("expression", cfg.Expression, expr.Item, false)
	}
	if cfg.Until != nil {
		l.expression("until", *cfg.Until, expr.Item, true)
	}
	if cfg.Count != nil && cfg.Items != nil {
		l.add("/count", workflow.RuleExclusive, "items say how often already; keep one")
	}
	return l.found
}
