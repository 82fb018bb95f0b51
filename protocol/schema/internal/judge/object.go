package judge

import (
	"slices"
	"strings"

	"github.com/santhosh-tekuri/jsonschema/v6"
	"github.com/santhosh-tekuri/jsonschema/v6/kind"
)

// object applies the keywords for objects.
func (r *run) object(s *jsonschema.Schema, o map[string]any, own *unevaluated) bool {
	ok := s.MinProperties == nil || len(o) >= *s.MinProperties ||
		r.fails(s, func() jsonschema.ErrorKind { return &kind.MinProperties{Got: len(o), Want: *s.MinProperties} })
	ok = (s.MaxProperties == nil || len(o) <= *s.MaxProperties ||
		r.fails(s, func() jsonschema.ErrorKind { return &kind.MaxProperties{Got: len(o), Want: *s.MaxProperties} })) && ok
	if r.over(ok) {
		return false
	}
	ok = r.required(s, o) && ok
	if r.over(ok) {
		return false
	}
	if len(s.Properties) > 0 || len(s.PatternProperties) > 0 || s.AdditionalProperties != nil || s.PropertyNames != nil {
		ok = r.members(s, o, own) && ok
	}
	if r.over(ok) {
		return false
	}
	return r.dependent(s, o, own) && ok
}

// required checks the required members.
func (r *run) required(s *jsonschema.Schema, o map[string]any) bool {
	if !r.pay(memberPrice * len(s.Required)) {
		return false
	}
	ok := true
	for _, name := range s.Required {
		if _, there := o[name]; !there {
			ok = r.lacks(s, name)
			if r.over(ok) {
				return false
			}
		}
	}
	return ok
}

// members applies the schemas for members, in the order of their names.
func (r *run) members(s *jsonschema.Schema, o map[string]any, own *unevaluated) bool {
	from := r.sorted(o)
	defer func() { r.names = r.names[:from] }()
	ok := true
	for i, to := from, len(r.names); i < to; i++ {
		name := r.names[i]
		if !r.pay(memberPrice) {
			return false
		}
		ok = r.member(s, name, o[name], own) && ok
		if s.PropertyNames != nil && !r.over(ok) {
			ok = r.name(s.PropertyNames, name) && ok
		}
		if r.over(ok) {
			return false
		}
	}
	return ok
}

func (r *run) member(s *jsonschema.Schema, name string, v any, own *unevaluated) bool {
	ok, known := true, false
	if sub, named := s.Properties[name]; named {
		known = true
		ok = r.below(sub, v, Token{Name: name})
	}
	if len(s.PatternProperties) > 0 && !r.over(ok) {
		fits, matched := r.patterned(s, name, v)
		ok, known = fits && ok, matched || known
	}
	if !known && s.AdditionalProperties != nil && !r.over(ok) {
		known = true
		ok = r.additional(s, name, v) && ok
	}
	if known {
		own.seen(name)
	}
	return ok
}

// additional applies the schema for members without a name in the schema.
func (r *run) additional(s *jsonschema.Schema, name string, v any) bool {
	switch rest := s.AdditionalProperties.(type) {
	case *jsonschema.Schema:
		return r.below(rest, v, Token{Name: name})
	case bool:
		return rest || r.failsAt(s, name, func() jsonschema.ErrorKind { return &kind.AdditionalProperties{} })
	}
	return true
}

// patterned applies the schemas whose pattern matches a name.
func (r *run) patterned(s *jsonschema.Schema, name string, v any) (ok, matched bool) {
	ok = true
	apply := func(re jsonschema.Regexp, sub *jsonschema.Schema) {
		if r.spent || !r.matches(re, name) {
			return
		}
		matched = true
		ok = r.below(sub, v, Token{Name: name}) && ok
	}
	if len(s.PatternProperties) == 1 {
		for re, sub := range s.PatternProperties {
			apply(re, sub)
		}
		return ok && !r.spent, matched
	}
	if !r.pay(namePrice * len(s.PatternProperties)) {
		return false, true
	}
	for _, re := range inOrder(s.PatternProperties) {
		apply(re, s.PatternProperties[re])
	}
	return ok && !r.spent, matched
}

// inOrder sorts patterns by their text.
func inOrder(patterns map[jsonschema.Regexp]*jsonschema.Schema) []jsonschema.Regexp {
	list := make([]jsonschema.Regexp, 0, len(patterns))
	for re := range patterns {
		list = append(list, re)
	}
	slices.SortFunc(list, func(a, b jsonschema.Regexp) int { return strings.Compare(a.String(), b.String()) })
	return list
}

// name validates the name of a member.
func (r *run) name(s *jsonschema.Schema, name string) bool {
	from := r.attempt()
	ok := r.below(s, name, Token{Name: name})
	why := ""
	if !ok && len(r.causes) > from {
		why = r.causes[from].message()
	}
	r.settle(from, true)
	return ok || r.spent || r.misnamed(s, name, why)
}

// dependent applies the keywords that depend on the presence of members.
func (r *run) dependent(s *jsonschema.Schema, o map[string]any, own *unevaluated) bool {
	ok := true
	if len(s.Dependencies)+len(s.DependentSchemas)+len(s.DependentRequired) == 0 {
		return true
	}
	for _, name := range triggers(r, s.Dependencies, o) {
		switch with := s.Dependencies[name].(type) {
		case *jsonschema.Schema:
			ok = r.in(with, o, own) && ok
		case []string:
			ok = r.alsoRequired(s, o, with, func(missing []string) jsonschema.ErrorKind { return &kind.Dependency{Prop: name, Missing: missing} }) && ok
		}
		if r.over(ok) {
			return false
		}
	}
	for _, name := range triggers(r, s.DependentSchemas, o) {
		if ok = r.in(s.DependentSchemas[name], o, own) && ok; r.over(ok) {
			return false
		}
	}
	for _, name := range triggers(r, s.DependentRequired, o) {
		ok = r.alsoRequired(s, o, s.DependentRequired[name], func(missing []string) jsonschema.ErrorKind {
			return &kind.DependentRequired{Prop: name, Missing: missing}
		}) && ok
		if r.over(ok) {
			return false
		}
	}
	return ok
}

// triggers returns the names of a keyword that are members of the object, sorted.
func triggers[T any](r *run, of map[string]T, o map[string]any) []string {
	if !r.pay(namePrice * min(len(of), len(o))) {
		return nil
	}
	var names []string
	if len(of) < len(o) {
		for name := range of {
			if _, there := o[name]; there {
				names = append(names, name)
			}
		}
	} else {
		for name := range o {
			if _, there := of[name]; there {
				names = append(names, name)
			}
		}
	}
	slices.Sort(names)
	return names
}

// alsoRequired checks the members that another member requires.
func (r *run) alsoRequired(s *jsonschema.Schema, o map[string]any, names []string, failure func([]string) jsonschema.ErrorKind) bool {
	if !r.pay(memberPrice * len(names)) {
		return false
	}
	var missing []string
	for _, name := range names {
		if _, there := o[name]; !there {
			if missing = append(missing, name); r.quiet > 0 || len(missing) > most {
				break // no more are listed
			}
		}
	}
	return missing == nil || r.fails(s, func() jsonschema.ErrorKind { return failure(missing) })
}
