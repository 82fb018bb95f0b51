package judge

import "github.com/santhosh-tekuri/jsonschema/v6"

// tag is a member with a single allowed value in a branch of a union.
type tag struct {
	name, value string
	there       bool // false: the branch has none
}

// tagsOf finds the tags of the branches of s. A branch is identified by equality on one member
// (OpenWOP envelope contract §4.2), so other branches need not be evaluated.
func (p *Program) tagsOf(s *jsonschema.Schema) {
	for _, branches := range [][]*jsonschema.Schema{s.AnyOf, s.OneOf} {
		for _, b := range branches {
			p.tags[b] = p.tagOf(b)
		}
	}
}

// mostRefs limits the references followed from a branch.
const mostRefs = 8

// tagOf returns the first tag of a branch by name. Branches that refer to one schema share the
// result.
func (p *Program) tagOf(s *jsonschema.Schema) tag {
	for range mostRefs {
		t, known := p.tags[s]
		if !known {
			for name, member := range s.Properties {
				if value, single := only(member); single && (!t.there || name < t.name) {
					t = tag{name, value, true}
				}
			}
			p.tags[s] = t
		}
		if t.there || s.Ref == nil {
			return t
		}
		s = s.Ref
	}
	return tag{}
}

// only returns the single string that a schema allows.
func only(s *jsonschema.Schema) (value string, ok bool) {
	switch {
	case s.Const != nil:
		value, ok = (*s.Const).(string)
	case s.Enum != nil && len(s.Enum.Values) == 1:
		value, ok = s.Enum.Values[0].(string)
	}
	return value, ok
}

// meant reports whether v may match a branch. The cause of a mismatch comes from evaluating the
// branch.
func (r *run) meant(branch *jsonschema.Schema, v any) bool {
	o, isObject := v.(map[string]any)
	if r.quiet == 0 || !isObject {
		return true
	}
	t := r.program.tags[branch]
	if !t.there || !r.pay(memberPrice) {
		return true
	}
	value, there := o[t.name]
	return !there || value == any(t.value)
}
