package redact

import "math/bits"

// starts tells quickly where no pattern begins: it knows a hash of the first four
// bytes of each. In most texts that is nearly everywhere, and the automaton need
// not look there.
type startFilter struct {
	bits  []uint64
	shift uint8
}

// startBytes is how much of a pattern is hashed. A pattern that is shorter makes
// every place a possible beginning.
const startBytes = 4

// newStarts is nil if nothing can be said.
func newStartFilter(patterns []pattern) *startFilter {
	for _, p := range patterns {
		if p.text != "" && len(p.text) < startBytes {
			return nil
		}
	}
	const room = 32 // bits for each pattern: a few places in a hundred are looked at in vain
	size := max(bits.Len(uint(len(patterns)*room)), 12)
	s := &startFilter{bits: make([]uint64, 1<<(size-6)), shift: uint8(32 - min(size, 32))} //nolint:gosec // G115: at most 32
	for _, p := range patterns {
		if p.text != "" {
			h := s.hash(p.text[0], p.text[1], p.text[2], p.text[3])
			s.bits[h>>6] |= 1 << (h & 63)
		}
	}
	return s
}

func (s *startFilter) hash(a, b, c, d byte) uint32 {
	const spread = 2654435761 // Knuth's, for words of 32 bits
	return (uint32(a) | uint32(b)<<8 | uint32(c)<<16 | uint32(d)<<24) * spread >> s.shift
}

// nowhere reports that no pattern begins at position i of the text. At the end of
// the text it cannot tell.
func cannotStart[T string | []byte](s *startFilter, text T, i int) bool {
	if s == nil || i+startBytes > len(text) {
		return false
	}
	h := s.hash(text[i], text[i+1], text[i+2], text[i+3])
	return s.bits[h>>6]&(1<<(h&63)) == 0
}
