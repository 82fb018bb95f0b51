package sample

import (
	"bytes"
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/require"
)

func roundTrip(t *testing.T, raw string) string {
	t.Helper()
	v, err := decode(json.RawMessage(raw))
	require.NoError(t, err)
	var b bytes.Buffer
	encode(&b, v)
	return b.String()
}

func TestDocument_KeepsOrderNumbersAndText(t *testing.T) {
	t.Parallel()
	for raw, want := range map[string]string{
		`{"b":1,"a":{"z":[],"y":{}}}`:       `{"b":1,"a":{"z":[],"y":{}}}`,
		` [ 1.50 , 1e3, -0 , true, null ] `: `[1.50,1e3,-0,true,null]`,
		`"<a href=\"x\">\u00fc & \n</a>"`:   `"<a href=\"x\">ü & \n</a>"`,
		`{"a":1,"b":2,"a":3}`:               `{"a":3,"b":2}`,
		`false`:                             `false`,
	} {
		require.Equal(t, want, roundTrip(t, raw))
	}
}

func TestDecode_BoundsTheNesting(t *testing.T) {
	t.Parallel()
	deep := bytes.Repeat([]byte("["), maxNesting+2)
	deep = append(deep, bytes.Repeat([]byte("]"), maxNesting+2)...)
	_, err := decode(deep)
	require.ErrorIs(t, err, errNesting)
}

// What decode reads, encode writes with the same meaning.
func FuzzDocument(f *testing.F) {
	for _, seed := range []string{`{}`, `[1,2.50,"x"]`, `{"a":{"a":[null,true]}}`, `"\ud800"`} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, raw string) {
		if !json.Valid([]byte(raw)) {
			return
		}
		v, err := decode(json.RawMessage(raw))
		if err != nil {
			require.ErrorIs(t, err, errNesting)
			return
		}
		var want, got any
		require.NoError(t, json.Unmarshal([]byte(key(v)), &got))
		if json.Unmarshal([]byte(raw), &want) == nil { // a number may be too large for it
			require.Equal(t, want, got)
		}
	})
}

func TestFlatten_LaysSchemasOverEachOther(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct{ schema, keyword, want string }{
		{`{"allOf":[{"minimum":1},{"minimum":3},{"minimum":2}]}`, "minimum", "3"},
		{`{"maxLength":9,"allOf":[{"maxLength":4}]}`, "maxLength", "4"},
		{`{"allOf":[{"type":"number"},{"type":["integer","string"]}]}`, "type", `["integer"]`},
		{`{"allOf":[{"enum":[1,"a",null]},{"enum":[null,"a"]}]}`, "enum", `["a",null]`},
		{`{"enum":["a","b"],"const":"b"}`, "enum", `["b"]`},
		{`{"required":["a"],"allOf":[{"required":["b"]}]}`, "required", `["b","a"]`},
		{
			`{"additionalProperties":false,"allOf":[{"additionalProperties":{"type":"string"}}]}`,
			"additionalProperties", "false",
		},
		{`{"$ref":"#/$defs/x","title":"outer","$defs":{"x":{"title":"inner","minimum":1}}}`, "minimum", "1"},
		{
			`{"properties":{"a":{"minimum":1}},"allOf":[{"properties":{"b":{},"a":{"maximum":2}}}]}`,
			"properties", `{"b":{},"a":{"allOf":[{"maximum":2},{"minimum":1}]}}`,
		},
	} {
		_, f := flatOf(t, tc.schema)
		require.Equal(t, tc.want, key(f.values[tc.keyword]), tc.schema)
		require.False(t, f.never, tc.schema)
	}
}

func TestFlatten_SeesContradictions(t *testing.T) {
	t.Parallel()
	for _, schema := range []string{
		`false`, `{"allOf":[true,false]}`, `{"allOf":[{"type":"string"},{"type":"null"}]}`, `{"enum":[1],"const":2}`,
	} {
		_, f := flatOf(t, schema)
		require.True(t, f.never, schema)
	}
}

func TestHeight_FindsHowDeepTheSmallestValueIs(t *testing.T) {
	t.Parallel()
	for schema, want := range map[string]int{
		`{"type":"string"}`: 0,
		`{"type":"object","required":["a"],"properties":{"a":{"type":"object","required":["b"]}}}`: 2,
		`{"type":"array","items":{"type":"object","required":["a"]}}`:                              0,
		`{"type":"array","minItems":1,"items":{"type":"object","required":["a"]}}`:                 2,
		`{"anyOf":[{"type":"object","required":["a"]},{"type":"null"}]}`:                           0,
		`{"type":["object","null"],"required":["a"]}`:                                              0,
	} {
		root, err := decode(json.RawMessage(schema))
		require.NoError(t, err)
		require.Equal(t, want, newGenerator(root, "", 1).height(root, maxHeight), schema)
	}
}
