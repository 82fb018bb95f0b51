package schema

import (
	"errors"
	"fmt"
	"regexp"
	"regexp/syntax"
	"slices"
	"time"

	"github.com/dlclark/regexp2/v2"
)

// Patterns that Go's linear-time engine cannot express (lookaround, back references, more than a
// thousand repetitions) use an engine that backtracks. A few bytes can make it run for hours, so each
// match has a time limit, and so have all matches of a document together.

// Limits of one match of a backtracking pattern.
const (
	maxMatchTime  = 50 * time.Millisecond
	maxMatchStack = 1 << 18
	// backtrackSize is the cost of compiling a byte of a backtracking pattern, in states. maxGroups
	// limits nested groups, whose cost multiplies.
	backtrackSize = 4
	maxGroups     = 24
)

// backtracking is a compiled pattern of ECMA-262 that needs backtracking.
type backtracking struct {
	*regexp2.Regexp

	source string
}

// newBacktracking compiles a pattern: as ECMA-262 with the flag u, else without it.
func newBacktracking(p string) (*backtracking, error) {
	if groupDepth(p) > maxGroups {
		return nil, fmt.Errorf("more than %d groups inside each other", maxGroups)
	}
	var first error
	for _, mode := range []regexp2.RegexOptions{regexp2.ECMAScript | regexp2.Unicode, regexp2.ECMAScript} {
		re, err := regexp2.Compile(p, mode, regexp2.OptionMaxBacktrackingStackSize(maxMatchStack))
		if err == nil {
			re.MatchTimeout = maxMatchTime
			return &backtracking{re, p}, nil
		}
		if first == nil {
			first = err
		}
	}
	return nil, first
}

// groupDepth returns how many groups are open at most. Brackets in a class count too.
func groupDepth(p string) int {
	depth, most := 0, 0
	for i := 0; i < len(p); i++ {
		switch p[i] {
		case '\\':
			i++
		case '(':
			depth++
			most = max(most, depth)
		case ')':
			depth--
		}
	}
	return most
}

// mayBacktrack matches the patterns that can need backtracking, and some others.
var mayBacktrack = regexp.MustCompile(`\(\?[^:]|\\[1-9bkpP]|[{,][0-9]{4}|\{[0-9,]+\}\)`)

// backtrackingSize returns the cost of compiling a backtracking pattern, in states.
func backtrackingSize(p string) int { return len(p) * (backtrackSize + groupDepth(p)) }

// String returns the pattern as written.
func (b *backtracking) String() string { return b.source }

// MatchString reports whether the text matches; false if the match exceeds its limits.
func (b *backtracking) MatchString(text string) bool {
	ok, _, _ := b.MatchBounded(text)
	return ok
}

// MatchBounded matches within the limits. ended is false if it exceeded one, so that the result is
// unknown.
func (b *backtracking) MatchBounded(text string) (ok bool, took time.Duration, ended bool) {
	began := time.Now() //nolint:forbidigo // it measures a cost; no result depends on the time of day
	ok, err := b.Regexp.MatchString(text)
	return ok && err == nil, time.Since(began), err == nil //nolint:forbidigo // as above
}

// needsBacktracking reports whether Go's syntax lacks a construct of the pattern that ECMA-262 may
// have. A pattern that is only too large stays rejected.
func needsBacktracking(err error) bool {
	e, ok := errors.AsType[*syntax.Error](err)
	return ok && slices.Contains([]syntax.ErrorCode{
		syntax.ErrInvalidPerlOp, syntax.ErrInvalidEscape, syntax.ErrInvalidRepeatSize, syntax.ErrInvalidCharRange,
		syntax.ErrInvalidNamedCapture,
	}, e.Code)
}
