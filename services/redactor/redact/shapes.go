package redact

import (
	"bytes"
	_ "embed"
	"errors"
	"fmt"
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
	rules   []shape
	classes []class
	// Classes of the readers: a value without quotes, what a header holds, and the
	// part of a URL before its path.
	bare, header, authority int
	assignment              int // the rule for names and values, or -1
	// begins maps the first bytes of a text to the list of words that may begin so;
	// 0: none.
	begins [1 << hashBits]uint8
	lists  [][]word
}

const (
	// minWord is the shortest word: so much is hashed.
	minWord  = 3
	hashBits = 13
)

// shape is one rule of shapes.yaml.
type shape struct {
	ID      string   `yaml:"id"`
	Words   []string `yaml:"words"`
	Fold    bool     `yaml:"fold"`
	Inside  bool     `yaml:"inside"`
	Keep    bool     `yaml:"keep"`
	Then    string   `yaml:"then"`
	Reader  string   `yaml:"reader"`
	Entropy float64  `yaml:"entropy"`
	NoWords bool     `yaml:"noWords"`

	pattern []patternStep
	read    reader
	marker  string
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
	s.addReaderClasses()
	var errs []error
	for i := range s.rules {
		errs = append(errs, s.prepareRule(i))
	}
	if err := errors.Join(append(errs, s.buildIndex())...); err != nil {
		return nil, err
	}
	return s, nil
}

// common makes the classes of the readers.
func (s *Shapes) addReaderClasses() {
	without := func(bytes string) (in [256]bool) {
		for c := range in {
			in[c] = strings.IndexByte(bytes, byte(c)) < 0
		}
		return in
	}
	const blank = " \t\n\r\v\f\"'`<>"
	s.bare = s.classIndex(class{in: without(blank + ",;"), opaque: true, quoted: true})
	s.authority = s.classIndex(class{in: without(blank + `/\?#`), opaque: true})
	header := class{opaque: true}
	for c := range header.in {
		header.in[c] = isWord(byte(c)) || strings.IndexByte(".~+/=:%-", byte(c)) >= 0
	}
	s.header = s.classIndex(header)
	s.assignment = -1
}

// prepare reads one rule.
func (s *Shapes) prepareRule(i int) error {
	r := &s.rules[i]
	if r.ID == "" || len(r.Words) == 0 || (r.Then == "") == (r.Reader == "") {
		return fmt.Errorf("rule %d: needs id, words, and then or reader", i)
	}
	var errs []error
	longest := 0
	for _, w := range r.Words {
		longest = max(longest, len(w))
		if len(w) < minWord {
			errs = append(errs, fmt.Errorf("rule %s: word %q: needs %d characters", r.ID, w, minWord))
		}
	}
	if r.read = readers(r.Reader); r.read == nil {
		errs = append(errs, fmt.Errorf("rule %s: there is no reader %q", r.ID, r.Reader))
	}
	if r.Reader == "" {
		var err error
		if r.pattern, err = s.parsePattern(r.Then, longest); err != nil {
			errs = append(errs, fmt.Errorf("rule %s: %w", r.ID, err))
		}
	}
	if r.Reader == "assignment" {
		s.assignment = i
	}
	r.marker = marker("shape." + r.ID)
	if err := (Secret{ID: "shape." + r.ID}).Validate(); err != nil {
		errs = append(errs, fmt.Errorf("rule %s: %w", r.ID, err))
	}
	return errors.Join(errs...)
}

// IDs lists the rules.
func (s *Shapes) IDs() []string {
	out := make([]string, 0, len(s.rules))
	for _, r := range s.rules {
		out = append(out, r.ID)
	}
	return out
}

// Replace takes out what looks like a secret.
func (s *Shapes) Replace(text string) (out string, count int) {
	if s == nil || len(text) < MinLength || !s.containsWord([]byte(text)) && !hasUnicodeEscapes([]byte(text)) {
		return text, 0
	}
	b, count := s.replace([]byte(text), kindNone)
	if count == 0 {
		return text, 0
	}
	return string(b), count
}

// replace takes out what looks like a secret of a text that is the value of a member
// whose name promises k.
func (s *Shapes) replace(text []byte, k kind) (out []byte, count int) {
	sc := newShapeScan(s)
	sc.text, sc.closed = text, true
	c := &cursor{s: sc}
	if k == kindHeader && !c.skipScheme() {
		k = kindKey
	}
	if k != kindNone && k.isSecret(sc.sample(c.i, len(text)), true) {
		sc.addFind(find{start: c.i, end: len(text), rule: s.assignment})
	}
	out = sc.write(make([]byte, 0, len(text)), nil)
	if !hasUnicodeEscapes(out) {
		return out, sc.count
	}
	behind := newShapeScan(s)
	behind.decoded, behind.closed = &decodedText{}, true
	out = behind.write(make([]byte, 0, len(out)), out)
	return out, sc.count + behind.count
}

// promised tells what the name of a member promises of its value.
func (s *Shapes) kindOfName(name []byte) kind {
	if s == nil || s.assignment < 0 {
		return kindNone
	}
	for len(name) > 0 && isDigit(name[len(name)-1]) {
		name = name[:len(name)-1]
	}
	if n := len(name) - len("authorization"); n >= 0 && bytes.EqualFold(name[n:], []byte("authorization")) {
		return kindHeader
	}
	best := kindNone
	for _, w := range s.rules[s.assignment].Words {
		n := len(w)
		if n > len(name) || fold(name[len(name)-1]) != w[n-1] {
			continue
		}
		if (word{text: w, fold: true}).equalFold(name[len(name)-n:]) {
			best = max(best, kindOf(name, w))
		}
	}
	return best
}
