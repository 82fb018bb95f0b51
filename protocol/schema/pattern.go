package schema

import (
	"fmt"
	"regexp"
	"regexp/syntax"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/santhosh-tekuri/jsonschema/v6"
)

// Limits of one regular expression. Its length is no measure of its cost: x{1000} has a thousand
// states, and \pL six hundred ranges of letters.
const (
	maxPattern = 4096 // bytes
	maxStates  = 4000
	maxSize    = 3 * maxStates
	// classSize is the cost of parsing a named class, such as \pL.
	classSize = 40
	// blankSize is that of white space, which ECMA-262 defines in more letters.
	blankSize = 4
	// rangeShare is the number of letter ranges, textShare the bytes of text, that cost as much as
	// a state.
	rangeShare = 8
	// lastCased is above all letters with a case. caseShare is the number of letters of a range
	// that cost as much as a state in case-insensitive mode.
	lastCased = 0x1e944
	caseShare = 16
	textShare = 16
)

// pattern is a regular expression of Go's linear-time engine, with a known cost.
type pattern struct {
	*regexp.Regexp

	source string
	parts  []stretch
}

// String returns the pattern as written.
func (p *pattern) String() string { return p.source }

// Steps returns the maximum number of states the engine visits in a text of n bytes.
func (p *pattern) Steps(n int) int { return steps(p.parts, n) }

// patterns caches the regular expressions of one document.
type patterns map[string]jsonschema.Regexp

// compile compiles a pattern of ECMA-262 for Go's linear-time engine if possible, else for one that
// backtracks, within limits.
func (ps patterns) compile(p string) (jsonschema.Regexp, error) {
	if re, ok := ps[p]; ok {
		return re, nil
	}
	m, err := measure(p)
	if err != nil {
		return nil, err
	}
	var re jsonschema.Regexp
	if m.backtracks {
		re, err = newBacktracking(p)
	} else {
		var linear *regexp.Regexp
		linear, err = regexp.Compile(fromECMA(p))
		re = &pattern{linear, p, m.parts}
	}
	if err != nil {
		return nil, notECMA(err)
	}
	ps[p] = re
	return re, nil
}

// Pattern compiles a regular expression as Compile does those of a schema.
func Pattern(p string) (jsonschema.Regexp, error) { return patterns{}.compile(p) }

// measures holds the states of a pattern and the cost of compiling it, in units of a state; for a
// whole pattern also where it is in which states.
type measures struct {
	states, size int
	parts        []stretch
	// backtracks: Go's engine cannot match it.
	backtracks bool
}

// measure analyzes a pattern without creating its states.
func measure(p string) (measures, error) {
	if len(p) > maxPattern {
		return measures{}, fmt.Errorf("a pattern of %d bytes; at most %d are taken", len(p), maxPattern)
	}
	read := readSize(p)
	if read > maxSize {
		return measures{}, fmt.Errorf("a pattern of very many named classes, or of long ranges without case; write what they have in common once")
	}
	tree, err := syntax.Parse(fromECMA(p), syntax.Perl)
	if needsBacktracking(err) {
		if _, wrong := newBacktracking(p); wrong != nil {
			return measures{}, notECMA(wrong)
		}
		return measures{size: read + backtrackingSize(p), backtracks: true}, nil
	}
	if err != nil {
		return measures{}, notECMA(err)
	}
	m := measureOf(tree)
	m.size += read + len(p)/textShare
	if m.states > maxStates || m.size > maxSize {
		return m, fmt.Errorf("a pattern of more than %d states, or of very many classes; repeat less", maxStates)
	}
	m.parts = stretches(tree)
	return m, nil
}

// flags matches groups that may set the case-insensitive flag.
var flags = regexp.MustCompile(`\(\?[a-zA-Z]*i`)

// ranges matches the ends of ranges that are not plain letters.
var ranges = regexp.MustCompile(`-(?:\\x\{?([0-9A-Fa-f]+)|([^\x00-\x7f]))`)

// readSize returns the cost of parsing a pattern. In case-insensitive mode each letter of a range
// is looked up, and a hundred thousand letters have a case.
func readSize(p string) int {
	size := classSize*(strings.Count(p, `\p`)+strings.Count(p, `\P`)) + blankSize*(strings.Count(p, `\s`)+strings.Count(p, `\S`))
	if !flags.MatchString(p) {
		return size
	}
	size *= 4 // a class is merged with its other cases
	for _, end := range ranges.FindAllStringSubmatch(p, -1) {
		last, err := strconv.ParseUint(end[1], 16, 32)
		if end[1] == "" {
			r, _ := utf8.DecodeRuneInString(end[2])
			last, err = uint64(max(r, 0)), nil //nolint:gosec // not below 0
		}
		if err != nil || last > lastCased {
			last = lastCased
		}
		size += int(last) / caseShare //nolint:gosec // at most lastCased
	}
	return size
}

func notECMA(err error) error {
	return fmt.Errorf("not a regular expression of ECMA-262: %w", err)
}

// measureOf analyzes a part, with repetitions expanded.
func measureOf(re *syntax.Regexp) measures {
	m := measures{states: 1, size: 1}
	switch re.Op {
	case syntax.OpConcat, syntax.OpRepeat:
		m = measures{}
	case syntax.OpLiteral:
		m = measures{states: len(re.Rune), size: len(re.Rune)}
	case syntax.OpCharClass:
		m.size += len(re.Rune) / rangeShare
	}
	for _, sub := range re.Sub {
		part := measureOf(sub)
		m = measures{states: min(m.states+part.states, maxSize+1), size: min(m.size+part.size, maxSize+1)}
	}
	if re.Op == syntax.OpRepeat {
		n := max(1, re.Min, re.Max) // a thousand at most
		m = measures{states: m.states * n, size: m.size * n}
	}
	return m
}

// taken reports whether a text is an accepted pattern, without compiling it.
type taken struct{}

func (taken) Size(p string) int {
	p = p[:min(len(p), maxPattern)]
	if !mayBacktrack.MatchString(p) {
		return readSize(p)
	}
	return readSize(p) + backtrackingSize(p)
}

func (taken) Check(p string) error {
	_, err := measure(p)
	return err
}
