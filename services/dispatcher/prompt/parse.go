package prompt

import (
	_ "embed"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"sync"

	"golang.org/x/mod/semver"

	"waybill.dev/waybill/protocol/fault"
	"waybill.dev/waybill/protocol/schema"
	"waybill.dev/waybill/protocol/strictjson"
)

// Limits of a document. The limit of the text is the protocol's, in bytes.
const (
	MaxBytes         = 1 << 20
	MaxTemplateBytes = 65536
	maxDepth         = 32
)

var (
	//go:embed template.schema.json
	templateJSON []byte
	//go:embed ref.schema.json
	refJSON []byte

	// Compiled on first use. The documents are part of the binary and tests compile them.
	templateForm = sync.OnceValue(func() *schema.Schema { return embedded("prompt template", templateJSON) })
	refForm      = sync.OnceValue(func() *schema.Schema { return embedded("prompt reference", refJSON) })
)

func embedded(name string, doc []byte) *schema.Schema {
	s, err := schema.Compile(name, doc)
	if err != nil {
		panic("prompt: embedded schema: " + err.Error())
	}
	return s
}

// Problem is one problem of a document. Path is a JSON pointer.
type Problem struct {
	Path, Message string
	Code          fault.Code
}

func invalid(path, format string, args ...any) Problem {
	return Problem{path, fmt.Sprintf(format, args...), fault.ValidationError}
}

// ParseError lists all problems of a document.
type ParseError struct{ Problems []Problem }

// Error returns one line per problem.
func (e *ParseError) Error() string {
	lines := make([]string, 0, len(e.Problems))
	for _, p := range e.Problems {
		lines = append(lines, fmt.Sprintf("at %q: %s", p.Path, strings.TrimSpace(p.Message)))
	}
	return strings.Join(lines, "\n")
}

// Parse reads a template. The error is a *ParseError with all violations of the schema or, without
// any, all other problems.
func Parse(doc []byte) (*Template, error) {
	t := &Template{}
	if found := readForm(doc, templateForm(), t); found != nil {
		return nil, &ParseError{found}
	}
	t.Library = HostLibrary
	if found := t.check(); len(found) > 0 {
		return nil, &ParseError{found}
	}
	return t, nil
}

// readForm validates a document with a schema and decodes it.
func readForm(doc []byte, form *schema.Schema, into any) (found []Problem) {
	if err := strictjson.Check(doc, strictjson.Limits{MaxBytes: MaxBytes, MaxDepth: maxDepth}); err != nil {
		return strictProblems(err)
	}
	for _, v := range form.Validate(doc) {
		found = append(found, invalid(v.InstancePath, "%s", form.Explain(v, doc)))
	}
	if found != nil {
		return found
	}
	if err := strictjson.Read(doc, into); err != nil {
		return strictProblems(err)
	}
	return nil
}

// strictProblems converts an error of strictjson.
func strictProblems(err error) []Problem {
	if e, ok := errors.AsType[*strictjson.Error](err); ok {
		return []Problem{invalid(e.Path, "%s", e.Reason)}
	}
	return []Problem{invalid("", "%s", err)}
}

// check returns problems that the schema cannot express.
func (t *Template) check() (found []Problem) {
	add := func(path, format string, args ...any) { found = append(found, invalid(path, format, args...)) }
	if !semver.IsValid(t.semver()) {
		add("/version", "want a version of Semantic Versioning 2.0.0, such as 1.2.0, with no number that begins with 0")
	}
	if len(t.Text) > MaxTemplateBytes {
		add("/text", "has %d bytes; at most %d are taken", len(t.Text), MaxTemplateBytes)
	}
	names := map[string]bool{}
	for i, v := range t.Variables {
		at := "/variables/" + strconv.Itoa(i)
		if names[v.Name] {
			add(at+"/name", "the template has a variable of this name already; each needs its own")
		}
		names[v.Name] = true
		if _, ok := parsePath(v.ExtractPath); !ok {
			add(at+"/extractPath", "%s", wantPath)
		}
		if v.source() == FromSecret && v.Type != typeString {
			add(at+"/type", "want string: a secret is text")
		}
		if !isMissing(v.Default) && !v.accepts(v.Default) {
			add(at+"/defaultValue", "want a value of the variable's type, %s", v.Type)
		}
	}
	return found
}

// semver returns the version for comparisons. The schema ensures three numbers.
func (t *Template) semver() string { return "v" + t.Version }

// isMissing reports whether there is no value. null counts as none.
func isMissing(raw json.RawMessage) bool { return len(raw) == 0 || string(raw) == "null" }

const typeString = "string"

// accepts reports whether a value has the variable's type. A variable without a type accepts all.
func (v Variable) accepts(raw json.RawMessage) bool {
	if v.Type == "" {
		return true
	}
	is := "number"
	switch raw[0] {
	case '"':
		is = typeString
	case '{':
		is = "object"
	case '[':
		is = "array"
	case 't', 'f':
		is = "boolean"
	}
	return v.Type == is
}

// TemplateSchema is the JSON Schema of a template.
func TemplateSchema() []byte { return templateJSON }
