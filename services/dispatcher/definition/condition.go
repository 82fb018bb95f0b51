package definition

import (
	"strings"

	"waybill.dev/waybill/protocol/workflow"
	"waybill.dev/waybill/services/dispatcher/expr"
)

// Condition decides whether an edge carries, or is the decision of a conditional node.
type Condition struct {
	typ     workflow.ConditionType
	left    string
	right   any
	pattern *expr.Pattern
	program *expr.Program
	root    string // the expression's name for the values that left is a path into
	err     error  // why the condition is unusable
}

// CompileCondition compiles a condition whose members fit its type. With an error it returns a
// condition that always fails.
func CompileCondition(c *workflow.EdgeCondition, scope expr.Scope, root string) (*Condition, error) {
	out := &Condition{typ: c.Type, left: c.Left, root: root}
	switch c.Type {
	case workflow.ConditionExpression:
		out.program, out.err = expr.CompileBool(scope, c.Expression)
	case workflow.ConditionRegex:
		text, _ := parseValue(c.Right).(string) // checked with the definition
		out.pattern, out.err = expr.CompilePattern(text)
	case workflow.ConditionAlways, workflow.ConditionEquals, workflow.ConditionNotEquals, workflow.ConditionContains:
		out.right = parseValue(c.Right)
	}
	return out, out.err
}

// Holds evaluates the condition. Only expressions and texts too long for the pattern can fail. A
// missing path or a value of another kind is not equal, contains nothing and matches nothing.
func (c *Condition) Holds(outputs, variables object) (bool, error) {
	if c.err != nil {
		return false, c.err
	}
	switch c.typ {
	case workflow.ConditionAlways:
		return true, nil
	case workflow.ConditionExpression:
		holds, _, err := c.program.Holds(expr.NewValues(map[string]expr.Object{c.root: outputs, "variables": variables}, nil, c.program))
		return holds, err
	default:
		return c.compare(outputs)
	}
}

func (c *Condition) compare(outputs object) (bool, error) {
	left, found := lookupPath(outputs, c.left)
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

// contains reports whether a text contains a text, or an array an element.
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

// Reads returns the variables that the condition reads.
func (c *Condition) Reads() expr.Members {
	if c == nil || c.program == nil {
		return expr.Members{}
	}
	return c.program.Reads()["variables"]
}
