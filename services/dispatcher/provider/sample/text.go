package sample

import (
	"regexp"
	"strconv"
	"strings"
	"unicode/utf8"
)

// How long a text is that may have any length, in characters.
const (
	shortText = 80
	longText  = 240
)

// length is what a schema allows a text's length to be, in characters.
type length struct{ low, high int }

func (l length) holds(s string) bool {
	n := utf8.RuneCountInString(s)
	return l.low <= n && n <= l.high
}

// fit makes a text longer or shorter until it has the length.
func (l length) fit(s string) string {
	const filler = " sample"
	if missing := l.low - utf8.RuneCountInString(s); missing > 0 {
		s += strings.Repeat(filler, missing/len(filler)+1)
	}
	if utf8.RuneCountInString(s) <= l.high {
		return s
	}
	if c := cut(s, l.high); utf8.RuneCountInString(c) >= l.low {
		return c
	}
	return string([]rune(s)[:l.high])
}

// reference is a number or code that names a thing: an order, a ticket.
var reference = regexp.MustCompile(`[A-Z]{0,5}[-#]?\d{3,}[A-Z0-9-]*`)

// sentence is what to say at a place, by the member's name: a reference for an
// id, an explanation for a reason, else the next sentence of the subject.
func (g *generator) sentence(at place, about string, want length) string {
	words := map[string]bool{}
	for w := range strings.FieldsFuncSeq(strings.ToLower(splitCamel(at.name)), func(r rune) bool { return !isWord(r) }) {
		words[w] = true
	}
	is := func(names string) bool {
		for n := range strings.FieldsSeq(names) {
			if words[n] {
				return true
			}
		}
		return false
	}
	switch {
	case is("id number order ref reference ticket key"):
		return g.reference(at)
	case is("language lang locale"):
		return "en"
	case is("reasoning reason rationale explanation why"):
		return "Sample reasoning, not a model's: the input says " + strconv.Quote(g.source.excerpt(0, shortText))
	case is("question questions"):
		return "What else is there to know about this: " + g.next(shortText) + "?"
	case is("reply draft response answer") || strings.Contains(strings.ToLower(about), "reply"):
		return "Thank you for writing. You told us: " + g.next(longText)
	case is("summary subject title headline name label"):
		return g.source.excerpt(0, min(shortText, want.high))
	default:
		return g.next(shortText)
	}
}

func (g *generator) reference(at place) string {
	if found := g.source.find(reference); len(found) > 0 {
		return strings.TrimPrefix(found[0], "#")
	}
	return "sample-" + strconv.FormatUint(g.hash(at)%10_000, 10)
}

// next is a sentence of the subject that was not used yet.
func (g *generator) next(most int) string {
	s := g.source.excerpt(g.told, most)
	g.told++
	return s
}
