package workflow

import (
	"encoding/json"
	"errors"
	"fmt"
	"regexp"

	"waybill.dev/waybill/protocol/strictjson"
)

// ReadCondition reads a condition outside of edges, such as in a node's config, by the same rules.
// Paths are relative to the condition.
func ReadCondition(raw json.RawMessage) (*EdgeCondition, []Problem) {
	var found problems
	c := &EdgeCondition{}
	if err := strictjson.Decode(raw, strictjson.Default, c); err != nil {
		path, reason := "", err.Error()
		if e, ok := errors.AsType[*strictjson.Error](err); ok {
			path, reason = e.Path, e.Reason
		}
		found.add(path, RuleCondition, reason)
		return c, found
	}
	if c.Type == ConditionAlways && c.Expression != "" {
		c.Type = ConditionExpression
	}
	switch c.Type {
	case ConditionAlways, ConditionExpression, ConditionEquals, ConditionNotEquals, ConditionContains, ConditionRegex:
		checkCondition(c, "", &found)
	default:
		found.add("/type", RuleCondition, "want expression, equals, notEquals, contains or regex")
	}
	return c, found
}

// checkCondition checks that a condition's members fit its type. Members that would be ignored are
// errors, because the author expects them to count.
func checkCondition(c *EdgeCondition, path string, found *problems) {
	switch c.Type {
	case ConditionAlways:
		if c.Left != "" || c.Right != nil {
			found.add(path, RuleCondition, "left and right need a comparison; add type: equals, notEquals, contains or regex")
		}
	case ConditionExpression:
		if c.Expression == "" {
			found.add(path, RuleCondition, "a condition of type expression needs the member expression")
		}
		if c.Left != "" || c.Right != nil {
			found.add(path, RuleCondition, "left and right are ignored with expression; remove them, or use another type")
		}
	case ConditionEquals, ConditionNotEquals, ConditionContains, ConditionRegex:
		checkComparison(c, path, found)
	}
}

func checkComparison(c *EdgeCondition, path string, found *problems) {
	if c.Left == "" {
		found.add(path, RuleCondition, fmt.Sprintf("a condition of type %s needs the member left, a path into the source's outputs", c.Type))
	}
	if c.Right == nil {
		found.add(path, RuleCondition, fmt.Sprintf("a condition of type %s needs the member right", c.Type))
	}
	if c.Expression != "" {
		found.add(path, RuleCondition, fmt.Sprintf("expression is ignored with type %s; remove it, or use type expression", c.Type))
	}
	if c.Type == ConditionRegex && c.Right != nil {
		checkRegex(c.Right, path+"/right", found)
	}
}

func checkRegex(right json.RawMessage, path string, found *problems) {
	var pattern string
	if err := json.Unmarshal(right, &pattern); err != nil || strictjson.KindOf(right) != "a string" {
		found.add(path, RuleRegex, "want a string with a pattern in RE2 syntax, got "+strictjson.KindOf(right))
		return
	}
	if _, err := regexp.Compile(pattern); err != nil {
		found.add(path, RuleRegex, fmt.Sprintf("not a pattern in RE2 syntax: %v", err))
	}
}
