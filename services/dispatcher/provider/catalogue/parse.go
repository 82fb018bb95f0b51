package catalogue

import (
	_ "embed"
	"errors"
	"strings"
	"sync"

	"waybill.dev/waybill/protocol/schema"
	"waybill.dev/waybill/protocol/strictjson"
)

// MaxBytes limits a document.
const MaxBytes = 4 << 20

// maxMalformed is the limit of reported schema violations.
const maxMalformed = 32

// maxDepth limits its nesting.
const maxDepth = 16

//go:embed models.schema.json
var schemaJSON []byte

// documentSchema is compiled on first use. The document is part of the binary and tests compile it.
var documentSchema = sync.OnceValue(func() *schema.Schema {
	s, err := schema.Compile("model catalogue", schemaJSON)
	if err != nil {
		panic("catalogue: embedded schema: " + err.Error())
	}
	return s
})

// Problem is one problem of a document. Path is a JSON pointer.
type Problem struct{ Path, Message string }

// ParseError lists all problems of a document.
type ParseError struct {
	Problems []Problem

	doc []byte
}

// Error returns one line per problem.
func (e *ParseError) Error() string { return e.Unwrap().Error() }

// Unwrap returns the problems with their places, as strictjson.Problems.
func (e *ParseError) Unwrap() error {
	var out strictjson.Problems
	for _, p := range e.Problems {
		out = append(out, strictjson.Problem{Path: p.Path, Message: strings.TrimSpace(p.Message)})
	}
	return out.In(e.doc)
}

// Parse reads a catalogue. The error is a *ParseError with every schema violation (32 at most) and
// every contradiction in the parts without violations.
func Parse(doc []byte) (*Catalogue, error) {
	limits := strictjson.Limits{MaxBytes: MaxBytes, MaxDepth: maxDepth}
	if err := strictjson.Check(doc, limits); err != nil {
		return nil, newParseError(doc, err)
	}
	wrong := documentSchema().Validate(doc)
	var d document
	if err := strictjson.Decode(doc, limits, &d); err != nil {
		if len(wrong) == 0 {
			return nil, newParseError(doc, err)
		}
		_ = strictjson.Read(doc, &d) // read as much as possible
	}
	e := &ParseError{doc: doc}
	malformed := map[string]bool{}
	for _, v := range wrong {
		e.Problems = append(e.Problems, Problem{v.InstancePath, documentSchema().Explain(v, doc)})
		malformed[elementPointer(v.InstancePath)] = true
	}
	if len(wrong) < maxMalformed { // otherwise some violations are not listed
		e.Problems = append(e.Problems, d.check(malformed)...)
	}
	if len(e.Problems) > 0 {
		return nil, e
	}
	d.Schema = ""
	d.sortLists()
	return newCatalogue(d), nil
}

// elementPointer returns the part of a pointer that leads to a model or a rule.
func elementPointer(pointer string) string {
	parts := strings.SplitN(pointer, "/", 4)
	return strings.Join(parts[:min(len(parts), 3)], "/")
}

// newParseError converts an error of strictjson.
func newParseError(doc []byte, err error) *ParseError {
	if e, ok := errors.AsType[*strictjson.Error](err); ok {
		return &ParseError{[]Problem{{e.Path, e.Reason}}, doc}
	}
	return &ParseError{[]Problem{{"", err.Error()}}, doc}
}

// Schema is the JSON Schema of a catalogue.
func Schema() []byte { return schemaJSON }
