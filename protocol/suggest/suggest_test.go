package suggest_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"waybill.dev/waybill/protocol/suggest"
)

func TestNames_ReturnsTheClosestFirst(t *testing.T) {
	t.Parallel()
	known := []string{"envelope_invalid", "envelope_refusal", "run_not_found", "run_terminal", "conflict"}
	for unknown, want := range map[string][]string{
		"envelope_invald": {"envelope_invalid"},
		"RUN_NOT_FOUND":   {"run_not_found"},
		"refusal":         {"envelope_refusal"},
		"run_notfound":    {"run_not_found"},
		"xyzzyxyzzy":      {},
		"":                {},
	} {
		require.Equal(t, want, suggest.Names(unknown, known, 2), unknown)
	}
}

func TestDistance_CountsChanges(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		a, b string
		want int
	}{{"", "", 0}, {"a", "", 1}, {"kitten", "sitting", 3}, {"same", "same", 0}} {
		require.Equal(t, tc.want, suggest.Distance(tc.a, tc.b))
	}
}
