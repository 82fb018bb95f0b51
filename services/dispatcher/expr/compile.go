package expr

import (
	"unicode/utf8"

	"cel.dev/cel-go/cel"
)

// Program is a compiled expression. It is safe for concurrent use.
type Program struct {
	scope   Scope
	ast     *cel.Ast
	program cel.Program
	reads   Reads
	boolean bool
}

// Compile compiles an expression. The error is an *Error.
func Compile(scope Scope, source string) (*Program, error) {
	if n := utf8.RuneCountInString(source); n > MaxSource {
		return nil, newError("the expression has %d characters, want at most %d", n, MaxSource)
	}
	if !utf8.ValidString(source) {
		return nil, newError("the expression is not UTF-8")
	}
	env := environments()[scope]
	ast, iss := env.Compile(source)
	if iss != nil && iss.Err() != nil {
		return nil, compileError(scope, source, iss)
	}
	prg, err := env.Program(ast,
		cel.CustomDecoratorV2(boundStep), cel.CostTracking(callCost{}), cel.CostLimit(MaxCost))
	if err != nil {
		return nil, ownError(err)
	}
	return &Program{
		scope:   scope,
		ast:     ast,
		program: prg,
		reads:   readsOf(ast),
		boolean: ast.OutputType() == cel.BoolType,
	}, nil
}

// CompileBool is Compile for boolean expressions. It rejects expressions whose static type is
// another one.
func CompileBool(scope Scope, source string) (*Program, error) {
	p, err := Compile(scope, source)
	if err != nil {
		return nil, err
	}
	if t := p.ast.OutputType(); !p.boolean && t.Kind() != cel.DynKind && t.Kind() != cel.AnyKind {
		return nil, newError("the expression gives %s, want true or false", t)
	}
	return p, nil
}

// ownError returns an error of this package unchanged and converts others.
func ownError(err error) *Error {
	for e := err; e != nil; {
		if own, ok := e.(*Error); ok { //nolint:errorlint // walked by hand: the wrapping errors repeat it
			return own
		}
		u, ok := e.(interface{ Unwrap() error })
		if !ok {
			break
		}
		e = u.Unwrap()
	}
	return newError("%s", oneLine(err.Error()))
}

// Reads returns the values that a program reads.
func (p *Program) Reads() Reads { return p.reads }
