package schema_test

import (
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/require"

	"waybill.dev/waybill/protocol/schema"
)

var seedSchemas = []string{
	`{"type":"object","required":["a"],"properties":{"a":{"type":"integer","minimum":0}},"additionalProperties":false}`,
	`{"$defs":{"n":{"anyOf":[{"$ref":"#/$defs/n"},{"type":"null"}]}},"$ref":"#/$defs/n"}`,
	`{"oneOf":[{"const":1},{"enum":["x",null]}],"not":{"type":"array"},"if":{},"then":false}`,
	`{"items":{"pattern":"(?<=x)y"},"prefixItems":[{"format":"date-time"}],"contains":{},"minContains":2,"uniqueItems":true}`,
	`{"$id":"https://example.com/x","$anchor":"a","$dynamicRef":"#a","patternProperties":{"^x":{"$ref":"#a"}},"unevaluatedProperties":false}`,
	`{"$ref":"http://example.com"}`, `{"multipleOf":0.1,"exclusiveMaximum":1e300}`, `true`,
}

var seedDocuments = []string{`{"a":1.0}`, `{"a":"x","b":[1,1]}`, `["xy","2026-01-01T00:00:00Z"]`, `null`, `1e400`, `{"x1":{"x2":{}}}`}

// FuzzValidate asserts that no pair of schema and document makes the package panic, and that
// results are repeatable and sorted.
func FuzzValidate(f *testing.F) {
	for _, s := range seedSchemas {
		for _, d := range seedDocuments {
			f.Add([]byte(s), []byte(d))
		}
	}
	f.Fuzz(func(t *testing.T, doc, instance []byte) {
		s, err := schema.Compile("fuzz", doc)
		if err != nil {
			var e *schema.Error
			require.ErrorAs(t, err, &e)
			require.NotEmpty(t, e.Reason)
			return
		}
		vs := s.Validate(instance)
		require.LessOrEqual(t, len(vs), 32)
		require.True(t, json.Valid(instance) || len(vs) == 1)
		for _, v := range vs {
			require.NotEmpty(t, v.Keyword)
			require.NotEmpty(t, v.Message)
		}
		require.Equal(t, vs, s.Validate(instance))
	})
}

// FuzzLint asserts that the check ends, and that the strict level finds everything the other level
// finds.
func FuzzLint(f *testing.F) {
	for _, s := range seedSchemas {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, doc []byte) {
		always := schema.Lint(doc, schema.LevelAlways)
		strict := schema.Lint(doc, schema.LevelStrict)
		require.GreaterOrEqual(t, len(strict), len(always))
		require.Equal(t, strict, schema.Lint(doc, schema.LevelStrict))
		for _, f := range strict {
			require.NotEmpty(t, f.Rule)
			require.NotEmpty(t, f.Message)
		}
	})
}
