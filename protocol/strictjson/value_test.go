package strictjson_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"waybill.dev/waybill/protocol/strictjson"
)

func TestValue_ReturnsTheDocument(t *testing.T) {
	t.Parallel()
	doc := []byte(` {"a" : [1.0, -0, 1e400, "\u00e4\n", true, false, null, [], {}], "\u0062":{"":"x"}} `)
	v, err := strictjson.Value(doc, strictjson.Limits{})
	require.NoError(t, err)
	require.Equal(t, map[string]any{
		"a": []any{json.Number("1.0"), json.Number("-0"), json.Number("1e400"), "ä\n", true, false, nil, []any{}, map[string]any{}},
		"b": map[string]any{"": "x"},
	}, v)
	clear(doc)
	require.Equal(t, "x", v.(map[string]any)["b"].(map[string]any)[""], "the value does not share memory with the document")

	_, err = strictjson.Value([]byte(`{"a":1,"a":2}`), strictjson.Limits{})
	require.Equal(t, strictjson.Check([]byte(`{"a":1,"a":2}`), strictjson.Limits{}), err)
	_, err = strictjson.Value([]byte(`[[1]]`), strictjson.Limits{MaxDepth: 1})
	require.ErrorContains(t, err, "nested too deep")
}

func TestSame_ComparesByValue(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		a, b string
		want bool
	}{
		"order of members":           {`{"a":1,"b":[{"c":2,"d":3}]}`, ` { "b" : [{"d":3,"c":2}], "a":1 }`, true},
		"escapes":                    {`{"\u0061":"\u00e4"}`, `{"a":"ä"}`, true},
		"order of a list":            {`[1,2]`, `[2,1]`, false},
		"a member more":              {`{"a":1}`, `{"a":1,"b":null}`, false},
		"null and nothing":           {`null`, ``, false},
		"nothing":                    {``, ``, true},
		"numbers of one value":       {`1.0`, `1`, false},
		"numbers equal as floats":    {`9007199254740993`, `9007199254740992`, false},
		"a repeated name":            {`{"a":1,"a":2}`, `{"a":2}`, false},
		"a name twice, byte by byte": {`{"a":1,"a":2}`, `{"a":1,"a":2}`, true},
		"something behind":           {`{"a":1} {}`, `{"a":1}`, false},
		"larger than a body":         {`{"a":1,"b":"` + strings.Repeat("x", 2<<20) + `"}`, `{"b":"` + strings.Repeat("x", 2<<20) + `","a":1}`, true},
		"deeper than the limit for stored documents": {strings.Repeat("[", 5000) + strings.Repeat("]", 5000), strings.Repeat("[", 5000) + strings.Repeat("]", 5000) + " ", false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			require.Equal(t, tt.want, strictjson.Same([]byte(tt.a), []byte(tt.b)))
			require.Equal(t, tt.want, strictjson.Same([]byte(tt.b), []byte(tt.a)))
		})
	}
}

// FuzzValue: Value rejects what Check rejects and otherwise equals encoding/json.
func FuzzValue(f *testing.F) {
	for _, s := range []string{
		`{"a":1,"a":2}`, `{"a":1,"\u0061b":[{},[],""]}`, `[1e400,-0,1.0,9007199254740993,0.1e-7]`, `"\ud83d\ude00"`, `"\ud800"`,
		"\"\xff\"", `true`, ` null `, `tru`, `[ ]`, `{ }`, `[1,2 , 3]`,
	} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		got, err := strictjson.Value(b, strictjson.Limits{})
		require.Equal(t, strictjson.Check(b, strictjson.Limits{}), err)
		if err == nil {
			require.Equal(t, decodeLossless(t, b), got)
		}
	})
}
