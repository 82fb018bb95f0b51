package judge_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/santhosh-tekuri/jsonschema/v6"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"waybill.dev/waybill/protocol/schema/internal/judge"
	"waybill.dev/waybill/protocol/strictjson"
)

// anyText accepts any text as a regular expression.
type anyText struct{}

func (anyText) Size(string) int    { return 0 }
func (anyText) Check(string) error { return nil }

const at = "schema:///test"

// compiled returns a schema as compiled by the library, and prepared.
func compiled(t require.TestingT, doc string) (*jsonschema.Schema, *judge.Program) {
	c := jsonschema.NewCompiler()
	c.DefaultDraft(jsonschema.Draft2020)
	c.AssertFormat()
	require.NoError(t, c.AddResource(at, value(t, doc)))
	s, err := c.Compile(at)
	require.NoError(t, err, doc)
	p, foreign, err := judge.NewProgram(s, judge.Source{URL: at, Regex: anyText{}})
	require.NoError(t, err)
	require.Empty(t, foreign)
	return s, p
}

func value(t require.TestingT, doc string) any {
	v, err := strictjson.Value([]byte(doc), strictjson.Limits{})
	require.NoError(t, err, doc)
	return v
}

// schemas draws schemas that use every keyword, with references between them.
type schemas struct{ t *rapid.T }

func (g schemas) any(depth int) any {
	if depth == 0 || rapid.IntRange(0, 9).Draw(g.t, "plain") == 0 {
		return rapid.SampledFrom([]any{true, false, map[string]any{}, map[string]any{"type": "string"}, map[string]any{"type": "integer"}, map[string]any{"$ref": "#/$defs/a"}}).Draw(g.t, "leaf")
	}
	s := map[string]any{}
	for range rapid.IntRange(1, 3).Draw(g.t, "keywords") {
		keyword := rapid.SampledFrom(keywords).Draw(g.t, "keyword")
		s[keyword] = g.keyword(keyword, depth-1)
	}
	return s
}

var keywords = []string{
	"type", "const", "enum", "$ref", "not", "allOf", "anyOf", "oneOf", "if", "then", "else", "properties", "patternProperties", "additionalProperties",
	"propertyNames", "unevaluatedProperties", "required", "minProperties", "maxProperties", "dependentRequired", "dependentSchemas", "dependencies",
	"items", "prefixItems", "contains", "minContains", "maxContains", "unevaluatedItems", "minItems", "maxItems", "uniqueItems",
	"minLength", "maxLength", "pattern", "format", "minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf",
}

func (g schemas) keyword(keyword string, depth int) any {
	few := func(of func() any) []any {
		var out []any
		for range rapid.IntRange(1, 3).Draw(g.t, "few") {
			out = append(out, of())
		}
		return out
	}
	name := func() string { return rapid.SampledFrom([]string{"a", "b", "c"}).Draw(g.t, "name") }
	sub := func() any { return g.any(depth) }
	switch keyword {
	case "type":
		return rapid.SampledFrom([]any{"object", "array", "string", "integer", "number", "null", "boolean", []any{"object", "array"}}).Draw(g.t, "type")
	case "const":
		return json.RawMessage(document(g.t, 2))
	case "enum":
		return few(func() any { return json.RawMessage(document(g.t, 2)) })
	case "$ref":
		return rapid.SampledFrom([]string{"#/$defs/a", "#/$defs/b", "#"}).Draw(g.t, "ref")
	case "allOf", "anyOf", "oneOf", "prefixItems":
		return few(sub)
	case "properties", "dependentSchemas":
		return map[string]any{name(): sub(), name(): sub()}
	case "patternProperties":
		return map[string]any{rapid.SampledFrom([]string{"a|b", "^c", "."}).Draw(g.t, "pattern"): sub(), "^b": sub()}
	case "required":
		return []string{name()}
	case "dependentRequired":
		return map[string]any{name(): []string{name()}}
	case "dependencies":
		return map[string]any{"a": []string{name()}, "b": sub()}
	case "uniqueItems":
		return true
	case "pattern":
		return rapid.SampledFrom([]string{"a", "^x+$"}).Draw(g.t, "pattern")
	case "format":
		return rapid.SampledFrom([]string{"date-time", "uri", "x-own"}).Draw(g.t, "format")
	case "multipleOf", "minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum":
		return json.Number(rapid.SampledFrom([]string{"1", "2", "0.5", "1e2", "3.0"}).Draw(g.t, "number"))
	case "minLength", "maxLength", "minItems", "maxItems", "minProperties", "maxProperties", "minContains", "maxContains":
		return rapid.IntRange(0, 3).Draw(g.t, "bound")
	}
	return sub()
}

// document draws a JSON value.
func document(t *rapid.T, depth int) string {
	kind := rapid.IntRange(0, 8).Draw(t, "kind")
	if depth == 0 {
		kind %= 5
	}
	few := rapid.IntRange(0, 4).Draw(t, "members")
	var parts []string
	switch kind {
	case 0:
		return rapid.SampledFrom([]string{"null", "true", "false"}).Draw(t, "word")
	case 1, 2:
		return rapid.SampledFrom([]string{"0", "-0", "1", "1.0", "10", "1e1", "2.50", "25e-1", "-3", "100", "1e2", "0.5", "99999999999999999999"}).Draw(t, "number")
	case 3, 4:
		return fmt.Sprintf("%q", rapid.SampledFrom([]string{"", "a", "xx", "é", "2026-05-01T12:34:56Z", "abc"}).Draw(t, "text"))
	case 5, 6:
		for range few {
			parts = append(parts, document(t, depth-1))
		}
		if rapid.IntRange(0, 9).Draw(t, "long") == 0 && few > 0 {
			for i := range 30 {
				parts = append(parts, fmt.Sprint(i))
			}
		}
		return "[" + strings.Join(parts, ",") + "]"
	}
	for _, name := range []string{"a", "b", "c", "ax"}[:few] {
		if rapid.Bool().Draw(t, "there") {
			parts = append(parts, fmt.Sprintf("%q:%s", name, document(t, depth-1)))
		}
	}
	return "{" + strings.Join(parts, ",") + "}"
}

// The library defines the correct result; it only lacks a budget.
func TestJudge_AgreesWithTheLibrary(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		g := schemas{t}
		root, _ := g.any(3).(map[string]any)
		if root == nil {
			root = map[string]any{}
		}
		root["$defs"] = map[string]any{"a": g.any(2), "b": g.any(2)}
		doc, err := json.Marshal(root)
		require.NoError(t, err)
		library, p := compiled(t, string(doc))
		for range 5 {
			instance := document(t, 3)
			v := value(t, instance)
			verdict, findings := p.Judge(v, 1<<24)
			if library.Validate(v) == nil {
				require.Equal(t, judge.Holds, verdict, "%s takes %s: %v", doc, instance, findings)
			} else {
				require.Equal(t, judge.Fails, verdict, "%s refuses %s", doc, instance)
				require.NotEmpty(t, findings, "%s refuses %s", doc, instance)
			}
		}
	})
}
