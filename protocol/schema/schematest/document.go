package schematest

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"
	"testing"
)

// Value reads a JSON document for Samples and Mutants: numbers stay as written.
func Value(t testing.TB, doc []byte) any {
	t.Helper()
	d := json.NewDecoder(bytes.NewReader(doc))
	d.UseNumber()
	var v any
	if err := d.Decode(&v); err != nil {
		t.Fatalf("read a JSON document: %v", err)
	}
	return v
}

// Document writes a value of Samples or Mutants.
func Document(t testing.TB, v any) []byte {
	t.Helper()
	b, err := json.Marshal(v)
	if err != nil {
		t.Fatalf("write a JSON document: %v", err)
	}
	return b
}

// schemas resolves references in a schema document.
type schemas struct{ root any }

// parts returns the subschemas that apply to one value together: the schema itself, its references,
// and the branches of its unions. Facts of a branch that does not apply only add a mutant.
func (s schemas) parts(schema any) []map[string]any {
	m, ok := schema.(map[string]any)
	if !ok {
		return nil
	}
	out := []map[string]any{m}
	if ref, ok := m["$ref"].(string); ok {
		out = append(out, s.parts(s.resolve(ref))...)
	}
	for _, k := range []string{"anyOf", "oneOf", "allOf"} {
		list, _ := m[k].([]any)
		for _, branch := range list {
			out = append(out, s.parts(branch)...)
		}
	}
	return out
}

// resolve follows a reference within the document.
func (s schemas) resolve(ref string) any {
	at := s.root
	for token := range strings.SplitSeq(strings.TrimPrefix(ref, "#/"), "/") {
		m, _ := at.(map[string]any)
		at = m[strings.NewReplacer("~1", "/", "~0", "~").Replace(token)]
	}
	return at
}

// member lists the schemas of an object's member.
func (s schemas) member(parts []map[string]any, name string) []any {
	var out []any
	for _, p := range parts {
		properties, _ := p["properties"].(map[string]any)
		if m, ok := properties[name]; ok {
			out = append(out, m)
		} else if more, ok := p["additionalProperties"].(map[string]any); ok {
			out = append(out, more)
		}
	}
	return out
}

// names lists the members that schemas name.
func names(parts []map[string]any) map[string]bool {
	out := map[string]bool{}
	for _, p := range parts {
		properties, _ := p["properties"].(map[string]any)
		for name := range properties {
			out[name] = true
		}
	}
	return out
}

// whole returns an integer limit of a schema, if present.
func whole(p map[string]any, keyword string) (int, bool) {
	n, ok := p[keyword].(json.Number)
	if !ok {
		return 0, false
	}
	var i int
	_, err := fmt.Sscan(n.String(), &i)
	return i, err == nil
}
