package expr

import (
	"slices"

	"cel.dev/cel-go/cel"
	"cel.dev/cel-go/common/ast"
	"cel.dev/cel-go/common/operators"
	"cel.dev/cel-go/common/types"
)

// Reads maps each root, such as variables, to the members that an expression reads.
type Reads map[string]Members

// Members are the members of a root that are read. All is set if the source does not name a member.
type Members struct {
	All   bool
	Names []string
}

// Has reports whether a member is read.
func (m Members) Has(name string) bool { return m.All || slices.Contains(m.Names, name) }

// readsOf walks the checked tree. Names bound by macros are counted too, which is safe.
func readsOf(a *cel.Ast) Reads {
	out := Reads{}
	named := map[int64]bool{} // identifiers whose member is recorded
	note := func(root ast.Expr, member string) {
		name := root.AsIdent()
		m := out[name]
		if !slices.Contains(m.Names, member) {
			m.Names = append(m.Names, member)
			slices.Sort(m.Names)
		}
		out[name] = m
		named[root.ID()] = true
	}
	tree := a.NativeRep().Expr()
	ast.PreOrderVisit(tree, ast.NewExprVisitor(func(e ast.Expr) {
		switch e.Kind() {
		case ast.SelectKind:
			if s := e.AsSelect(); s.Operand().Kind() == ast.IdentKind {
				note(s.Operand(), s.FieldName())
			}
		case ast.CallKind:
			if root, member, ok := indexedMember(e.AsCall()); ok {
				note(root, member)
			}
		case ast.IdentKind:
			if name := e.AsIdent(); !named[e.ID()] {
				m := out[name]
				m.All = true
				out[name] = m
			}
		}
	}))
	return out
}

// Paths returns the members that an expression selects by name, such as [nodes start mail] for
// nodes.start.mail, the longest path of each.
func (p *Program) Paths() [][]string {
	var out [][]string
	inner := map[int64]bool{} // parts of a longer path
	ast.PreOrderVisit(p.ast.NativeRep().Expr(), ast.NewExprVisitor(func(e ast.Expr) {
		if inner[e.ID()] {
			return
		}
		var path []string
		for at := e; ; {
			operand, member, ok := selectedMember(at)
			if !ok {
				if at.Kind() == ast.IdentKind && len(path) > 0 {
					out = append(out, append([]string{at.AsIdent()}, path...))
				}
				return
			}
			path = append([]string{member}, path...)
			inner[operand.ID()] = true
			at = operand
		}
	}))
	return out
}

// selectedMember recognises x.name, x["name"], x[?"name"] and x.?name.
func selectedMember(e ast.Expr) (operand ast.Expr, member string, ok bool) {
	switch e.Kind() {
	case ast.SelectKind:
		s := e.AsSelect()
		return s.Operand(), s.FieldName(), true
	case ast.CallKind:
		return calledMember(e.AsCall())
	}
	return nil, "", false
}

// indexedMember is calledMember for the member of a name.
func indexedMember(call ast.CallExpr) (root ast.Expr, member string, ok bool) {
	root, member, ok = calledMember(call)
	return root, member, ok && root.Kind() == ast.IdentKind
}

// calledMember recognises x["name"], x[?"name"] and x.?name.
func calledMember(call ast.CallExpr) (operand ast.Expr, member string, ok bool) {
	switch call.FunctionName() {
	case operators.Index, operators.OptIndex, operators.OptSelect:
	default:
		return nil, "", false
	}
	args := call.Args()
	if len(args) != 2 || args[1].Kind() != ast.LiteralKind {
		return nil, "", false
	}
	text, ok := args[1].AsLiteral().(types.String)
	return args[0], string(text), ok
}
