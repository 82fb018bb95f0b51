package strictjson_test

import (
	"bytes"
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/require"

	"waybill.dev/waybill/protocol/strictjson"
)

// FuzzDecodersAgree: an accepted document has one meaning. A token-by-token reader and a
// whole-document reader find the same value and no repeated name, and the value survives a round
// trip.
func FuzzDecodersAgree(f *testing.F) {
	for _, s := range []string{
		`{"a":1,"a":2}`, `{"a":1,"\u0061":2}`, `{"a":1,"A":2}`, `{"":{"":[]}}`,
		`[1e400,-0,1.0,9007199254740993,0.1e-7]`, `["\ud83d\ude00","\ud800","\udc00\ud800","\u0000"]`,
		"\"\xff\"", "\ufeff{}", `{} {}`, `[1,]`, `{"a":1}//`, `"\u2028</script>"`, `01`, `NaN`,
	} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		if strictjson.Check(b, strictjson.Limits{}) != nil {
			return
		}
		whole := decodeLossless(t, b)
		d := json.NewDecoder(bytes.NewReader(b))
		d.UseNumber()
		require.Equal(t, whole, byToken(t, d))

		again, err := json.Marshal(whole)
		require.NoError(t, err)
		require.Equal(t, whole, decodeLossless(t, again))
	})
}

// byToken reads the next value of d one token at a time.
func byToken(t *testing.T, d *json.Decoder) any {
	tok, err := d.Token()
	require.NoError(t, err)
	switch tok {
	case json.Delim('{'):
		m := map[string]any{}
		for d.More() {
			name, ok := byToken(t, d).(string)
			require.True(t, ok)
			require.NotContains(t, m, name, "an accepted document has a repeated name")
			m[name] = byToken(t, d)
		}
		_, err = d.Token()
		require.NoError(t, err)
		return m
	case json.Delim('['):
		l := []any{}
		for d.More() {
			l = append(l, byToken(t, d))
		}
		_, err = d.Token()
		require.NoError(t, err)
		return l
	}
	return tok
}
