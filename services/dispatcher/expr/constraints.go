package expr

import (
	"math"
	"strings"

	"cel.dev/cel-go/common/ast"
	"cel.dev/cel-go/common/operators"
	"cel.dev/cel-go/common/types"
	"cel.dev/cel-go/common/types/ref"
)

// constraint is what a value must satisfy for several comparisons to hold.
type constraint struct {
	equal    ref.Val // nil if there is none
	unequal  []ref.Val
	low, top bound
	none     bool // no value satisfies all
}

// bound is the end of a range.
type bound struct {
	at   float64
	open bool // at itself is outside
	set  bool
}

// constraints maps values, by their paths, to what they must satisfy.
type constraints map[string]*constraint

// contradict reports whether no value satisfies one of the constraints.
func (c constraints) contradict() bool {
	for _, one := range c {
		if one.none || one.empty() {
			return true
		}
	}
	return false
}

// opposite are the comparisons that hold if one does not, flipped those with the sides exchanged.
var (
	opposite = map[string]string{
		operators.Equals: operators.NotEquals, operators.NotEquals: operators.Equals,
		operators.Less: operators.GreaterEquals, operators.GreaterEquals: operators.Less,
		operators.Greater: operators.LessEquals, operators.LessEquals: operators.Greater,
	}
	flipped = map[string]string{
		operators.Equals: operators.Equals, operators.NotEquals: operators.NotEquals,
		operators.Less: operators.Greater, operators.Greater: operators.Less,
		operators.LessEquals: operators.GreaterEquals, operators.GreaterEquals: operators.LessEquals,
	}
)

// add adds a comparison of a value with a literal; others are left out.
func (c constraints) add(e ast.Expr, negated bool) {
	if e.Kind() != ast.CallKind {
		return
	}
	op, args := e.AsCall().FunctionName(), e.AsCall().Args()
	if op == operators.LogicalNot {
		c.add(args[0], !negated)
		return
	}
	if opposite[op] == "" || len(args) != 2 {
		return
	}
	a, b := args[0], args[1]
	if a.Kind() == ast.LiteralKind {
		a, b, op = b, a, flipped[op]
	}
	path := pathOf(a)
	if path == nil || b.Kind() != ast.LiteralKind {
		return
	}
	if negated {
		op = opposite[op]
	}
	name := strings.Join(path, "\x00")
	if c[name] == nil {
		c[name] = &constraint{}
	}
	c[name].add(op, b.AsLiteral())
}

func (c *constraint) add(op string, v ref.Val) {
	switch op {
	case operators.Equals:
		c.none = c.none || c.equal != nil && types.Equal(c.equal, v) != types.True
		c.equal = v
	case operators.NotEquals:
		c.unequal = append(c.unequal, v)
	default:
		at, ok := numeric(v)
		if !ok {
			return
		}
		end := bound{at: at, open: op == operators.Less || op == operators.Greater, set: true}
		below := op == operators.Less || op == operators.LessEquals
		if below && (!c.top.set || at < c.top.at || at == c.top.at && end.open) {
			c.top = end
		} else if !below && (!c.low.set || at > c.low.at || at == c.low.at && end.open) {
			c.low = end
		}
	}
}

// empty reports whether no value satisfies the constraint.
func (c *constraint) empty() bool {
	if c.low.set && c.top.set && (c.low.at > c.top.at || c.low.at == c.top.at && (c.low.open || c.top.open)) {
		return true
	}
	if c.equal == nil {
		return false
	}
	for _, v := range c.unequal {
		if types.Equal(c.equal, v) == types.True {
			return true
		}
	}
	at, ok := numeric(c.equal)
	return ok && (c.low.set && (at < c.low.at || at == c.low.at && c.low.open) || c.top.set && (at > c.top.at || at == c.top.at && c.top.open))
}

func numeric(v ref.Val) (float64, bool) {
	switch v := v.(type) {
	case types.Int:
		return float64(v), true
	case types.Uint:
		return float64(v), true
	case types.Double:
		return float64(v), !math.IsNaN(float64(v))
	}
	return 0, false
}
