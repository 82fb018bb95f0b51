// Package publishedtest compiles the published schemas of the protocol for tests.
package publishedtest

import (
	"bytes"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/dlclark/regexp2"
	"github.com/santhosh-tekuri/jsonschema/v6"

	"waybill.dev/waybill/protocol/schema/schematest"
)

// base comes before the file name of a published schema in its id.
const base = "https://openwop.dev/spec/v1/"

// Schemas are the published schemas.
type Schemas struct{ compiler *jsonschema.Compiler }

// Load reads them all. The test is skipped where they are absent, and fails in CI.
func Load(t testing.TB) Schemas {
	t.Helper()
	dir := filepath.Join(schematest.Dir(t), "schemas")
	c := jsonschema.NewCompiler()
	c.AssertFormat()
	c.UseRegexpEngine(lookAhead)
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || !strings.HasSuffix(path, ".schema.json") {
			return err
		}
		b, err := os.ReadFile(path) //nolint:gosec // G122: published data next to the checkout
		if err != nil {
			return err
		}
		doc, err := jsonschema.UnmarshalJSON(bytes.NewReader(b))
		if err != nil {
			return err
		}
		rel, err := filepath.Rel(dir, path)
		if err != nil {
			return err
		}
		return c.AddResource(base+filepath.ToSlash(rel), doc)
	})
	if err != nil {
		t.Fatalf("load published schemas: %v", err)
	}
	return Schemas{c}
}

// Compile makes the schema of a file ready, or that of a part of it, as in
// "run-event-payloads.schema.json#/$defs/nodeFailed".
func (s Schemas) Compile(ref string) (*jsonschema.Schema, error) {
	return s.compiler.Compile(base + ref)
}

// Need is Compile for a test that cannot go on without.
func (s Schemas) Need(t testing.TB, ref string) *jsonschema.Schema {
	t.Helper()
	c, err := s.Compile(ref)
	if err != nil {
		t.Fatalf("compile published schema %s: %v", ref, err)
	}
	return c
}

// lookAhead compiles patterns with an engine that knows look-ahead, which two of
// the published schemas use.
func lookAhead(pattern string) (jsonschema.Regexp, error) {
	re, err := regexp2.Compile(pattern, regexp2.ECMAScript)
	if err != nil {
		return nil, err
	}
	return ecma{re}, nil
}

type ecma struct{ re *regexp2.Regexp }

func (e ecma) MatchString(s string) bool {
	ok, err := e.re.MatchString(s)
	return ok && err == nil
}

func (e ecma) String() string { return e.re.String() }
