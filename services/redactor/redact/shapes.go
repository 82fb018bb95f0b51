package redact

import (
	_ "embed"
	"errors"
	"fmt"
	"iter"
	"math"
	"regexp"
	"strings"
	"sync"

	"go.yaml.in/yaml/v3"
)

//go:embed shapes.yaml
var shapesYAML []byte

// Shapes finds text that looks like a secret which nobody has registered. It is
// the second layer, after the values that are known, and can be left out. It is
// safe for concurrent use; the nil Shapes finds nothing.
type Shapes struct {
	rules []shape
	// pairs are the first two bytes of all words, and words those that begin so.
	pairs [1 << 16]bool
	words map[uint16][]word
}

// maxRules is how many rules a set of bits holds, minWord the shortest word.
const (
	maxRules = 64
	minWord  = 3
)

// shape is one rule of shapes.yaml.
type shape struct {
	ID      string   `yaml:"id"`
	Words   []string `yaml:"words"`
	Fold    bool     `yaml:"fold"`
	Pattern string   `yaml:"pattern"`
	Entropy float64  `yaml:"entropy"`

	re   *regexp.Regexp
	with string
}

// DefaultShapes are the rules this project ships.
var DefaultShapes = sync.OnceValue(func() *Shapes {
	s, err := ParseShapes(shapesYAML)
	if err != nil {
		panic("redact: embedded rules: " + err.Error()) // a test reads them
	}
	return s
})

// ParseShapes reads rules in the form of shapes.yaml, and names everything that is
// wrong with them.
func ParseShapes(doc []byte) (*Shapes, error) {
	s := &Shapes{}
	if err := yaml.Unmarshal(doc, &s.rules); err != nil {
		return nil, fmt.Errorf("read rules: %w", err)
	}
	var errs []error
	for i := range s.rules {
		r := &s.rules[i]
		if r.ID == "" || len(r.Words) == 0 || r.Pattern == "" {
			errs = append(errs, fmt.Errorf("rule %d: needs id, words and pattern", i))
			continue
		}
		var err error
		if r.re, err = regexp.Compile(r.Pattern); err != nil {
			errs = append(errs, fmt.Errorf("rule %s: %w", r.ID, err))
		}
		for _, w := range r.Words {
			if len(w) < minWord {
				errs = append(errs, fmt.Errorf("rule %s: word %q: needs %d characters", r.ID, w, minWord))
			}
		}
		r.with = marker("shape." + r.ID)
		if err := (Secret{ID: "shape." + r.ID}).Validate(); err != nil {
			errs = append(errs, fmt.Errorf("rule %s: %w", r.ID, err))
		}
	}
	if len(s.rules) > maxRules {
		errs = append(errs, fmt.Errorf("%d rules: at most %d are taken", len(s.rules), maxRules))
	}
	if err := errors.Join(errs...); err != nil {
		return nil, err
	}
	s.index()
	return s, nil
}

// IDs lists the rules.
func (s *Shapes) IDs() []string {
	out := make([]string, 0, len(s.rules))
	for _, r := range s.rules {
		out = append(out, r.ID)
	}
	return out
}

// maxSolid is the longest text without space that is looked at: a longer one is a
// blob, such as an image in base64, and not prose that holds a key.
const maxSolid = 16 << 10

// wanted reports, as bits by their place in the list, which rules have a word in
// the text.
func (s *Shapes) wanted(text string) uint64 {
	var out uint64
	for i := 0; i+1 < len(text); i++ {
		if !s.pairs[pairOf(text[i], text[i+1])] {
			continue
		}
		for _, w := range s.words[pairOf(text[i], text[i+1])] {
			if out&(1<<w.rule) == 0 && w.at(text[i:]) {
				out |= 1 << w.rule
			}
		}
	}
	return out
}

// word is a word of a rule.
type word struct {
	text string
	fold bool
	rule int
}

func (w word) at(text string) bool {
	if len(text) < len(w.text) {
		return false
	}
	if w.fold {
		return strings.EqualFold(text[:len(w.text)], w.text)
	}
	return text[:len(w.text)] == w.text
}

// pairOf is the index of two bytes, letters in lower case.
func pairOf(a, b byte) uint16 { return uint16(small(a))<<8 | uint16(small(b)) }

func small(c byte) byte {
	if c >= 'A' && c <= 'Z' {
		return c + 'a' - 'A'
	}
	return c
}

// index prepares looking for the words.
func (s *Shapes) index() {
	s.words = map[uint16][]word{}
	for i, r := range s.rules {
		for _, w := range r.Words {
			p := pairOf(w[0], w[1])
			s.pairs[p] = true
			s.words[p] = append(s.words[p], word{w, r.Fold, i})
		}
	}
}

// any reports whether a word of any rule is in the text, or behind its escapes.
func (s *Shapes) any(text string) bool {
	for range maxLayers {
		if s.wanted(text) != 0 {
			return true
		}
		if strings.IndexByte(text, '\\') < 0 {
			return false
		}
		text, _ = unescaped(text, nil)
	}
	return s.wanted(text) != 0
}

// Replace takes out what looks like a secret.
func (s *Shapes) Replace(text string) (out string, count int) {
	if s == nil || len(text) < MinLength || (len(text) > maxSolid && !strings.ContainsAny(text, " \n\t")) {
		return text, 0
	}
	wanted := s.wanted(text) // a marker adds no word that matters
	for i := range s.rules {
		if wanted&(1<<i) != 0 {
			var n int
			text, n = s.rules[i].replace(text)
			count += n
		}
	}
	if strings.IndexByte(text, '\\') < 0 {
		return text, count
	}
	text, n := s.replaceBehind(text)
	return text, count + n
}

func (r *shape) replace(text string) (string, int) {
	var found []shaped
	for at := range r.find(text) {
		found = append(found, shaped{at[0], at[1], r.with})
	}
	return replaceAll(text, found), len(found)
}

// find gives where the rule finds a secret in the text.
func (r *shape) find(text string) iter.Seq[[2]int] {
	return func(yield func([2]int) bool) {
		for _, m := range r.re.FindAllStringSubmatchIndex(text, -1) {
			start, end := m[0], m[1]
			if len(m) > 2 {
				start, end = m[2], m[3]
			}
			if start < 0 || isMarked(text[start:end]) || entropy(text[start:end]) < r.Entropy {
				continue
			}
			if !yield([2]int{start, end}) {
				return
			}
		}
	}
}

// shaped is a part of a text that a marker is to stand for.
type shaped struct {
	start, end int
	with       string
}

// replaceAll puts markers in the place of parts, which are in order and apart.
func replaceAll(text string, parts []shaped) string {
	if len(parts) == 0 {
		return text
	}
	var b strings.Builder
	done := 0
	for _, f := range parts {
		b.WriteString(text[done:f.start])
		b.WriteString(f.with)
		done = f.end
	}
	b.WriteString(text[done:])
	return b.String()
}

// isMarked reports a value that an earlier rule, or the first layer, has dealt with.
func isMarked(value string) bool {
	return strings.Contains(value, "[REDACTED") || strings.Contains(value, "REDACTED:")
}

// entropy is the mean information of a character of the text, in bits.
func entropy(text string) float64 {
	var counts [256]int
	for i := range len(text) {
		counts[text[i]]++
	}
	h, n := 0.0, float64(len(text))
	for _, c := range counts {
		if c > 0 {
			p := float64(c) / n
			h -= p * math.Log2(p)
		}
	}
	return h
}
