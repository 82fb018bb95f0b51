package create_test

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// Reserved keys of configurable are case-sensitive; other keys pass through (OpenWOP host contract
// §2.3).
func TestStart_ReadsReservedKeysThatAreSpelledExactlySo(t *testing.T) {
	t.Parallel()
	for _, configurable := range []string{
		`{"AI.Provider":"ghost"}`, `{"Ai":{"provider":"ghost"}}`, `{"ai":{"Provider":"ghost"}}`,
		`{"AI.credentialRef":"x"}`, `{"MockProvider":{"id":"ghost"}}`, `{"RunTimeoutMs":1}`,
	} {
		r := newRig(t)
		_, err := r.Start(t.Context(), request("plain", "run_1", with("", configurable)))
		require.NoError(t, err, configurable)
		rec, err := r.log.Frames()[0].Record()
		require.NoError(t, err)
		require.JSONEq(t, configurable, string(rec.Configurable))
		require.Zero(t, rec.DurationMs, configurable)
	}
}
