package machine_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"waybill.dev/waybill/protocol/runstate"
	"waybill.dev/waybill/protocol/wire"
	"waybill.dev/waybill/services/dispatcher/machine"
)

// The next attempt starts after the vendor's Retry-After.
func TestFailNode_WaitsAsLongAsTheVendorAsks(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		after time.Duration
		want  string
	}{
		"nothing asked":                   {0, `"delayMs":500`},
		"less than the host waits itself": {time.Millisecond, `"delayMs":500`},
		"more":                            {90 * time.Second, `"delayMs":90000`},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, m, _ := trace(t, graph{nodes: []string{"a:core.ai.callPrompt"}, settings: `{"maxRetries":1}`})
			m.Flushed()
			m.FailNode(at, "a", &wire.NodeError{
				Code:       "quota",
				Message:    "slow down",
				Retryable:  true,
				RetryAfter: tt.after,
			}, wire.Trusted)
			require.Equal(t, "node.retried@a", strings.Join(names(m), " "))
			require.Contains(t, payloadOf(t, m, wire.EventNodeRetried), tt.want)
			require.NotContains(t, strings.ToLower(payloadOf(t, m, wire.EventNodeRetried)), "retryafter", "the wait is the delay in the event")
			require.Empty(t, m.Advance(at))
			due, ok := m.Due()
			require.True(t, ok)
			require.Equal(t, max(tt.after, 500*time.Millisecond), due.Sub(at))
		})
	}
}

// The delay is recorded, so another executor waits until the same time.
func TestFailNode_WaitsOnAfterARestart(t *testing.T) {
	t.Parallel()
	g := graph{nodes: []string{"a:core.ai.callPrompt"}, settings: `{"maxRetries":1}`}
	_, m, _ := trace(t, g)
	m.FailNode(at, "a", &wire.NodeError{
		Code:       "quota",
		Message:    "slow down",
		Retryable:  true,
		RetryAfter: 90 * time.Second,
	}, wire.Trusted)
	st := runstate.New(record())
	events, _ := m.Pending()
	for _, e := range events {
		st.Apply(e)
	}
	again := machine.New(g.plan(t), limits, st)
	require.Empty(t, again.Advance(at.Add(89*time.Second)))
	due, ok := again.Due()
	require.True(t, ok)
	require.Equal(t, at.Add(90*time.Second), due)
	require.Len(t, again.Advance(due), 1, "the next attempt")
}

// If the next attempt would start after the run's deadline, the node fails immediately with the
// error of its last attempt.
func TestFailNode_DoesNotWaitBeyondTheRunsTime(t *testing.T) {
	t.Parallel()
	for _, after := range []time.Duration{limits.MaxDuration, 24 * time.Hour} {
		t.Run(fmt.Sprint(after), func(t *testing.T) {
			t.Parallel()
			_, m, _ := trace(t, graph{nodes: []string{"a:core.ai.callPrompt"}, settings: `{"maxRetries":5}`})
			m.Flushed()
			m.FailNode(at, "a", &wire.NodeError{
				Code:       "quota",
				Message:    "slow down",
				Retryable:  true,
				RetryAfter: after,
			}, wire.Trusted)
			m.Advance(at)
			require.Equal(t, "node.failed@a run.failed", strings.Join(names(m), " "))
			require.Contains(t, payloadOf(t, m, wire.EventRunFailed), "slow down")
		})
	}
}
