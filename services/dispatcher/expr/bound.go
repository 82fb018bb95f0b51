package expr

import (
	"regexp"
	"regexp/syntax"

	"cel.dev/cel-go/common/operators"
	"cel.dev/cel-go/common/overloads"
	"cel.dev/cel-go/common/types"
	"cel.dev/cel-go/common/types/ref"
	"cel.dev/cel-go/common/types/traits"
	"cel.dev/cel-go/interpreter"
)

// callCost counts a call and the text of its arguments, because CEL counts some functions that read
// a whole text as one step.
type callCost struct{}

// CallCost implements interpreter.ActualCostEstimator.
func (callCost) CallCost(_, _ string, args []ref.Val, _ ref.Val) *uint64 {
	const bytesPerStep = 64
	steps := uint64(1)
	for _, a := range args {
		switch a := a.(type) {
		case types.String:
			steps += uint64(len(a)) / bytesPerStep
		case types.Bytes:
			steps += uint64(len(a)) / bytesPerStep
		}
	}
	return &steps
}

// workBudget is the remaining work of an evaluation. It is stored under a name that no expression
// can contain.
type workBudget struct{ left int }

const budgetName = "@work"

// spend uses work of the evaluation's budget; false if there is not enough.
func spend(vars interpreter.Activation, work int) bool {
	b, ok := remaining(vars)
	if !ok {
		return false
	}
	b.left -= work
	return b.left >= 0
}

func remaining(vars interpreter.Activation) (*workBudget, bool) {
	v, _ := vars.ResolveName(budgetName)
	b, ok := v.(*workBudget)
	return b, ok
}

// spendValue uses the work of walking a whole value.
func spendValue(vars interpreter.Activation, v ref.Val) bool {
	b, ok := remaining(vars)
	if !ok || b.left < 0 {
		return false
	}
	b.left -= nodeWork * weigh(v, b.left/nodeWork+1)
	return b.left >= 0
}

// weigh counts the values within a value, and text by its length. It stops beyond most.
func weigh(v ref.Val, most int) int {
	n := 1
	switch v := v.(type) {
	case types.String:
		n += len(v) / 256
	case types.Bytes:
		n += len(v) / 256
	case *types.Optional:
		if v.HasValue() {
			n += weigh(v.GetValue(), most-n)
		}
	case listValue:
		n += weighGiven(v.given, most)
	case mapValue:
		if v.given != nil {
			return weighGiven(v.given, most)
		}
		for it := v.Mapper.Iterator(); n <= most && it.HasNext() == types.True; {
			k := it.Next()
			n += weigh(k, most-n)
			n += weigh(v.Get(k), most-n)
		}
	case traits.Lister:
		size, _ := v.Size().(types.Int)
		for i := types.Int(0); n <= most && i < size; i++ {
			n += weigh(v.Get(i), most-n)
		}
	}
	return n
}

// weighGiven is weigh for parsed JSON.
func weighGiven(v any, most int) int {
	n := 1
	switch v := v.(type) {
	case string:
		n += len(v) / 256
	case map[string]any:
		for name, member := range v {
			if n += 1 + len(name)/256 + weighGiven(member, most-n); n > most {
				break
			}
		}
	case []any:
		for _, element := range v {
			if n += weighGiven(element, most-n); n > most {
				break
			}
		}
	}
	return n
}

// boundStep replaces the steps whose work CEL does not count fully.
func boundStep(i interpreter.InterpretableV2) (interpreter.InterpretableV2, error) {
	switch i := i.(type) {
	case interpreter.InterpretableConstructor:
		return constructorStep{i}, nil
	case interpreter.InterpretableCall:
		switch i.Function() {
		case operators.Equals, operators.NotEquals, operators.In, operators.OldIn, operators.Add:
			if len(i.Args()) == 2 {
				return operatorStep{i}, nil
			}
		case overloads.Matches:
			return newMatchesStep(i)
		}
	}
	return i, nil
}

// constructorStep limits the size of lists and objects. Values can share references, so a short
// expression can build very large ones.
type constructorStep struct {
	interpreter.InterpretableConstructor
}

// Exec implements interpreter.InterpretableV2.
func (m constructorStep) Exec(frame *interpreter.ExecutionFrame) ref.Val {
	v := m.InterpretableConstructor.Exec(frame)
	if o, ok := v.(traits.Mapper); ok {
		v = mapValue{Mapper: o}
	}
	if !spendValue(frame, v) {
		return cancelWork()
	}
	return v
}

// Eval implements interpreter.Interpretable.
func (m constructorStep) Eval(vars interpreter.Activation) ref.Val {
	return m.Exec(interpreter.AsFrame(vars))
}

// operatorStep is an operator that walks both operands.
type operatorStep struct {
	interpreter.InterpretableCall
}

// Exec implements interpreter.InterpretableV2.
func (p operatorStep) Exec(frame *interpreter.ExecutionFrame) ref.Val {
	left := p.Args()[0].Exec(frame)
	if types.IsUnknownOrError(left) {
		return left
	}
	right := p.Args()[1].Exec(frame)
	if types.IsUnknownOrError(right) {
		return right
	}
	if isStructured(right) && !spendValue(frame, right) {
		return cancelWork()
	}
	switch p.Function() {
	case operators.Equals:
		return types.Equal(left, right)
	case operators.NotEquals:
		return types.Bool(types.Equal(left, right) != types.True)
	case operators.Add:
		if a, ok := left.(traits.Adder); ok {
			return a.Add(right)
		}
	default:
		if c, ok := right.(traits.Container); ok {
			return c.Contains(left)
		}
	}
	return types.MaybeNoSuchOverloadErr(left)
}

// Eval implements interpreter.Interpretable.
func (p operatorStep) Eval(vars interpreter.Activation) ref.Val {
	return p.Exec(interpreter.AsFrame(vars))
}

func isStructured(v ref.Val) bool {
	switch v.(type) {
	case traits.Lister, traits.Mapper, *types.Optional:
		return true
	}
	return false
}

// matchesStep is matches with a pattern compiled with the expression.
type matchesStep struct {
	interpreter.InterpretableCall
	pattern *Pattern
}

// newMatchesStep compiles the pattern. Compile has ensured that it is a literal.
func newMatchesStep(call interpreter.InterpretableCall) (interpreter.InterpretableV2, error) {
	if len(call.Args()) != 2 {
		return call, nil
	}
	c, ok := call.Args()[1].(interpreter.InterpretableConst)
	if !ok {
		return nil, newError("the pattern of matches has to be written in the expression, as a text")
	}
	text, ok := c.Value().(types.String)
	if !ok {
		return nil, newError("the pattern of matches has to be a text")
	}
	p, err := CompilePattern(string(text))
	if err != nil {
		return nil, err
	}
	return matchesStep{call, p}, nil
}

// Exec implements interpreter.InterpretableV2.
func (m matchesStep) Exec(frame *interpreter.ExecutionFrame) ref.Val {
	v := m.Args()[0].Exec(frame)
	if types.IsUnknownOrError(v) {
		return v
	}
	if pattern := m.Args()[1].Exec(frame); types.IsUnknownOrError(pattern) { // counted like any other argument
		return pattern
	}
	text, ok := v.(types.String)
	if !ok {
		return types.MaybeNoSuchOverloadErr(v)
	}
	if !spend(frame, m.pattern.work(string(text))) {
		return cancelWork()
	}
	return types.Bool(m.pattern.re.MatchString(string(text)))
}

// Eval implements interpreter.Interpretable.
func (m matchesStep) Eval(vars interpreter.Activation) ref.Val {
	return m.Exec(interpreter.AsFrame(vars))
}

// Pattern is an RE2 pattern with bounded work.
type Pattern struct {
	re   *regexp.Regexp
	size int
}

// CompilePattern compiles a pattern of limited size.
func CompilePattern(source string) (*Pattern, error) {
	tree, err := syntax.Parse(source, syntax.Perl)
	if err != nil {
		return nil, newError("not a pattern in RE2 syntax: %v", err)
	}
	prog, err := syntax.Compile(tree.Simplify())
	if err != nil {
		return nil, newError("not a pattern in RE2 syntax: %v", err)
	}
	if len(prog.Inst) > maxPattern {
		return nil, newError("the pattern is too large: written out it has %d steps, want at most %d; repeat less", len(prog.Inst), maxPattern)
	}
	re, err := regexp.Compile(source)
	if err != nil {
		return nil, newError("not a pattern in RE2 syntax: %v", err)
	}
	return &Pattern{re, len(prog.Inst)}, nil
}

// work returns the maximum work of matching a text.
func (p *Pattern) work(text string) int { return (len(text) + 1) * p.size }

// Match reports whether a text contains a match.
func (p *Pattern) Match(text string) (bool, error) {
	if p.work(text) > maxWork {
		return false, newError("the text is too long for the pattern: want at most %d bytes", maxWork/p.size-1)
	}
	return p.re.MatchString(text), nil
}
