package runspan

import (
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/require"

	"waybill.dev/waybill/protocol/wire"
)

// Names and sources of the attributes of the six reliability events (OpenWOP envelope contract
// §15.2). Text of models and vendors is excluded.
func TestReliability_HasTheAttributesOfEachEvent(t *testing.T) {
	t.Parallel()
	const prefix = "openwop.envelope."
	tests := map[wire.EventType]struct {
		payload string
		want    map[string]any
	}{
		wire.EventEnvelopeRetryAttempted: {
			`{"nodeId":"n","attempt":2,"reason":"truncation","previousError":"text"}`,
			map[string]any{prefix + "retry.attempt": int64(2), prefix + "retry.reason": "truncation"},
		},
		wire.EventEnvelopeRetryExhausted: {
			`{"nodeId":"n","totalAttempts":3,"finalReason":"parse-error","finalError":"text"}`,
			map[string]any{prefix + "retry.total_attempts": int64(3), prefix + "retry.final_reason": "parse-error"},
		},
		wire.EventEnvelopeRefusal: {
			`{"nodeId":"n","provider":"p","model":"m","refusalText":"text","safetyCategory":"violence"}`,
			map[string]any{prefix + "refusal.safety_category": "violence"},
		},
		wire.EventEnvelopeTruncated: {
			`{"nodeId":"n","provider":"p","model":"m","stopReason":"max_tokens","partialPayloadAvailable":true,"outputTokenCount":0}`,
			map[string]any{prefix + "truncated.stop_reason": "max_tokens", prefix + "truncated.output_token_count": int64(0)},
		},
		wire.EventEnvelopeNLToFormat: {
			`{"nodeId":"n","originalEnvelopeType":"error","fallbackCalls":1}`,
			map[string]any{prefix + "nl_to_format.fallback_calls": int64(1)},
		},
		wire.EventEnvelopeRecovery: {
			`{"nodeId":"n","path":"brace-walker","byteOffset":0}`,
			map[string]any{prefix + "recovery.path": "brace-walker", prefix + "recovery.byte_offset": int64(0)},
		},
	}
	for typ, tc := range tests {
		t.Run(string(typ), func(t *testing.T) {
			t.Parallel()
			var p event
			require.NoError(t, json.Unmarshal([]byte(tc.payload), &p))
			require.Equal(t, tc.want, reliability(typ, p))
		})
	}
	require.Nil(t, reliability(wire.EventNodeStarted, event{}), "other events have none")
}
