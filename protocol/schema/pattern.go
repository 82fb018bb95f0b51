package schema

import (
	"fmt"
	"regexp"
	"time"

	"github.com/dlclark/regexp2"
	"github.com/santhosh-tekuri/jsonschema/v6"
)

const (
	// maxPattern bounds a regular expression, in bytes.
	maxPattern = 4096
	// matchTimeout ends a match that backtracks; a text it cannot judge in that
	// time counts as not matching.
	matchTimeout = 50 * time.Millisecond
)

// compilePattern reads the pattern with the linear engine of Go and, for what
// that does not know (lookaround, back references), with a backtracking engine
// of ECMAScript rules, which JSON Schema asks for.
func compilePattern(p string) (jsonschema.Regexp, error) {
	if len(p) > maxPattern {
		return nil, fmt.Errorf("a pattern of %d bytes; at most %d are taken", len(p), maxPattern)
	}
	if re, err := regexp.Compile(p); err == nil {
		return re, nil
	}
	re, err := regexp2.Compile(p, regexp2.ECMAScript|regexp2.Unicode)
	if err != nil {
		return nil, err
	}
	re.MatchTimeout = matchTimeout
	return backtracking{re}, nil
}

// backtracking is a pattern only the slower engine understands.
type backtracking struct{ re *regexp2.Regexp }

// String is the pattern as written.
func (b backtracking) String() string { return b.re.String() }

// MatchString reports a match found in time.
func (b backtracking) MatchString(s string) bool {
	ok, err := b.re.MatchString(s)
	return ok && err == nil
}
