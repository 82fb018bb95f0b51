package lint

import (
	"regexp"
	"slices"
	"strings"

	"waybill.dev/waybill/protocol/schema"
	"waybill.dev/waybill/protocol/strictjson"
	"waybill.dev/waybill/protocol/workflow"
	"waybill.dev/waybill/services/dispatcher/expr"
	"waybill.dev/waybill/services/dispatcher/node"
)

// comparedShape returns what is known of the output at the path of a comparison.
func (l *linter) comparedShape(i int, left string) expr.Shape {
	selected := strings.Split(left, ".")
	outputs := l.outputsOf(i)
	if selected[0] == "output" && len(selected) > 1 && slices.Contains(outputs, selected[1]) {
		selected = selected[1:] // output. is ignored in front of an output
	}
	return l.outputShape(l.def.Nodes[i].ID, selected)
}

// checkCompared warns about a comparison that gives the same in every run.
func (l *linter) checkCompared(c *workflow.EdgeCondition, path string, s expr.Shape) {
	text, isText := strictjson.String(c.Right)
	if isText {
		l.checkRight(c.Type, path+"/right", text)
	}
	if c.Right == nil || s.Types == nil {
		return
	}
	_, typ, found := strings.Cut(strictjson.KindOf(c.Right), " ")
	if !found {
		typ = "null"
	}
	switch c.Type {
	case workflow.ConditionEquals, workflow.ConditionNotEquals:
		if !s.Has(typ) {
			l.warn(path+"/right", workflow.RuleValueType, "%s %s", c.Left, s.Differs(typ))
		} else if why := s.Beyond(string(c.Right)); typ == "number" && why != "" {
			l.warn(path+"/right", workflow.RuleValueType, "%s %s", c.Left, why)
		} else if why := s.Unlike(text); isText && why != "" {
			l.warn(path+"/right", workflow.RuleValueType, "%s %s", c.Left, why)
		}
	case workflow.ConditionContains:
		matches := slices.ContainsFunc(s.Values, func(v string) bool { return strings.Contains(v, text) })
		switch {
		case !s.Has("string") && !s.Has("array"):
			l.warn(path+"/type", workflow.RuleValueType, "%s is of type %s, and contains nothing; use equals, or an expression", c.Left, s)
		case s.Values != nil && !matches:
			l.warn(path+"/right", workflow.RuleValueType, "no value of %s contains %q", c.Left, text)
		}
	case workflow.ConditionRegex:
		pattern, err := regexp.Compile(text)
		switch {
		case !s.Has("string"):
			l.warn(path+"/type", workflow.RuleValueType, "%s is of type %s, and matches no pattern; use equals, or an expression", c.Left, s)
		case err == nil && s.Values != nil && !slices.ContainsFunc(s.Values, pattern.MatchString):
			l.warn(path+"/right", workflow.RuleValueType, "no value of %s matches the pattern", c.Left)
		}
	case workflow.ConditionAlways, workflow.ConditionExpression:
	}
}

// checkRight warns about texts on the right of a comparison that mean something else in other programs.
func (l *linter) checkRight(typ workflow.ConditionType, path, text string) {
	plain, flags := schema.Unslashed(text)
	switch {
	case len(placeholders(text)) > 0:
		l.warn(path, RuleName, "{{%s}} is compared as it is: placeholders are not replaced here; write the condition as an expression, which reads variables", placeholders(text)[0])
	case typ == workflow.ConditionContains && text == "":
		l.warn(path, RuleConstant, "every text contains the empty text; remove the condition, or name a text")
	case typ == workflow.ConditionRegex && plain != "":
		if flags = strings.Trim(flags, "guy"); flags != "" {
			flags = "(?" + flags + ")"
		}
		l.warn(path, node.RuleConfig, "the slashes and flags are parts of the pattern here; write %s", quote(flags+plain))
	}
}
