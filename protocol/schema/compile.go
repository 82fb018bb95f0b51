package schema

import (
	"errors"
	"fmt"
	"net/url"
	"slices"
	"strings"

	"github.com/santhosh-tekuri/jsonschema/v6"

	"waybill.dev/waybill/protocol/jsonpointer"
	"waybill.dev/waybill/protocol/schema/internal/judge"
)

// Limits of a schema document. The largest published schemas have 166 KB.
const (
	maxSchemaBytes = 256 << 10
	maxSchemaDepth = 64
)

// dialect is the version of JSON Schema that is compiled (OpenWOP envelope contract §4).
const dialect = "https://json-schema.org/draft/2020-12/schema"

// base is the URL of documents without $id. No loader supports its scheme.
const base = "schema:///"

// Schema is a compiled JSON Schema. It is immutable and safe for concurrent use.
type Schema struct {
	name    string
	weight  int
	program *judge.Program
	arrays  bool // type array at its root
	source  Conversion
}

// Name returns the name the schema was compiled under.
func (s *Schema) Name() string { return s.name }

// Document returns the schema in the dialect: the compiled document itself, unless it was written for
// an older draft or OpenAPI 3.0. The caller must not change it.
func (s *Schema) Document() []byte { return s.source.Document }

// Weight returns the cost of compiling the schema: 16 per subschema, 2 per other value, 1 per value
// in a plain list, and more for long patterns and deep nesting.
func (s *Schema) Weight() int { return s.weight }

// Error describes why a document is not a supported schema.
type Error struct {
	// Schema is the name given to Compile.
	Schema string
	// Path is a JSON pointer into the schema document; empty for the whole.
	Path string
	// Reason is a sentence for people.
	Reason string
	// TooLarge: too many bytes or parts.
	TooLarge bool
}

// Error returns the schema, the path and the reason.
func (e *Error) Error() string {
	return fmt.Sprintf("schema %q at %q: %s", e.Schema, e.Path, e.Reason)
}

// Compile reads a schema of dialect 2020-12, or one that Convert converts to it. Paths of errors and
// violations are those of doc. References may lead only into doc or to the dialect's
// own meta-schemas; format is asserted. The name is for messages. The error is an *Error.
func Compile(name string, doc []byte) (*Schema, error) {
	return CompileWithin(name, doc, maxWeight)
}

// CompileWithin is Compile with a maximum weight. A heavier schema is rejected before it is
// compiled.
func CompileWithin(name string, doc []byte, most int) (*Schema, error) {
	d, err := parse(doc, min(most, maxWeight))
	if err == nil {
		err = notASchema(d.value)
	}
	if err != nil {
		err.Schema = name
		err.Path = d.source.Source(err.Path)
		return nil, err
	}
	program, cerr := compileProgram(base+url.PathEscape(name), d.value)
	if cerr != nil {
		e := explain(name, cerr)
		e.Path = d.source.Source(e.Path)
		return nil, e
	}
	root, _ := d.value.(map[string]any)
	return &Schema{name: name, weight: d.weight, program: program, arrays: root["type"] == "array", source: d.source}, nil
}

// compileProgram compiles a document that is a valid schema.
func compileProgram(at string, doc any) (*judge.Program, error) {
	c := newCompiler(patterns{})
	if err := c.AddResource(at, doc); err != nil {
		return nil, err
	}
	compiled, err := c.Compile(at)
	if err != nil {
		return nil, err
	}
	from := judge.Source{URL: at, Regex: taken{}}
	from.Compile = func(place string) (*jsonschema.Schema, error) {
		return c.Compile(at + "#" + (&url.URL{Path: place}).EscapedPath())
	}
	for p := range walk(doc) {
		if _, ok := p.object["$dynamicAnchor"].(string); ok {
			from.Anchors = append(from.Anchors, p.pointer())
		}
		if _, ok := p.object["$id"].(string); ok {
			from.Resources = append(from.Resources, p.pointer())
		}
	}
	program, foreign, err := judge.NewProgram(compiled, from)
	if foreign != "" {
		return nil, outside(foreign)
	}
	return program, err
}

// parsed is a schema document in the dialect.
type parsed struct {
	source Conversion
	value  any
	weight int
}

// parse limits, decodes, converts and weighs a schema document. The path of an error is that of the
// converted document, if d has one.
func parse(doc []byte, most int) (d parsed, wrong *Error) {
	if d.source, d.value, wrong = convert(doc); wrong != nil {
		return parsed{}, wrong
	}
	v := d.value
	if path, ok := findHugeNumber(v); ok {
		return d, &Error{Path: path, Reason: hugeNumber}
	}
	s := scale{most: most, weight: valuesWeight(v), patterns: map[string]bool{}, resources: map[string][]map[string]any{}}
	for p := range walk(v) {
		if s.position(p); s.weight > most {
			return d, &Error{TooLarge: true, Reason: fmt.Sprintf("the schema has too many parts; it may weigh %d, with %d for a subschema and its value, %d for a value and %d for one in a plain list, and more for long patterns and places deep inside",
				most, schemaWeight+valueWeight, valueWeight, itemWeight)}
		}
		if wrong = s.understood(p); wrong != nil {
			return d, wrong
		}
	}
	if wrong = s.unplaced(v); wrong != nil {
		return d, wrong
	}
	d.weight = s.weight
	return d, nil
}

// noLoader rejects every document that is not already loaded.
type noLoader struct{}

// Load always fails: a schema that could refer to files or addresses would read them with the
// host's
// permissions.
func (noLoader) Load(url string) (any, error) {
	return nil, outside(url)
}

func outside(url string) *Error {
	return &Error{Reason: fmt.Sprintf("a reference leads out of the document to %q; only references inside it are followed",
		strings.TrimPrefix(url, base))}
}

// explain converts the library's error.
func explain(name string, err error) *Error {
	e := &Error{Schema: name, Reason: strings.ReplaceAll(err.Error(), base+url.PathEscape(name), "")}
	switch err := err.(type) { //nolint:errorlint // the library returns these types bare
	case *jsonschema.LoadURLError:
		if outside, ok := errors.AsType[*Error](err.Err); ok {
			e.Reason = outside.Reason
		}
	case *jsonschema.InvalidRegexError:
		e.Path = jsonpointer.OfFragment(err.URL)
		e.Reason = fmt.Sprintf("the pattern is not a regular expression: %v", err.Err)
	case *jsonschema.JSONPointerNotFoundError:
		e.Reason = fmt.Sprintf("a reference leads to %q, which is not in the document", "#"+jsonpointer.OfFragment(err.URL))
	case *Error:
		e.Path, e.Reason = err.Path, err.Reason
	}
	return e
}

// sortedKeys lists the members of an object in a fixed order.
func sortedKeys(m map[string]any) []string {
	keys := make([]string, 0, len(m))
	for k := range m {
		keys = append(keys, k)
	}
	slices.Sort(keys)
	return keys
}
