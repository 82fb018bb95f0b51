package redact

import (
	"errors"
	"fmt"
	"math"
	"regexp/syntax"
)

// patternStep is one part of a rule's pattern: a literal text, or a run of a class.
type patternStep struct {
	text     string
	class    int
	min, max int
}

// maxOpen limits how many bytes a candidate may need before it is decided.
const maxOpen = 16 << 10

// maxRun limits a run that is not the last step.
const maxRun = 12 << 10

// parsePattern parses a rule's pattern: a sequence of literal texts and runs of classes, in
// RE2 notation. A run is possessive: it matches as much as possible, without
// backtracking, and fails above its maximum. So each byte is read once.
func (s *Shapes) parsePattern(pattern string, open int) ([]patternStep, error) {
	re, err := syntax.Parse(pattern, syntax.Perl)
	if err != nil {
		return nil, err
	}
	parts := []*syntax.Regexp{re}
	if re.Op == syntax.OpConcat {
		parts = re.Sub
	}
	var out []patternStep
	for _, p := range parts {
		st, err := s.parseStep(p)
		if err != nil {
			return nil, err
		}
		out = append(out, st)
	}
	for i := range out {
		st := &out[i]
		switch {
		case st.text != "":
			open += len(st.text)
		case i == len(out)-1:
			open += st.min + 1
		default:
			st.max = min(st.max, maxRun)
			open += st.max
		}
	}
	if open > maxOpen {
		return nil, fmt.Errorf("may need more than %d bytes to be decided; limit its runs", maxOpen)
	}
	return out, nil
}

func (s *Shapes) parseStep(p *syntax.Regexp) (patternStep, error) {
	least, most := 1, 1
	switch p.Op {
	case syntax.OpLiteral:
		return patternStep{text: string(p.Rune)}, nil
	case syntax.OpPlus:
		most, p = math.MaxInt, p.Sub[0]
	case syntax.OpStar:
		least, most, p = 0, math.MaxInt, p.Sub[0]
	case syntax.OpRepeat:
		least, most = p.Min, p.Max
		if most < 0 {
			most = math.MaxInt
		}
		p = p.Sub[0]
	}
	if p.Op != syntax.OpCharClass {
		return patternStep{}, errors.New("only literal texts and runs of classes are supported")
	}
	c := class{}
	for i := 0; i+1 < len(p.Rune); i += 2 {
		for r := p.Rune[i]; r <= min(p.Rune[i+1], 0x7f); r++ {
			c.in[r] = true
		}
		if p.Rune[i+1] > 0x7f {
			for b := 0x80; b < 0x100; b++ {
				c.in[b] = true
			}
		}
	}
	return patternStep{class: s.classIndex(c), min: least, max: most}, nil
}

// classIndex returns the index of a class, and adds it if it is new.
func (s *Shapes) classIndex(c class) int {
	for i := range s.classes {
		if s.classes[i] == c {
			return i
		}
	}
	s.classes = append(s.classes, c)
	return len(s.classes) - 1
}

// matchState is the decision about a candidate.
type matchState uint8

const (
	noMatch matchState = iota
	needMore
	matched
)

// verdict is the result of a rule at a candidate.
type verdict struct {
	state      matchState
	start, end int
	grows      bool
	tail       tail
}

// readPattern decides a rule with a pattern after its word.
func readPattern(s *shapeScan, r *shape, word string, at int) verdict {
	i := at + len(word)
	if !r.Inside && !s.atWordBoundary(at) {
		return verdict{}
	}
	out := verdict{start: at}
	if r.Keep {
		out.start = i
	}
	ended := true
	for k := range r.pattern {
		st, last := &r.pattern[k], k == len(r.pattern)-1
		if st.text != "" {
			for j := range len(st.text) {
				if i+j == len(s.text) {
					return verdict{state: needMore}
				}
				if s.text[i+j] != st.text[j] {
					return verdict{}
				}
			}
			i += len(st.text)
			continue
		}
		var end int
		end, ended = s.runEnd(st.class, i)
		n := end - i
		switch {
		case n > st.max, ended && n < st.min:
			return verdict{}
		case !ended && (!last || n < st.min || st.max < math.MaxInt):
			return verdict{state: needMore}
		}
		i = end
		out.tail = tail{kind: runTail, class: st.class}
	}
	out.end, out.grows = i, !ended
	if r.Entropy > 0 || r.NoWords {
		if !ended && i-out.start < sampleSize {
			return verdict{state: needMore}
		}
		value := s.text[out.start:min(i, out.start+sampleSize)]
		if entropy(value) < r.Entropy || r.NoWords && isWords(value, true) {
			return verdict{}
		}
	}
	out.state = matched
	return out
}

// atWordBoundary reports that no word continues at i. A letter of an escape, as in JSON in a
// text, a URL or a JSON pointer, is not part of a word.
func (s *shapeScan) atWordBoundary(i int) bool {
	if i == 0 || !isWord(s.text[i-1]) {
		return true
	}
	return i > 1 && (s.isEscapedChar(i-1) || s.text[i-2] == '~' && (s.text[i-1] == '0' || s.text[i-1] == '1')) || i > 2 && s.text[i-3] == '%' && isHex(s.text[i-2]) && isHex(s.text[i-1])
}

// isEscapedChar reports that the letter at i is an escaped line break or tab.
func (s *shapeScan) isEscapedChar(i int) bool {
	c := s.text[i]
	return i > 0 && s.text[i-1] == '\\' && (c == 'n' || c == 'r' || c == 't')
}

func isWord(c byte) bool { return isLetter(c) || isDigit(c) || c == '_' }

func isLetter(c byte) bool { return c|0x20 >= 'a' && c|0x20 <= 'z' }

func isDigit(c byte) bool { return c >= '0' && c <= '9' }

func isUpper(c byte) bool { return c >= 'A' && c <= 'Z' }

func isHex(c byte) bool { return isDigit(c) || c|0x20 >= 'a' && c|0x20 <= 'f' }
