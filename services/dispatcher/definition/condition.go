package definition

import (
	"strings"

	"waybill.dev/waybill/protocol/workflow"
	"waybill.dev/waybill/services/dispatcher/expr"
)

// Condition decides whether an edge carries, or what a node that decides decides.
type Condition struct {
	typ     workflow.ConditionType
	left    string
	right   any
	pattern *expr.Pattern
	program *expr.Program
	root    string // what an expression calls the values that left is a path into
	err     error  // why the condition cannot be used
}

// CompileCondition makes a condition whose members fit its type. With an error there
// is a condition, too: one that can only fail.
func CompileCondition(c *workflow.EdgeCondition, scope expr.Scope, root string) (*Condition, error) {
	out := &Condition{typ: c.Type, left: c.Left, root: root}
	switch c.Type {
	case workflow.ConditionExpression:
		out.program, out.err = expr.CompileBool(scope, c.Expression)
	case workflow.ConditionRegex:
		text, _ := parseExpr(c.Right).(string) // checked with the definition
		out.pattern, out.err = expr.CompilePattern(text)
	case workflow.ConditionAlways, workflow.ConditionEquals, workflow.ConditionNotEquals, workflow.ConditionContains:
		out.right = parseExpr(c.Right)
	}
	return out, out.err
}

// Holds evaluates the condition. Only an expression, or a text that is too long for
// its pattern, can fail: a path that leads nowhere and a value of another kind are
// just not equal, contain nothing and match nothing.
func (c *Condition) Holds(outputs, variables objectValue) (bool, error) {
	if c.err != nil {
		return false, c.err
	}
	switch c.typ {
	case workflow.ConditionAlways:
		return true, nil
	case workflow.ConditionExpression:
		holds, _, err := c.program.Holds(expr.Over(map[string]expr.Object{c.root: outputs, "variables": variables}, nil, c.program))
		return holds, err
	default:
		return c.compare(outputs)
	}
}

func (c *Condition) compare(outputs objectValue) (bool, error) {
	left, found := lookup(outputs, c.left)
	switch c.typ {
	case workflow.ConditionEquals:
		return found && equal(left, c.right), nil
	case workflow.ConditionNotEquals:
		return !found || !equal(left, c.right), nil
	case workflow.ConditionContains:
		return found && contains(left, c.right), nil
	default: // regex
		text, ok := left.(string)
		if !found || !ok {
			return false, nil
		}
		return c.pattern.Match(text)
	}
}

// contains is a text in a text, or a member of an array.
func contains(left, right any) bool {
	switch left := left.(type) {
	case string:
		part, ok := right.(string)
		return ok && strings.Contains(left, part)
	case []any:
		for _, element := range left {
			if equal(element, right) {
				return true
			}
		}
	}
	return false
}

// Reads reports which variables the condition looks at.
func (c *Condition) Reads() expr.Members {
	if c == nil || c.program == nil {
		return expr.Members{}
	}
	return c.program.Reads()["variables"]
}
