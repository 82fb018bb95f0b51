package machine_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"waybill.dev/waybill/protocol/wire"
)

func TestFailNode_FollowsTheRetryPolicy(t *testing.T) {
	t.Parallel()
	g := graph{nodes: []string{"a:core.ai.callPrompt"}, settings: `{"maxRetries":1}`}
	_, m, _ := trace(t, g)
	m.Flushed()
	down := &wire.NodeError{Code: "provider_unavailable", Message: "down", Retryable: true}
	m.FailNode(at, "a", down, wire.Trusted)
	require.Empty(t, m.Advance(at))
	require.Equal(t, "node.retried@a", strings.Join(names(m), " "))
	require.Contains(t, payloadOf(t, m, wire.EventNodeRetried), `"delayMs":500`)
	m.Flushed()

	due, _ := m.Due()
	effects := m.Advance(due)
	require.Equal(t, "node.started@a", strings.Join(names(m), " "))
	require.Len(t, effects, 1)
	require.Equal(t, 1, effects[0].Attempt)
	m.Flushed()
	m.FailNode(due, "a", down, wire.Trusted)
	m.Advance(due)
	require.Equal(t, "node.failed@a run.failed", strings.Join(names(m), " "))
	require.Contains(t, payloadOf(t, m, wire.EventNodeFailed), `"attempts":2`)
}

func TestFailNode_NeverRetriesWhatIsFinal(t *testing.T) {
	t.Parallel()
	_, m, _ := trace(t, graph{nodes: []string{"a:core.ai.callPrompt"}, settings: `{"maxRetries":5}`})
	m.Flushed()
	m.FailNode(at, "a", &wire.NodeError{Code: "envelope_refusal", Message: "no"}, wire.Trusted)
	m.Advance(at)
	require.Equal(t, "node.failed@a run.failed", strings.Join(names(m), " "))
}
