package sample_test

import (
	"bytes"
	"encoding/json"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/santhosh-tekuri/jsonschema/v6"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"waybill.dev/waybill/protocol/schema/schematest"
	"waybill.dev/waybill/services/dispatcher/provider"
	"waybill.dev/waybill/services/dispatcher/provider/sample"
)

// compile reads a schema with format assertion on; external references fail.
func compile(raw []byte) (*jsonschema.Schema, error) {
	doc, err := jsonschema.UnmarshalJSON(bytes.NewReader(raw))
	if err != nil {
		return nil, err
	}
	c := jsonschema.NewCompiler()
	c.DefaultDraft(jsonschema.Draft2020)
	c.AssertFormat()
	if err := c.AddResource("mem:///schema.json", doc); err != nil {
		return nil, err
	}
	return c.Compile("mem:///schema.json")
}

type tester interface {
	require.TestingT
	Helper()
}

// requireValid asserts that an answer satisfies the schema it was made for.
func requireValid(t tester, schema *jsonschema.Schema, raw, answer string) {
	t.Helper()
	v, err := jsonschema.UnmarshalJSON(strings.NewReader(answer))
	require.NoError(t, err, "schema %s\nanswer %s", raw, answer)
	require.NoError(t, schema.Validate(v), "schema %s\nanswer %s", raw, answer)
}

func TestCall_SatisfiesEveryKeyword(t *testing.T) {
	t.Parallel()
	for _, raw := range []string{
		`true`, `{}`, `{"title":"anything"}`,
		`{"const":{"b":1,"a":[1.50,"x"]}}`, `{"enum":[1.0,2]}`, `{"const":"<&>\u2028"}`,
		`{"type":"string","minLength":200}`, `{"type":"string","maxLength":3}`,
		`{"type":"string","minLength":5,"maxLength":5}`, `{"maxLength":0,"type":"string"}`,
		`{"type":"string","pattern":"^[A-Z]{3}-\\d{4}$"}`, `{"type":"string","pattern":"^(foo|bar)+$"}`,
		`{"type":"string","pattern":"^[a-z]*$","minLength":40}`,
		`{"type":"string","pattern":"x$","minLength":9}`, `{"type":"string","pattern":"^INV-\\d+$"}`,
		`{"type":"string","pattern":"^#[0-9a-fA-F]{6}$"}`,
		`{"type":"string","pattern":"^v?\\d+\\.\\d+\\.\\d+(-[a-z]+)?$"}`,
		`{"type":"string","pattern":"^[^a-z]$"}`, `{"type":"string","pattern":"(a{2,4}b?){3}"}`,
		`{"type":"string","format":"date-time"}`, `{"type":"string","format":"date"}`,
		`{"type":"string","format":"time"}`, `{"type":"string","format":"duration"}`,
		`{"type":"string","format":"email"}`, `{"type":"string","format":"uri"}`,
		`{"type":"string","format":"uuid"}`, `{"type":"string","format":"hostname"}`,
		`{"type":"string","format":"ipv4"}`, `{"type":"string","format":"ipv6"}`,
		`{"type":"string","format":"json-pointer"}`, `{"type":"string","format":"regex"}`,
		`{"type":"string","format":"uri-reference"}`, `{"type":"string","format":"uri-template"}`,
		`{"type":"string","format":"relative-json-pointer"}`,
		`{"type":"integer"}`, `{"type":"integer","minimum":7}`, `{"type":"integer","maximum":-7}`,
		`{"type":"integer","minimum":3,"maximum":3}`,
		`{"type":"integer","exclusiveMinimum":3,"exclusiveMaximum":5}`,
		`{"type":"number","exclusiveMinimum":0,"exclusiveMaximum":0.001}`,
		`{"type":"number","multipleOf":0.1,"minimum":0.25,"maximum":0.35}`,
		`{"type":"integer","multipleOf":2.5,"minimum":1}`, `{"type":"number","multipleOf":0.01}`,
		`{"type":"integer","minimum":1e20}`, `{"type":"number","minimum":0,"maximum":1}`, `{"minimum":5}`,
		`{"type":"integer","minimum":-0.5,"maximum":0.5}`,
		`{"type":"array","minItems":3,"items":{"type":"integer"}}`, `{"type":"array","maxItems":0}`,
		`{"type":"array","minItems":4,"uniqueItems":true,"items":{"type":"string"}}`,
		`{"type":"array","minItems":3,"uniqueItems":true,"items":{"enum":["a","b","c"]}}`,
		`{"type":"array","prefixItems":[{"const":1},{"const":2}],"items":false}`,
		`{"type":"array","contains":{"const":"x"},"minContains":2}`,
		`{"type":"array","items":{"type":"string"},"contains":{"minLength":100},"maxItems":1}`,
		`{"type":"array","minItems":5,"uniqueItems":true,"items":{"type":"integer","minimum":0,"maximum":9}}`,
		`{"type":"array","items":false}`,
		`{"type":"array","minItems":2,"uniqueItems":true,"items":{"type":"boolean"}}`,
		`{"type":"array","minItems":10,"uniqueItems":true,"items":{"type":"integer","minimum":0,"maximum":9}}`,
		`{"type":"array","minItems":3,"uniqueItems":true,"items":{"type":"string","maxLength":2}}`,
		`{"type":"array","minItems":3,"uniqueItems":true,"items":{"type":"object","required":["a"],"properties":{"a":{"type":"string"}}}}`,
		`{"type":"object","required":["free"]}`,
		`{"type":"object","required":["a"],"additionalProperties":{"type":"integer"}}`,
		`{"type":"object","minProperties":3}`,
		`{"type":"object","maxProperties":1,"properties":{"a":{},"b":{},"c":{}},"required":["b"]}`,
		`{"type":"object","patternProperties":{"^n_":{"type":"integer"}},"required":["n_1"],"additionalProperties":false}`,
		`{"type":"object","properties":{"a":false,"b":true}}`,
		`{"type":"object","properties":{"a":{"type":"string"},"not":{"type":"string"}},"additionalProperties":false}`,
		`{"type":"object","minProperties":2,"properties":{"a":{},"b":{},"c":{}},"not":{"required":["c"]}}`,
		`{"type":"object","properties":{"a":{},"b":{}},"dependentRequired":{"a":["zzz"]}}`,
		`{"allOf":[{"type":"object","properties":{"a":{"minimum":3}},"required":["a"]},{"properties":{"a":{"type":"integer","maximum":3}}}]}`,
		`{"allOf":[{"type":"number"},{"type":"integer"},{"minimum":2},{"minimum":5},{"maximum":9},{"maximum":6}]}`,
		`{"allOf":[{"enum":["a","b"]},{"enum":["b","c"]}]}`,
		`{"allOf":[{"items":{"type":"string"}},{"type":"array","minItems":2,"items":{"minLength":20}}]}`,
		`{"anyOf":[{"type":"string"},{"type":"integer"}],"type":"integer"}`,
		`{"oneOf":[{"type":"string"},{"type":"array","minItems":1}]}`,
		`{"type":"object","properties":{"kind":{"type":"string"}},"required":["kind"],"anyOf":[{"properties":{"kind":{"const":"x"}}},{"properties":{"kind":{"const":"y"}},"required":["z"]}]}`,
		`{"anyOf":[{"anyOf":[{"const":1},{"const":2}]},{"allOf":[{"const":3}]}]}`,
		`{"anyOf":[{"type":"object","properties":{"a":{"const":1}},"required":["a"]}],"oneOf":[{"required":["b"]},{"required":["c"]}]}`,
		`{"$ref":"#/$defs/a~1b","$defs":{"a/b":{"type":"integer"}}}`,
		`{"$ref":"#/$defs/s","minLength":50,"$defs":{"s":{"type":"string","minLength":10}}}`,
		`{"$defs":{"n":{"type":"object","required":["v","next"],"properties":{"v":{"type":"integer"},"next":{"anyOf":[{"$ref":"#/$defs/n"},{"type":"null"}]}}}},"$ref":"#/$defs/n"}`,
		`{"$defs":{"t":{"type":"object","required":["kids"],"properties":{"kids":{"type":"array","items":{"$ref":"#/$defs/t"}}}}},"$ref":"#/$defs/t"}`,
		`{"$defs":{"e":{"anyOf":[{"type":"object","required":["op","l","r"],"properties":{"op":{"enum":["add"]},"l":{"$ref":"#/$defs/e"},"r":{"$ref":"#/$defs/e"}}},{"type":"number"}]}},"$ref":"#/$defs/e"}`,
		`{"type":["object","null"],"required":["next"],"properties":{"next":{"$ref":"#"}}}`,
		`{"type":["integer","string"]}`, `{"type":["null"]}`, `{"type":"boolean"}`,
		`{"properties":{"a":{"type":"string"}}}`,
	} {
		schema, err := compile([]byte(raw))
		require.NoError(t, err, raw)
		for _, input := range []string{refundMail, "", "x", "日本語のメール。請求書について。"} {
			r := ask(input, raw)
			requireValid(t, schema, raw, say(t, r).Text)
		}
	}
}

// schemas generates schemas that a document satisfies.
func schemas(depth int) *rapid.Generator[any] {
	return rapid.Custom(func(t *rapid.T) any {
		kinds := []string{"string", "integer", "number", "boolean", "null", "enum", "const", "format", "pattern"}
		if depth > 0 {
			kinds = append(kinds, "object", "array", "union", "all", "nullable", "object", "object")
		}
		kind := rapid.SampledFrom(kinds).Draw(t, "kind")
		s := map[string]any{"description": rapid.SampledFrom([]string{
			"", "refunds and invoices", "errors of the server",
		}).Draw(t, "description")}
		switch kind {
		case "string":
			low := rapid.IntRange(0, 60).Draw(t, "minLength")
			s["type"], s["minLength"], s["maxLength"] = kind, low, low+rapid.IntRange(0, 60).Draw(t, "extra")
		case "integer", "number":
			low := rapid.IntRange(-100, 100).Draw(t, "minimum")
			s["type"], s["minimum"], s["maximum"] = kind, low, low+rapid.IntRange(10, 50).Draw(t, "width")
			if rapid.Bool().Draw(t, "stepped") {
				s["multipleOf"] = rapid.SampledFrom([]json.Number{"1", "2", "0.5", "2.5", "0.1"}).Draw(t, "multipleOf")
			}
		case "boolean", "null":
			s["type"] = kind
		case "enum":
			s["enum"] = rapid.SliceOfNDistinct(rapid.SampledFrom([]any{
				"billing", "technical", "other", 1, 2.5, true, nil,
			}), 1, 5, rapid.ID[any]).Draw(t, "enum")
		case "const":
			s["const"] = rapid.SampledFrom([]any{"x", 7, nil, true, []any{1, "a"}, map[string]any{"k": "v"}}).Draw(t, "const")
		case "format":
			s["type"], s["format"] = "string", rapid.SampledFrom([]string{"date-time", "date", "email", "uri", "uuid"}).Draw(t, "format")
		case "pattern":
			s["type"], s["pattern"] = "string", rapid.SampledFrom([]string{
				`^[A-Z]{2}-[0-9]+$`, `^\d{4}-\d{2}$`, `[a-z]+@[a-z]+`, `^(a|b|cd)*$`, `^[a-z][a-z0-9-]{0,62}$`,
			}).Draw(t, "pattern")
		case "object":
			objectSchema(t, s, depth)
		case "array":
			low := rapid.IntRange(0, 3).Draw(t, "minItems")
			s["type"], s["items"], s["minItems"], s["maxItems"] = "array", schemas(depth-1).Draw(t, "items"), low, low+rapid.IntRange(0, 3).Draw(t, "extra")
		case "union":
			s[rapid.SampledFrom([]string{"anyOf", "oneOf"}).Draw(t, "union")] = variants(t, depth)
		case "all":
			s["allOf"] = []any{schemas(depth-1).Draw(t, "part"), map[string]any{"title": "billing"}}
		case "nullable":
			s["anyOf"] = []any{schemas(depth-1).Draw(t, "value"), map[string]any{"type": "null"}}
		}
		return s
	})
}

var memberNames = []string{
	"reasoning", "summary", "category", "amount", "orderId", "tags", "a/b", "ü", "not", "required",
}

func objectSchema(t *rapid.T, s map[string]any, depth int) {
	names := rapid.SliceOfNDistinct(rapid.SampledFrom(memberNames), 0, 5, rapid.ID[string]).Draw(t, "names")
	props := map[string]any{}
	required := []any{}
	for _, name := range names {
		props[name] = schemas(depth-1).Draw(t, name)
		if rapid.Bool().Draw(t, "required") {
			required = append(required, name)
		}
	}
	s["type"], s["properties"], s["required"] = "object", props, required
	if rapid.Bool().Draw(t, "closed") {
		s["additionalProperties"] = false
	}
}

// variants are objects told apart by a discriminator.
func variants(t *rapid.T, depth int) []any {
	var list []any
	for _, kind := range rapid.SliceOfNDistinct(rapid.SampledFrom([]string{"refund", "reply", "escalate", "close"}), 1, 4, rapid.ID[string]).Draw(t, "kinds") {
		list = append(list, map[string]any{
			"type": "object", "required": []any{"kind", "detail"}, "additionalProperties": false,
			"properties": map[string]any{
				"kind":   map[string]any{"type": "string", "enum": []any{kind}},
				"detail": schemas(depth-1).Draw(t, "detail"),
			},
		})
	}
	return list
}

func TestCall_SatisfiesGeneratedSchemas(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		raw, err := json.Marshal(schemas(4).Draw(t, "schema"))
		require.NoError(t, err)
		schema, err := compile(raw)
		require.NoError(t, err, string(raw))
		input := rapid.SampledFrom([]string{refundMail, "", "the server fails"}).Draw(t, "input")
		res, err := sample.New(0).Call(t.Context(), ask(input, string(raw)), nil)
		require.NoError(t, err, string(raw))
		requireValid(t, schema, string(raw), res.Text)
	})
}

// conditional are the keywords the sample says it does not follow.
var conditional = regexp.MustCompile(`"(if|not|dependent\w*|dependencies)"\s*:`)

// Everything the protocol publishes that stands alone can be answered.
func TestCall_SatisfiesThePublishedSchemas(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(schematest.Dir(t), "schemas")
	tried := 0
	require.NoError(t, filepath.WalkDir(dir, func(path string, e fs.DirEntry, err error) error {
		if err != nil || e.IsDir() || !strings.HasSuffix(path, ".schema.json") {
			return err
		}
		raw, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		schema, err := compile(raw)
		if err != nil || conditional.Match(raw) { // refers to its neighbors, or is conditional
			return nil
		}
		tried++
		res, err := sample.New(0).Call(t.Context(), ask(refundMail, string(raw)), nil)
		require.NoError(t, err, path)
		requireValid(t, schema, filepath.Base(path), res.Text)
		return nil
	}))
	require.GreaterOrEqual(t, tried, 8, "published schemas that stand alone")
}

// A schema comes from a workflow's author: whatever it is, the answer is JSON or
// a typed error, and comes soon.
func FuzzCall(f *testing.F) {
	for _, seed := range []string{
		`true`, `{"type":"object","properties":{"a":{"type":"string"}}}`, `{"$ref":"#"}`,
		`{"enum":[1,"a",null]}`, `{"anyOf":[{"type":"null"},{"$ref":"#/$defs/a"}],"$defs":{"a":{}}}`,
		`{"type":"string","pattern":"((a*)*)*b{3}","minLength":3}`,
		`{"type":"integer","minimum":1e308,"multipleOf":3}`,
		`{"type":"array","minItems":9,"uniqueItems":true}`,
	} {
		f.Add(seed, refundMail)
	}
	f.Fuzz(func(t *testing.T, schema, input string) {
		res, err := sample.New(0).Call(t.Context(), ask(input, schema), nil)
		if err != nil {
			_, ok := provider.As(err)
			require.True(t, ok, "%v", err)
			return
		}
		if schema != "" {
			require.True(t, json.Valid([]byte(res.Text)), "%s", res.Text)
		}
	})
}
