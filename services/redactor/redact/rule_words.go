package redact

import (
	"fmt"
	"math"
	"strings"
)

// Words lists the words of all rules. A text without any of them has no finds.
func (s *Shapes) Words() []string {
	var out []string
	for _, r := range s.rules {
		out = append(out, r.Words...)
	}
	return out
}

// word is a word of a rule.
type word struct {
	text string
	fold bool
	rule int
}

// isPrefixOf reports whether text starts with the word.
func (w word) isPrefixOf(text []byte) bool {
	if len(text) < len(w.text) {
		return false
	}
	return w.equalFold(text[:len(w.text)])
}

// hasPrefix reports whether text, which is shorter than the word, is a prefix of it.
func (w word) hasPrefix(text []byte) bool { return w.equalFold(text) }

func (w word) equalFold(text []byte) bool {
	for i, c := range text {
		if c != w.text[i] && (!w.fold || fold(c) != w.text[i]) {
			return false
		}
	}
	return true
}

// fold returns letters in lower case.
func fold(c byte) byte {
	if isUpper(c) {
		return c + 'a' - 'A'
	}
	return c
}

// hash3 hashes three bytes in a number.
func hash3(h uint32) uint32 {
	const spread = 2654435761 // Knuth's, for words of 32 bits
	return h * spread >> (32 - hashBits)
}

// buildIndex builds the hash table of words and markers.
func (s *Shapes) buildIndex() error {
	s.lists = [][]word{nil}
	enter := func(text string, w ...word) {
		var h uint32
		for k := range minWord {
			h |= uint32(fold(text[k])) << (8 * k)
		}
		at := &s.begins[hash3(h)]
		if *at == 0 {
			*at = uint8(len(s.lists)) //nolint:gosec // G115: checked below
			s.lists = append(s.lists, nil)
		}
		s.lists[*at] = append(s.lists[*at], w...)
	}
	enter(markerBegin)
	for i, r := range s.rules {
		for _, w := range r.Words {
			if r.Fold {
				w = strings.ToLower(w)
			}
			if len(w) >= minWord {
				enter(w, word{w, r.Fold, i})
			}
		}
	}
	if len(s.lists) > math.MaxUint8 {
		return fmt.Errorf("words have %d different starts, the limit is %d", len(s.lists), math.MaxUint8)
	}
	return nil
}

// containsWord reports whether the text contains a word of any rule.
func (s *Shapes) containsWord(text []byte) bool {
	if len(text) < minWord {
		return false
	}
	h := uint32(fold(text[0])) | uint32(fold(text[1]))<<8
	for i := 0; i+minWord <= len(text); i++ {
		h |= uint32(fold(text[i+2])) << 16
		for _, w := range s.lists[s.begins[hash3(h)]] {
			if w.isPrefixOf(text[i:]) {
				return true
			}
		}
		h >>= 8
	}
	return false
}
