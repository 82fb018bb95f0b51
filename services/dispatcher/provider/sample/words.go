package sample

import (
	"strings"
	"unicode"
)

// stopWords are in every text and say nothing about it.
var stopWords = set(`about after all also and any are because been before being but can could did does each every for from
had has have her here him his how into its just more most must not off one only other our out own per same shall she should
some such than that the their them then there these they this those through under until upon use used uses using very was were what
when where which while who whom why will with would you your value values field string text number`)

// stems are the words of a text that say something, in order, cut to their
// stems. camelCase and snake_case names are words too.
func stems(text string) []string {
	var out []string
	for w := range strings.FieldsFuncSeq(splitCamel(text), func(r rune) bool { return !isWord(r) }) {
		w = strings.ToLower(w)
		if len(w) < 3 || stopWords[w] {
			continue
		}
		out = append(out, stem(w))
	}
	return out
}

// stem takes the commonest endings off an English word, so that "invoices"
// meets "invoice" and "charged" meets "charge". It need not be right, only the
// same on both sides.
func stem(w string) string {
	const shortest = 3
	for _, ending := range []string{"ings", "ing", "ed", "s"} {
		if t, ok := strings.CutSuffix(w, ending); ok && len(t) >= shortest {
			w = t
			break
		}
	}
	if t, ok := strings.CutSuffix(w, "e"); ok && len(t) >= shortest {
		w = t
	}
	return w
}

func splitCamel(s string) string {
	var b strings.Builder
	small := false
	for _, r := range s {
		if small && unicode.IsUpper(r) {
			b.WriteByte(' ')
		}
		small = unicode.IsLower(r)
		b.WriteRune(r)
	}
	return b.String()
}

func set(words string) map[string]bool {
	m := map[string]bool{}
	for w := range strings.FieldsSeq(words) {
		m[w] = true
	}
	return m
}
