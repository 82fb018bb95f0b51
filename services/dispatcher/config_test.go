package dispatcher_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"waybill.dev/waybill/services/dispatcher"
)

// OpenWOP envelope contract §14.3: what a host may choose, and what it chooses.
func TestConfig_KeepsTheBudgetsWithinTheProtocolsBounds(t *testing.T) {
	t.Parallel()
	def := dispatcher.DefaultConfig()
	require.NoError(t, def.Validate())
	require.Equal(t, []int{3, 2, 4000}, []int{def.Completion.MaxAttempts, def.Completion.Multiplier, def.Completion.Defaults.MaxTokens})
	for _, tc := range []struct {
		attempts, multiplier int
		says                 string
	}{
		{1, 1, ""},
		{16, 8, ""},
		{0, 2, "dispatcher.maxRetryAttempts: 0: needs 1 to 16"},
		{17, 2, "dispatcher.maxRetryAttempts: 17: needs 1 to 16"},
		{3, 0, "dispatcher.truncationBudgetMultiplier: 0: needs 1 to 8"},
		{3, 9, "dispatcher.truncationBudgetMultiplier: 9: needs 1 to 8"},
	} {
		c := def
		c.Completion.MaxAttempts, c.Completion.Multiplier = tc.attempts, tc.multiplier
		if err := c.Validate(); tc.says == "" {
			require.NoError(t, err)
		} else {
			require.ErrorContains(t, err, tc.says)
		}
	}
}
