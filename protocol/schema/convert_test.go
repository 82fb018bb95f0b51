package schema_test

import (
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/require"

	"waybill.dev/waybill/protocol/schema"
)

const (
	draft7 = `"$schema":"http://json-schema.org/draft-07/schema#"`
	draft4 = `"$schema":"http://json-schema.org/draft-04/schema#"`
	newest = `"$schema":"https://json-schema.org/draft/2020-12/schema"`
)

// Each keyword of older drafts and of OpenAPI 3.0: what it becomes, and what it accepts.
func TestConvert_ReadsOlderDraftsAndOpenAPI(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		source, want string
		takes, fails []string
	}{
		"nullable": {
			`{"type":"string","nullable":true,"minLength":1}`, `{"type":["string","null"],"minLength":1}`,
			[]string{`"a"`, `null`},
			[]string{`""`, `1`},
		},
		"nullable false":     {`{"type":"string","nullable":false}`, `{"type":"string"}`, []string{`"a"`}, []string{`null`}},
		"nullable types":     {`{"type":["string","integer"],"nullable":true}`, `{"type":["string","integer","null"]}`, []string{`null`, `1`}, []string{`true`}},
		"nullable null":      {`{"type":"null","nullable":true}`, `{"type":"null"}`, []string{`null`}, []string{`1`}},
		"nullable enum":      {`{"type":"string","enum":["a"],"nullable":true}`, `{"type":["string","null"],"enum":["a",null]}`, []string{`"a"`, `null`}, []string{`"b"`}},
		"nullable enum only": {`{"enum":["a",null],"nullable":true}`, `{"enum":["a",null]}`, []string{`"a"`, `null`}, []string{`"b"`}},
		"nullable anything":  {`{"title":"t","nullable":true}`, `{"title":"t"}`, []string{`null`, `1`}, nil},
		"nullable reference": {
			`{"properties":{"a":{"$ref":"#/definitions/a","nullable":true,"description":"d"}},"definitions":{"a":{"type":"integer"}}}`,
			`{"properties":{"a":{"description":"d","anyOf":[{"$ref":"#/definitions/a"},{"type":"null"}]}},"definitions":{"a":{"type":"integer"}}}`,
			[]string{`{"a":null}`, `{"a":1}`},
			[]string{`{"a":"x"}`},
		},
		"nullable oneOf": {
			`{"oneOf":[{"type":"string"},{"type":"integer"}],"nullable":true}`, `{"anyOf":[{"oneOf":[{"type":"string"},{"type":"integer"}]},{"type":"null"}]}`,
			[]string{`null`, `"a"`, `1`},
			[]string{`true`},
		},
		"nullable allOf": {
			`{"type":"object","allOf":[{"required":["a"]}],"nullable":true}`, `{"anyOf":[{"type":"object","allOf":[{"required":["a"]}]},{"type":"null"}]}`,
			[]string{`null`, `{"a":1}`},
			[]string{`{}`},
		},
		"a property named nullable": {`{"properties":{"nullable":{"type":"boolean"}}}`, "", []string{`{"nullable":true}`}, []string{`{"nullable":1}`}},
		"a reference into a wrapped schema": {
			`{"properties":{"a":{"nullable":true,"allOf":[{"properties":{"b":{"type":"integer"}}}]},"c":{"$ref":"#/properties/a/allOf/0/properties/b"},"d":{"$ref":"#/properties/a"}}}`,
			`{"properties":{"a":{"anyOf":[{"allOf":[{"properties":{"b":{"type":"integer"}}}]},{"type":"null"}]},"c":{"$ref":"#/properties/a/anyOf/0/allOf/0/properties/b"},"d":{"$ref":"#/properties/a"}}}`,
			[]string{`{"c":1,"d":null}`},
			[]string{`{"c":"x"}`, `{"d":{"b":"x"}}`},
		},
		"exclusive minimum": {`{"minimum":5,"exclusiveMinimum":true}`, `{"exclusiveMinimum":5}`, []string{`5.1`}, []string{`5`}},
		"inclusive maximum": {`{"maximum":1.50,"exclusiveMaximum":false}`, `{"maximum":1.50}`, []string{`1.5`}, []string{`2`}},
		"exclusive without": {`{"type":"number","exclusiveMaximum":true}`, `{"type":"number"}`, []string{`1`}, []string{`"a"`}},
		"items as a list": {
			`{"items":[{"type":"string"},{"type":"integer"}],"additionalItems":false}`, `{"prefixItems":[{"type":"string"},{"type":"integer"}],"items":false}`,
			[]string{`["a",1]`, `["a"]`},
			[]string{`[1]`, `["a",1,2]`},
		},
		"items as an open list": {`{"items":[{"type":"string"}]}`, `{"prefixItems":[{"type":"string"}]}`, []string{`["a",1]`}, []string{`[1]`}},
		"items as an empty list": {
			`{"items":[],"additionalItems":{"type":"string"}}`, `{"items":{"type":"string"}}`, []string{`[]`, `["a"]`}, []string{`[1]`},
		},
		"a reference into a list": {
			`{"items":[{"type":"string"}],"additionalItems":{"$ref":"#/items/0"},"contains":{"$ref":"#/additionalItems"}}`,
			`{"prefixItems":[{"type":"string"}],"items":{"$ref":"#/prefixItems/0"},"contains":{"$ref":"#/items"}}`,
			[]string{`["a","b"]`},
			[]string{`["a",1]`},
		},
		"draft 7": {
			`{` + draft7 + `,"definitions":{"p":{"type":"integer"}},"properties":{"a":{"$ref":"#/definitions/p"}},"dependencies":{"a":["b"],"c":{"required":["d"]}}}`,
			`{` + newest + `,"definitions":{"p":{"type":"integer"}},"properties":{"a":{"$ref":"#/definitions/p"}},"dependentRequired":{"a":["b"]},"dependentSchemas":{"c":{"required":["d"]}}}`,
			[]string{`{"a":1,"b":1}`, `{"c":1,"d":1}`},
			[]string{`{"a":1}`, `{"c":1}`, `{"a":"x","b":1}`},
		},
		"draft 7 ignores what is next to a reference": {
			`{` + draft7 + `,"$ref":"#/definitions/p","type":"string","description":"d","definitions":{"p":{"$id":"#p","type":"integer"}}}`,
			`{` + newest + `,"$ref":"#/definitions/p","description":"d","definitions":{"p":{"$anchor":"p","type":"integer"}}}`,
			[]string{`1`},
			[]string{`"a"`},
		},
		"draft 4": {
			`{` + draft4 + `,"id":"https://x.example/a","properties":{"id":{"type":"number","minimum":0,"exclusiveMinimum":true}}}`,
			`{` + newest + `,"$id":"https://x.example/a","properties":{"id":{"type":"number","exclusiveMinimum":0}}}`,
			[]string{`{"id":1}`},
			[]string{`{"id":0}`},
		},
		"draft 2019-09": {
			`{"$schema":"https://json-schema.org/draft/2019-09/schema","$recursiveAnchor":true,"properties":{"next":{"$recursiveRef":"#"}},"additionalProperties":false}`,
			`{` + newest + `,"properties":{"next":{"$ref":"#"}},"additionalProperties":false}`,
			[]string{`{"next":{"next":{}}}`},
			[]string{`{"next":{"x":1}}`},
		},
		"the dialect itself": {`{` + newest + `,"dependencies":{"a":["b"]},"example":1,"definitions":{}}`, "", []string{`{"a":1,"b":1}`}, nil},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if tc.want == "" {
				tc.want = tc.source
			}
			c, err := schema.Convert([]byte(tc.source))
			require.NoError(t, err)
			require.Equal(t, tc.want, string(c.Document))
			require.Equal(t, tc.want != tc.source, len(c.Changes) > 0, "each change is named")
			for _, change := range c.Changes {
				require.Equal(t, schema.RuleConverted, change.Rule)
				require.NotEmpty(t, change.Message)
			}
			s := compile(t, tc.source)
			require.Equal(t, tc.want, string(s.Document()))
			for _, doc := range tc.takes {
				require.Empty(t, s.Validate([]byte(doc)), doc)
			}
			for _, doc := range tc.fails {
				require.NotEmpty(t, s.Validate([]byte(doc)), doc)
			}
			again, err := schema.Convert(c.Document)
			require.NoError(t, err)
			require.Equal(t, tc.want, string(again.Document), "a converted schema stays")
		})
	}
}

// Paths are those of the document as it was written.
func TestConvert_KeepsThePathsOfTheSource(t *testing.T) {
	t.Parallel()
	_, err := schema.Compile("x", []byte(`{"properties":{"a":{"nullable":true,"allOf":[{"type":"text"}]}}}`))
	var e *schema.Error
	require.ErrorAs(t, err, &e)
	require.Equal(t, "/properties/a/allOf/0/type", e.Path)

	s := compile(t, `{"items":[{"type":"string"}],"additionalItems":{"type":"integer"}}`)
	require.Equal(t, "/items/0/type", s.Validate([]byte(`[1]`))[0].SchemaPath)
	require.Equal(t, "/additionalItems/type", s.Validate([]byte(`["a","b"]`))[0].SchemaPath)

	findings := schema.Lint([]byte(`{"type":"object","properties":{"a":{"nullable":true,"allOf":[{"oneOf":[{"type":"string"}]}]}}}`), schema.LevelAlways)
	var paths []string
	for _, f := range findings {
		paths = append(paths, f.Path+" "+f.Rule)
	}
	require.Contains(t, paths, "/properties/a/allOf/0/oneOf forbidden-keyword")

	_, err = schema.Compile("x", []byte(`{"properties":{"a":{"$schema":"https://example.com/mine"}}}`))
	require.ErrorAs(t, err, &e)
	require.Equal(t, "/properties/a/$schema", e.Path)
	require.Contains(t, e.Reason, "2019-09, 07, 06 and 04")
}

// FuzzConvert: a converted schema is JSON, stays when it is converted again, and accepts and rejects
// what a second conversion does.
func FuzzConvert(f *testing.F) {
	for _, s := range append(seedSchemas,
		`{"nullable":true,"allOf":[{"$ref":"#/allOf/0"}],"items":[{},{"nullable":true,"type":"string"}],"additionalItems":{"$ref":"#/items/1"}}`,
		`{`+draft7+`,"$ref":"#/definitions/a","definitions":{"a":{"dependencies":{"a":["b"],"c":{}},"exclusiveMinimum":true,"minimum":1}}}`,
		`{`+draft4+`,"id":"#a","enum":[1],"nullable":true}`,
		`{"$schema":"https://json-schema.org/draft/2019-09/schema","$recursiveRef":"#","$recursiveAnchor":true}`,
	) {
		for _, d := range seedDocuments {
			f.Add([]byte(s), []byte(d))
		}
	}
	f.Fuzz(func(t *testing.T, doc, instance []byte) {
		c, err := schema.Convert(doc)
		if err != nil {
			var e *schema.Error
			require.ErrorAs(t, err, &e)
			require.NotEmpty(t, e.Reason)
			return
		}
		require.True(t, json.Valid(c.Document), "%s", c.Document)
		again, err := schema.Convert(c.Document)
		require.NoError(t, err, "%s", c.Document)
		require.Equal(t, string(c.Document), string(again.Document))
		s, err := schema.Compile("source", doc)
		converted, err2 := schema.Compile("source", c.Document)
		require.Equal(t, err == nil, err2 == nil, "%v %v", err, err2)
		if err != nil {
			return
		}
		require.Len(t, converted.Validate(instance), len(s.Validate(instance)))
	})
}
