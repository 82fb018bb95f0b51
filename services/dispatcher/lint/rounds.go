package lint

import (
	"encoding/json"
	"maps"
	"slices"

	"waybill.dev/waybill/protocol/workflow"
	"waybill.dev/waybill/services/dispatcher/expr"
	"waybill.dev/waybill/services/dispatcher/node"
)

// maxEvaluated limits the loops whose first round is evaluated.
const maxEvaluated = 32

// checkFirstRound evaluates the first round of a loop whose expressions read no port and no variable: the
// node fails in every run if that fails.
func (l *linter) checkFirstRound(i int, config json.RawMessage, at string) {
	var c struct {
		Expression string            `json:"expression"`
		Until      string            `json:"until"`
		Items      []json.RawMessage `json:"items"`
		Count      int64             `json:"count"`
		Initial    json.RawMessage   `json:"initial"`
	}
	if l.evaluated >= maxEvaluated || len(l.ports[i]) > 0 || readMember(config, &c) == nil || len(c.Items) == 0 && c.Count < 1 && c.Until == "" {
		return
	}
	body, err := expr.Compile(expr.Item, c.Expression)
	if err != nil || !ownRound(body) {
		return
	}
	l.evaluated++
	item, acc := json.RawMessage("null"), json.RawMessage("null")
	if len(c.Items) > 0 {
		item = c.Items[0]
	}
	if c.Initial != nil {
		acc = c.Initial
	}
	values := expr.NewValues(nil, nil, body)
	values.Set("item", item)
	values.SetInt("index", 0)
	values.Set("acc", acc)
	result, _, err := body.Eval(values)
	if err != nil {
		remedy := ""
		if reads := body.Reads(); c.Initial == nil && reads["acc"].All {
			remedy = "; acc is null in the first round: set initial"
		}
		l.problem(at+"/config/expression", node.RuleExpression, "the first round fails: %s%s", err, remedy)
		return
	}
	if until, err := expr.CompileBool(expr.Item, c.Until); err == nil && c.Until != "" && ownRound(until) {
		values.Set("acc", result)
		if _, _, err := until.Holds(values); err != nil {
			l.problem(at+"/config/until", node.RuleExpression, "fails after the first round: %s", err)
		}
	}
}

// ownRound reports whether an expression reads the values of the round only.
func ownRound(p *expr.Program) bool {
	for root := range p.Reads() {
		if !slices.Contains([]string{"item", "index", "acc"}, root) {
			return false
		}
	}
	return true
}

// checkMerge finds ports that are no objects, whose members cannot be merged.
func (l *linter) checkMerge(i int, config json.RawMessage) {
	if textMember(config, "mode") != "members" {
		return
	}
	for _, port := range slices.Sorted(maps.Keys(l.ports[i])) {
		if source, selected := l.sourceOf(i, port); source != "" {
			if s := l.outputShape(source, selected); s.Types != nil && !s.Has("object") && !s.Has("null") {
				l.problem(l.portPath(i, port), workflow.RuleValueType, "the port wants an object, for mode is members, and gets a value of type %s; use mode object", s)
			}
		}
	}
}
