package schema

import (
	"fmt"
	"regexp"

	"github.com/santhosh-tekuri/jsonschema/v6"
)

// maxPattern bounds a regular expression, in bytes.
const maxPattern = 4096

// compilePattern reads a pattern for the linear engine of Go. What that does not
// know (lookaround, back references) needs an engine that backtracks, and then a
// few bytes of a document could keep it busy for hours: such a pattern is refused.
func compilePattern(p string) (jsonschema.Regexp, error) {
	if len(p) > maxPattern {
		return nil, fmt.Errorf("a pattern of %d bytes; at most %d are taken", len(p), maxPattern)
	}
	re, err := regexp.Compile(p)
	if err != nil {
		return nil, fmt.Errorf("not a pattern in RE2 syntax, which has no lookaround and no back references: %w", err)
	}
	return re, nil
}
