package schema_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/stretchr/testify/require"

	"waybill.dev/waybill/protocol/schema"
	"waybill.dev/waybill/protocol/schema/schematest"
)

// places renders findings as "path rule" lines.
func places(fs []schema.Finding) []string {
	lines := make([]string, len(fs))
	for i, f := range fs {
		lines[i] = f.Path + " " + f.Rule
	}
	return lines
}

const strictGood = `{
	"type":"object","additionalProperties":false,"required":["kind","note"],
	"properties":{
		"kind":{"type":"string","enum":["a"]},
		"note":{"type":["string","null"]}}}`

func TestLint_PassesTheSubset(t *testing.T) {
	t.Parallel()
	union := `{"type":"object","additionalProperties":false,"required":["step"],"properties":{"step":{"anyOf":[
		{"$ref":"#/$defs/open"},
		{"type":"object","additionalProperties":false,"required":["kind","to"],"properties":{"kind":{"type":"string","enum":["close"]},"to":{"type":"string"}}}]}},
		"$defs":{"open":{"type":"object","additionalProperties":false,"required":["kind"],"properties":{"kind":{"type":"string","enum":["open"]}}}}}`
	named := `{"type":"object","additionalProperties":false,"required":["not","format","oneOf","minLength"],
		"properties":{"not":{"type":"string"},"format":{"type":"string"},"oneOf":{"type":"array","items":{"type":"string"}},"minLength":{"enum":[{"not":{},"allOf":[]}]}}}`
	optional := `{"type":"object","additionalProperties":false,"required":["who"],"properties":{"who":{"anyOf":[` + strictGood + `,{"type":"null"}]}}}`
	for _, doc := range []string{strictGood, union, named, optional} {
		require.Empty(t, schema.Lint([]byte(doc), schema.LevelStrict), doc)
	}
}

func TestLint_ChecksTheRulesForAllKinds(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		doc  string
		want []string
	}{
		"forbidden keywords": {
			doc: `{"oneOf":[true],"allOf":[],"not":{},"if":{},"then":{},"else":{},"dependencies":{},"prefixItems":[],"propertyNames":{}}`,
			want: []string{
				"/allOf forbidden-keyword", "/dependencies forbidden-keyword", "/else forbidden-keyword", "/if forbidden-keyword",
				"/not forbidden-keyword", "/oneOf forbidden-keyword", "/prefixItems forbidden-keyword", "/propertyNames forbidden-keyword",
				"/then forbidden-keyword",
			},
		},
		"at any depth": {
			doc:  `{"properties":{"a":{"items":{"additionalProperties":{"not":{}}}}},"$defs":{"b":{"allOf":[{"oneOf":[]}]}}}`,
			want: []string{"/$defs/b/allOf forbidden-keyword", "/$defs/b/allOf/0/oneOf forbidden-keyword", "/properties/a/items/additionalProperties/not forbidden-keyword"},
		},
		"five steps are fine": {
			doc:  nested(5),
			want: []string{},
		},
		"six are one too many": {
			doc:  nested(6),
			want: []string{strings.Repeat("/properties/p", 6) + " max-nesting-depth-5"},
		},
		"the first step beyond is reported": {
			doc:  nested(9),
			want: []string{strings.Repeat("/properties/p", 6) + " max-nesting-depth-5"},
		},
		"steps of every kind": {
			doc:  `{"$defs":{"a":{"anyOf":[{"items":{"properties":{"b":{"items":{"items":{"additionalProperties":{"contains":{}}}}}}}}]}}}`,
			want: []string{"/$defs/a/anyOf/0/items/properties/b/items/items max-nesting-depth-5"},
		},
		"branch without discriminator": {
			doc:  `{"anyOf":[{"type":"object","required":["k"],"properties":{"k":{"type":"string","enum":["a"]}}},{"type":"object"}]}`,
			want: []string{"/anyOf/1 variant-discriminator"},
		},
		"discriminator not required": {
			doc:  `{"anyOf":[{"properties":{"k":{"type":"string","enum":["a"]}}},{"required":["k"],"properties":{"k":{"type":"string","enum":["b"]}}}]}`,
			want: []string{"/anyOf/0 variant-discriminator"},
		},
		"discriminator of two values, of no type, of another type": {
			doc: `{"anyOf":[{"required":["k"],"properties":{"k":{"type":"string","enum":["a","b"]}}},
				{"required":["k"],"properties":{"k":{"enum":["b"]}}},{"required":["k"],"properties":{"k":{"type":"integer","enum":[1]}}}]}`,
			want: []string{"/anyOf/0 variant-discriminator", "/anyOf/1 variant-discriminator", "/anyOf/2 variant-discriminator"},
		},
		"discriminators of different names": {
			doc:  `{"anyOf":[{"required":["k"],"properties":{"k":{"type":"string","enum":["a"]}}},{"required":["v"],"properties":{"v":{"type":"string","enum":["a"]}}}]}`,
			want: []string{"/anyOf variant-discriminator"},
		},
		"scalar branch and two objects": {
			doc:  `{"anyOf":[{"required":["k"],"properties":{"k":{"type":"string","enum":["a"]}}},{"required":["k"],"properties":{"k":{"type":"string","enum":["b"]}}},{"type":"null"}]}`,
			want: []string{"/anyOf/2 variant-discriminator"},
		},
		"through references": {
			doc:  `{"anyOf":[{"$ref":"#/$defs/a"},{"$ref":"#b"}],"$defs":{"a":{"type":"object"},"b":{"$anchor":"b","$ref":"#/$defs/a"}}}`,
			want: []string{"/anyOf/0 variant-discriminator", "/anyOf/1 variant-discriminator"},
		},
		"references in a circle": {
			doc:  `{"anyOf":[{"$ref":"#/$defs/a"},{"$ref":"#/$defs/nowhere"}],"$defs":{"a":{"$ref":"#/$defs/b"},"b":{"$ref":"#/$defs/a"}}}`,
			want: []string{},
		},
		"not a schema": {
			doc:  `{"a":`,
			want: []string{"/a not-a-schema"},
		},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			require.Empty(t, cmp.Diff(tc.want, places(schema.Lint([]byte(tc.doc), schema.LevelAlways))))
		})
	}
}

// nested returns a schema with n levels of properties.
func nested(n int) string {
	return strings.Repeat(`{"properties":{"p":`, n) + `{}` + strings.Repeat(`}}`, n)
}

func TestLint_ChecksTheRulesOfStrictModes(t *testing.T) {
	t.Parallel()
	doc := `{"properties":{
		"s":{"type":"string","minLength":1,"maxLength":2,"pattern":"x","format":"uri"},
		"n":{"type":"number","minimum":1,"maximum":2,"exclusiveMinimum":1,"exclusiveMaximum":2,"multipleOf":1},
		"a":{"type":"array","minItems":1,"maxItems":2,"uniqueItems":true},
		"o":{"type":"object","additionalProperties":true}},
		"required":["s","n","a"]}`
	require.Empty(t, schema.Lint([]byte(doc), schema.LevelAlways))
	want := []string{
		" additional-properties-false", " root-object",
		"/properties/a/maxItems no-array-constraint", "/properties/a/minItems no-array-constraint", "/properties/a/uniqueItems no-array-constraint",
		"/properties/n/exclusiveMaximum no-number-constraint", "/properties/n/exclusiveMinimum no-number-constraint", "/properties/n/maximum no-number-constraint",
		"/properties/n/minimum no-number-constraint", "/properties/n/multipleOf no-number-constraint",
		"/properties/o additional-properties-false", "/properties/o all-properties-required",
		"/properties/s/format no-string-constraint", "/properties/s/maxLength no-string-constraint", "/properties/s/minLength no-string-constraint", "/properties/s/pattern no-string-constraint",
	}
	require.Empty(t, cmp.Diff(want, places(schema.Lint([]byte(doc), schema.LevelStrict))))
}

func TestLint_CountsPropertiesOfTheWholeSchema(t *testing.T) {
	t.Parallel()
	object := func(n int, inner string) string {
		names, members := make([]string, n), make([]string, n)
		for i := range n {
			names[i] = fmt.Sprintf("%q", fmt.Sprint("p", i))
			members[i] = names[i] + ":" + inner
		}
		return `{"type":"object","additionalProperties":false,"required":[` + strings.Join(names, ",") + `],"properties":{` + strings.Join(members, ",") + `}}`
	}
	require.Empty(t, schema.Lint([]byte(object(100, `{"type":"string"}`)), schema.LevelStrict))
	require.Equal(t, []string{" max-properties-100"}, places(schema.Lint([]byte(object(10, object(10, `{"type":"string"}`))), schema.LevelStrict)))
}

func TestLint_FindsRecursionOnlyWhereItIs(t *testing.T) {
	t.Parallel()
	doc := `{"type":"object","additionalProperties":false,"required":["a","b","c"],"properties":{
		"a":{"$ref":"#/$defs/leaf"},"b":{"$ref":"#/$defs/ping"},"c":{"type":"array","items":{"$ref":"#"}}},
		"$defs":{"leaf":{"type":"string"},"ping":{"$ref":"#/$defs/pong"},"pong":{"type":"array","items":{"$ref":"#/$defs/ping"}}}}`
	fs := schema.Lint([]byte(doc), schema.LevelStrict)
	require.Equal(t, []string{
		"/$defs/ping/$ref no-recursive-ref", "/$defs/pong/items/$ref no-recursive-ref", "/properties/c/items/$ref no-recursive-ref",
	}, places(fs))
	require.Equal(t, []string{schema.Anthropic}, fs[0].Vendors)
}

func TestLint_NamesVendorsAndTheWayOut(t *testing.T) {
	t.Parallel()
	fs := schema.Lint([]byte(`{"oneOf":[],"prefixItems":[]}`), schema.LevelAlways)
	require.Equal(t, []string{schema.OpenAI, schema.Anthropic, schema.Gemini}, fs[0].Vendors)
	require.Contains(t, fs[0].Message, "anyOf")
	require.Equal(t, []string{schema.OpenAI, schema.Anthropic}, fs[1].Vendors, "Gemini supports prefixItems")
}

// The published schemas of the universal kinds violate strict rules, so a host that serves them
// attests "warn" (OpenWOP envelope contract §20).
func TestLint_OfThePublishedKindsFollowsTheContract(t *testing.T) {
	t.Parallel()
	for _, kind := range []string{"clarification.request", "schema.request", "schema.response", "error"} {
		doc, err := os.ReadFile(filepath.Join(schematest.Dir(t), "schemas", "envelopes", kind+".schema.json"))
		require.NoError(t, err)
		require.NotEmpty(t, schema.Lint(doc, schema.LevelStrict), kind)
	}
}
