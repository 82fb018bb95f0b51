package schema

import (
	"reflect"

	"github.com/santhosh-tekuri/jsonschema/v6"
)

// The validator checks every branch of a union and every reference anew, so a
// schema that refers to itself from two branches, or one that fans out through
// allOf, multiplies its work with each level of the document. The number of
// checks is therefore counted first, with each pair of subschema and value
// counted once and multiplied.
const (
	// maxChecks bounds the checks on any document.
	maxChecks = 1 << 19
	// freeChecks and checksPerByte are what a document of a size may take: a schema
	// that looks at every value a few times stays far below, one that multiplies
	// its work does not.
	freeChecks    = 4096
	checksPerByte = 16
	// enumShare is how many values of an enum count as a check.
	enumShare = 16
	// tameChecks is how many checks a schema may unfold into to be applied to
	// small documents without counting.
	tameChecks = 256
	// smallDocument is the size in bytes up to which that holds.
	smallDocument = 16 << 10
)

// budget is how many checks a document of a size may take.
func budget(size int) int { return min(maxChecks, freeChecks+checksPerByte*size) }

// meter counts the checks of one schema on one document.
type meter struct {
	known  map[pair]int
	inside map[pair]bool // being counted: a schema that refers to itself in place
}

// pair is a subschema and the identity of a container of the document; scalars
// share identity 0, for nothing below them differs.
type pair struct {
	schema *jsonschema.Schema
	value  uintptr
}

func newMeter() *meter {
	return &meter{known: map[pair]int{}, inside: map[pair]bool{}}
}

// count gives the number of checks, or maxChecks if they are more.
func (m *meter) count(s *jsonschema.Schema, v any) int {
	if s == nil || s.Bool != nil {
		return 1
	}
	p := pair{s, identity(v)}
	if n, ok := m.known[p]; ok {
		return n
	}
	if m.inside[p] {
		return 1
	}
	m.inside[p] = true
	n := 1
	if s.Enum != nil {
		n = min(n+len(s.Enum.Values)/enumShare, maxChecks)
	}
	for _, sub := range inPlace(s) {
		n = min(n+m.count(sub, v), maxChecks)
	}
	n = min(n+m.below(s, v), maxChecks)
	delete(m.inside, p)
	m.known[p] = n
	return n
}

// below counts the checks on the members or items of v.
func (m *meter) below(s *jsonschema.Schema, v any) int {
	n := 0
	add := func(sub *jsonschema.Schema, v any) {
		if sub != nil {
			n = min(n+m.count(sub, v), maxChecks)
		}
	}
	switch v := v.(type) {
	case map[string]any:
		rest, _ := s.AdditionalProperties.(*jsonschema.Schema)
		for name, item := range v {
			if sub, ok := s.Properties[name]; ok {
				add(sub, item)
			} else {
				add(rest, item)
			}
			for _, sub := range s.PatternProperties {
				add(sub, item)
			}
			add(s.PropertyNames, name)
			add(s.UnevaluatedProperties, item)
		}
	case []any:
		for i, item := range v {
			if i < len(s.PrefixItems) {
				add(s.PrefixItems[i], item)
			} else {
				add(s.Items2020, item)
			}
			add(s.Contains, item)
			add(s.UnevaluatedItems, item)
		}
	}
	return n
}

// inPlace lists the subschemas applied to the same value.
func inPlace(s *jsonschema.Schema) []*jsonschema.Schema {
	subs := []*jsonschema.Schema{}
	add := func(more ...*jsonschema.Schema) {
		for _, sub := range more {
			if sub != nil {
				subs = append(subs, sub)
			}
		}
	}
	add(s.Ref, s.Not, s.If, s.Then, s.Else)
	if s.DynamicRef != nil {
		add(s.DynamicRef.Ref)
	}
	add(s.AllOf...)
	add(s.AnyOf...)
	add(s.OneOf...)
	for _, sub := range s.DependentSchemas {
		add(sub)
	}
	return subs
}

// identity tells containers of one document apart. The document stays alive and
// unchanged while it is counted, so addresses are good names.
func identity(v any) uintptr {
	switch v.(type) {
	case map[string]any, []any:
		return reflect.ValueOf(v).Pointer()
	}
	return 0
}

// isWild reports whether s refers to itself or unfolds into many checks.
func isWild(s *jsonschema.Schema) bool {
	u := unfolding{open: map[*jsonschema.Schema]bool{}}
	u.add(s)
	return u.checks > tameChecks || u.recursive
}

// unfolding counts the subschemas of a schema with references written out.
type unfolding struct {
	open      map[*jsonschema.Schema]bool
	checks    int
	recursive bool
}

func (u *unfolding) add(s *jsonschema.Schema) {
	if s == nil || u.recursive || u.checks > tameChecks {
		return
	}
	if u.open[s] {
		u.recursive = true
		return
	}
	u.checks++
	if s.Enum != nil {
		u.checks += len(s.Enum.Values) / enumShare
	}
	u.open[s] = true
	defer delete(u.open, s)
	for _, sub := range inPlace(s) {
		u.add(sub)
	}
	rest, _ := s.AdditionalProperties.(*jsonschema.Schema)
	for _, sub := range []*jsonschema.Schema{rest, s.PropertyNames, s.UnevaluatedProperties, s.Items2020, s.Contains, s.UnevaluatedItems} {
		u.add(sub)
	}
	for _, sub := range s.PrefixItems {
		u.add(sub)
	}
	for _, sub := range s.Properties {
		u.add(sub)
	}
	for _, sub := range s.PatternProperties {
		u.add(sub)
	}
}
