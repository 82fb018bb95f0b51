package redact

import (
	"cmp"
	"slices"
	"strings"
)

// This file looks for shapes behind JSON's escapes: a key after an escaped line
// break begins no word, and an escaped quote is none to a rule.

// replaceBehind takes out what looks like a secret where a text reads differently
// behind its escapes.
func (s *Shapes) replaceBehind(text string) (out string, count int) {
	view, at := text, []int(nil)
	for range maxLayers {
		view, at = unescaped(view, at)
		found := s.search(view)
		for i, f := range found {
			found[i].start, found[i].end = at[f.start], at[f.end]
		}
		if len(found) > 0 { // the text is another one now
			text, count = replaceAll(text, found), count+len(found)
			view, at = unescaped(text, nil)
		}
		if strings.IndexByte(view, '\\') < 0 {
			break
		}
	}
	return text, count
}

// search finds what looks like a secret; of parts that overlap the first.
func (s *Shapes) search(text string) []shaped {
	wanted := s.wanted(text)
	if wanted == 0 {
		return nil
	}
	var found []shaped
	for i := range s.rules {
		if wanted&(1<<i) == 0 {
			continue
		}
		for at := range s.rules[i].find(text) {
			found = append(found, shaped{at[0], at[1], s.rules[i].with})
		}
	}
	slices.SortStableFunc(found, func(a, b shaped) int { return cmp.Compare(a.start, b.start) })
	apart := found[:0]
	for _, f := range found {
		if len(apart) == 0 || f.start >= apart[len(apart)-1].end {
			apart = append(apart, f)
		} else {
			apart[len(apart)-1].end = max(apart[len(apart)-1].end, f.end)
		}
	}
	return apart
}

// unescaped takes one layer of escapes off a text. at are the positions of the
// text's characters and of its end in a text further up, nil if there is none; the
// result's are given in the same way.
func unescaped(text string, at []int) (out string, outAt []int) {
	above := func(i int) int {
		if at == nil {
			return i
		}
		return at[i]
	}
	var b strings.Builder
	outAt = make([]int, 0, len(text)+1)
	for i := 0; i < len(text); {
		stands, size := text[i:i+1], 1
		if text[i] == '\\' {
			stands, size = decodeText(text[i:])
		}
		for range len(stands) {
			outAt = append(outAt, above(i))
		}
		b.WriteString(stands)
		i += size
	}
	return b.String(), append(outAt, above(len(text)))
}

// decodeText is decode for a text that has all there is.
func decodeText(text string) (stands string, size int) {
	var held [2 * escapeSize]char
	n := min(len(text), len(held))
	for i := range n {
		held[i].c = text[i]
	}
	stands, size, ok := decode(held[:n])
	if !ok {
		return text[:1], 1
	}
	return stands, size
}
