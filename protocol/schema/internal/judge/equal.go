package judge

import (
	"encoding/json"
	"hash/maphash"
)

// equal compares as in JSON Schema: 1.0 equals 1, and the order of members is irrelevant.
func (r *run) equal(a, b any) bool {
	if !r.pay(1) {
		return false
	}
	switch a := a.(type) {
	case map[string]any:
		b, ok := b.(map[string]any)
		if !ok || len(a) != len(b) || !r.pay(memberPrice*len(a)) {
			return false
		}
		same := true // no early exit, so that the cost does not depend on the order
		for name, v := range a {
			w, there := b[name]
			same = there && r.equal(v, w) && same
		}
		return same
	case []any:
		b, ok := b.([]any)
		if !ok || len(a) != len(b) {
			return false
		}
		for i := range a {
			if !r.equal(a[i], b[i]) {
				return false
			}
		}
		return true
	case json.Number:
		b, ok := b.(json.Number)
		return ok && (a == b || r.pay((len(a)+len(b))/2) && decimal(a) == decimal(b))
	case string:
		b, ok := b.(string)
		return ok && len(a) == len(b) && r.pay(len(a)/textShare) && a == b
	}
	return a == b // null, true, false
}

// set holds the values of an enum: strings and numbers by value, others in a list.
type set struct {
	texts   map[string]bool
	numbers map[string]bool
	others  []any
}

func newSet(values []any) *set {
	s := &set{texts: map[string]bool{}, numbers: map[string]bool{}}
	for _, v := range values {
		switch v := v.(type) {
		case string:
			s.texts[v] = true
		case json.Number:
			s.numbers[decimal(v)] = true
		default:
			s.others = append(s.others, v)
		}
	}
	return s
}

// among reports whether v is one of the values.
func (r *run) among(s *set, v any) bool {
	switch v := v.(type) {
	case string:
		return r.pay(memberPrice+len(v)/textShare) && s.texts[v]
	case json.Number:
		return r.pay(memberPrice+len(v)/2) && s.numbers[decimal(v)]
	}
	for _, w := range s.others {
		if r.equal(v, w) {
			return true
		}
		if r.spent {
			break
		}
	}
	return false
}

// fewItems is the length up to which items are compared pairwise.
const fewItems = 12

// unique reports whether all items differ.
func (r *run) unique(list []any) bool {
	if len(list) <= fewItems {
		for i := range list {
			for j := range i {
				if r.equal(list[i], list[j]) || r.spent {
					return false
				}
			}
		}
		return true
	}
	const slotPrice = 8
	if !r.pay(slotPrice * len(list)) {
		return false
	}
	size := 1
	for size < 2*len(list) {
		size *= 2
	}
	mask := uint64(size - 1)                  //nolint:gosec // it counts items
	hashes, slots := r.table(len(list), size) // slots count from 1
	for i, v := range list {
		h := r.hash(v)
		hashes[i] = h
		at := int(h & mask) //nolint:gosec // as above
		for ; slots[at] != 0; at = (at + 1) % size {
			if j := int(slots[at]) - 1; hashes[j] == h && r.equal(v, list[j]) {
				return false
			}
		}
		slots[at] = int32(i + 1) //nolint:gosec // a document has no more than 4 MB
		if r.spent {
			return false
		}
	}
	return true
}

// table returns buffers for the hashes of n items.
func (r *run) table(n, size int) ([]uint64, []int32) {
	if len(r.slots) < size {
		r.hashes, r.slots = make([]uint64, size/2), make([]int32, size)
	}
	clear(r.slots[:size])
	return r.hashes[:n], r.slots[:size]
}

// seed prevents documents with chosen hash collisions.
var seed = maphash.MakeSeed()

// hash is equal for equal values.
func (r *run) hash(v any) uint64 {
	const odd = 0x9e3779b97f4a7c15
	if !r.pay(memberPrice) {
		return 0
	}
	switch v := v.(type) {
	case map[string]any:
		sum := uint64(len(v)) + 1
		for name, member := range v {
			if !r.pay(memberPrice + len(name)/textShare) {
				return 0
			}
			sum += maphash.Comparable(seed, [2]uint64{maphash.String(seed, name), r.hash(member)})
		}
		return sum * odd
	case []any:
		sum := uint64(len(v)) + 2
		for _, member := range v {
			sum = (sum ^ r.hash(member)) * odd
			sum ^= sum >> 29
		}
		return sum
	case json.Number:
		r.pay(len(v) / 2)
		return maphash.String(seed, decimal(v)) + 3
	case string:
		r.pay(len(v) / textShare)
		return maphash.String(seed, v)
	case bool:
		if v {
			return odd
		}
		return odd + 1
	}
	return odd + 2
}
