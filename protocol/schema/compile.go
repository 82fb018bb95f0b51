package schema

import (
	"errors"
	"fmt"
	"net/url"
	"slices"
	"strings"

	"github.com/santhosh-tekuri/jsonschema/v6"

	"waybill.dev/waybill/protocol/schema/internal/judge"
	"waybill.dev/waybill/protocol/strictjson"
)

// Bounds of the text of a schema document. The largest published schemas have 166 KB.
const (
	maxSchemaBytes = 256 << 10
	maxSchemaDepth = 64
)

// dialect is the only value $schema may have (OpenWOP envelope contract §4).
const dialect = "https://json-schema.org/draft/2020-12/schema"

// base is where documents without $id live. No loader knows the scheme.
const base = "schema:///"

// Schema is a compiled JSON Schema. It is immutable and safe for concurrent use.
type Schema struct {
	name    string
	weight  int
	program *judge.Program
	arrays  bool // it says so at its root
}

// Name is the name the schema was compiled under.
func (s *Schema) Name() string { return s.name }

// Weight is what it takes to compile the schema: 16 for a subschema, 2 for another
// value and 1 for one in a plain list, and more for long patterns and deep places.
func (s *Schema) Weight() int { return s.weight }

// Error says why a document is not a schema this package takes.
type Error struct {
	// Schema is the name given to Compile.
	Schema string
	// Path is a JSON pointer into the schema document; empty for the whole.
	Path string
	// Reason is a sentence for people.
	Reason string
	// TooLarge: it has too many bytes or parts.
	TooLarge bool
}

// Error names the schema, the place and the reason.
func (e *Error) Error() string {
	return fmt.Sprintf("schema %q at %q: %s", e.Schema, e.Path, e.Reason)
}

// Compile reads a schema of dialect 2020-12. References may only lead to places
// inside doc or to the dialect's own meta-schemas; format is asserted. The name
// is for messages. The error is an *Error.
func Compile(name string, doc []byte) (*Schema, error) {
	return CompileWithin(name, doc, maxWeight)
}

// CompileWithin is Compile for a schema of a weight at most. A heavier one is refused
// before it is compiled.
func CompileWithin(name string, doc []byte, most int) (*Schema, error) {
	v, weight, err := parse(doc, min(most, maxWeight))
	if err != nil {
		err.Schema = name
		return nil, err
	}
	if err := notASchema(v); err != nil {
		err.Schema = name
		return nil, err
	}
	program, cerr := compileProgram(base+url.PathEscape(name), v)
	if cerr != nil {
		return nil, explain(name, cerr)
	}
	root, _ := v.(map[string]any)
	return &Schema{name: name, weight: weight, program: program, arrays: root["type"] == "array"}, nil
}

// compileProgram compiles a document that is a schema.
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

// parse bounds, decodes and weighs a schema document.
func parse(doc []byte, most int) (v any, weight int, wrong *Error) {
	v, err := strictjson.Value(doc, strictjson.Limits{MaxBytes: maxSchemaBytes, MaxDepth: maxSchemaDepth})
	if err != nil {
		return nil, 0, notJSON(err)
	}
	if path, ok := findHugeNumber(v); ok {
		return nil, 0, &Error{Path: path, Reason: hugeNumber}
	}
	s := scale{most: most, weight: valuesWeight(v), patterns: map[string]bool{}, resources: map[string][]map[string]any{}}
	for p := range walk(v) {
		if s.position(p); s.weight > most {
			return nil, 0, &Error{TooLarge: true, Reason: fmt.Sprintf("the schema has too many parts; it may weigh %d, with %d for a subschema and its value, %d for a value and %d for one in a plain list, and more for long patterns and places deep inside",
				most, schemaWeight+valueWeight, valueWeight, itemWeight)}
		}
		if wrong = s.understood(p); wrong != nil {
			return nil, 0, wrong
		}
	}
	if wrong = s.unplaced(v); wrong != nil {
		return nil, 0, wrong
	}
	return v, s.weight, nil
}

// noLoader refuses every document that is not already there.
type noLoader struct{}

// Load fails: a schema that could name files or addresses would read them with
// the host's rights.
func (noLoader) Load(url string) (any, error) {
	return nil, outside(url)
}

func outside(url string) *Error {
	return &Error{Reason: fmt.Sprintf("a reference leads out of the document to %q; only references inside it are followed",
		strings.TrimPrefix(url, base))}
}

// explain turns the library's error into ours.
func explain(name string, err error) *Error {
	e := &Error{Schema: name, Reason: strings.ReplaceAll(err.Error(), base+url.PathEscape(name), "")}
	switch err := err.(type) { //nolint:errorlint // the library returns these types bare
	case *jsonschema.LoadURLError:
		if outside, ok := errors.AsType[*Error](err.Err); ok {
			e.Reason = outside.Reason
		}
	case *jsonschema.InvalidRegexError:
		e.Path = fragment(err.URL)
		e.Reason = fmt.Sprintf("the pattern is not a regular expression: %v", err.Err)
	case *jsonschema.JSONPointerNotFoundError:
		e.Reason = fmt.Sprintf("a reference leads to %q, which is not in the document", "#"+fragment(err.URL))
	case *Error:
		e.Path, e.Reason = err.Path, err.Reason
	}
	return e
}

// fragment is the JSON pointer at the end of a schema location.
func fragment(location string) string {
	_, frag, _ := strings.Cut(location, "#")
	if p, err := url.PathUnescape(frag); err == nil {
		return p
	}
	return frag
}

// pointerOf writes a JSON pointer (RFC 6901).
func pointerOf(tokens ...string) string {
	var b strings.Builder
	for _, t := range tokens {
		b.WriteByte('/')
		if strings.ContainsAny(t, "~/") { // hardly ever
			t = strings.ReplaceAll(strings.ReplaceAll(t, "~", "~0"), "/", "~1")
		}
		b.WriteString(t)
	}
	return b.String()
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
