package schema

import (
	"errors"
	"fmt"
	"net/url"
	"slices"
	"strings"

	"github.com/santhosh-tekuri/jsonschema/v6"

	"waybill.dev/waybill/protocol/strictjson"
)

// Bounds of a schema document. The largest published schemas have 166 KB, and a
// weight of 17,457.
const (
	maxSchemaBytes = 256 << 10
	maxSchemaDepth = 64
	// maxWeight bounds what a document takes to compile: half a kilobyte and 2 µs
	// or less for each unit, so 16 MB and 50 ms for all of it.
	maxWeight = 26_000
	// schemaWeight is that of a subschema, valueWeight of any value, itemWeight of
	// one in a plain list: an enum may be long.
	schemaWeight = 14
	valueWeight  = 2
	itemWeight   = 1
)

// dialect is the only value $schema may have (OpenWOP envelope contract §4).
const dialect = "https://json-schema.org/draft/2020-12/schema"

// base is where documents without $id live. No loader knows the scheme.
const base = "schema:///"

// Schema is a compiled JSON Schema. It is immutable and safe for concurrent use.
type Schema struct {
	name     string
	doc      any
	compiled *jsonschema.Schema
	wild     bool // small documents too can cause very many checks
}

// Name is the name the schema was compiled under.
func (s *Schema) Name() string { return s.name }

// Error says why a document is not a schema this package takes.
type Error struct {
	// Schema is the name given to Compile.
	Schema string
	// Path is a JSON pointer into the schema document; empty for the whole.
	Path string
	// Reason is a sentence for people.
	Reason string
}

// Error names the schema, the place and the reason.
func (e *Error) Error() string {
	return fmt.Sprintf("schema %q at %q: %s", e.Schema, e.Path, e.Reason)
}

// Compile reads a schema of dialect 2020-12. References may only lead to places
// inside doc or to the dialect's own meta-schemas; format is asserted. The name
// is for messages. The error is an *Error.
func Compile(name string, doc []byte) (*Schema, error) {
	v, err := parse(doc)
	if err != nil {
		err.Schema = name
		return nil, err
	}
	at := base + url.PathEscape(name)
	c := jsonschema.NewCompiler()
	c.DefaultDraft(jsonschema.Draft2020)
	c.AssertFormat()
	c.UseRegexpEngine(compilePattern)
	c.UseLoader(noLoader{})
	if err := c.AddResource(at, v); err != nil {
		return nil, &Error{Schema: name, Reason: err.Error()}
	}
	compiled, cerr := c.Compile(at)
	if cerr != nil {
		return nil, explain(name, cerr)
	}
	return &Schema{name: name, doc: v, compiled: compiled, wild: isWild(compiled)}, nil
}

// parse bounds and decodes a schema document.
func parse(doc []byte) (any, *Error) {
	v, err := strictjson.Value(doc, strictjson.Limits{MaxBytes: maxSchemaBytes, MaxDepth: maxSchemaDepth})
	if err != nil {
		return nil, notJSON(err)
	}
	if path, ok := findHugeNumber(v); ok {
		return nil, &Error{Path: path, Reason: hugeNumber}
	}
	weight := valuesWeight(v)
	for p := range walk(v) {
		if weight += schemaWeight; weight > maxWeight {
			return nil, &Error{Reason: fmt.Sprintf("the schema has too many parts; it may weigh %d, with %d for a subschema, %d for a value and %d for one in a plain list",
				maxWeight, schemaWeight, valueWeight, itemWeight)}
		}
		if d, ok := p.object["$schema"].(string); ok && strings.TrimSuffix(d, "#") != dialect {
			return nil, &Error{Path: p.pointer("$schema"), Reason: "only the dialect " + dialect + " is understood"}
		}
	}
	return v, nil
}

// valuesWeight is that of all values of a document, containers included.
func valuesWeight(v any) int {
	n := valueWeight
	switch v := v.(type) {
	case map[string]any:
		for _, item := range v {
			n += valuesWeight(item)
		}
	case []any:
		for _, item := range v {
			switch item.(type) {
			case map[string]any, []any:
				n += valuesWeight(item)
			default:
				n += itemWeight
			}
		}
	}
	return n
}

// noLoader refuses every document that is not already there.
type noLoader struct{}

// Load fails: a schema that could name files or addresses would read them with
// the host's rights.
func (noLoader) Load(url string) (any, error) {
	return nil, &Error{Reason: fmt.Sprintf("a reference leads out of the document to %q; only references inside it are followed",
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
	case *jsonschema.SchemaValidationError:
		if invalid, ok := errors.AsType[*jsonschema.ValidationError](err.Err); ok {
			c := collector{}
			vs := finish(violationsOf(c.leaves(invalid)))
			e.Path, e.Reason = vs[0].InstancePath, "not a JSON Schema: "+vs[0].Message
			if vs[0].Message == wantRegex {
				e.Reason = "not a JSON Schema that is taken here: want a pattern of at most 4096 bytes in RE2 syntax, which has no lookaround and no back references"
			}
		}
	}
	return e
}

// wantRegex is how the dialect's own schema says that a pattern is none.
const wantRegex = "want a regex"

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
