package sample

import (
	"encoding/json"
	"slices"
	"strings"
)

// flat is a schema without references and allOf: one set of keywords, and the
// unions of which a branch is still to be chosen.
type flat struct {
	*object
	unions [][]any
	// never is set when nothing satisfies the schema.
	never bool
}

// flatten lays schemas over each other.
func (g *generator) flatten(schemas ...any) (*flat, error) {
	f := &flat{object: newObject()}
	for _, s := range schemas {
		if err := g.lay(f, s, 0); err != nil {
			return nil, err
		}
	}
	return f, nil
}

// maxRefs bounds a chain of references and allOf, which may be a circle.
const maxRefs = 32

// lay merges one more schema into f.
func (g *generator) lay(f *flat, schema any, depth int) error {
	if err := g.spend(1); err != nil {
		return err
	}
	if depth > maxRefs {
		return unfit("the schema refers to itself without end")
	}
	s, ok := schema.(*object)
	if !ok {
		f.never = f.never || schema == false
		return nil
	}
	if ref, ok := s.values["$ref"].(string); ok {
		target, ok := g.lookup(ref)
		if !ok {
			return unfit("the schema has a reference that leads out of it or nowhere")
		}
		if err := g.lay(f, target, depth+1); err != nil {
			return err
		}
	}
	for _, part := range s.list("allOf") {
		if err := g.lay(f, part, depth+1); err != nil {
			return err
		}
	}
	for _, union := range []string{"anyOf", "oneOf"} {
		if list := s.list(union); len(list) > 0 {
			f.unions = append(f.unions, list)
		}
	}
	for _, name := range s.names {
		f.merge(name, s.values[name])
	}
	return nil
}

// lookup follows a JSON pointer within the document.
func (g *generator) lookup(ref string) (any, bool) {
	pointer, ok := strings.CutPrefix(ref, "#")
	if !ok {
		return nil, false
	}
	at := g.root
	for part := range strings.SplitSeq(strings.TrimPrefix(pointer, "/"), "/") {
		if part == "" {
			continue
		}
		o, ok := at.(*object)
		if !ok {
			return nil, false
		}
		if at, ok = o.values[unescape.Replace(part)]; !ok {
			return nil, false
		}
	}
	return at, true
}

var unescape = strings.NewReplacer("~1", "/", "~0", "~")

// merge lays one keyword over what f has: both must hold.
func (f *flat) merge(name string, v any) {
	have, both := f.values[name]
	switch name {
	case "$ref", "allOf", "anyOf", "oneOf", "$defs", "definitions", "$schema", "$id", "$comment":
	case "const":
		f.merge("enum", []any{v})
	case "properties", "patternProperties":
		f.mergeProperties(name, v)
	case "required":
		f.set(name, append(slices.Clone(f.list(name)), asList(v)...))
	default:
		if both {
			v = f.narrow(name, have, v)
		}
		f.set(name, v)
	}
}

func (f *flat) mergeProperties(name string, v any) {
	more, ok := v.(*object)
	if !ok {
		return
	}
	all := newObject()
	for _, o := range []*object{f.object.object(name), more} {
		for _, p := range o.names {
			s := o.values[p]
			if have, both := all.values[p]; both {
				s = allOf(have, s)
			}
			all.set(p, s)
		}
	}
	f.set(name, all)
}

func allOf(schemas ...any) *object {
	o := newObject()
	o.set("allOf", schemas)
	return o
}

// narrow is the value of a keyword when two schemas have it.
func (f *flat) narrow(name string, a, b any) any {
	switch name {
	case "enum":
		both := intersect(asList(a), asList(b))
		f.never = f.never || len(both) == 0
		return both
	case "type":
		both := intersectTypes(types(a), types(b))
		f.never = f.never || len(both) == 0
		return both
	case "additionalProperties", "items":
		return narrowSchema(a, b)
	case "minimum", "exclusiveMinimum", "minLength", "minItems", "minProperties":
		return extreme(a, b, 1)
	case "maximum", "exclusiveMaximum", "maxLength", "maxItems", "maxProperties":
		return extreme(a, b, -1)
	default: // titles, descriptions, patterns: the first, which is nearer the reader
		return a
	}
}

func narrowSchema(a, b any) any {
	if a == false || b == false {
		return false
	}
	return allOf(a, b)
}

// extreme is the larger of two numbers for sign 1, the smaller for -1.
func extreme(a, b any, sign int) any {
	x, okX := rational(a)
	y, okY := rational(b)
	if !okX || !okY || x.Cmp(y)*sign >= 0 {
		return a
	}
	return b
}

func intersect(a, b []any) []any {
	allowed := map[string]bool{}
	for _, v := range b {
		allowed[key(v)] = true
	}
	return slices.DeleteFunc(slices.Clone(a), func(v any) bool { return !allowed[key(v)] })
}

func intersectTypes(a, b []any) []any {
	var both []any
	for _, t := range a {
		switch {
		case slices.Contains(b, t), t == "integer" && slices.Contains(b, any("number")):
			both = append(both, t)
		case t == "number" && slices.Contains(b, any("integer")):
			both = append(both, "integer")
		}
	}
	return both
}

// types are the names of a type keyword, which is a string or an array.
func types(v any) []any {
	if s, ok := v.(string); ok {
		return []any{s}
	}
	return asList(v)
}

func asList(v any) []any {
	l, _ := v.([]any)
	return l
}

// allows reports whether the type keyword lets a value's type pass.
func (f *flat) allows(v any) bool {
	if !f.has("type") {
		return true
	}
	list := types(f.values["type"])
	return slices.ContainsFunc(list, func(t any) bool { return isType(v, t) })
}

func isType(v, t any) bool {
	switch v := v.(type) {
	case nil:
		return t == "null"
	case bool:
		return t == "boolean"
	case string:
		return t == "string"
	case json.Number:
		r, ok := rational(v)
		return t == "number" || t == "integer" && ok && r.IsInt()
	case []any:
		return t == "array"
	default:
		return t == "object"
	}
}
