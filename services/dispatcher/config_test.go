package dispatcher_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"waybill.dev/waybill/services/dispatcher"
)

// The host's choices, OpenWOP envelope contract §14.3.
func TestConfig_KeepsTheBudgetsWithinTheProtocolsBounds(t *testing.T) {
	t.Parallel()
	def := dispatcher.DefaultConfig()
	require.NoError(t, def.Validate())
	require.Equal(t, []int{3, 2, 4000}, []int{
		def.Completion.MaxAttempts, def.Completion.Multiplier, def.Completion.Defaults.MaxTokens,
	})
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

// OpenWOP host contract §5.7: the runtime's capabilities have the form of a node's requirements.
func TestConfig_TakesIdsOfRuntimeCapabilitiesOnly(t *testing.T) {
	t.Parallel()
	c := dispatcher.DefaultConfig()
	c.RuntimeCapabilities = []string{"vendor.acme.gpu", "net.outbound"}
	require.NoError(t, c.Validate())
	c.RuntimeCapabilities = []string{"net.outbound", "GPU here"}
	require.ErrorContains(t, c.Validate(), `runtime-capability "GPU here": needs letters`)
}
