package projection_test

import (
	"cmp"
	"encoding/json"
	"fmt"
	"runtime"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"waybill.dev/waybill/internal/projection"
	"waybill.dev/waybill/protocol/schema"
)

// in wraps the schema of one required member into a whole one.
func in(member string) string {
	return `{"type":"object","properties":{"m":` + member + `},"required":["m"],"additionalProperties":false}`
}

// of returns the projected schema of that member.
func of(t *testing.T, v projection.Vendor, member string) string {
	t.Helper()
	var doc struct {
		Properties struct{ M json.RawMessage }
	}
	require.NoError(t, json.Unmarshal(project(t, in(member), v).Schema(), &doc))
	return string(doc.Properties.M)
}

// One row for each of the table of the subset (OpenWOP envelope contract §20). want is for
// vendors with the common keywords only; others are given where they differ.
func TestCompile_WritesEachFeatureInTheVendorsKeywords(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct{ source, want, openAI, anthropic, gemini string }{
		"a plain member": {
			source: `{"type":"string","description":"d"}`,
			want:   `{"type":"string","description":"d"}`,
		},
		"annotations are dropped": {
			source: `{"type":"string","title":"t","default":"x","examples":["x"],"$comment":"c","deprecated":true,"x-a":1}`,
			want:   `{"type":"string"}`,
		},
		"lengths": {
			source: `{"type":"string","minLength":1,"maxLength":20,"description":"A name."}`,
			want:   `{"type":"string","description":"A name. At least 1 character. At most 20 characters."}`,
			gemini: `{"type":"string","description":"A name.","minLength":1,"maxLength":20}`,
		},
		"pattern and format": {
			source:    `{"type":"string","pattern":"^a","format":"uri"}`,
			want:      `{"type":"string","description":"Matches the regular expression ^a. In the format uri."}`,
			openAI:    `{"type":"string","description":"In the format uri.","pattern":"^a"}`,
			anthropic: `{"type":"string","description":"Matches the regular expression ^a.","format":"uri"}`,
			gemini:    `{"type":"string","pattern":"^a","format":"uri"}`,
		},
		"bounds of numbers": {
			source: `{"type":"integer","minimum":1,"maximum":6,"multipleOf":2}`,
			want:   `{"type":"integer","description":"At least 1. At most 6. A multiple of 2."}`,
			openAI: `{"type":"integer","minimum":1,"maximum":6,"multipleOf":2}`,
			gemini: `{"type":"integer","minimum":1,"maximum":6,"multipleOf":2}`,
		},
		"exclusive bounds": {
			source: `{"type":"number","exclusiveMinimum":0,"exclusiveMaximum":1e3}`,
			want:   `{"type":"number","description":"More than 0. Less than 1e3."}`,
			openAI: `{"type":"number","exclusiveMinimum":0,"exclusiveMaximum":1e3}`,
		},
		"bounds of arrays": {
			source:    `{"type":"array","minItems":1,"maxItems":3,"uniqueItems":true,"items":{"type":"string"}}`,
			want:      `{"type":"array","description":"At least 1 item. At most 3 items. No item twice.","items":{"type":"string"}}`,
			openAI:    `{"type":"array","description":"No item twice.","minItems":1,"maxItems":3,"items":{"type":"string"}}`,
			anthropic: `{"type":"array","description":"At most 3 items. No item twice.","minItems":1,"items":{"type":"string"}}`,
			gemini:    `{"type":"array","description":"No item twice.","minItems":1,"maxItems":3,"items":{"type":"string"}}`,
		},
		"bounds that say nothing": {
			source: `{"type":"array","uniqueItems":false,"items":{"type":"string"}}`,
			want:   `{"type":"array","items":{"type":"string"}}`,
		},
		"contains": {
			source: `{"type":"array","items":{"type":"integer"},"contains":{"const":1}}`,
			want:   `{"type":"array","description":"Some items satisfy this JSON Schema: {\"const\":1}","items":{"type":"integer"}}`,
		},
		"const":                 {source: `{"const":true}`, want: `{"type":"boolean","enum":[true]}`},
		"const of a type":       {source: `{"type":"string","const":"a"}`, want: `{"type":"string","enum":["a"]}`},
		"enum":                  {source: `{"enum":["a","b"]}`, want: `{"type":"string","enum":["a","b"]}`},
		"enum of integers":      {source: `{"enum":[1,2]}`, want: `{"type":"integer","enum":[1,2]}`},
		"enum with null":        {source: `{"enum":["a",null]}`, want: `{"type":["string","null"],"enum":["a",null]}`},
		"enum of its type only": {source: `{"type":"string","enum":["a",1]}`, want: `{"type":"string","enum":["a"]}`},
		"enum of several types": {
			source: `{"enum":["a",1,2.5]}`,
			want:   `{"anyOf":[{"type":"string","enum":["a"]},{"type":"number","enum":[1,2.5]}]}`,
		},
		"enum of objects": {
			source: `{"enum":[{"a":1}]}`,
			want:   `{"type":"string","description":"A JSON object, written as JSON text. It satisfies this JSON Schema: {\"enum\":[{\"a\":1}]}"}`,
		},
		"null":     {source: `{"type":"null"}`, want: `{"type":"null"}`},
		"nullable": {source: `{"type":["string","null"]}`, want: `{"type":["string","null"]}`},
		"several types": {
			source: `{"type":["string","integer","null"],"minLength":2}`,
			want:   `{"anyOf":[{"type":"string","description":"At least 2 characters."},{"type":"integer"},{"type":"null"}]}`,
			gemini: `{"anyOf":[{"type":"string","minLength":2},{"type":"integer"},{"type":"null"}]}`,
		},
		"a type read off the keywords": {
			source: `{"minimum":1}`,
			want:   `{"type":"number","description":"At least 1."}`,
			openAI: `{"type":"number","minimum":1}`,
			gemini: `{"type":"number","minimum":1}`,
		},
		"anything": {source: `true`, want: `{"type":"string","description":"Any JSON value, written as JSON text."}`},
		"an open object": {
			source: `{"type":"object"}`,
			want:   `{"type":"string","description":"A JSON object, written as JSON text."}`,
		},
		"an open object that may be null": {
			source: `{"type":["object","null"],"additionalProperties":true}`,
			want:   `{"type":["string","null"],"description":"A JSON object, written as JSON text. It satisfies this JSON Schema: {\"type\":[\"object\",\"null\"],\"additionalProperties\":true}"}`,
		},
		"a closed object without members": {
			source: `{"type":"object","additionalProperties":false}`,
			want:   `{"type":"object","properties":{},"required":[],"additionalProperties":false}`,
			gemini: `{"type":"object","properties":{},"required":[],"additionalProperties":false,"propertyOrdering":[]}`,
		},
		"a tuple": {
			source: `{"type":"array","prefixItems":[{"type":"string"},{"type":"integer"}],"items":false}`,
			want:   `{"type":"string","description":"A JSON array, written as JSON text. It satisfies this JSON Schema: {\"type\":\"array\",\"prefixItems\":[{\"type\":\"string\"},{\"type\":\"integer\"}],\"items\":false}"}`,
			gemini: `{"type":"array","description":"No further items.","prefixItems":[{"type":"string"},{"type":"integer"}]}`,
		},
		"an empty array": {
			source: `{"type":"array","items":false}`,
			want:   `{"type":"array","description":"No items.","items":{"type":"null"}}`,
		},
		"allOf": {
			source: `{"allOf":[{"type":"object","properties":{"a":{"type":"number"}},"required":["a"]},{"properties":{"a":{"type":"integer"}}}]}`,
			want:   `{"type":"object","properties":{"a":{"type":"integer"}},"required":["a"],"additionalProperties":false}`,
			gemini: `{"type":"object","properties":{"a":{"type":"integer"}},"required":["a"],"additionalProperties":false,"propertyOrdering":["a"]}`,
		},
		"allOf of one": {source: `{"allOf":[{"type":"string"}]}`, want: `{"type":"string"}`},
		"oneOf": {
			source: `{"oneOf":[{"type":"string"},{"type":"integer"}]}`,
			want:   `{"anyOf":[{"type":"string"},{"type":"integer"}]}`,
		},
		"a union that answers would not tell apart": {
			source: `{"anyOf":[{"type":"string"},{"type":"object"}]}`,
			want:   `{"type":"string","description":"A JSON value, written as JSON text."}`,
		},
		"a pattern with lookahead": {
			source: `{"type":"string","pattern":"^(?!x)a"}`,
			want:   `{"type":"string","description":"Matches the regular expression ^(?!x)a."}`,
		},
		"a union without a tag": {
			source:    `{"anyOf":[{"type":"object","properties":{"id":{"type":"string"},"a":{"type":"string"}},"required":["id","a"]},{"type":"object","properties":{"id":{"type":"string"},"b":{"type":"string"}},"required":["id","b"]}]}`,
			want:      `{"anyOf":[{"type":"object","properties":{"a":{"type":"string"},"id":{"type":"string"}},"required":["a","id"],"additionalProperties":false},{"type":"object","properties":{"id":{"type":"string"},"b":{"type":"string"}},"required":["id","b"],"additionalProperties":false}]}`,
			anthropic: `{"anyOf":[{"type":"object","properties":{"id":{"type":"string"},"a":{"type":"string"}},"required":["id","a"],"additionalProperties":false},{"type":"object","properties":{"id":{"type":"string"},"b":{"type":"string"}},"required":["id","b"],"additionalProperties":false}]}`,
			gemini:    `{"anyOf":[{"type":"object","properties":{"id":{"type":"string"},"a":{"type":"string"}},"required":["id","a"],"additionalProperties":false,"propertyOrdering":["id","a"]},{"type":"object","properties":{"id":{"type":"string"},"b":{"type":"string"}},"required":["id","b"],"additionalProperties":false,"propertyOrdering":["id","b"]}]}`,
		},
		"a union of alike objects": {
			source: `{"anyOf":[{"type":"object","properties":{"a":{"type":"string"}}},{"type":"object","properties":{"a":{"type":"string"}}}]}`,
			want:   `{"type":"string","description":"A JSON value, written as JSON text."}`,
		},
		"nullable of OpenAPI": {source: `{"type":"string","nullable":true}`, want: `{"type":["string","null"]}`},
		"a union of one and null": {
			source: `{"anyOf":[{"type":"integer"},{"type":"null"}]}`,
			want:   `{"type":["integer","null"]}`,
		},
		"one of several members": {
			source: `{"type":"object","properties":{"a":{"type":"null"}},"anyOf":[{"required":["a"]},{"required":["b","c"]}]}`,
			want:   `{"type":"object","description":"At least one of these is given: a; b and c.","properties":{"a":{"type":"null"}},"required":["a"],"additionalProperties":false}`,
			gemini: `{"type":"object","description":"At least one of these is given: a; b and c.","properties":{"a":{"type":"null"}},"required":["a"],"additionalProperties":false,"propertyOrdering":["a"]}`,
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			for v, want := range map[projection.Vendor]string{
				projection.Azure: tc.want, projection.OpenAI: tc.openAI, projection.Anthropic: tc.anthropic, projection.Gemini: tc.gemini,
			} {
				require.Equal(t, cmp.Or(want, tc.want), of(t, v, tc.source), v)
			}
		})
	}
}

func TestCompile_ProjectsWholeSchemas(t *testing.T) {
	t.Parallel()
	closed := func(properties, required string) string {
		return `{"type":"object","properties":{` + properties + `},"required":[` + required + `],"additionalProperties":false}`
	}
	for name, tc := range map[string]struct{ source, want string }{
		"reasoning comes first, the rest as it was": {
			source: `{"$schema":"https://json-schema.org/draft/2020-12/schema","$id":"https://x.example/s","type":"object","properties":{"b":{"type":"string"},"a":{"type":"string"},"reasoning":{"type":"string"}},"required":["a"]}`,
			want:   closed(`"reasoning":{"type":["string","null"]},"b":{"type":["string","null"]},"a":{"type":"string"}`, `"reasoning","b","a"`),
		},
		"the author's order": {
			source: `{"type":"object","propertyOrdering":["a"],"properties":{"b":{"type":"null"},"a":{"type":"string"}},"required":["a","b"]}`,
			want:   closed(`"a":{"type":"string"},"b":{"type":"null"}`, `"a","b"`),
		},
		"optional members": {
			source: `{"type":"object","properties":{"e":{"enum":["x"]},"o":{"type":"object","additionalProperties":false},"l":{"type":"array","items":{"type":"string"}},"u":{"anyOf":[{"type":"string"},{"type":"boolean"}]},"n":false}}`,
			want: closed(`"e":{"type":["string","null"],"enum":["x",null]},"o":{"type":["object","null"],"properties":{},"required":[],"additionalProperties":false},`+
				`"l":{"type":["array","null"],"items":{"type":"string"}},"u":{"anyOf":[{"type":"string"},{"type":"boolean"},{"type":"null"}]}`, `"e","o","l","u"`),
		},
		"references stay": {
			source: `{"type":"object","properties":{"a":{"$ref":"#/$defs/p"},"b":{"$ref":"#/$defs/p","description":"d"},"c":{"$ref":"#p"}},"required":["a","b"],"$defs":{"p":{"$anchor":"p","type":"string"},"unused":{}}}`,
			want: strings.TrimSuffix(closed(`"a":{"$ref":"#/$defs/p"},"b":{"anyOf":[{"$ref":"#/$defs/p"}],"description":"d"},"c":{"anyOf":[{"$ref":"#/$defs/p"},{"type":"null"}]}`, `"a","b","c"`), `}`) +
				`,"$defs":{"p":{"type":"string"}}}`,
		},
		"tagged objects that may be absent stand apart": {
			source: `{"type":"object","properties":{"u":{"oneOf":[{"type":"object","properties":{"k":{"const":"a"}},"required":["k"]},{"type":"object","properties":{"k":{"const":"b"}},"required":["k"]}]}}}`,
			want:   closed(`"u":{"anyOf":[{"anyOf":[`+closed(`"k":{"type":"string","enum":["a"]}`, `"k"`)+`,`+closed(`"k":{"type":"string","enum":["b"]}`, `"k"`)+`]},{"type":"null"}]}`, `"u"`),
		},
		"an array at the root": {
			source: `{"type":"array","items":{"type":"string"}}`,
			want:   closed(`"value":{"type":"array","items":{"type":"string"}}`, `"value"`),
		},
		"an object that may be null at the root": {
			source: `{"type":["object","null"],"properties":{"a":{"type":"null"}},"required":["a"]}`,
			want:   closed(`"value":{"type":["object","null"],"properties":{"a":{"type":"null"}},"required":["a"],"additionalProperties":false}`, `"value"`),
		},
		"members with a schema but no names": {
			source: `{"type":"object","properties":{"otherMembers":{"type":"null"}},"required":["otherMembers"],"additionalProperties":{"type":"integer"}}`,
			want: closed(`"otherMembers":{"type":"null"},"otherMembers_":{"type":["array","null"],"description":"Members besides those named here; null if there are none. An object, written as a list of its members; each key once.",`+
				`"items":`+closed(`"key":{"type":"string"},"value":{"type":"integer"}`, `"key","value"`)+`}`, `"otherMembers","otherMembers_"`),
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			require.Equal(t, tc.want, string(project(t, tc.source, projection.OpenAI).Schema()))
			require.Equal(t, tc.want, string(project(t, tc.source, projection.Anthropic).Schema()))
		})
	}
}

func TestCompile_OrdersPropertiesForGemini(t *testing.T) {
	t.Parallel()
	p := project(t, `{"type":"object","properties":{"a":{"type":"string"},"reasoning":{"type":"string"}}}`, projection.Gemini)
	require.True(t, strings.HasSuffix(string(p.Schema()), `"propertyOrdering":["reasoning","a"]}`), string(p.Schema()))
}

func TestCompile_KeepsRecursionWhereTheVendorTakesIt(t *testing.T) {
	t.Parallel()
	source := `{"type":"object","properties":{"name":{"type":"string"},"parts":{"type":"array","items":{"$ref":"#"}}},"required":["name"],"additionalProperties":false}`
	for _, v := range []projection.Vendor{projection.OpenAI, projection.Gemini} {
		roundTrip(t, project(t, source, v), `{"name":"a","parts":[{"name":"b"},{"name":"c","parts":[]}]}`)
	}
	_, problems := projection.Compile(json.RawMessage(source), projection.Anthropic)
	require.Equal(t, []projection.Problem{{
		Vendor:  projection.Anthropic,
		Path:    "/properties/parts/items",
		Rule:    schema.RuleRecursiveRef,
		Message: "the reference leads back to itself; unroll the recursion",
	}}, problems)
}

func TestCompile_ReportsWhatCannotBeExpressed(t *testing.T) {
	t.Parallel()
	object := `{"type":"object","properties":{"x":{"type":"string"}}}`
	for name, tc := range map[string]struct {
		source, path, rule, message string
	}{
		"not a schema": {
			source:  `{"type":7}`,
			path:    "/type",
			rule:    schema.RuleNotSchema,
			message: "not a JSON Schema",
		},
		"not JSON": {source: `{`, rule: schema.RuleNotSchema, message: "want"},
		"not": {
			source:  in(`{"not":{}}`),
			path:    "/properties/m/not",
			rule:    schema.RuleForbiddenKeyword,
			message: "list what is allowed",
		},
		"if": {
			source:  `{"type":"object","if":{}}`,
			path:    "/if",
			rule:    schema.RuleForbiddenKeyword,
			message: "one branch per case",
		},
		"a dynamic reference": {
			source:  `{"$dynamicAnchor":"a","$dynamicRef":"#a"}`,
			path:    "/$dynamicRef",
			rule:    projection.RuleReference,
			message: "use $ref",
		},
		"the dialect": {
			source:  in(`{"$ref":"https://json-schema.org/draft/2020-12/schema"}`),
			path:    "/properties/m/$ref",
			rule:    projection.RuleReference,
			message: "#/$defs/name",
		},
		"references in a ring": {
			source:  `{"$ref":"#/$defs/a","$defs":{"a":{"$ref":"#/$defs/b"},"b":{"$ref":"#/$defs/a"}}}`,
			path:    "/$defs/a",
			rule:    projection.RuleReference,
			message: "circle",
		},
		"a union of itself": {
			source:  `{"$ref":"#/$defs/a","$defs":{"a":{"anyOf":[{"type":"string"},{"$ref":"#/$defs/a"}]}}}`,
			path:    "/$defs/a",
			rule:    projection.RuleReference,
			message: "branch of itself",
		},
		"nothing fits": {source: in(`false`), rule: projection.RuleNothingFits, message: "allow one"},
		"types that exclude": {
			source:  in(`{"allOf":[{"type":"string"},{"type":"integer"}]}`),
			rule:    projection.RuleNothingFits,
			message: "allow one",
		},
		"unions that hold together": {
			source:  in(`{"anyOf":[{"type":"string"}],"allOf":[{"anyOf":[{"type":"integer"}]}]}`),
			path:    "/properties/m",
			rule:    projection.RuleAllOf,
			message: "write them as one",
		},
		"patterns in a part of allOf": {
			source:  `{"allOf":[` + object + `,{"patternProperties":{"x":true}}]}`,
			rule:    projection.RuleAllOf,
			message: "write the object out",
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			for _, v := range projection.Vendors() {
				p, problems := projection.Compile(json.RawMessage(tc.source), v)
				require.Nil(t, p)
				require.Len(t, problems, 1, problems)
				got := problems[0]
				require.Equal(t, []any{v, tc.path, tc.rule}, []any{got.Vendor, got.Path, got.Rule}, got.String())
				require.Contains(t, got.Message, tc.message)
			}
		})
	}
}

func TestCompile_BoundsWhatASchemaUnfoldsTo(t *testing.T) {
	t.Parallel()
	defs := []string{`"d0":{"type":"object","properties":{"a":{"type":"string"}}}`}
	for i := 1; i < 40; i++ {
		defs = append(defs, fmt.Sprintf(`"d%d":{"anyOf":[{"allOf":[{"$ref":"#/$defs/d%d"},{"minProperties":%d}]},{"allOf":[{"$ref":"#/$defs/d%d"},{"maxProperties":%d}]}]}`, i, i-1, i, i-1, i))
	}
	values := make([]string, 3_000)
	for i := range values {
		values[i] = fmt.Sprintf(`"v%d"`, i)
	}
	enum := `{"enum":[` + strings.Join(values, ",") + `]}`
	branches := make([]string, 450)
	for i := range branches {
		branches[i] = fmt.Sprintf(`{"properties":{"k":{"type":"string","enum":["%d"]}},"required":["k"]}`, i)
	}
	for name, source := range map[string]string{
		"unions in unions":  `{"$ref":"#/$defs/d39","$defs":{` + strings.Join(defs, ",") + `}}`,
		"a list in a union": in(`{"type":"object","properties":{"a":` + enum + `},"anyOf":[` + strings.Join(branches, ",") + `]}`),
		"text in a union":   in(`{"type":"object","properties":{"a":{"type":"string","description":"` + strings.Repeat("x", 20_000) + `"}},"anyOf":[` + strings.Join(branches, ",") + `]}`),
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			require.Less(t, len(source), 64<<10, "it is not its own size")
			_, problems := projection.Compile(json.RawMessage(source), projection.Gemini)
			require.NotEmpty(t, problems)
			require.Equal(t, projection.RuleTooLarge, problems[0].Rule, problems[0])
			require.Less(t, len(problems), 4)
		})
	}
}

// Whatever a schema unfolds to, it takes little, or is refused before it takes much.
func TestCompile_TakesLittle(t *testing.T) {
	many := func(n int, item func(i int) string) string {
		items := make([]string, n)
		for i := range items {
			items[i] = item(i)
		}
		return strings.Join(items, ",")
	}
	same := func(s string) func(int) string { return func(int) string { return s } }
	// within is a union of k times the next definition, n times over.
	within := func(n, k int, beside string) string {
		return `{"$ref":"#/$defs/d0","$defs":{` + many(n, func(i int) string {
			return fmt.Sprintf(`"d%d":{%s"anyOf":[%s]}`, i, beside, many(k, same(fmt.Sprintf(`{"$ref":"#/$defs/d%d"}`, i+1))))
		}) + fmt.Sprintf(`,"d%d":{"type":"object","properties":{"a":{"type":["string","null"]}},"required":["a"],"additionalProperties":false}}}`, n)
	}
	enum := func(n int, format string) string {
		return `{"enum":[` + many(n, func(i int) string { return fmt.Sprintf(format, i+1) }) + `]}`
	}
	// both are two definitions that hold together in each of n members.
	both := func(n int, e, f string) string {
		return `{"type":"object","properties":{` + many(n, func(i int) string {
			return fmt.Sprintf(`"p%d":{"allOf":[{"$ref":"#/$defs/e"},{"$ref":"#/$defs/f"}]}`, i)
		}) +
			`},"$defs":{"e":` + e + `,"f":` + f + `}}`
	}
	keys := func(n, first, step int) string {
		return `{"x":{` + many(n, func(i int) string { return fmt.Sprintf(`"k%d":0`, first+i*step) }) + `}}`
	}
	members := func(n int, s string) string {
		return `{"type":"object","properties":{` + many(n, func(i int) string { return fmt.Sprintf(`"p%d":%s`, i, s) }) + `}}`
	}
	long := strings.Repeat("x", 20_000)
	for name, source := range map[string]string{
		"objects compared at many places":     both(200, `{"const":`+keys(1_500, 0, 1)+`}`, `{"const":`+keys(1_500, 1_499, -1)+`}`),
		"an object and a list of it":          `{"const":` + keys(2_000, 0, 1) + `,"enum":[` + keys(2_000, 1_999, -1) + `]}`,
		"long values compared at many places": both(200, `{"enum":["`+long+`"]}`, `{"enum":["`+long+`"]}`),
		"long values, deeper":                 both(170, `{"enum":[[{"a":"`+long+`"}]]}`, `{"enum":[[{"a":"`+long+`"}]]}`),
		"unknown words":                       both(150, `{"type":"object",`+many(600, func(i int) string { return fmt.Sprintf(`"x%d":0`, i) })+`}`, `{"type":"object",`+many(600, func(i int) string { return fmt.Sprintf(`"y%d":0`, i) })+`}`),
		"members of four types each":          members(540, `{"type":["string","integer","boolean","null"]}`),
		"members of many keywords":            members(480, `{"type":"string","pattern":"a","minLength":1,"maxLength":3}`),
		"unions of two unions":                within(60, 2, ``),
		"unions of 26 unions":                 within(8, 26, ``),
		"unions of two unions, with members":  within(60, 2, `"properties":{"z":{"type":"string"}},`),
		"types side by side":                  `{"allOf":[` + many(60, same(`{"type":["number","integer"]}`)) + `]}`,
		"all types side by side":              `{"allOf":[` + many(600, same(`{"type":["null","boolean","object","array","number","integer","string"]}`)) + `]}`,
		"numbers side by side":                `{"allOf":[` + enum(2_000, "%d") + `,` + enum(2_000, "%d") + `]}`,
		"large numbers side by side":          `{"allOf":[` + enum(2_000, "%de300") + `,` + enum(2_000, "%de300") + `]}`,
		"powers side by side":                 `{"allOf":[` + enum(2_000, "1e%d") + `,` + enum(2_000, "1e%d") + `]}`,
		"bounds side by side":                 `{"allOf":[{"type":"string"},` + many(660, same(`{"minLength":1}`)) + `]}`,
		"bounds and a union":                  `{"type":"string","allOf":[` + many(330, same(`{"minLength":1}`)) + `],"anyOf":[` + many(330, same(`{"pattern":"a"}`)) + `]}`,
		"required and a union": `{"type":"object","additionalProperties":false,"required":[` + many(560, func(i int) string { return fmt.Sprintf(`"m%d"`, i) }) +
			`],"anyOf":[` + many(560, same(`{"minProperties":1}`)) + `]}`,
		"a list and a union": `{"enum":[` + many(620, func(i int) string { return fmt.Sprintf(`"v%d"`, i) }) + `],"anyOf":[` + many(620, same(`{"minLength":1}`)) + `]}`,
		"a union that many refer to": `{"type":"object","properties":{` + many(190, func(i int) string { return fmt.Sprintf(`"p%d":{"anyOf":[{"$ref":"#/$defs/u"}]}`, i) }) +
			`},"$defs":{"u":{"anyOf":[` + many(380, func(i int) string { return fmt.Sprintf(`{"type":"string","minLength":%d}`, i) }) + `]}}}`,
	} {
		t.Run(name, func(t *testing.T) {
			for _, v := range measured() {
				var before, after runtime.MemStats
				runtime.ReadMemStats(&before)
				p, problems := projection.Compile(json.RawMessage(source), v)
				runtime.ReadMemStats(&after)
				require.Less(t, after.TotalAlloc-before.TotalAlloc, uint64(16<<20), "%s, %d bytes", v, len(source))
				if p == nil {
					require.NotEmpty(t, problems)
				}
			}
		})
	}
}

func TestCompile_TakesAListThatManyPlacesReferTo(t *testing.T) {
	t.Parallel()
	var members, values []string
	for i := range 60 {
		members = append(members, fmt.Sprintf(`"p%d":{"$ref":"#/$defs/c","type":"string"}`, i))
	}
	for i := range 250 {
		values = append(values, fmt.Sprintf(`"v%d"`, i))
	}
	_, problems := projection.Compile(json.RawMessage(`{"type":"object","properties":{`+strings.Join(members, ",")+`},"$defs":{"c":{"enum":[`+strings.Join(values, ",")+`]}}}`), projection.Gemini)
	require.Empty(t, problems)
}

func TestCompile_LooksAtNoSchemaThatIsTooLarge(t *testing.T) {
	t.Parallel()
	source := json.RawMessage(in(`{"type":"string","description":"` + strings.Repeat("x", 64<<10) + `"}`))
	_, problems := projection.Compile(source, projection.OpenAI)
	require.Len(t, problems, 1)
	require.Equal(t, projection.RuleTooLarge, problems[0].Rule)
	require.Contains(t, problems[0].Message, "65536 bytes")
}

func TestCompile_LooksAtNoSchemaOfTooManyParts(t *testing.T) {
	t.Parallel()
	var members []string
	for i := range 1_000 {
		members = append(members, fmt.Sprintf(`"p%d":{"type":"string"}`, i))
	}
	_, problems := projection.Compile(json.RawMessage(`{"type":"object","properties":{`+strings.Join(members, ",")+`}}`), projection.Gemini)
	require.Len(t, problems, 1)
	require.Equal(t, projection.RuleTooLarge, problems[0].Rule)
	require.Contains(t, problems[0].Message, "it may weigh 11000")
}

func TestCompile_RejectsAnUnknownVendor(t *testing.T) {
	t.Parallel()
	_, problems := projection.Compile(json.RawMessage(`{}`), "acme")
	require.Equal(t, projection.RuleVendor, problems[0].Rule)
	require.Equal(t, projection.RuleVendor, projection.LintFor("acme", []byte(`{}`))[0].Rule)
	_, ok := projection.DialectOf("acme")
	require.False(t, ok)
}
