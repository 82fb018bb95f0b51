package judge

import (
	"github.com/santhosh-tekuri/jsonschema/v6"
	"github.com/santhosh-tekuri/jsonschema/v6/kind"
)

// inPlace applies the keywords with schemas for the same value, except $ref.
func (r *run) inPlace(s *jsonschema.Schema, v any, own *unevaluated) bool {
	ok := s.RecursiveRef == nil || r.in(s.RecursiveRef, v, own)
	if s.DynamicRef != nil && !r.over(ok) {
		ok = r.in(r.dynamic(s.DynamicRef), v, own) && ok
	}
	if s.Not != nil && !r.over(ok) {
		ok = r.not(s, v, own) && ok
	}
	for _, sub := range s.AllOf {
		if r.over(ok) {
			return false
		}
		ok = r.in(sub, v, own) && ok
	}
	if len(s.AnyOf) > 0 && !r.over(ok) {
		ok = r.anyOf(s, v, own) && ok
	}
	if len(s.OneOf) > 0 && !r.over(ok) {
		ok = r.oneOf(s, v, own) && ok
	}
	if s.If != nil && !r.over(ok) {
		ok = r.conditional(s, v, own) && ok
	}
	return ok
}

// dynamic resolves a dynamic reference: to the outermost resource with the anchor.
func (r *run) dynamic(ref *jsonschema.DynamicRef) *jsonschema.Schema {
	if ref.Anchor == "" || ref.Ref.DynamicAnchor != ref.Anchor {
		return ref.Ref
	}
	for _, f := range r.frames {
		if !r.pay(memberPrice) {
			break
		}
		if s, ok := r.program.anchors[f.schema][ref.Anchor]; ok {
			return s
		}
	}
	return ref.Ref
}

// quietly reports whether a schema matches, without recording causes.
func (r *run) quietly(s *jsonschema.Schema, v any, own *unevaluated) bool {
	r.quiet++
	ok := r.in(s, v, own)
	r.quiet--
	return ok
}

func (r *run) not(s *jsonschema.Schema, v any, own *unevaluated) bool {
	return !r.quietly(s.Not, v, own) || r.fails(s, func() jsonschema.ErrorKind { return &kind.Not{} })
}

func (r *run) conditional(s *jsonschema.Schema, v any, own *unevaluated) bool {
	branch := s.Else
	if r.quietly(s.If, v, own) {
		branch = s.Then
	}
	return r.spent || branch == nil || r.in(branch, v, own)
}

// attempt starts a part whose causes may be dropped.
func (r *run) attempt() (from int) {
	r.trying++
	return len(r.causes)
}

// settle ends an attempt; drop discards its causes.
func (r *run) settle(from int, drop bool) {
	r.trying--
	if drop || r.spent {
		r.causes = r.causes[:from]
	}
}

func (r *run) anyOf(s *jsonschema.Schema, v any, own *unevaluated) bool {
	from := r.attempt()
	var ends []int
	fits := false
	for _, sub := range s.AnyOf {
		if r.meant(sub, v) && r.in(sub, v, own) {
			fits = true
			if own.empty() {
				break // otherwise all branches must be evaluated
			}
		}
		if r.spent {
			break
		}
		if r.quiet == 0 {
			ends = append(ends, len(r.causes))
		}
	}
	r.settle(from, fits)
	if !fits && !r.spent {
		r.prune(s, from, ends, "anyOf")
	}
	return fits && !r.spent
}

func (r *run) oneOf(s *jsonschema.Schema, v any, own *unevaluated) bool {
	from := r.attempt()
	var ends []int
	first := -1
	for i, sub := range s.OneOf {
		if !r.meant(sub, v) {
			continue
		}
		if first >= 0 {
			if r.quietly(sub, v, own) {
				r.settle(from, true)
				return r.fails(s, func() jsonschema.ErrorKind { return &kind.OneOf{Subschemas: []int{first, i}} })
			}
		} else if r.in(sub, v, own) {
			first = i
		}
		if r.spent {
			break
		}
		if r.quiet == 0 {
			ends = append(ends, len(r.causes))
		}
	}
	r.settle(from, first >= 0)
	if first < 0 && !r.spent {
		r.prune(s, from, ends, "oneOf")
	}
	return first >= 0 && !r.spent
}
