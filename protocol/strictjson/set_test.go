package strictjson_test

import (
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/require"

	"waybill.dev/waybill/protocol/strictjson"
)

// Set stores the same value as encoding/json, for every type with a fast path.
func TestSet_StoresWhatUnmarshalStores(t *testing.T) {
	t.Parallel()
	for _, value := range []string{
		`null`, `""`, `"a"`, `"a\n\u00e9\"b"`, `"\ud800"`, `"é"`, `0`, `-0`, `7`, `-7`, `9007199254740993`, `9223372036854775807`, `9223372036854775808`,
		`1.0`, `1e2`, `true`, `{"a":[1]}`, `[]`, `0.5`,
	} {
		same(t, value, "before")
		same(t, value, 5)
		same(t, value, int64(5))
		same(t, value, 5.5)
		same(t, value, true)
		same(t, value, json.RawMessage(`"before"`))
		same(t, value, map[string]json.RawMessage{"before": nil})
	}
}

func same[T any](t *testing.T, value string, before T) {
	t.Helper()
	got, want := before, before
	err := json.Unmarshal([]byte(value), &want)
	require.Equal(t, err == nil, strictjson.Set([]byte(value), &got), "%s into %T", value, before)
	require.Equal(t, want, got, "%s into %T", value, before)
}
