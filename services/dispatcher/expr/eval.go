package expr

import (
	"encoding/json"

	"cel.dev/cel-go/common/types"
	"cel.dev/cel-go/common/types/ref"
	"cel.dev/cel-go/interpreter"

	"waybill.dev/waybill/protocol/strictjson"
)

// Object is the value of a root by member.
type Object = map[string]json.RawMessage

// Values are the inputs of evaluations. They can be reused, but not concurrently.
type Values struct{ roots map[string]any }

// NewValues returns the values of roots for the given programs only: members that none of them
// reads are not parsed. nodes are the outputs of nodes by id; nil if the scope does not have them.
func NewValues(roots map[string]Object, nodes map[string]Object, programs ...*Program) *Values {
	v := &Values{roots: make(map[string]any, len(roots)+1)}
	for name, members := range roots {
		v.roots[name] = adapter{}.NativeToValue(parseMembers(members, membersOf(name, programs)))
	}
	if nodes != nil {
		all := map[string]any{}
		of := membersOf("nodes", programs)
		for id, outputs := range nodes {
			if of.Has(id) {
				all[id] = parseMembers(outputs, Members{All: true})
			}
		}
		v.roots["nodes"] = adapter{}.NativeToValue(all)
	}
	return v
}

// parseMembers parses the members that are read.
func parseMembers(members Object, which Members) map[string]any {
	out := make(map[string]any, len(members))
	for name, raw := range members {
		if which.Has(name) {
			out[name] = parseValue(raw)
		}
	}
	return out
}

func membersOf(root string, programs []*Program) Members {
	var m Members
	for _, p := range programs {
		if p != nil {
			m.All = m.All || p.reads[root].All
			m.Names = append(m.Names, p.reads[root].Names...)
		}
	}
	return m
}

// parseValue parses a value that was validated before.
func parseValue(raw json.RawMessage) any {
	v, err := strictjson.Value(raw, strictjson.Limits{MaxBytes: len(raw) + 1, MaxDepth: 256})
	if err != nil {
		return types.NewErr("not JSON")
	}
	return v
}

// Set replaces the value of a root.
func (v *Values) Set(name string, raw json.RawMessage) {
	v.roots[name] = adapter{}.NativeToValue(parseValue(raw))
}

// SetInt replaces the value of a root by a number.
func (v *Values) SetInt(name string, n int64) { v.roots[name] = types.Int(n) }

// activation is Values with the budget of one evaluation.
type activation struct {
	values *Values
	budget *workBudget
}

// ResolveName implements interpreter.Activation.
func (a activation) ResolveName(name string) (any, bool) {
	if name == budgetName {
		return a.budget, true
	}
	v, ok := a.values.roots[name]
	return v, ok
}

// Parent implements interpreter.Activation.
func (activation) Parent() interpreter.Activation { return nil }

// Cost is the cost of evaluations, in the units of MaxCost.
type Cost uint64

// Eval returns the value of the expression as JSON. The error is an *Error.
func (p *Program) Eval(v *Values) (json.RawMessage, Cost, error) {
	out, b, cost, err := p.run(v)
	if err != nil {
		return nil, cost, err
	}
	doc, err := render(out, b.left/nodeWork)
	return doc, cost, err
}

// Holds returns the value of a boolean expression.
func (p *Program) Holds(v *Values) (bool, Cost, error) {
	out, _, cost, err := p.run(v)
	if err != nil {
		return false, cost, err
	}
	holds, ok := out.(types.Bool)
	if !ok {
		return false, cost, newError("the expression gave %s, want true or false", kind(out))
	}
	return bool(holds), cost, nil
}

func (p *Program) run(v *Values) (ref.Val, *workBudget, Cost, error) {
	b := &workBudget{left: maxWork}
	out, det, err := p.program.Eval(activation{v, b})
	cost := Cost(MaxCost)
	if det != nil && det.ActualCost() != nil {
		cost = Cost(*det.ActualCost())
	}
	// Work is added, because loops sum up the costs of their evaluations.
	cost += Cost(maxWork-max(b.left, 0)) / (maxWork / MaxCost) //nolint:gosec // G115: from 0 to maxWork
	if err != nil {
		return nil, b, cost, evalError(err, p.ast)
	}
	return out, b, cost, nil
}
