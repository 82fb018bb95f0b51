package strictjson_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"waybill.dev/waybill/protocol/strictjson"
)

func TestKindOf_ReadsTheFirstByte(t *testing.T) {
	t.Parallel()
	for raw, kind := range map[string]string{
		`{}`: "an object", " \n[1]": "an array", `"x"`: "a string", `true`: "a boolean", `false`: "a boolean", `null`: "null", `-1`: "a number", `0`: "a number",
		``: "nothing", "  ": "nothing",
	} {
		require.Equal(t, kind, strictjson.KindOf([]byte(raw)), raw)
	}
}
