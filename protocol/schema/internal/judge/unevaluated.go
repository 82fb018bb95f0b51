package judge

import "github.com/santhosh-tekuri/jsonschema/v6"

// unevaluated holds the members or items that no keyword has evaluated. It is nil if no keyword
// needs
// it.
type unevaluated struct {
	names map[string]bool
	items []bool
	left  int // number of true items
}

func (u *unevaluated) empty() bool { return u == nil || len(u.names) == 0 && u.left == 0 }

func (u *unevaluated) clear() { u.names, u.items, u.left = nil, nil, 0 }

func (u *unevaluated) seen(name string) {
	if u != nil {
		delete(u.names, name)
	}
}

func (u *unevaluated) seenItem(i int) {
	if u != nil && u.holds(i) {
		u.items[i] = false
		u.left--
	}
}

func (u *unevaluated) holds(i int) bool { return u != nil && i < len(u.items) && u.items[i] }

// The cost of recording a member or an item.
const (
	namePrice = 24
	itemPrice = 1
)

// unevaluatedBy returns what s leaves unevaluated; nil if it is not needed or nothing is left.
func (r *run) unevaluatedBy(s *jsonschema.Schema, v any, asked bool) *unevaluated {
	switch v := v.(type) {
	case map[string]any:
		if s.AdditionalProperties != nil || !asked && s.UnevaluatedProperties == nil || !r.pay(namePrice*(1+len(v))) {
			return nil
		}
		u := &unevaluated{names: make(map[string]bool, len(v))}
		for name := range v {
			u.names[name] = true
		}
		return u
	case []any:
		if s.Items2020 != nil || !asked && s.UnevaluatedItems == nil || !r.pay(itemPrice*(namePrice+len(v))) {
			return nil
		}
		u := &unevaluated{items: make([]bool, len(v))}
		for i := len(s.PrefixItems); i < len(v); i++ {
			u.items[i] = true
			u.left++
		}
		return u
	}
	return nil
}

// merge removes what another schema has evaluated.
func (r *run) merge(open, by *unevaluated) {
	if by.empty() {
		open.clear()
		return
	}
	if !r.pay(memberPrice*len(open.names) + itemPrice*len(open.items)) {
		return
	}
	for name := range open.names {
		if !by.names[name] {
			delete(open.names, name)
		}
	}
	for i := range open.items {
		if !by.holds(i) {
			open.seenItem(i)
		}
	}
}

// leftOver applies the keywords for unevaluated members and items.
func (r *run) leftOver(s *jsonschema.Schema, v any, own *unevaluated) bool {
	ok := true
	switch v := v.(type) {
	case map[string]any:
		if s.UnevaluatedProperties == nil {
			return true
		}
		from := r.sorted(v)
		for i, to := from, len(r.names); i < to && !r.over(ok); i++ {
			name := r.names[i]
			switch closed := s.UnevaluatedProperties.Bool; {
			case !own.names[name]:
			case closed != nil && !*closed:
				ok = r.unasked(s, name)
			default:
				ok = r.below(s.UnevaluatedProperties, v[name], Token{Name: name}) && ok
			}
		}
		r.names = r.names[:from]
	case []any:
		if s.UnevaluatedItems == nil {
			return true
		}
		for i, left := range own.items {
			if r.over(ok) {
				break
			}
			if left {
				ok = r.below(s.UnevaluatedItems, v[i], item(i)) && ok
			}
		}
	}
	own.clear()
	return ok
}
