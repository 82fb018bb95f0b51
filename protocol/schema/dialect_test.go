package schema_test

import (
	"sync"
	"testing"

	"github.com/stretchr/testify/require"
)

// One schema per keyword of the dialect, with valid and invalid documents.
func TestValidate_FollowsTheDialect(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		schema       string
		takes, fails []string
	}{
		"true":  {schema: `true`, takes: []string{`null`, `{}`, `[1]`}},
		"false": {schema: `false`, fails: []string{`null`, `{}`, `[1]`}},
		"type integer": {
			schema: `{"type":"integer"}`,
			takes:  []string{`0`, `-1`, `1.0`, `10e-1`, `99999999999999999999`},
			fails:  []string{`0.1`, `"1"`, `true`, `null`, `[1]`},
		},
		"type number": {
			schema: `{"type":"number"}`,
			takes:  []string{`0`, `1.5`, `-1e-10`},
			fails:  []string{`"1"`, `null`, `false`},
		},
		"type null": {
			schema: `{"type":"null"}`,
			takes:  []string{`null`},
			fails:  []string{`0`, `""`, `false`, `{}`},
		},
		"enum of everything": {
			schema: `{"enum":[1,"1",null,false,[1],{"a":[1]}]}`,
			takes:  []string{`1`, `1.0`, `"1"`, `null`, `false`, `[1]`, `[1.0]`, `{"a":[1]}`},
			fails:  []string{`2`, `"2"`, `true`, `[]`, `{"a":[2]}`, `{"a":[1],"b":1}`},
		},
		"const object ignores order": {
			schema: `{"const":{"a":1,"b":2}}`,
			takes:  []string{`{"b":2,"a":1}`},
			fails:  []string{`{"a":1}`, `null`},
		},
		"lengths count characters": {
			schema: `{"minLength":2,"maxLength":2}`,
			takes:  []string{`"ab"`, `"é漢"`, `"😀😀"`, `17`},
			fails:  []string{`"a"`, `"abc"`, `"😀"`},
		},
		"pattern is not anchored": {
			schema: `{"pattern":"b+"}`,
			takes:  []string{`"abc"`, `5`},
			fails:  []string{`"ac"`, `""`},
		},
		"bounds": {
			schema: `{"minimum":-1,"exclusiveMaximum":1.5}`,
			takes:  []string{`-1`, `1.4999999999999999999`},
			fails:  []string{`-1.0000000000000000001`, `1.5`},
		},
		"multiple of a fraction is exact": {
			schema: `{"multipleOf":0.1}`,
			takes:  []string{`0.3`, `1.1`, `0`},
			fails:  []string{`0.35`},
		},
		"items after prefixItems": {
			schema: `{"prefixItems":[{"type":"string"}],"items":{"type":"integer"}}`,
			takes:  []string{`[]`, `["a"]`, `["a",1,2]`},
			fails:  []string{`[1]`, `["a","b"]`},
		},
		"no items beyond": {
			schema: `{"prefixItems":[true],"items":false}`,
			takes:  []string{`[]`, `[1]`},
			fails:  []string{`[1,2]`},
		},
		"contains at least two": {
			schema: `{"contains":{"type":"integer"},"minContains":2}`,
			takes:  []string{`[1,"a",2]`},
			fails:  []string{`[1,"a"]`, `[]`},
		},
		"unique by value": {
			schema: `{"uniqueItems":true}`,
			takes:  []string{`[1,"1",[1],{"a":1}]`, `[]`},
			fails:  []string{`[1,1.0]`, `[{"a":1,"b":2},{"b":2,"a":1}]`, `[0,1,2,3,4,5,6,7,8,9,10,11,12,13,14,15,16,17,18,19,20,3]`},
		},
		"pattern properties": {
			schema: `{"patternProperties":{"^n_":{"type":"number"}},"additionalProperties":{"type":"string"}}`,
			takes:  []string{`{"n_a":1,"b":"x"}`},
			fails:  []string{`{"n_a":"x"}`, `{"b":1}`},
		},
		"property names": {
			schema: `{"propertyNames":{"pattern":"^[a-z]+$"}}`,
			takes:  []string{`{}`, `{"abc":1}`},
			fails:  []string{`{"Abc":1}`},
		},
		"dependent schemas": {
			schema: `{"dependentSchemas":{"card":{"required":["billing"]}}}`,
			takes:  []string{`{}`, `{"card":1,"billing":2}`},
			fails:  []string{`{"card":1}`},
		},
		"if then else": {
			schema: `{"if":{"properties":{"k":{"const":"a"}},"required":["k"]},"then":{"required":["x"]},"else":{"required":["y"]}}`,
			takes:  []string{`{"k":"a","x":1}`, `{"y":1}`},
			fails:  []string{`{"k":"a","y":1}`, `{"k":"b"}`},
		},
		"not": {
			schema: `{"not":{"type":"string"}}`,
			takes:  []string{`1`},
			fails:  []string{`"a"`},
		},
		"all of": {
			schema: `{"allOf":[{"minimum":1},{"maximum":3}]}`,
			takes:  []string{`2`},
			fails:  []string{`0`, `4`},
		},
		"unevaluated sees through all of": {
			schema: `{"allOf":[{"properties":{"a":true}}],"properties":{"b":true},"unevaluatedProperties":false}`,
			takes:  []string{`{"a":1,"b":2}`},
			fails:  []string{`{"c":1}`},
		},
		"reference and other keywords": {
			schema: `{"$defs":{"s":{"type":"string"}},"$ref":"#/$defs/s","minLength":2}`,
			takes:  []string{`"ab"`},
			fails:  []string{`"a"`, `12`},
		},
		"dynamic reference": {
			schema: `{"$dynamicAnchor":"node","type":"object","properties":{"kids":{"type":"array","items":{"$dynamicRef":"#node"}}}}`,
			takes:  []string{`{"kids":[{"kids":[]}]}`},
			fails:  []string{`{"kids":[{"kids":[1]}]}`},
		},
		"reference into an embedded resource": {
			schema: `{"$ref":"https://example.com/inner","$defs":{"i":{"$id":"https://example.com/inner","type":"boolean"}}}`,
			takes:  []string{`true`},
			fails:  []string{`1`},
		},
		"format date-time": {
			schema: `{"format":"date-time"}`,
			takes:  []string{`"2026-05-01T12:34:56.000Z"`, `"2026-05-01T12:34:56+02:00"`, `5`},
			fails:  []string{`"2026-02-30T00:00:00Z"`, `"2026-05-01"`, `"2026-05-01T12:34:56"`, `"x"`},
		},
		"format uri": {
			schema: `{"format":"uri"}`,
			takes:  []string{`"https://example.com/a?b#c"`},
			fails:  []string{`"/relative"`, `"::"`},
		},
		"format uuid": {
			schema: `{"format":"uuid"}`,
			takes:  []string{`"2eb8aa08-aa98-11ea-b4aa-73b441d16380"`},
			fails:  []string{`"2eb8aa08"`},
		},
		"unknown format and keyword are notes": {
			schema: `{"format":"x-own","x-own":{"type":5}}`,
			takes:  []string{`"anything"`, `5`},
		},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := compile(t, tc.schema)
			for _, doc := range tc.takes {
				require.Empty(t, s.Validate([]byte(doc)), doc)
			}
			for _, doc := range tc.fails {
				require.NotEmpty(t, s.Validate([]byte(doc)), doc)
			}
		})
	}
}

func TestValidate_IsSafeForConcurrentUse(t *testing.T) {
	t.Parallel()
	s := compile(t, `{"$defs":{"n":{"type":"object","additionalProperties":{"$ref":"#/$defs/n"},"propertyNames":{"pattern":"^a$"}}},"$ref":"#/$defs/n"}`)
	want := s.Validate([]byte(`{"a":{"b":1}}`))
	require.NotEmpty(t, want)
	var wg sync.WaitGroup
	results := make([][]bool, 8)
	for i := range results {
		wg.Go(func() {
			for range 50 {
				vs := s.Validate([]byte(`{"a":{"b":1}}`))
				results[i] = append(results[i], len(vs) == len(want) && vs[0] == want[0])
			}
		})
	}
	wg.Wait()
	for _, r := range results {
		require.NotContains(t, r, false)
	}
}

func TestValidate_LocatesEveryProblemOfADeepDocument(t *testing.T) {
	t.Parallel()
	s := compile(t, `{
		"type": "object", "required": ["steps"], "additionalProperties": false,
		"properties": {
			"steps": {"type": "array", "minItems": 1, "items": {"$ref": "#/$defs/step"}},
			"labels": {"type": "object", "additionalProperties": {"type": "string", "maxLength": 3}}
		},
		"$defs": {"step": {"type": "object", "required": ["id", "do"], "properties": {"id": {"type": "string"}, "do": {"enum": ["go", "stop"]}}}}
	}`)
	vs := s.Validate([]byte(`{"steps":[{"id":1,"do":"go"},{"do":"run"},7],"labels":{"a~/b":"long"},"more":[]}`))
	var got []string
	for _, v := range vs {
		got = append(got, v.InstancePath+" | "+v.SchemaPath+" | "+v.Message)
	}
	require.Equal(t, []string{
		"/labels/a~0~1b | /properties/labels/additionalProperties/maxLength | want at most 3 characters",
		"/more | /additionalProperties | additional member not allowed; allowed: labels, steps",
		"/steps/0/id | /$defs/step/properties/id/type | want type string",
		"/steps/1 | /$defs/step/required | required member missing: id",
		`/steps/1/do | /$defs/step/properties/do/enum | not one of the allowed values: "go", "stop"`,
		"/steps/2 | /$defs/step/type | want type object",
	}, got)
}
