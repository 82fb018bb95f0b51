package schema_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"waybill.dev/waybill/protocol/schema"
	"waybill.dev/waybill/protocol/schema/schematest"
)

// compile calls Compile for a valid schema.
func compile(t testing.TB, doc string) *schema.Schema {
	t.Helper()
	s, err := schema.Compile("test", []byte(doc))
	require.NoError(t, err)
	return s
}

func TestCompile_TakesSchemas(t *testing.T) {
	t.Parallel()
	for _, doc := range []string{
		`true`, `false`, `{}`,
		`{"$schema":"https://json-schema.org/draft/2020-12/schema"}`,
		`{"$schema":"https://json-schema.org/draft/2020-12/schema#"}`,
		`{"$id":"https://example.com/a.json","$defs":{"x":{"type":"string"}},"$ref":"#/$defs/x"}`,
		`{"$defs":{"x":{"$anchor":"here"}},"$ref":"#here"}`,
		`{"$ref":"https://json-schema.org/draft/2020-12/schema"}`,
		`{"properties":{"next":{"$ref":"#"}}}`,
		`{"x-vendor":{"anything":[1,2,3]}}`,
		`{"$ref":"https://json-schema.org/draft/2020-12/schema#/properties/definitions"}`,
		`{"$id":"https://example.com/a","$defs":{"b":{"$id":"b","$defs":{"c":{}},"$ref":"#/$defs/c"}},"$ref":"b#/$defs/c"}`,
		`{"$ref":"#/properties/p~1q/anyOf/1/items","properties":{"p/q":{"anyOf":[true,{"items":{}}]}}}`,
	} {
		s, err := schema.Compile("n", []byte(doc))
		require.NoError(t, err, doc)
		require.Equal(t, "n", s.Name())
	}
}

func TestCompile_RefusesWithPlaceAndReason(t *testing.T) {
	t.Parallel()
	tests := map[string]struct{ doc, path, reason string }{
		"not JSON": {
			doc:    `{"type":}`,
			path:   "/type",
			reason: "want a JSON value",
		},
		"duplicate member": {
			doc:    `{"type":"string","type":"number"}`,
			path:   "/type",
			reason: "two members",
		},
		"neither object nor bool": {
			doc:    `7`,
			path:   "",
			reason: "not a JSON Schema",
		},
		"wrong keyword type": {
			doc:    `{"properties":{"a":{"type":"text"}}}`,
			path:   "/properties/a/type",
			reason: "not a JSON Schema",
		},
		"negative length": {
			doc:    `{"minLength":-1}`,
			path:   "/minLength",
			reason: "at least 0",
		},
		"bad pattern": {
			doc:    `{"properties":{"a":{"pattern":"("}}}`,
			path:   "/properties/a/pattern",
			reason: "not a JSON Schema",
		},
		"long pattern": {
			doc:    `{"pattern":"` + strings.Repeat("a", 5000) + `"}`,
			path:   "/pattern",
			reason: "not a JSON Schema",
		},
		"remote reference": {
			doc:    `{"properties":{"a":{"$ref":"https://example.com/other.json"}}}`,
			path:   "",
			reason: `"https://example.com/other.json"`,
		},
		"file reference": {
			doc:    `{"$ref":"file:///etc/passwd"}`,
			path:   "",
			reason: `"file:///etc/passwd"`,
		},
		"relative reference": {
			doc:    `{"$ref":"other.json#/$defs/x"}`,
			path:   "",
			reason: `"other.json"`,
		},
		"relative to its id": {
			doc:    `{"$id":"https://example.com/a/b.json","$ref":"other.json"}`,
			path:   "",
			reason: `"https://example.com/a/other.json"`,
		},
		"dangling reference": {
			doc:    `{"$ref":"#/$defs/nowhere"}`,
			path:   "",
			reason: `"#/$defs/nowhere"`,
		},
		"dangling anchor": {
			doc:    `{"$ref":"#nowhere"}`,
			path:   "",
			reason: "nowhere",
		},
		"other dialect": {
			doc:    `{"$schema":"http://json-schema.org/draft-03/schema#"}`,
			path:   "/$schema",
			reason: "draft/2020-12",
		},
		"other dialect inside": {
			doc:    `{"properties":{"a":{"$schema":"x:y"}}}`,
			path:   "/properties/a/$schema",
			reason: "draft/2020-12",
		},
		"number out of bounds": {
			doc:    `{"properties":{"a":{"minimum":1e999999999}}}`,
			path:   "/properties/a/minimum",
			reason: "out of bounds",
		},
		"too deep": {
			doc:    strings.Repeat(`{"not":`, 65) + `{}` + strings.Repeat("}", 65),
			path:   strings.Repeat("/not", 64),
			reason: "64 levels",
		},
		"too large": {
			doc:    `{"description":"` + strings.Repeat("x", 256<<10) + `"}`,
			path:   "",
			reason: "limit is",
		},
		"too many values": {
			doc:    `{"enum":[` + strings.Repeat("0,", 22_000) + `0]}`,
			path:   "",
			reason: "22000",
		},
		"pattern of too many states": {
			doc:    `{"properties":{"a":{"pattern":"` + strings.Repeat("x{1000}", 90) + `"}}}`,
			path:   "/properties/a/pattern",
			reason: "states",
		},
		"patterns of too many states together": {
			doc:    `{"allOf":[` + list(30, func(i int) string { return fmt.Sprintf(`{"pattern":"x{999}y{%d}a{999}"}`, 900+i) }) + `]}`,
			path:   "/allOf/22/pattern",
			reason: "states",
		},
		"many named classes": {
			doc:    `{"pattern":"` + strings.Repeat(`\\pL`, 1000) + `"}`,
			path:   "/pattern",
			reason: "classes",
		},
		"letters without case": {
			doc:    `{"pattern":"` + strings.Repeat(`(?i)[B-\\x{1e942}]`, 200) + `"}`,
			path:   "/pattern",
			reason: "without case",
		},
		"long name over many members": {
			doc:    `{"properties":{"` + strings.Repeat("n", 30_000) + `":{"properties":{` + list(900, func(i int) string { return fmt.Sprintf(`"%x":{"type":"string"}`, i) }) + `}}}}`,
			path:   "",
			reason: "22000",
		},
		"many members deep inside": {
			doc:    strings.Repeat(`{"properties":{"a":`, 30) + `{"properties":{` + list(900, func(i int) string { return fmt.Sprintf(`"%x":{}`, i) }) + `}}` + strings.Repeat(`}}`, 30),
			path:   "",
			reason: "22000",
		},
		"reference to no schema": {
			doc:    `{"x-own":{"a":{"type":"string"}},"properties":{"a":{"$ref":"#/x-own/a"}}}`,
			path:   "/properties/a/$ref",
			reason: `"#/x-own/a"`,
		},
		"another dialect's own schema": {
			doc:    `{"$ref":"http://json-schema.org/draft-07/schema"}`,
			path:   "",
			reason: `"http://json-schema.org/draft-07/schema`,
		},
		"too many parts": {
			doc:    `{"allOf":[` + strings.Repeat("{},", 1900) + `{}]}`,
			path:   "",
			reason: "22000",
		},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s, err := schema.Compile("mine", []byte(tc.doc))
			require.Nil(t, s)
			var e *schema.Error
			require.ErrorAs(t, err, &e)
			require.Equal(t, "mine", e.Schema)
			require.Equal(t, tc.path, e.Path, e.Error())
			require.Contains(t, e.Reason, tc.reason)
			require.NotContains(t, e.Error(), "schema:///")
			require.Contains(t, e.Error(), `"mine"`)
		})
	}
}

func TestCompile_TakesAnyName(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"", "a b", "../x", "http://example.com/x", "ümlaut#frag?q=%zz", "a/b"} {
		s, err := schema.Compile(name, []byte(`{"$defs":{"x":{"type":"string"}},"$ref":"#/$defs/x"}`))
		require.NoError(t, err, name)
		require.Len(t, s.Validate([]byte(`1`)), 1)
	}
}

func TestCompile_TakesThePublishedSchemasThatStandAlone(t *testing.T) {
	t.Parallel()
	for _, pattern := range []string{"schemas/*.json", "schemas/envelopes/*.json"} {
		files, err := filepath.Glob(filepath.Join(schematest.Dir(t), pattern))
		require.NoError(t, err)
		require.NotEmpty(t, files)
		for _, file := range files {
			doc, err := os.ReadFile(file)
			require.NoError(t, err)
			if _, err := schema.Compile(filepath.Base(file), doc); err != nil {
				ok := strings.Contains(err.Error(), "leads out of the document") || strings.Contains(err.Error(), "RE2 syntax")
				require.True(t, ok, "%s: %v", file, err)
			}
		}
	}
}

func ExampleSchema_Validate() {
	s, err := schema.Compile("greeting", []byte(`{
		"type": "object", "required": ["to"], "additionalProperties": false,
		"properties": {"to": {"type": "string", "minLength": 1}, "loud": {"type": "boolean"}}
	}`))
	if err != nil {
		fmt.Println(err)
		return
	}
	for _, v := range s.Validate([]byte(`{"loud": "yes", "from": "me"}`)) {
		fmt.Printf("%q %s: %s\n", v.InstancePath, v.Keyword, v.Message)
	}
	// Output:
	// "" required: required member missing: to
	// "/from" additionalProperties: additional member not allowed; allowed: loud, to
	// "/loud" type: want type boolean
}
