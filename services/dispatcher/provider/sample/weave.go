package sample

import (
	"regexp/syntax"
	"strings"
	"unicode/utf8"
)

// woven returns texts that the patterns may match, of several lengths. Patterns that Go cannot read
// (JSON Schema has ECMAScript's) have none.
func (w want) woven(low, high int) (texts []string) {
	for _, s := range w.all {
		if s.Pattern == nil {
			continue
		}
		tree, err := syntax.Parse(s.Pattern.String(), syntax.Perl)
		if err != nil {
			continue
		}
		for _, more := range []int{0, 1, 2, 4, 8, 16, 32, 64, low} {
			const most = 1 << 9 // bytes
			t := weave(tree, more, max(most, low))
			// A pattern that is not anchored leaves room around what it matches.
			missing := max(0, low-utf8.RuneCountInString(t))
			texts = append(texts, t, fit(t, low, high), strings.Repeat("a", missing)+t)
		}
	}
	return texts
}

// weave makes a text that a regular expression matches. It repeats what may be repeated: more times
// than it must, up to a length.
func weave(t *syntax.Regexp, more, most int) string {
	switch t.Op {
	case syntax.OpLiteral:
		return string(t.Rune)
	case syntax.OpCharClass:
		return plain(t.Rune)
	case syntax.OpAnyChar, syntax.OpAnyCharNotNL:
		return "a"
	case syntax.OpAlternate:
		return weave(t.Sub[0], more, most)
	case syntax.OpStar, syntax.OpPlus, syntax.OpQuest, syntax.OpRepeat:
		n := more
		switch t.Op {
		case syntax.OpPlus:
			n++
		case syntax.OpQuest:
			n = min(n, 1)
		case syntax.OpRepeat:
			if n += t.Min; t.Max >= 0 {
				n = min(n, t.Max)
			}
		}
		s := weave(t.Sub[0], more, most)
		return strings.Repeat(s, min(n, most/(len(s)+1)))
	default: // a concatenation or a group; anchors and boundaries have no characters
		var all string
		for _, s := range t.Sub {
			all += weave(s, more, most)
		}
		return all
	}
}

// plain returns a character of a class, which is pairs of first and last: a plain one if it has any.
func plain(pairs []rune) string {
	for _, r := range "aA0_-. " {
		for i := 0; i+1 < len(pairs); i += 2 {
			if pairs[i] <= r && r <= pairs[i+1] {
				return string(r)
			}
		}
	}
	if len(pairs) == 0 {
		return "a"
	}
	return string(pairs[0])
}
