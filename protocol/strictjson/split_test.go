package strictjson_test

import (
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/require"

	"waybill.dev/waybill/protocol/strictjson"
)

func TestSplit_ReturnsTheOutermostMembersOnly(t *testing.T) {
	t.Parallel()
	for doc, want := range map[string]map[string]string{
		`{}`:                                {},
		` { "a" : {"b":[1, 2]} , "c":null}`: {"a": `{"b":[1, 2]}`, "c": `null`},
		`{"\u0061":1.50,"":""}`:             {"a": `1.50`, "": `""`},
	} {
		got, err := strictjson.Split([]byte(doc), strictjson.Limits{})
		require.NoError(t, err, doc)
		require.NotNil(t, got, doc)
		require.Len(t, got, len(want), doc)
		for name, value := range want {
			require.Equal(t, value, string(got[name]), doc)
		}
	}
	for _, doc := range []string{`[{"a":1}]`, `"a"`, ` 1 `, `null`} {
		got, err := strictjson.Split([]byte(doc), strictjson.Limits{})
		require.NoError(t, err, doc)
		require.Nil(t, got, doc)
	}
}

func TestSplit_ValuesCannotGrowIntoTheirNeighbours(t *testing.T) {
	t.Parallel()
	doc := []byte(`{"a":1,"b":2}`)
	got, err := strictjson.Split(doc, strictjson.Limits{})
	require.NoError(t, err)
	_ = append(got["a"], "000"...)
	require.Equal(t, `{"a":1,"b":2}`, string(doc))
}

// FuzzSplit: Split rejects what Check rejects, with the same error, and otherwise returns the
// members that encoding/json returns.
func FuzzSplit(f *testing.F) {
	for _, s := range []string{`{"a":1,"a":2}`, `{"a":{"a":[{}]},"\u0061b":""}`, `[{"a":1}]`, `{"a":1}x`, "{\"\xff\":1}", `{"":{"":[]}} `} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		got, err := strictjson.Split(b, strictjson.Limits{})
		require.Equal(t, strictjson.Check(b, strictjson.Limits{}), err)
		if err != nil {
			require.Nil(t, got)
			return
		}
		var want map[string]json.RawMessage
		if json.Unmarshal(b, &want) != nil || want == nil {
			require.Nil(t, got)
			return
		}
		require.Equal(t, want, got)
	})
}
