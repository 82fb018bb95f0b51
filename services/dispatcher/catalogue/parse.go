package catalogue

import (
	_ "embed"
	"errors"
	"fmt"
	"strings"
	"sync"

	"waybill.dev/waybill/protocol/schema"
	"waybill.dev/waybill/protocol/strictjson"
)

// MaxBytes bounds a document.
const MaxBytes = 4 << 20

// maxDepth bounds it in levels.
const maxDepth = 16

//go:embed models.schema.json
var schemaJSON []byte

// form is compiled on first use; the document is part of the binary and tests
// compile it.
var form = sync.OnceValue(func() *schema.Schema {
	s, err := schema.Compile("model catalogue", schemaJSON)
	if err != nil {
		panic("catalogue: embedded schema: " + err.Error())
	}
	return s
})

// Problem is one thing that is wrong with a document. Path is a JSON pointer.
type Problem struct{ Path, Message string }

// ParseError lists all that is wrong with a document.
type ParseError struct{ Problems []Problem }

// Error is one line for each problem.
func (e *ParseError) Error() string {
	lines := make([]string, 0, len(e.Problems))
	for _, p := range e.Problems {
		lines = append(lines, fmt.Sprintf("at %q: %s", p.Path, strings.TrimSpace(p.Message)))
	}
	return strings.Join(lines, "\n")
}

// Parse reads a catalogue. The error is a *ParseError: of all that the document's
// form forbids (32 of it at most) or, if that is sound, of all that it contradicts
// itself in.
func Parse(doc []byte) (*Catalogue, error) {
	limits := strictjson.Limits{MaxBytes: MaxBytes, MaxDepth: maxDepth}
	if err := strictjson.Check(doc, limits); err != nil {
		return nil, unsound(err)
	}
	if wrong := form().Validate(doc); len(wrong) > 0 {
		e := &ParseError{}
		for _, v := range wrong {
			e.Problems = append(e.Problems, Problem{v.InstancePath, v.Message})
		}
		return nil, e
	}
	var d document
	if err := strictjson.Decode(doc, limits, &d); err != nil {
		return nil, unsound(err)
	}
	if found := d.check(); len(found) > 0 {
		return nil, &ParseError{found}
	}
	d.sort()
	return index(d), nil
}

// unsound carries an error of strictjson over.
func unsound(err error) *ParseError {
	if e, ok := errors.AsType[*strictjson.Error](err); ok {
		return &ParseError{[]Problem{{e.Path, e.Reason}}}
	}
	return &ParseError{[]Problem{{"", err.Error()}}}
}
