package redact_test

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"waybill.dev/waybill/protocol/strictjson"
	"waybill.dev/waybill/services/redactor/redact"
)

// OpenWOP envelope contract §26 case 13: the longest match first, no remnant of either
// secret, in any order of registration and wherever a stream is cut.
func TestEdgeCase13_LeavesNothingOfNestedSecrets(t *testing.T) {
	t.Parallel()
	inner, outer := secret("inner", "alpha-key-0001"), secret("outer", "prefix-alpha-key-0001-suffix")
	const text, want = "<prefix-alpha-key-0001-suffix> and <alpha-key-0001>", "<[REDACTED:outer]> and <[REDACTED:inner]>"
	for i, secrets := range [][]redact.Secret{{inner, outer}, {outer, inner}} {
		s := redact.Compile(secrets)
		t.Run(fmt.Sprintf("whole, order %d", i), func(t *testing.T) {
			t.Parallel()
			got, n := s.Text(text)
			require.Equal(t, want, got)
			require.Equal(t, 2, n)
		})
		t.Run(fmt.Sprintf("as JSON, order %d", i), func(t *testing.T) {
			t.Parallel()
			got, n, err := s.JSON([]byte(`{"prefix-alpha-key-0001-suffix":["alpha-key-0001"]}`), strictjson.Limits{})
			require.NoError(t, err)
			require.JSONEq(t, `{"[REDACTED:outer]":["[REDACTED:inner]"]}`, string(got))
			require.Equal(t, 2, n)
		})
		t.Run(fmt.Sprintf("cut anywhere, order %d", i), func(t *testing.T) {
			t.Parallel()
			for cut := range len(text) {
				_, got, n := written(s, text[:cut], text[cut:])
				require.Equal(t, want, got, "cut at %d", cut)
				require.Equal(t, 2, n)
			}
		})
	}
}
