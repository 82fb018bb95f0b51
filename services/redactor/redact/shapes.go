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

// Shapes finds unregistered text that looks like a secret. It is the optional second layer,
// after the known values. It is safe for concurrent use. The nil Shapes finds nothing.
type Shapes struct {
	rules   []shape
	classes []class
	// Classes of the readers: an unquoted value, the value of a header, and the part of a
	// URL before its path.
	bare, header, authority int
	assignment              int // the rule for names and values, or -1
	// begins maps the hash of the first bytes of a text to the index of its words in
	// lists; 0 means none.
	begins [1 << hashBits]uint8
	lists  [][]word
}

const (
	// minWord is the length of the shortest word, and the number of hashed bytes.
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

// DefaultShapes returns the embedded rules.
var DefaultShapes = sync.OnceValue(func() *Shapes {
	s, err := ParseShapes(shapesYAML)
	if err != nil {
		panic("redact: embedded rules: " + err.Error()) // cannot happen: a test parses them
	}
	return s
})

// ParseShapes parses rules in the format of shapes.yaml. The error joins all errors.
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

// addReaderClasses adds the classes of the readers.
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

// prepareRule validates and compiles one rule.
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
			errs = append(errs, fmt.Errorf("rule %s: word %q: must have at least %d characters", r.ID, w, minWord))
		}
	}
	if r.read = readers(r.Reader); r.read == nil {
		errs = append(errs, fmt.Errorf("rule %s: unknown reader %q", r.ID, r.Reader))
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

// IDs lists the ids of the rules.
func (s *Shapes) IDs() []string {
	out := make([]string, 0, len(s.rules))
	for _, r := range s.rules {
		out = append(out, r.ID)
	}
	return out
}

// Replace replaces text that looks like a secret.
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

// replace is Replace for the value of a member of kind k.
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

// kindOfName returns the kind of value that the name of a member announces.
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
