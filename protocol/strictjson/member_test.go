package strictjson_test

import (
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/require"

	"waybill.dev/waybill/protocol/strictjson"
)

func TestMember_ReturnsTheRawValue(t *testing.T) {
	t.Parallel()
	for doc, want := range map[string]string{
		`{"a":1}`:                          `1`,
		` { "b" : [1,{"a":2}] , "a" : 3 }`: `3`,
		`{"\u0061":"x\u0041"}`:             `"x\u0041"`,
		`{"a":{"a":1},"a":2}`:              `{"a":1}`,
		`{"a":1,`:                          `1`, // valid up to the member
		`{"A":1}`:                          ``,
		`{"b":{"a":1}}`:                    ``,
		`["a",1]`:                          ``,
		`{"b":tru,"a":1}`:                  ``,
		`{"b" "a":1}`:                      ``,
		`{}`:                               ``,
		``:                                 ``,
	} {
		got, ok := strictjson.Member([]byte(doc), "a")
		require.Equal(t, want, string(got), doc)
		require.Equal(t, want != "", ok, doc)
	}
}

// FuzzMember: in an accepted document, Member finds the same value as a decoder.
func FuzzMember(f *testing.F) {
	for _, seed := range []string{`{"a":1}`, `{"b":[],"\u0061":{"a":2}}`, `{"A":1,"b":"\\\"","a":null}`, `[{"a":1}]`, `{"a"`} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, doc []byte) {
		got, ok := strictjson.Member(doc, "a")
		if strictjson.Check(doc, strictjson.Limits{}) != nil {
			return
		}
		var members map[string]json.RawMessage
		if json.Unmarshal(doc, &members) != nil {
			require.False(t, ok)
			return
		}
		want, has := members["a"]
		require.Equal(t, has, ok)
		require.Equal(t, string(want), string(got))
	})
}
