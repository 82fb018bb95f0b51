package strictjson_test

import (
	"encoding/json"
	"math"
	"testing"

	"github.com/stretchr/testify/require"

	"waybill.dev/waybill/protocol/strictjson"
)

func TestRender_EscapesAndPlainDoesNot(t *testing.T) {
	t.Parallel()
	v := map[string]json.RawMessage{"b": json.RawMessage(` 12345678901234567890 `), "a<": json.RawMessage(`"x&y"`)}
	require.Equal(t, `{"a\u003c":"x\u0026y","b":12345678901234567890}`, string(strictjson.Render(v)))
	require.Equal(t, `{"a<":"x&y","b":12345678901234567890}`, string(strictjson.RenderPlain(v)))
	require.Panics(t, func() { strictjson.Render(math.NaN()) })
	require.Panics(t, func() { strictjson.RenderPlain(math.NaN()) })
}

func TestString_AcceptsStringsOnly(t *testing.T) {
	t.Parallel()
	for raw, want := range map[string]string{` "a\u0062" `: "ab", `""`: ""} {
		s, ok := strictjson.String(json.RawMessage(raw))
		require.True(t, ok, raw)
		require.Equal(t, want, s)
	}
	for _, raw := range []string{`1`, `null`, `["a"]`, `"a`, ``} {
		s, ok := strictjson.String(json.RawMessage(raw))
		require.False(t, ok, raw)
		require.Empty(t, s)
	}
}

func TestObject_AcceptsObjectsOnly(t *testing.T) {
	t.Parallel()
	require.Equal(t, map[string]json.RawMessage{"a": json.RawMessage(`1.0`), "A": json.RawMessage(`2`)}, strictjson.Object(json.RawMessage(`{"a":1.0,"A":2}`)))
	for _, raw := range []string{`1`, `null`, `[]`, `{"a":1,"a":2}`, `{`, ``} {
		require.Nil(t, strictjson.Object(json.RawMessage(raw)), raw)
	}
}
