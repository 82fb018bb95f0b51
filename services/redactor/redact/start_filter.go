package redact

import "math/bits"

// startFilter is a fast check for places where no pattern starts. It has a hash of the first
// four bytes of each pattern. At most places of a text no pattern starts, and the automaton
// is skipped there.
type startFilter struct {
	bits  []uint64
	shift uint8
}

// startBytes is how many bytes of a pattern are hashed. With a shorter pattern there is no
// filter.
const startBytes = 4

// newStartFilter returns nil if a pattern is shorter than startBytes.
func newStartFilter(patterns []pattern) *startFilter {
	for _, p := range patterns {
		if p.text != "" && len(p.text) < startBytes {
			return nil
		}
	}
	const room = 32 // bits per pattern; a few percent false positives
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

// cannotStart reports that no pattern starts at position i. It returns false near the end of
// the text.
func cannotStart[T string | []byte](s *startFilter, text T, i int) bool {
	if s == nil || i+startBytes > len(text) {
		return false
	}
	h := s.hash(text[i], text[i+1], text[i+2], text[i+3])
	return s.bits[h>>6]&(1<<(h&63)) == 0
}
