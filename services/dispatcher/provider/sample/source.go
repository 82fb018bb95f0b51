package sample

import (
	"cmp"
	"math/big"
	"regexp"
	"strings"
	"unicode"
	"unicode/utf8"
)

// source is the text that an answer is made of.
type source struct {
	stems     map[string]bool
	words     []string // without punctuation around them
	numbers   []*big.Rat
	sentences []string // at least one
}

// Limits of what is tried for one value.
const maxSource, maxWords, maxNumbers = 64 << 10, 200, 20

var written = regexp.MustCompile(`\d+(?:\.\d+)?`)

var sentenceEnd = regexp.MustCompile(`[.!?]+(?:\s+|$)|\n\s*\n`)

func newSource(text string) source {
	if len(text) > maxSource {
		text = strings.ToValidUTF8(text[:maxSource], "")
	}
	s := source{stems: map[string]bool{}}
	for _, n := range written.FindAllString(text, maxNumbers) {
		if x, ok := new(big.Rat).SetString(n); ok {
			s.numbers = append(s.numbers, x)
		}
	}
	for _, stem := range stems(text) {
		s.stems[stem] = true
	}
	words := strings.Fields(text)
	for _, w := range words[:min(len(words), maxWords)] {
		s.words = append(s.words, strings.TrimFunc(w, unicode.IsPunct))
	}
	const short, long = 12, 80 // characters
	for _, sentence := range sentenceEnd.Split(text, -1) {
		sentence = strings.Join(strings.Fields(sentence), " ")
		if utf8.RuneCountInString(sentence) > short && !strings.HasSuffix(sentence, ":") {
			s.sentences = append(s.sentences, fit(sentence, 0, long))
		}
	}
	if len(s.sentences) == 0 {
		s.sentences = []string{cmp.Or(fit(strings.Join(words, " "), 0, long), "sample")}
	}
	return s
}

// stems returns the words of a text that say something, in lower case and without endings.
func stems(text string) (list []string) {
	for w := range strings.FieldsFuncSeq(splitCamel(text), func(r rune) bool { return !unicode.IsLetter(r) && !unicode.IsDigit(r) }) {
		if w = strings.ToLower(w); len(w) > 2 && !strings.Contains(stopWords, " "+w+" ") {
			list = append(list, stem(w))
		}
	}
	return list
}

const stopWords = " the and for was has had have are this that with from what when who whom whose how why you your our its not but any all none out "

// stem takes the commonest endings off an English word: "charged" meets "charge".
func stem(w string) string {
	for _, ending := range []string{"ings", "ing", "ed", "es", "s", "e"} {
		if t, ok := strings.CutSuffix(w, ending); ok && len(t) > 2 {
			return t
		}
	}
	return w
}

func splitCamel(s string) string { return camel.ReplaceAllString(s, "$1 $2") }

var camel = regexp.MustCompile(`(\p{Ll})(\p{Lu})`)
