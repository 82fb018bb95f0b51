package prompt

import (
	_ "embed"
	"encoding/json"
	"errors"
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"sync"

	"golang.org/x/mod/semver"

	"waybill.dev/waybill/protocol/fault"
	"waybill.dev/waybill/protocol/schema"
	"waybill.dev/waybill/protocol/strictjson"
)

// Bounds of a document. The text's is the protocol's, and counts bytes here.
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

	// Compiled on first use; the documents are part of the binary and tests compile them.
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

// Problem is one thing that is wrong. Path is a JSON pointer.
type Problem struct {
	Path, Message string
	Code          fault.Code
}

func invalid(path, format string, args ...any) Problem {
	return Problem{path, fmt.Sprintf(format, args...), fault.ValidationError}
}

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

// Parse reads a template. The error is a *ParseError: of all that the document's form
// forbids or, if that is sound, of all else that is wrong with it.
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

// readForm reads a document of a form.
func readForm(doc []byte, form *schema.Schema, into any) (found []Problem) {
	if err := strictjson.Check(doc, strictjson.Limits{MaxBytes: MaxBytes, MaxDepth: maxDepth}); err != nil {
		return strictProblems(err)
	}
	for _, v := range form.Validate(doc) {
		found = append(found, invalid(v.InstancePath, "%s", v.Message))
	}
	if found != nil {
		return found
	}
	if err := strictjson.Read(doc, into); err != nil {
		return strictProblems(err)
	}
	return nil
}

// strictProblems carries an error of strictjson over.
func strictProblems(err error) []Problem {
	if e, ok := errors.AsType[*strictjson.Error](err); ok {
		return []Problem{invalid(e.Path, "%s", e.Reason)}
	}
	return []Problem{invalid("", "%s", err)}
}

// check finds what no schema can say.
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

// semver is the version as it is compared. That it has three numbers is up to the form.
func (t *Template) semver() string { return "v" + t.Version }

// isMissing reports that there is no value. Null is none.
func isMissing(raw json.RawMessage) bool { return len(raw) == 0 || string(raw) == "null" }

const typeString = "string"

// accepts reports whether a value is of the variable's type; one without a type takes all.
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

// otherTag is what Mustache would read as a tag and this host leaves as it is.
var otherTag = regexp.MustCompile(`\{\{[#^/!>=]`)

// Notes tell what an author should know of a sound template.
func (t *Template) Notes() (notes []string) {
	placed := map[string]bool{}
	for _, m := range placeholder.FindAllStringSubmatch(t.Text, -1) {
		name := placeName(m)
		if !placed[name] && !hasVariable(t.Variables, name) {
			notes = append(notes, fmt.Sprintf("{{%s}} is not among the variables; it counts as an optional input", name))
		}
		placed[name] = true
	}
	for _, v := range t.Variables {
		if !placed[v.Name] {
			notes = append(notes, fmt.Sprintf("the text has no place for the variable %s", v.Name))
		}
	}
	if otherTag.MatchString(t.Text) {
		notes = append(notes, "the text has tags other than {{name}}; they stay as they are")
	}
	return notes
}
