package sample

import (
	"regexp"
	"regexp/syntax"
	"strings"
	"unicode/utf8"
)

// matching is a text that a pattern matches and that has the length: text itself,
// a word of the subject, or one made of the pattern. Patterns Go cannot read
// (JSON Schema takes ECMAScript's) are not satisfied.
func (g *generator) matching(pattern, text string, want length) string {
	re, err := regexp.Compile(pattern)
	if err != nil {
		return text
	}
	fits := func(s string) bool { return want.holds(s) && re.MatchString(s) }
	if fits(text) {
		return text
	}
	for _, w := range g.source.words {
		for _, s := range []string{w, strings.ToLower(w), strings.ToUpper(w)} {
			if fits(s) {
				return s
			}
		}
	}
	tree, err := syntax.Parse(pattern, syntax.Perl)
	if err != nil {
		return text
	}
	for _, more := range []int{0, 1, 2, 4, 8, 16, 32, 64, want.low} {
		w := weaver{more: more, most: max(maxWoven, want.low)}
		w.weave(tree)
		// A pattern that is not anchored leaves room around what it matches.
		s := w.out.String()
		missing := max(0, want.low-utf8.RuneCountInString(s))
		for _, s := range []string{s, want.fit(s), strings.Repeat("a", missing) + s} {
			if fits(s) {
				return s
			}
		}
	}
	return text
}

// weaver makes a text out of a regular expression.
type weaver struct {
	more int // how often to repeat what may be repeated
	most int // length where repetitions stop, since they may be nested
	out  strings.Builder
}

// maxWoven is the longest text to weave where no longer one is wanted, in bytes.
const maxWoven = 1 << 12

func (w *weaver) weave(t *syntax.Regexp) {
	switch t.Op {
	case syntax.OpLiteral:
		for _, r := range t.Rune {
			w.out.WriteRune(r)
		}
	case syntax.OpCharClass:
		w.out.WriteRune(fromClass(t.Rune))
	case syntax.OpAnyChar, syntax.OpAnyCharNotNL:
		w.out.WriteByte('a')
	case syntax.OpConcat, syntax.OpCapture:
		for _, s := range t.Sub {
			w.weave(s)
		}
	case syntax.OpAlternate:
		w.weave(t.Sub[0])
	case syntax.OpStar:
		w.repeat(t.Sub[0], w.more)
	case syntax.OpPlus:
		w.repeat(t.Sub[0], 1+w.more)
	case syntax.OpQuest:
		w.repeat(t.Sub[0], min(w.more, 1))
	case syntax.OpRepeat:
		n := t.Min + w.more
		if t.Max >= 0 {
			n = min(n, t.Max)
		}
		w.repeat(t.Sub[0], n)
	default: // anchors and boundaries are no characters
	}
}

func (w *weaver) repeat(t *syntax.Regexp, n int) {
	for range n {
		if w.out.Len() > w.most {
			return
		}
		w.weave(t)
	}
}

// fromClass is a character of a class, given as pairs of first and last: a plain
// one if it has any.
func fromClass(pairs []rune) rune {
	for _, r := range "aA0_-. " {
		for i := 0; i+1 < len(pairs); i += 2 {
			if pairs[i] <= r && r <= pairs[i+1] {
				return r
			}
		}
	}
	if len(pairs) == 0 {
		return 'a'
	}
	return pairs[0]
}
