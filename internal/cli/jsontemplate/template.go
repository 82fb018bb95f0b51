// Package jsontemplate executes templates in the language of text/template over JSON values.
//
// The language is parsed by the standard library. It is executed here because text/template looks methods up by name: a
// program that can reach that keeps every exported method of every type it holds, which were 11 MB of this one. JSON has
// no methods.
package jsontemplate

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"iter"
	"maps"
	"math"
	"slices"
	"strings"
	"text/template/parse"
)

// Template is safe for concurrent use.
type Template struct {
	trees map[string]*parse.Tree
	name  string
}

// Parse reads a template, whose name errors begin with. The functions are and, or, not, len, index, slice, print, printf,
// println, eq, ne, lt, le, gt, ge and json, which gives a value as JSON.
func Parse(name, text string) (*Template, error) {
	names := map[string]any{"and": true, "or": true} // the parser looks for the names only
	for f := range functions {
		names[f] = true
	}
	trees, err := parse.Parse(name, text, "", "", names)
	if err != nil { // it begins as those of Execute do, without the parser's own name before the template's
		return nil, errors.New(strings.TrimPrefix(err.Error(), "template: "))
	}
	return &Template{trees, name}, nil
}

// Execute writes what the template makes of a value, of which numbers are json.Number: nil is the member that is not there.
func (t *Template) Execute(w io.Writer, v any) (err error) {
	defer func() {
		if p := recover(); p != nil {
			stop, ours := p.(stopped)
			if !ours {
				panic(p)
			}
			err = stop.err
		}
	}()
	tree := t.trees[t.name]
	if tree == nil || tree.Root == nil { // there is nothing but definitions
		return nil
	}
	e := &execution{w: w, t: t, tree: tree, vars: []variable{{"$", v}}}
	e.list(tree.Root, v)
	return nil
}

// maxDepth bounds how deep templates and blocks are within each other: a stack that overflows ends the program.
const maxDepth = 10_000

// maxQuoted is how much of a template an error quotes, in characters.
const maxQuoted = 60

// stopped ends an execution.
type stopped struct{ err error }

type variable struct {
	name  string
	value any
}

// execution is one template that is carried out; those within it have their own.
type execution struct {
	w     io.Writer
	t     *Template
	tree  *parse.Tree
	vars  []variable
	depth int
}

// flow is how a list of nodes ended.
type flow int

const (
	goesOn flow = iota
	breaks
	continues
)

func (e *execution) fail(n parse.Node, format string, args ...any) {
	at, context := e.tree.ErrorContext(n)
	if r := []rune(context); len(r) > maxQuoted { // a block is quoted with all that is within it
		context = string(r[:maxQuoted]) + "…"
	}
	panic(stopped{fmt.Errorf("%s: at <%s>: %w", at, context, fmt.Errorf(format, args...))})
}

func (e *execution) write(n parse.Node, s string) {
	if _, err := io.WriteString(e.w, s); err != nil {
		e.fail(n, "%w", err)
	}
}

func (e *execution) list(l *parse.ListNode, dot any) flow {
	if l == nil {
		return goesOn
	}
	if e.depth++; e.depth > maxDepth {
		e.fail(l, "templates and blocks are more than %d deep within each other", maxDepth)
	}
	defer func() { e.depth-- }()
	for _, n := range l.Nodes {
		if f := e.node(n, dot); f != goesOn {
			return f
		}
	}
	return goesOn
}

func (e *execution) node(n parse.Node, dot any) flow {
	switch n := n.(type) {
	case *parse.TextNode:
		e.write(n, string(n.Text))
	case *parse.ActionNode:
		if v := e.pipe(n.Pipe, dot); len(n.Pipe.Decl) == 0 {
			e.write(n, text(v))
		}
	case *parse.IfNode:
		return e.branch(&n.BranchNode, dot, false)
	case *parse.WithNode:
		return e.branch(&n.BranchNode, dot, true)
	case *parse.RangeNode:
		return e.each(n, dot)
	case *parse.TemplateNode:
		e.call(n, dot)
	case *parse.BreakNode:
		return breaks
	case *parse.ContinueNode:
		return continues
	}
	return goesOn
}

// text is how a value is printed.
func text(v any) string {
	if v == nil {
		return "<no value>"
	}
	return fmt.Sprint(v)
}

// scope forgets the variables that are declared until leave is called.
func (e *execution) scope() (leave func()) {
	n := len(e.vars)
	return func() { e.vars = e.vars[:n] }
}

func (e *execution) branch(n *parse.BranchNode, dot any, with bool) flow {
	defer e.scope()()
	v := e.pipe(n.Pipe, dot)
	if !truth(v) {
		return e.list(n.ElseList, dot)
	}
	if with {
		dot = v
	}
	return e.list(n.List, dot)
}

func (e *execution) each(n *parse.RangeNode, dot any) flow {
	defer e.scope()()
	over, decl := e.pipe(n.Pipe, dot), n.Pipe.Decl
	all, has := elements(over)
	if !has {
		e.fail(n.Pipe, "range over %s: want an array, an object or a whole number", kind(over))
	}
	leave, some := e.scope(), false
	for key, v := range all {
		some = true
		switch {
		case len(decl) == 1:
			e.set(decl[0], n.Pipe.IsAssign, v)
		case len(decl) > 1:
			e.set(decl[0], n.Pipe.IsAssign, key)
			e.set(decl[1], n.Pipe.IsAssign, v)
		}
		f := e.list(n.List, v)
		if leave(); f == breaks {
			break
		}
	}
	if some {
		return goesOn
	}
	if f := e.list(n.ElseList, dot); f != breaks { // which ends this one also there
		return f
	}
	return goesOn
}

// elements are those of an array in their order, the members of an object in that of their names, and the whole numbers
// from 0 below one. Nothing has none.
func elements(v any) (all iter.Seq2[any, any], has bool) {
	n, whole := integer(v)
	return func(yield func(any, any) bool) {
		switch v := v.(type) {
		case []any:
			for i, element := range v {
				if !yield(i, element) {
					return
				}
			}
		case map[string]any:
			for _, name := range slices.Sorted(maps.Keys(v)) {
				if !yield(name, v[name]) {
					return
				}
			}
		default:
			for i := range int(n) {
				if !yield(i, i) {
					return
				}
			}
		}
	}, whole || v == nil || kind(v) == "an array" || kind(v) == "an object"
}

func (e *execution) call(n *parse.TemplateNode, dot any) {
	tree := e.t.trees[n.Name]
	if tree == nil {
		e.fail(n, "template %q is not defined", n.Name)
	}
	var v any
	if n.Pipe != nil {
		v = e.pipe(n.Pipe, dot)
	}
	inner := &execution{w: e.w, t: e.t, tree: tree, vars: []variable{{"$", v}}, depth: e.depth}
	inner.list(tree.Root, v)
}

func (e *execution) set(d *parse.VariableNode, assign bool, v any) {
	if !assign {
		e.vars = append(e.vars, variable{d.Ident[0], v})
		return
	}
	*e.variable(d) = v
}

func (e *execution) variable(n *parse.VariableNode) *any {
	for i := len(e.vars) - 1; i >= 0; i-- {
		if e.vars[i].name == n.Ident[0] {
			return &e.vars[i].value
		}
	}
	e.fail(n, "undefined variable %s", n.Ident[0]) // the parser has seen to it
	return nil
}

// none says that no value comes through the pipe.
type none struct{}

func (e *execution) pipe(p *parse.PipeNode, dot any) any {
	var v any = none{}
	for _, c := range p.Cmds {
		v = e.command(c, dot, v)
	}
	for _, d := range p.Decl {
		e.set(d, p.IsAssign, v)
	}
	return v
}

// command has the value of its first word, or what that function gives of the others and of what comes through the pipe.
func (e *execution) command(c *parse.CommandNode, dot, last any) any {
	if f, is := c.Args[0].(*parse.IdentifierNode); is {
		return e.function(f, c.Args[1:], dot, last)
	}
	if _, first := last.(none); len(c.Args) > 1 || !first {
		e.fail(c, "%s is no function: it takes no arguments", c.Args[0])
	}
	return e.word(c.Args[0], dot)
}

func (e *execution) word(n parse.Node, dot any) any {
	switch n := n.(type) {
	case *parse.DotNode:
		return dot
	case *parse.NilNode:
		return nil
	case *parse.FieldNode:
		return e.fields(n, dot, n.Ident)
	case *parse.VariableNode:
		return e.fields(n, *e.variable(n), n.Ident[1:])
	case *parse.ChainNode:
		return e.fields(n, e.word(n.Node, dot), n.Field)
	case *parse.PipeNode:
		return e.pipe(n, dot)
	case *parse.IdentifierNode:
		return e.function(n, nil, dot, none{})
	case *parse.BoolNode:
		return n.True
	case *parse.StringNode:
		return n.Text
	case *parse.NumberNode:
		return e.number(n)
	}
	e.fail(n, "%s is no value of JSON", n)
	return nil
}

// number is a whole one unless it is written as a decimal: 1.0 is none for printf.
func (e *execution) number(n *parse.NumberNode) any {
	written := strings.ToLower(n.Text)
	hex, character := strings.HasPrefix(strings.TrimLeft(written, "+-"), "0x"), written[0] == '\''
	decimal := !character && (strings.ContainsAny(written, ".p") || !hex && strings.Contains(written, "e"))
	switch {
	case n.IsInt && !decimal:
		return int(n.Int64)
	case n.IsUint && !decimal:
		e.fail(n, "%s is too large: want at most %d", n, math.MaxInt64)
	case n.IsFloat:
		return n.Float64
	}
	e.fail(n, "%s is no value of JSON", n)
	return nil
}

// fields are members of members. What is not there has none, and is nothing itself.
func (e *execution) fields(n parse.Node, v any, names []string) any {
	for _, name := range names {
		switch o := v.(type) {
		case nil:
			return nil
		case map[string]any:
			v = o[name]
		default:
			e.fail(n, "%s has no member %q", kind(v), name)
		}
	}
	return v
}

func (e *execution) function(n *parse.IdentifierNode, words []parse.Node, dot, last any) any {
	_, alone := last.(none)
	if n.Ident == "and" || n.Ident == "or" { // which look no further than they have to
		var v any
		for _, w := range words {
			if v = e.word(w, dot); truth(v) == (n.Ident == "or") {
				return v
			}
		}
		if !alone {
			return last
		}
		if len(words) == 0 {
			e.fail(n, "%s: want one argument or more", n.Ident)
		}
		return v
	}
	args := make([]any, 0, len(words)+1)
	for _, w := range words {
		args = append(args, e.word(w, dot))
	}
	if !alone {
		args = append(args, last)
	}
	v, err := functions[n.Ident](args)
	if err != nil {
		e.fail(n, "%s: %w", n.Ident, err)
	}
	return v
}

// kind is what a value of JSON is called.
func kind(v any) string {
	switch v.(type) {
	case nil:
		return "null"
	case bool:
		return "a boolean"
	case string:
		return "a string"
	case json.Number, int, float64:
		return "a number"
	case []any:
		return "an array"
	default:
		return "an object"
	}
}
