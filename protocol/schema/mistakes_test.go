package schema_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"waybill.dev/waybill/protocol/schema"
	"waybill.dev/waybill/protocol/schema/schematest"
)

func TestMistakes_FindsWhatCompilesAndChecksSomethingElse(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		doc, path, rule, says string
		warning               bool
	}{
		"lengths":             {`{"type":"string","minLength":5,"maxLength":3}`, "/minLength", "contradiction", "lower minLength, or raise maxLength", false},
		"items":               {`{"type":"array","items":true,"minItems":2,"maxItems":1}`, "/minItems", "contradiction", "no value satisfies", false},
		"numbers":             {`{"properties":{"n":{"type":"number","minimum":1e2,"maximum":99.5}}}`, "/properties/n/minimum", "contradiction", "minimum 1e2 and maximum 99.5", false},
		"an empty open range": {`{"type":"number","exclusiveMinimum":1,"maximum":1.0}`, "/exclusiveMinimum", "contradiction", "no value satisfies", false},
		"a bound of an old draft": {
			`{"$schema":"http://json-schema.org/draft-04/schema#","type":"number","minimum":1,"exclusiveMinimum":true,"maximum":1}`,
			"/exclusiveMinimum", "contradiction", "no value satisfies", false,
		},
		"required and forbidden": {
			`{"type":"object","additionalProperties":false,"required":["sumary"],"properties":{"summary":{"type":"string"}}}`, //nolint:misspell // the mistake
			"/required/0", "contradiction", "did you mean summary?", false,
		},
		"required and false": {`{"type":"object","required":["a"],"properties":{"a":false}}`, "/required/0", "contradiction", "must and must not", false},
		"required, misspelled": {
			`{"type":"object","required":["sumary"],"properties":{"summary":{"type":"string"}}}`, //nolint:misspell // the mistake
			"/required/0", "contradiction", "did you mean summary?", true,
		},
		"too few members":        {`{"type":"object","required":["a","b"],"maxProperties":1}`, "/maxProperties", "contradiction", "must have 2", false},
		"too many members":       {`{"type":"object","properties":{"a":true},"additionalProperties":false,"minProperties":2}`, "/minProperties", "contradiction", "may have 1", false},
		"a constant of a type":   {`{"type":"integer","const":"1"}`, "/const", "contradiction", "want type integer", false},
		"no value of the type":   {`{"type":"string","enum":[1,2]}`, "/enum", "contradiction", "allows none of its values", false},
		"a value of the type":    {`{"type":"string","enum":["a",null]}`, "/enum/1", "contradiction", "want type string", true},
		"a value, too long":      {`{"type":"string","maxLength":2,"enum":["ab","abc"]}`, "/enum/1", "contradiction", "does not allow this value", true},
		"no values":              {`{"enum":[]}`, "/enum", "contradiction", "lists no value", false},
		"a default of a type":    {`{"properties":{"n":{"type":"integer","default":"5"}}}`, "/properties/n/default", "example", "want type integer", true},
		"a default out of range": {`{"type":"integer","minimum":1,"default":0}`, "/default", "example", "does not allow this value", true},
		"a default object":       {`{"type":"object","properties":{"a":true},"default":[]}`, "/default", "example", "want type object", true},
		"an example":             {`{"type":"string","format":"date","examples":["2026-01-01","tomorrow"]}`, "/examples/1", "example", "does not allow this value", true},
		"a format":               {`{"type":"string","format":"datetime"}`, "/format", "unknown-format", "did you mean date-time?", true},
		"a format like another":  {`{"type":"string","format":"url"}`, "/format", "unknown-format", "did you mean uri?", true},
		"a length of a number":   {`{"type":"integer","minLength":3}`, "/minLength", "ignored-keyword", "did you mean minimum?", true},
		"members of a text":      {`{"type":"string","properties":{}}`, "/properties", "ignored-keyword", "add object to type", true},
		"a format of a number":   {`{"type":"integer","format":"date"}`, "/format", "ignored-keyword", "set type to string", true},
		"a count of matches":     {`{"type":"array","items":true,"minContains":2}`, "/minContains", "ignored-keyword", "without contains", true},
		"a branch":               {`{"then":{"required":["a"]}}`, "/then", "ignored-keyword", "without if", true},
		"a condition":            {`{"if":{"required":["a"]}}`, "/if", "ignored-keyword", "without then or else", true},
		"slashes":                {`{"type":"string","pattern":"/^[A-Z]+$/"}`, "/pattern", "contradiction", `write "^[A-Z]+$"`, true},
		"a value twice":          {`{"enum":["a",1,"a"]}`, "/enum/2", "repeated", "value 0", true},
		"a version, misspelled":  {`{"type":"object","x-schemaVerison":2}`, "/x-schemaVerison", "unknown-keyword", "did you mean x-schemaVersion?", true},
		"a version without x-":   {`{"type":"object","schemaVersion":2}`, "/schemaVersion", "unknown-keyword", "did you mean x-schemaVersion?", true},
		"a keyword":              {`{"type":"object","propertis":{}}`, "/propertis", "unknown-keyword", "did you mean properties?", false},
		"an example of a value":  {`{"category":"billing","urgent":true}`, "", "unknown-keyword", "describe the value", false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, err := schema.Compile("mistake", []byte(tc.doc))
			require.NoError(t, err)
			found := schema.Mistakes([]byte(tc.doc))
			require.Len(t, found, 1)
			require.Equal(t, tc.path, found[0].Path)
			require.Equal(t, tc.rule, found[0].Rule)
			require.Equal(t, tc.warning, found[0].Warning)
			require.Contains(t, found[0].Message, tc.says)
		})
	}
}

func TestMistakes_AcceptsUnusualSchemas(t *testing.T) {
	t.Parallel()
	for _, doc := range []string{
		`true`, `{}`,
		`{"type":["string","null"],"minLength":1,"default":null,"enum":["a",null]}`,
		`{"type":"string","nullable":true,"enum":["a",null]}`,
		`{"type":"integer","minimum":3,"maximum":3,"const":3.0}`,
		`{"type":"object","required":["a"],"patternProperties":{"^a":true},"additionalProperties":false}`,
		`{"type":"object","required":["other"],"properties":{"a":true}}`,
		`{"required":["a"],"allOf":[{"properties":{"a":true}}]}`,
		`{"properties":{"minLength":{"type":"integer"},"maxLength":{"type":"integer"},"default":{"enum":[{"minLength":5,"maxLength":1}]}}}`,
		`{"type":"string","format":"markdown"}`, `{"type":"integer","format":"int64"}`,
		`{"$ref":"#/$defs/a","default":"x","$defs":{"a":{"type":"string"}}}`,
		`{"anyOf":[{"type":"string","const":"a"},{"type":"object","required":["b"],"properties":{"b":true}}],"default":"a"}`,
		`{"x-mine":{"type":5},"title":"only a title"}`,
		`{"x-schemaVersion":2,"x-schemaVersions":[1,2],"properties":{"x-schemaVerison":true}}`,
		`{"type":"string","pattern":"^/api/.*/$"}`, `{"type":"string","pattern":"/v1/"}`, `{"type":"string","pattern":"/a\\$/"}`,
		`{"type":"array","contains":true,"minContains":0}`, `{"if":true,"else":{"required":["a"]}}`,
		`{"enum":[1,"1",true,"true",null,[1],[1,1]]}`,
		`{"type":["string","integer"],"format":"date"}`, `{"type":"string","format":"int64"}`, `{"type":"integer","format":"password"}`,
		`{`, `[]`,
	} {
		require.Empty(t, schema.Mistakes([]byte(doc)), doc)
	}
}

// The cost of a schema with many values stays small: only some of its parts are compiled.
func TestMistakes_LimitsItsWork(t *testing.T) {
	t.Parallel()
	part := `{"type":"string","enum":[1]},`
	doc := `{"anyOf":[` + strings.TrimSuffix(strings.Repeat(part, 500), ",") + `]}`
	require.Len(t, schema.Mistakes([]byte(doc)), 128)
}

// All searches for the closest name count, those for formats included.
func TestMistakes_LimitsTheSearchForFormats(t *testing.T) {
	t.Parallel()
	doc := `{"prefixItems":[` + strings.TrimSuffix(strings.Repeat(`{"type":"string","format":"datetime"},`, 500), ",") + `]}`
	require.Len(t, schema.Mistakes([]byte(doc)), 32)
}

// A contradiction in a branch may be intended. One at the root leaves no value, if it concerns all types
// that the schema allows.
func TestMistakes_MarksSchemasWithoutValues(t *testing.T) {
	t.Parallel()
	for doc, want := range map[string]struct{ warning, unsatisfiable bool }{
		`{"type":"string","minLength":5,"maxLength":3}`:         {false, true},
		`{"type":["integer","number"],"minimum":5,"maximum":3}`: {false, true},
		`{"enum":[]}`: {false, true},
		`{"type":"object","required":["a"],"properties":{"a":false}}`:                  {false, true},
		`{"minLength":5,"maxLength":3}`:                                                {false, false},
		`{"type":["string","null"],"minLength":5,"maxLength":3}`:                       {false, false},
		`{"type":"object","properties":{"a":{"enum":[]}}}`:                             {false, false},
		`{"type":"object","properties":{"a":{"anyOf":[{"enum":[]},{"type":"null"}]}}}`: {true, false},
		`{"oneOf":[{"type":"string","minLength":5,"maxLength":3},{"type":"null"}]}`:    {true, false},
		`{"not":{"type":"string","const":1}}`:                                          {true, false},
		`{"if":{"properties":{"a":{"enum":[]}}},"then":true}`:                          {true, false},
		`{"then":{"enum":[]},"if":true,"else":true}`:                                   {true, false},
		`{"allOf":[{"type":"string","minLength":5,"maxLength":3}]}`:                    {false, false},
	} {
		found := schema.Mistakes([]byte(doc))
		require.Len(t, found, 1, doc)
		require.Equal(t, schema.RuleContradiction, found[0].Rule, doc)
		require.Equal(t, want.warning, found[0].Warning, doc)
		require.Equal(t, want.unsatisfiable, found[0].Unsatisfiable, doc)
	}
}

// The protocol's own schemas have none that a host would reject.
func TestMistakes_AcceptsThePublishedSchemas(t *testing.T) {
	t.Parallel()
	files, err := filepath.Glob(filepath.Join(schematest.Dir(t), "schemas", "*.json"))
	require.NoError(t, err)
	require.NotEmpty(t, files)
	for _, file := range files {
		doc, err := os.ReadFile(file)
		require.NoError(t, err)
		for _, f := range schema.Mistakes(doc) {
			require.True(t, f.Warning, "%s: %+v", file, f)
		}
	}
}
