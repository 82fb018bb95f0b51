package outbound_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"waybill.dev/waybill/services/dispatcher/provider/outbound"
)

func TestIsTruncated_KnowsTheWordsOfServers(t *testing.T) {
	t.Parallel()
	for _, reason := range []string{"length", "MAX_TOKENS", "maximum_tokens", "token_limit_reached", "max_output_length", "max_output_tokens"} {
		require.True(t, outbound.IsTruncated(outbound.Word(reason)), reason)
	}
	for _, reason := range []string{"stop", "end_turn", "content_filter", "tool_calls"} {
		require.False(t, outbound.IsTruncated(outbound.Word(reason)), reason)
	}
}
