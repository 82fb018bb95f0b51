package sample

import (
	"regexp"
	"strings"
	"unicode"
	"unicode/utf8"
)

// source is the text an answer is made of, taken apart once.
type source struct {
	text      string
	stems     map[string]bool
	words     []string // the first ones, without punctuation around them
	sentences []string // those long enough to say something; one at least
	found     map[*regexp.Regexp][]string
}

const (
	// maxSource is how many bytes of a text are looked at.
	maxSource = 64 << 10
	// maxWords and maxFound bound what is tried for one value.
	maxWords, maxFound = 200, 20
)

func newSource(text string) *source {
	if len(text) > maxSource {
		text = strings.ToValidUTF8(text[:maxSource], "")
	}
	s := &source{text: text, stems: map[string]bool{}, found: map[*regexp.Regexp][]string{}}
	for _, stem := range stems(text) {
		s.stems[stem] = true
	}
	for w := range strings.FieldsSeq(text) {
		if len(s.words) == maxWords {
			break
		}
		s.words = append(s.words, strings.TrimFunc(w, unicode.IsPunct))
	}
	s.sentences = telling(text)
	return s
}

// telling are the sentences that say something; failing those the whole text,
// and "sample" for none.
func telling(text string) []string {
	const short = 12
	var out []string
	for _, s := range sentencesOf(text) {
		if utf8.RuneCountInString(s) > short {
			out = append(out, s)
		}
	}
	if len(out) > 0 {
		return out
	}
	if s := squeeze(text); s != "" {
		return []string{s}
	}
	return []string{"sample"}
}

// find gives the first matches in the text.
func (s *source) find(re *regexp.Regexp) []string {
	list, done := s.found[re]
	if !done {
		list = re.FindAllString(s.text, maxFound)
		s.found[re] = list
	}
	return list
}

// excerpt is the n-th sentence, counted round, cut to a length on a whole word.
func (s *source) excerpt(n, most int) string {
	return cut(s.sentences[n%len(s.sentences)], most)
}

// sentencesOf cuts at line ends, and at full stops and their like that a space
// follows, so that "3.50" stays whole.
func sentencesOf(text string) []string {
	var out []string
	for line := range strings.Lines(text) {
		start := 0
		for i, r := range line {
			next := i + utf8.RuneLen(r)
			if strings.ContainsRune(".!?", r) && next < len(line) && unicode.IsSpace(rune(line[next])) {
				out = append(out, squeeze(line[start:i]))
				start = next
			}
		}
		if rest := strings.TrimRight(squeeze(line[start:]), ".!?"); rest != "" {
			out = append(out, rest)
		}
	}
	return out
}

func squeeze(s string) string { return strings.Join(strings.Fields(s), " ") }

// cut shortens a text to a number of characters, after a whole word if there is one.
func cut(s string, most int) string {
	if utf8.RuneCountInString(s) <= most {
		return s
	}
	head := string([]rune(s)[:most])
	if i := strings.LastIndexByte(head, ' '); i > 0 {
		return head[:i]
	}
	return head
}
