package schema_test

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"waybill.dev/waybill/protocol/schema"
)

func TestValidate_NamesPlaceKeywordAndWhatWouldBeRight(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		schema, doc                string
		path, at, keyword, message string
	}{
		"type": {
			schema:  `{"type":"object"}`,
			doc:     `[]`,
			path:    "",
			at:      "/type",
			keyword: "type",
			message: "want type object",
		},
		"types": {
			schema:  `{"type":["string","null"]}`,
			doc:     `1`,
			path:    "",
			at:      "/type",
			keyword: "type",
			message: "want type null or string",
		},
		"enum": {
			schema:  `{"enum":["a",1,null]}`,
			doc:     `"x"`,
			path:    "",
			at:      "/enum",
			keyword: "enum",
			message: `not one of the allowed values: "a", 1, null`,
		},
		"const": {
			schema:  `{"const":"static"}`,
			doc:     `"x"`,
			path:    "",
			at:      "/const",
			keyword: "const",
			message: `not the required value: "static"`,
		},
		"required": {
			schema:  `{"required":["steps"]}`,
			doc:     `{}`,
			path:    "",
			at:      "/required",
			keyword: "required",
			message: "required member missing: steps",
		},
		"additional": {
			schema:  `{"properties":{"b":{},"a":{}},"additionalProperties":false}`,
			doc:     `{"evil":1}`,
			path:    "/evil",
			at:      "/additionalProperties",
			keyword: "additionalProperties",
			message: "additional member not allowed; allowed: a, b",
		},
		"unevaluated": {
			schema:  `{"properties":{"a":{}},"unevaluatedProperties":false}`,
			doc:     `{"evil":1}`,
			path:    "/evil",
			at:      "/unevaluatedProperties",
			keyword: "unevaluatedProperties",
			message: "additional member not allowed; allowed: a",
		},
		"property names": {
			schema:  `{"propertyNames":{"maxLength":2}}`,
			doc:     `{"evil":1}`,
			path:    "/evil",
			at:      "/propertyNames",
			keyword: "propertyNames",
			message: "member name not allowed: want at most 2 characters",
		},
		"dependent": {
			schema:  `{"dependentRequired":{"a":["b"]}}`,
			doc:     `{"a":1}`,
			path:    "",
			at:      "/dependentRequired/a",
			keyword: "dependentRequired",
			message: "with member a also required: b",
		},
		"min members": {
			schema:  `{"minProperties":2}`,
			doc:     `{"a":1}`,
			path:    "",
			at:      "/minProperties",
			keyword: "minProperties",
			message: "want at least 2 members",
		},
		"max members": {
			schema:  `{"maxProperties":0}`,
			doc:     `{"a":1}`,
			path:    "",
			at:      "/maxProperties",
			keyword: "maxProperties",
			message: "want at most 0 members",
		},
		"min length": {
			schema:  `{"minLength":3}`,
			doc:     `"é€"`,
			path:    "",
			at:      "/minLength",
			keyword: "minLength",
			message: "want at least 3 characters",
		},
		"max length": {
			schema:  `{"maxLength":1}`,
			doc:     `"é€"`,
			path:    "",
			at:      "/maxLength",
			keyword: "maxLength",
			message: "want at most 1 characters",
		},
		"pattern": {
			schema:  `{"pattern":"^a+$"}`,
			doc:     `"b"`,
			path:    "",
			at:      "/pattern",
			keyword: "pattern",
			message: "want text that matches ^a+$",
		},
		"format": {
			schema:  `{"format":"date-time"}`,
			doc:     `"2026-02-30T00:00:00Z"`,
			path:    "",
			at:      "/format",
			keyword: "format",
			message: "want a date-time",
		},
		"minimum": {
			schema:  `{"minimum":1}`,
			doc:     `0`,
			path:    "",
			at:      "/minimum",
			keyword: "minimum",
			message: "want a number of at least 1",
		},
		"maximum": {
			schema:  `{"maximum":9007199254740993}`,
			doc:     `9007199254740994`,
			path:    "",
			at:      "/maximum",
			keyword: "maximum",
			message: "want a number of at most 9007199254740993",
		},
		"above": {
			schema:  `{"exclusiveMinimum":0.5}`,
			doc:     `0.5`,
			path:    "",
			at:      "/exclusiveMinimum",
			keyword: "exclusiveMinimum",
			message: "want a number above 0.5",
		},
		"below": {
			schema:  `{"exclusiveMaximum":1e30}`,
			doc:     `1e30`,
			path:    "",
			at:      "/exclusiveMaximum",
			keyword: "exclusiveMaximum",
			message: "want a number below 1e+30",
		},
		"multiple": {
			schema:  `{"multipleOf":0.01}`,
			doc:     `0.015`,
			path:    "",
			at:      "/multipleOf",
			keyword: "multipleOf",
			message: "want a multiple of 0.01",
		},
		"min items": {
			schema:  `{"minItems":1}`,
			doc:     `[]`,
			path:    "",
			at:      "/minItems",
			keyword: "minItems",
			message: "want at least 1 items",
		},
		"max items": {
			schema:  `{"maxItems":1}`,
			doc:     `[1,2]`,
			path:    "",
			at:      "/maxItems",
			keyword: "maxItems",
			message: "want at most 1 items",
		},
		"unique": {
			schema:  `{"uniqueItems":true}`,
			doc:     `[1,1.0]`,
			path:    "",
			at:      "/uniqueItems",
			keyword: "uniqueItems",
			message: "want items that differ from each other",
		},
		"max contains": {
			schema:  `{"contains":{"type":"string"},"maxContains":1}`,
			doc:     `["a","b"]`,
			path:    "",
			at:      "/maxContains",
			keyword: "maxContains",
			message: "want at most 1 items of the kind the schema describes",
		},
		"contains": {
			schema:  `{"contains":{"const":1}}`,
			doc:     `[]`,
			path:    "",
			at:      "/contains",
			keyword: "contains",
			message: "want at least one item of the kind the schema describes",
		},
		"not": {
			schema:  `{"not":{}}`,
			doc:     `1`,
			path:    "",
			at:      "",
			keyword: "false",
			message: "matches what the schema forbids here",
		},
		"false": {
			schema:  `{"properties":{"a":false}}`,
			doc:     `{"a":1}`,
			path:    "/a",
			at:      "/properties/a",
			keyword: "false",
			message: "nothing is allowed here",
		},
		"one of both": {
			schema:  `{"oneOf":[{},true]}`,
			doc:     `1`,
			path:    "",
			at:      "/oneOf",
			keyword: "oneOf",
			message: "fits more than one of the alternatives; must fit exactly one",
		},
		"through ref": {
			schema:  `{"$defs":{"x":{"type":"string"}},"properties":{"a/b":{"$ref":"#/$defs/x"}}}`,
			doc:     `{"a/b":1}`,
			path:    "/a~1b",
			at:      "/$defs/x/type",
			keyword: "type",
			message: "want type string",
		},
		"not JSON": {
			schema:  `true`,
			doc:     `{"a":}`,
			path:    "/a",
			at:      "",
			keyword: schema.KeywordJSON,
			message: "want a JSON value here",
		},
		"duplicate": {
			schema:  `true`,
			doc:     `{"a":1,"a":2}`,
			path:    "/a",
			at:      "",
			keyword: schema.KeywordJSON,
			message: "the object has two members of this name; keep one",
		},
		"endless self": {
			schema:  `{"$ref":"#"}`,
			doc:     `1`,
			path:    "",
			at:      "/$ref",
			keyword: "$ref",
			message: "",
		},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			vs := compile(t, tc.schema).Validate([]byte(tc.doc))
			require.Len(t, vs, 1)
			if name == "endless self" {
				require.Contains(t, vs[0].Message, "without end")
				return
			}
			require.Equal(t, schema.Violation{InstancePath: tc.path, SchemaPath: tc.at, Keyword: tc.keyword, Message: tc.message}, vs[0])
		})
	}
}

func TestValidate_AcceptsNumbersLosslessly(t *testing.T) {
	t.Parallel()
	integer := compile(t, `{"type":"integer"}`)
	for _, doc := range []string{`1`, `1.0`, `1e3`, `-0`, `12345678901234567890123`, `1e400`} {
		require.Empty(t, integer.Validate([]byte(doc)), doc)
	}
	for _, doc := range []string{`1.5`, `1e-1`, `12345678901234567890123.5`} {
		require.Len(t, integer.Validate([]byte(doc)), 1, doc)
	}
	exact := compile(t, `{"const":9007199254740993}`)
	require.Empty(t, exact.Validate([]byte(`9007199254740993`)))
	require.Len(t, exact.Validate([]byte(`9007199254740992`)), 1)
}

func TestValidate_RefusesNumbersThatWouldExhaustMemory(t *testing.T) {
	t.Parallel()
	s := compile(t, `{"items":{"type":"integer","minimum":0}}`)
	for _, n := range []string{`1e401`, `1E+999999999`, `1e-999999999`, `1e99999999999999999999`, strings.Repeat("9", 401), "0." + strings.Repeat("0", 400) + "1"} {
		vs := s.Validate([]byte(`[0,` + n + `]`))
		require.Len(t, vs, 1, n)
		require.Equal(t, schema.KeywordNumber, vs[0].Keyword)
		require.Equal(t, "/1", vs[0].InstancePath)
	}
}

func TestValidate_ReportsTheBranchTheDocumentMeans(t *testing.T) {
	t.Parallel()
	ports := `{"%s":[
		{"type":"object","required":["type","value"],"additionalProperties":false,"properties":{"type":{"const":"static"},"value":{}}},
		{"type":"object","required":["type","name"],"additionalProperties":false,"properties":{"type":{"enum":["variable"]},"name":{"type":"string"}}},
		{"type":"string","pattern":"^prompt:"}]}`
	for _, keyword := range []string{"anyOf", "oneOf"} {
		s := compile(t, fmt.Sprintf(ports, keyword))
		only := func(doc string) schema.Violation {
			t.Helper()
			vs := s.Validate([]byte(doc))
			require.Len(t, vs, 1, "%s: %v", doc, vs)
			return vs[0]
		}
		require.Equal(t, "required member missing: value", only(`{"type":"static"}`).Message)
		require.Equal(t, "/name", only(`{"type":"variable","name":1}`).InstancePath)
		require.Equal(t, "pattern", only(`"template:x"`).Keyword)

		tag := only(`{"type":"other","name":"x"}`)
		require.Equal(t, "/type", tag.InstancePath)
		require.Equal(t, "/"+keyword, tag.SchemaPath)
		require.Equal(t, `not one of the allowed values: "static", "variable"`, tag.Message)

		require.Len(t, s.Validate([]byte(`1`)), 2, "no branch has the type, so each reports its own")
	}
}

// Values and member names of the document may be secrets, or text written to steer the model that
// reads
// the message.
func TestValidate_NeverRepeatsTheDocumentInMessages(t *testing.T) {
	t.Parallel()
	const canary = "hunter2-canary"
	schemas := []string{
		`{"type":"integer"}`, `{"enum":["a"]}`, `{"const":"a"}`, `{"const":{"a":1}}`, `{"maxLength":1}`, `{"pattern":"^x$"}`, `{"format":"uri"}`, `{"format":"email"}`,
		`{"format":"date-time"}`, `{"format":"regex"}`, `{"not":{}}`, `{"additionalProperties":false}`, `{"unevaluatedProperties":false}`,
		`{"propertyNames":{"pattern":"^x$"}}`, `{"propertyNames":{"enum":["x"]}}`, `{"patternProperties":{"^h":{"type":"integer"}}}`, `{"additionalProperties":{"type":"integer"}}`,
		`{"dependentRequired":{"hunter2-canary-not":["b"]}}`, `{"items":{"const":1},"uniqueItems":true}`, `{"contains":{"const":1}}`,
		`{"anyOf":[{"type":"integer"},{"const":"a"}]}`, `{"oneOf":[{},{}]}`, `{"maxProperties":0,"maxItems":0}`, `false`,
	}
	docs := []string{
		`"hunter2-canary"`, `{"hunter2-canary":"hunter2-canary"}`, `["hunter2-canary","hunter2-canary"]`,
		`{"a":{"hunter2-canary":["hunter2-canary"]}}`, `{"hunter2-canary":1,"hunter2-canary":2}`, `{"hunter2-canary":`, `{"hunter2-canary":1e999}`,
	}
	for _, sch := range schemas {
		for _, doc := range docs {
			for _, v := range compile(t, sch).Validate([]byte(doc)) {
				require.NotContains(t, v.Message, canary, "%s on %s", sch, doc)
				require.NotContains(t, v.SchemaPath, canary, "%s on %s", sch, doc)
				require.NotEmpty(t, v.Message)
			}
		}
	}
}

func TestValidate_IsSortedStableAndCapped(t *testing.T) {
	t.Parallel()
	s := compile(t, `{"additionalProperties":{"type":"string"},"required":["x","y"]}`)
	doc := map[string]int{}
	for i := range 100 {
		doc[fmt.Sprintf("k%03d", i)] = i
	}
	body, err := json.Marshal(doc)
	require.NoError(t, err)
	first := s.Validate(body)
	require.Len(t, first, 32)
	require.True(t, slices.IsSortedFunc(first, func(a, b schema.Violation) int { return strings.Compare(a.InstancePath, b.InstancePath) }))
	require.Equal(t, "required member missing: x", first[0].Message)
	for range 10 {
		require.Equal(t, first, s.Validate(body))
	}
}

func TestValidate_KeepsLongPatternsAndListsOutOfMessages(t *testing.T) {
	t.Parallel()
	vs := compile(t, `{"pattern":"`+strings.Repeat("a", 3000)+`"}`).Validate([]byte(`"b"`))
	require.Less(t, len(vs[0].Message), 300)

	values := make([]string, 50)
	for i := range values {
		values[i] = fmt.Sprint("v", i)
	}
	list, err := json.Marshal(map[string]any{"enum": values})
	require.NoError(t, err)
	vs = compile(t, string(list)).Validate([]byte(`"b"`))
	require.Equal(t, "not one of the allowed values", vs[0].Message)

	properties := map[string]any{}
	for _, v := range values {
		properties[v] = true
	}
	closed, err := json.Marshal(map[string]any{"properties": properties, "additionalProperties": false})
	require.NoError(t, err)
	vs = compile(t, string(closed)).Validate([]byte(`{"b":1}`))
	require.True(t, strings.HasSuffix(vs[0].Message, ", ..."))
}

func TestValidate_AllowsDeepDocumentsOfRecursiveSchemas(t *testing.T) {
	t.Parallel()
	list := compile(t, `{"type":["object","null"],"properties":{"next":{"$ref":"#"}},"additionalProperties":false}`)
	require.Empty(t, list.Validate([]byte(strings.Repeat(`{"next":`, 100)+`null`+strings.Repeat(`}`, 100))))

	tree := compile(t, `{"type":"object","properties":{"kids":{"type":"array","items":{"$ref":"#"}},"x":{"prefixItems":[{"$ref":"#"}]}},
		"patternProperties":{"^p":{"$ref":"#"}},"propertyNames":{"maxLength":9}}`)
	require.Empty(t, tree.Validate([]byte(`{"kids":[`+strings.Repeat(`{"kids":[{}]},`, 5000)+`{"p":{},"x":[{}]}]}`)))
}

func BenchmarkValidate(b *testing.B) {
	s := compile(b, `{"type":"object","required":["id","items"],"additionalProperties":false,"properties":{
		"id":{"type":"string","pattern":"^[a-z]+$"},"items":{"type":"array","items":{"type":"object","properties":{"n":{"type":"integer"},"s":{"type":"string"}}}}}}`)
	doc := []byte(`{"id":"abc","items":[` + strings.Repeat(`{"n":1,"s":"text"},`, 50) + `{}]}`)
	b.SetBytes(int64(len(doc)))
	b.ReportAllocs()
	for b.Loop() {
		if vs := s.Validate(doc); vs != nil {
			b.Fatal(vs)
		}
	}
}
