package expr

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	"cel.dev/cel-go/common/ast"
	"cel.dev/cel-go/common/operators"
	"cel.dev/cel-go/common/overloads"
	"cel.dev/cel-go/common/types"
	"cel.dev/cel-go/common/types/ref"
	"cel.dev/cel-go/common/types/traits"

	"waybill.dev/waybill/protocol/suggest"
)

// Shape is what is known of a value before a run.
type Shape struct {
	// Types are the possible JSON types; nil means unknown.
	Types []string
	// Values are all texts that the value can be; nil means unknown.
	Values []string
	// Note is the hint for values that it does not have.
	Note string
	// Least and Most limit a number; nil means no limit. Whole means an integer.
	Least, Most *float64
	Whole       bool
}

// Beyond describes why a number of the shape is never the one of a literal; empty if it can be.
func (s Shape) Beyond(literal string) string {
	n, err := strconv.ParseFloat(literal, 64)
	switch {
	case err != nil:
	case s.Least != nil && n < *s.Least:
		return "is at least " + strconv.FormatFloat(*s.Least, 'g', -1, 64)
	case s.Most != nil && n > *s.Most:
		return "is at most " + strconv.FormatFloat(*s.Most, 'g', -1, 64)
	case s.Whole && n != math.Trunc(n):
		return "is an integer, and never " + literal
	}
	return ""
}

// Has reports whether the value can have a type.
func (s Shape) Has(typ string) bool { return s.Types == nil || slices.Contains(s.Types, typ) }

// String lists the types; null only if there is no other.
func (s Shape) String() string {
	types := s.Types
	if len(types) > 1 {
		types = slices.DeleteFunc(slices.Clone(types), func(t string) bool { return t == "null" })
	}
	return strings.Join(types, " or ")
}

// Unlike describes why a value of the shape is never a text; empty if it can be.
func (s Shape) Unlike(text string) string {
	if s.Values == nil || slices.Contains(s.Values, text) {
		return ""
	}
	why := fmt.Sprintf("is never %q%s; its values are %s", text, s.meant(text), quoted(s.Values))
	if s.Note != "" {
		why += "; " + s.Note
	}
	return strings.ReplaceAll(why, "?; ", "? ")
}

// Differs describes why a value of the shape is never equal to one of a type.
func (s Shape) Differs(typ string) string {
	remedy := "compare it with " + article(s.String())
	if s.Has("object") || s.Has("array") {
		remedy = "compare a part of it"
	}
	return fmt.Sprintf("is of type %s, and never equal to %s; %s", s, article(typ), remedy)
}

// article puts an article before the name of a type.
func article(typ string) string {
	switch {
	case typ == "null":
		return typ
	case strings.ContainsAny(typ[:min(len(typ), 1)], "aeiou"):
		return "an " + typ
	}
	return "a " + typ
}

// meant suggests a value for one that the shape does not have.
func (s Shape) meant(text string) string {
	for _, v := range s.Values {
		if strings.EqualFold(v, text) {
			return ", did you mean " + v + "?"
		}
	}
	if near := suggest.Names(text, s.Values, 1); len(near) > 0 && len(text) > 2 {
		return ", did you mean " + near[0] + "?"
	}
	return ""
}

func quoted(values []string) string {
	const most = 8
	out := make([]string, 0, most)
	for _, v := range values[:min(len(values), most)] {
		out = append(out, fmt.Sprintf("%q", v))
	}
	if len(values) > most {
		out = append(out, "…")
	}
	return strings.Join(out, ", ")
}

// Verdict is what a condition gives in every run.
type Verdict int

// The verdicts.
const (
	Depends Verdict = iota // on the run
	Always
	Never
)

func verdict(holds bool) Verdict {
	if holds {
		return Always
	}
	return Never
}

func (v Verdict) not() Verdict {
	switch v {
	case Always:
		return Never
	case Never:
		return Always
	}
	return Depends
}

// Judge finds what a boolean expression gives in every run, and comparisons that cannot succeed. shapeOf
// returns what is known of the value at a path, such as [outputs output kind].
func (p *Program) Judge(shapeOf func(path []string) Shape) (v Verdict, doubts []string) {
	if len(p.reads) == 0 {
		holds, _, err := p.Holds(NewValues(nil, nil, p))
		if err != nil {
			return Depends, nil
		}
		return verdict(holds), nil
	}
	j := &judge{shapeOf: shapeOf}
	v = j.truth(p.ast.NativeRep().Expr())
	slices.Sort(j.doubts)
	return v, slices.Compact(j.doubts)
}

// Doubts is Judge for expressions of every type.
func (p *Program) Doubts(shapeOf func(path []string) Shape) []string {
	j := &judge{shapeOf: shapeOf}
	j.visit(p.ast.NativeRep().Expr())
	slices.Sort(j.doubts)
	return slices.Compact(j.doubts)
}

type judge struct {
	shapeOf func(path []string) Shape
	doubts  []string
}

func (j *judge) doubt(format string, args ...any) {
	j.doubts = append(j.doubts, strings.ReplaceAll(fmt.Sprintf(format, args...), "?; ", "? "))
}

// shape returns the path of a value with its shape; ok is false for other expressions.
func (j *judge) shape(e ast.Expr) (name string, s Shape, ok bool) {
	path := pathOf(e)
	if len(path) < 2 {
		return "", Shape{}, false
	}
	return strings.Join(path, "."), j.shapeOf(path), true
}

// Path returns the path of the value that the expression names; nil for other expressions.
func (p *Program) Path() []string {
	if path := pathOf(p.ast.NativeRep().Expr()); len(path) > 1 {
		return path
	}
	return nil
}

// pathOf returns the names of a.b.c; nil for other expressions.
func pathOf(e ast.Expr) []string {
	var path []string
	for {
		operand, member, ok := selectedMember(e)
		if !ok {
			break
		}
		path, e = append(path, member), operand
	}
	if e.Kind() != ast.IdentKind {
		return nil
	}
	path = append(path, e.AsIdent())
	slices.Reverse(path)
	return path
}

// truth judges an expression whose value must be true or false.
func (j *judge) truth(e ast.Expr) Verdict {
	if e.Kind() == ast.LiteralKind {
		if b, ok := e.AsLiteral().(types.Bool); ok {
			return verdict(bool(b))
		}
		return Depends
	}
	if name, s, ok := j.shape(e); ok {
		if !s.Has("boolean") {
			j.doubt("%s is of type %s, and neither true nor false; compare it, as in %s", name, s, compared(name, s))
		}
		return Depends
	}
	if e.Kind() != ast.CallKind {
		j.visit(e)
		return Depends
	}
	call := e.AsCall()
	switch args := call.Args(); call.FunctionName() {
	case operators.LogicalNot:
		return j.truth(args[0]).not()
	case operators.LogicalAnd, operators.LogicalOr:
		return j.junction(e, call.FunctionName())
	case operators.Equals:
		return j.compare(args[0], args[1])
	case operators.NotEquals:
		return j.compare(args[0], args[1]).not()
	default:
		j.visit(e)
		return Depends
	}
}

// compared is a comparison of a value, as an example.
func compared(name string, s Shape) string {
	switch {
	case len(s.Values) > 0:
		return fmt.Sprintf("%s == %q", name, s.Values[0])
	case s.Has("number"):
		return name + " > 0"
	default:
		return "size(" + name + ") > 0"
	}
}

// junction judges && and ||. Its parts are judged together: a || b is !(!a && !b).
func (j *judge) junction(e ast.Expr, op string) Verdict {
	parts := flatten(e, op)
	all := constraints{}
	end, other := Never, Always // the verdict of one part that decides, and that of all parts
	if op == operators.LogicalOr {
		end, other = Always, Never
	}
	decided, rest := false, true
	for _, part := range parts {
		v := j.truth(part)
		decided, rest = decided || v == end, rest && v == other
		all.add(part, op == operators.LogicalOr)
	}
	switch {
	case decided:
		return end
	case rest:
		return other
	case all.contradict():
		return end
	}
	return Depends
}

// flatten returns the operands of nested calls of one operator.
func flatten(e ast.Expr, op string) []ast.Expr {
	if e.Kind() == ast.CallKind && e.AsCall().FunctionName() == op {
		var out []ast.Expr
		for _, arg := range e.AsCall().Args() {
			out = append(out, flatten(arg, op)...)
		}
		return out
	}
	return []ast.Expr{e}
}

// compare judges a == b.
func (j *judge) compare(a, b ast.Expr) Verdict {
	if a.Kind() == ast.LiteralKind {
		a, b = b, a
	}
	if b.Kind() == ast.LiteralKind && a.Kind() == ast.LiteralKind {
		return verdict(types.Equal(a.AsLiteral(), b.AsLiteral()) == types.True)
	}
	name, s, ok := j.shape(a)
	if path := pathOf(b); ok && path != nil && name == strings.Join(path, ".") {
		j.doubt("compares %s with itself", name)
		return Depends
	}
	if !ok || b.Kind() != ast.LiteralKind {
		j.visit(a)
		j.visit(b)
		return Depends
	}
	j.literal(name, s, b.AsLiteral())
	return Depends
}

// literal finds a value that is never equal to a literal.
func (j *judge) literal(name string, s Shape, v ref.Val) {
	typ := typeName(v)
	text, isText := v.(types.String)
	switch {
	case typ != "" && !s.Has(typ):
		j.doubt("%s %s", name, s.Differs(typ))
	case isText:
		if why := s.Unlike(string(text)); why != "" {
			j.doubt("%s %s", name, why)
		}
	}
}

// typeName is the JSON type of a literal; empty for others.
func typeName(v ref.Val) string {
	switch v.(type) {
	case types.String:
		return "string"
	case types.Bool:
		return "boolean"
	case types.Int, types.Uint, types.Double:
		return "number"
	case types.Null:
		return "null"
	}
	return ""
}

// visit finds doubts within an expression of any type.
func (j *judge) visit(e ast.Expr) {
	switch e.Kind() {
	case ast.ListKind:
		for _, item := range e.AsList().Elements() {
			j.visit(item)
		}
	case ast.MapKind:
		for _, entry := range e.AsMap().Entries() {
			j.visit(entry.AsMapEntry().Value())
		}
	case ast.CallKind:
		j.call(e, e.AsCall())
	default:
	}
}

func (j *judge) call(e ast.Expr, call ast.CallExpr) {
	args := call.Args()
	switch call.FunctionName() {
	case operators.LogicalAnd, operators.LogicalOr, operators.LogicalNot, operators.Equals, operators.NotEquals:
		j.truth(e)
		return
	case operators.Conditional:
		j.truth(args[0])
		args = args[1:]
	case operators.Less, operators.LessEquals, operators.Greater, operators.GreaterEquals:
		j.order(call.FunctionName(), args[0], args[1])
	case operators.Add, operators.Subtract, operators.Multiply, operators.Divide:
		j.sum(args)
	case operators.In:
		j.member(args[0], args[1])
	case overloads.Size:
		j.size(call)
	case overloads.Contains, overloads.StartsWith, overloads.EndsWith, overloads.Matches:
		j.text(call)
	}
	if call.IsMemberFunction() {
		j.visit(call.Target())
	}
	for _, arg := range args {
		j.visit(arg)
	}
}

// order finds comparisons of values that have no order.
func (j *judge) order(op string, a, b ast.Expr) {
	if a.Kind() == ast.LiteralKind {
		a, b, op = b, a, flipped[op]
	}
	name, s, ok := j.shape(a)
	if !ok || b.Kind() != ast.LiteralKind {
		return
	}
	typ := typeName(b.AsLiteral())
	if _, ordered := b.AsLiteral().(traits.Comparer); ordered && typ != "" && !s.Has(typ) {
		j.doubt("%s is of type %s, and the comparison with %s fails%s", name, s, article(typ), s.sized(name))
		return
	}
	if at, isNumber := numeric(b.AsLiteral()); isNumber {
		if why := s.neverOrdered(op, at); why != "" {
			j.doubt("%s %s", name, why)
		}
	}
}

// neverOrdered describes why no number of the shape is in an order with another one; empty if one can be.
func (s Shape) neverOrdered(op string, at float64) string {
	above := op == operators.Greater || op == operators.GreaterEquals
	open := op == operators.Greater || op == operators.Less
	switch {
	case above && s.Most != nil && (at > *s.Most || open && at == *s.Most):
		return "is at most " + strconv.FormatFloat(*s.Most, 'g', -1, 64) + ", so the comparison is always false"
	case !above && s.Least != nil && (at < *s.Least || open && at == *s.Least):
		return "is at least " + strconv.FormatFloat(*s.Least, 'g', -1, 64) + ", so the comparison is always false"
	}
	return ""
}

// sum finds sums of a value and a literal of another type.
func (j *judge) sum(args []ast.Expr) {
	for i, a := range args {
		b := args[len(args)-1-i]
		if b.Kind() != ast.LiteralKind {
			continue
		}
		if name, s, ok := j.shape(a); ok && typeName(b.AsLiteral()) != "" && !s.Has(typeName(b.AsLiteral())) {
			j.doubt("%s is of type %s, and the calculation with %s fails; string(x) and double(x) convert", name, s, article(typeName(b.AsLiteral())))
		}
	}
}

// sized suggests the length of a value that has one.
func (s Shape) sized(name string) string {
	if s.Has("array") || s.Has("object") || s.Has("string") {
		return "; size(" + name + ") is the length"
	}
	return "; compare it with " + article(s.String())
}

// member finds values that no element of a list is equal to.
func (j *judge) member(a, list ast.Expr) {
	name, s, ok := j.shape(a)
	if !ok || list.Kind() != ast.ListKind {
		if container, of, known := j.shape(list); known && !of.Has("array") && !of.Has("object") {
			j.doubt("%s is of type %s, and in fails; write %s.contains(…)", container, of, container)
		}
		return
	}
	for _, item := range list.AsList().Elements() {
		if item.Kind() == ast.LiteralKind {
			j.literal(name, s, item.AsLiteral())
		}
	}
}

// size finds lengths of values that have none.
func (j *judge) size(call ast.CallExpr) {
	of := call.Target()
	if !call.IsMemberFunction() && len(call.Args()) == 1 {
		of = call.Args()[0]
	}
	if name, s, ok := j.shape(of); ok && !s.Has("string") && !s.Has("array") && !s.Has("object") {
		j.doubt("%s is of type %s, and size fails; compare it itself", name, s)
	}
}

// text finds functions of texts on other values.
func (j *judge) text(call ast.CallExpr) {
	if !call.IsMemberFunction() {
		return
	}
	name, s, ok := j.shape(call.Target())
	switch {
	case !ok || s.Has("string"):
	case s.Has("array"):
		j.doubt("%s is of type %s, and %s fails; write VALUE in %s", name, s, call.FunctionName(), name)
	default:
		j.doubt("%s is of type %s, and %s fails; it needs a text", name, s, call.FunctionName())
	}
}
