package strictjson_test

import (
	"bytes"
	"encoding/json"
	"math"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"waybill.dev/waybill/protocol/strictjson"
)

func seeds(f *testing.F) {
	f.Helper()
	for _, doc := range []string{
		`{}`, `[1,2.5e-7,{"a":null}]`, `"\ud83d\ude00 \u0041"`, `"\ud800"`, `{"a":1,"\u0061":2}`,
		`{"id":"x","nodes":[{"id":"y","next":null}],"any":[123456789012345678901]}`,
		`{"card":4929123456789012,"a":-1.5e3,"b":[12345678]}`, `[[[[[[[]]]]]]]`, "\xef\xbb\xbf1", `01`, `[1,]`, `{"ID":1}`, `tru`, "\"\xff\"",
	} {
		f.Add([]byte(doc))
	}
	f.Add(sampleBody())
}

// decodeLossless reads b with encoding/json, keeping numbers as written.
func decodeLossless(t *testing.T, b []byte) any {
	t.Helper()
	d := json.NewDecoder(bytes.NewReader(b))
	d.UseNumber()
	var v any
	require.NoError(t, d.Decode(&v))
	return v
}

// FuzzCheck compares with encoding/json: what Check accepts is valid there and survives a round
// trip; what Check reports as invalid syntax is invalid there.
func FuzzCheck(f *testing.F) {
	seeds(f)
	f.Fuzz(func(t *testing.T, b []byte) {
		err := strictjson.Check(b, strictjson.Default)
		if err != nil {
			var e *strictjson.Error
			require.ErrorAs(t, err, &e)
			require.LessOrEqual(t, e.Offset, len(b))
			require.False(t, e.Rule == strictjson.RuleSyntax && json.Valid(b), "valid JSON refused: %v", err)
			return
		}
		require.True(t, json.Valid(b))
		v := decodeLossless(t, b)
		again, err := json.Marshal(v)
		require.NoError(t, err)
		require.NoError(t, strictjson.Check(again, strictjson.Limits{MaxBytes: 16 * len(b), MaxDepth: 64}))
		require.Equal(t, v, decodeLossless(t, again))
		for _, min := range []int{0, 1, 3, 8} {
			require.Equal(t, longestText(v) >= min, strictjson.HasText(b, min))
			require.Equal(t, longestText(v) >= min || longestNumber(v) >= min, strictjson.MayHold(b, min))
		}
	})
}

// longestNumber is the length of the longest number in v, or of the longest row of numbers; -1 without
// any. A number with an exponent is longer than all others.
func longestNumber(v any) int {
	longest := -1
	switch v := v.(type) {
	case json.Number:
		if longest = len(v); strings.ContainsAny(string(v), "eE") {
			longest = math.MaxInt
		}
	case []any:
		row := 0
		for _, item := range v {
			longest = max(longest, longestNumber(item))
			if _, ok := item.(json.Number); !ok {
				row = -1
			}
			row++
			if row > 0 {
				longest = max(longest, row)
			}
		}
	case map[string]any:
		for _, item := range v {
			longest = max(longest, longestNumber(item))
		}
	}
	return longest
}

// longestText is the length of the longest string in v, or -1 without any.
func longestText(v any) int {
	longest := -1
	switch v := v.(type) {
	case string:
		longest = len(v)
	case []any:
		for _, item := range v {
			longest = max(longest, longestText(item))
		}
	case map[string]any:
		for name, item := range v {
			longest = max(longest, len(name), longestText(item))
		}
	}
	return longest
}

// FuzzDecode asserts that every error is an *Error, and that accepted values equal those of
// encoding/json.
func FuzzDecode(f *testing.F) {
	seeds(f)
	f.Fuzz(func(t *testing.T, b []byte) {
		var got request
		if err := strictjson.Decode(b, strictjson.Default, &got); err != nil {
			var e *strictjson.Error
			require.ErrorAs(t, err, &e)
			require.LessOrEqual(t, e.Offset, len(b))
			return
		}
		require.NoError(t, strictjson.Check(b, strictjson.Default))
		var want request
		d := json.NewDecoder(bytes.NewReader(b))
		d.UseNumber()
		require.NoError(t, d.Decode(&want))
		require.Equal(t, want, got)
	})
}
