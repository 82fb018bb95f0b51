package judge

import (
	"github.com/santhosh-tekuri/jsonschema/v6"
	"github.com/santhosh-tekuri/jsonschema/v6/kind"
)

// array applies the keywords for arrays.
func (r *run) array(s *jsonschema.Schema, list []any, own *unevaluated) bool {
	ok := s.MinItems == nil || len(list) >= *s.MinItems ||
		r.fails(s, func() jsonschema.ErrorKind { return &kind.MinItems{Got: len(list), Want: *s.MinItems} })
	ok = (s.MaxItems == nil || len(list) <= *s.MaxItems ||
		r.fails(s, func() jsonschema.ErrorKind { return &kind.MaxItems{Got: len(list), Want: *s.MaxItems} })) && ok
	if r.over(ok) {
		return false
	}
	if s.UniqueItems && len(list) > 1 {
		ok = (r.unique(list) || r.fails(s, func() jsonschema.ErrorKind { return &kind.UniqueItems{} })) && ok
	}
	if r.over(ok) {
		return false
	}
	ok = r.items(s, list) && ok
	if s.Contains == nil || r.over(ok) {
		return ok
	}
	return r.contains(s, list, own) && ok
}

// items applies the schemas for the first items, then the schema for the rest.
func (r *run) items(s *jsonschema.Schema, list []any) bool {
	ok := true
	for i, v := range list {
		sub := s.Items2020
		if i < len(s.PrefixItems) {
			sub = s.PrefixItems[i]
		}
		if sub == nil {
			break
		}
		if ok = r.below(sub, v, item(i)) && ok; r.over(ok) {
			return false
		}
	}
	return ok
}

// contains counts the items that match a schema.
func (r *run) contains(s *jsonschema.Schema, list []any, own *unevaluated) bool {
	from := r.attempt()
	matched := 0
	for i, v := range list {
		if r.below(s.Contains, v, item(i)) {
			matched++
			own.seenItem(i)
		}
		if r.spent {
			break
		}
	}
	short, least := matched == 0, s.MinContains
	if least != nil {
		short = matched < *least
	}
	r.settle(from, !short)
	if r.spent {
		return false
	}
	ok := !short
	if short && len(r.causes) == from { // no item has a cause
		r.fails(s, func() jsonschema.ErrorKind {
			if least != nil {
				return &kind.MinContains{Want: *least}
			}
			return &kind.Contains{}
		})
	}
	if s.MaxContains != nil && matched > *s.MaxContains {
		ok = r.fails(s, func() jsonschema.ErrorKind { return &kind.MaxContains{Want: *s.MaxContains} })
	}
	return ok
}
