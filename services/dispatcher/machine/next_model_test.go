package machine_test

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"waybill.dev/waybill/protocol/runstate"
	"waybill.dev/waybill/protocol/wire"
	"waybill.dev/waybill/services/dispatcher/machine"
)

// modelDown is the error of a model after which another one is called.
func modelDown(index int, capacity bool) *wire.NodeError {
	return &wire.NodeError{
		Code:       "provider_unavailable",
		Message:    "down",
		Retryable:  true,
		Capacity:   capacity,
		RetryAfter: time.Second,
		Details:    map[string]any{"provider": "a"},
		Next:       &wire.NextModel{Index: index, Provider: "b", Model: "m/x"},
	}
}

// The next model is recorded with the failure, and called by the process that continues the run. It uses up
// neither a retry nor an execution.
func TestFailNode_CallsTheRecordedNextModel(t *testing.T) {
	t.Parallel()
	g := graph{nodes: []string{"a:core.ai.callPrompt"}}
	_, m, _ := trace(t, g)
	m.FailNode(at, "a", modelDown(1, false), wire.Trusted)
	require.Contains(t, strings.Join(names(m), " "), "node.retried@a")
	require.Contains(t, payloadOf(t, m, wire.EventNodeRetried), `"reason":"model_failed"`)
	require.Contains(t, payloadOf(t, m, wire.EventNodeRetried), `"next":{"index":1,"provider":"b","model":"m/x"}`)

	st := runstate.New(record())
	events, _ := m.Pending()
	for _, e := range events {
		st.Apply(e)
	}
	again := machine.New(g.plan(t), limits, st)
	due, ok := again.Due()
	require.True(t, ok)
	effects := again.Advance(due)
	require.Len(t, effects, 1)
	require.Equal(t, &wire.NextModel{Index: 1, Provider: "b", Model: "m/x"}, effects[0].Input.Next)
	require.Equal(t, 1, effects[0].Attempt)
	require.Equal(t, 1, again.State().Executions)

	b, err := again.State().Encode()
	require.NoError(t, err)
	decoded, err := runstate.Decode(record(), b)
	require.NoError(t, err)
	require.Equal(t, again.State().Nodes["a"].Next, decoded.Nodes["a"].Next)

	again.Flushed()
	again.FailNode(due, "a", &wire.NodeError{Code: "provider_unavailable", Message: "down", Retryable: true}, wire.Trusted)
	again.Advance(due)
	require.Equal(t, "node.failed@a run.failed", strings.Join(names(again), " "), "no retry is configured")
}

// With another model, a node does not wait for the one that has no capacity.
func TestFailNode_CallsTheNextModelInsteadOfWaiting(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		settings string
		pause    time.Duration
	}{
		"a short wait":          {`{}`, time.Second},
		"no time is left":       {`{}`, limits.MaxDuration},
		"the author forbids it": {`{"retry":{"onCapacity":"fail"}}`, time.Second},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			m := machine.New(planOf(t, one("a", "core.ai.callPrompt", "{}", "{}", tc.settings), "", noVars), limits, runstate.New(record()))
			m.Advance(at)
			e := modelDown(0, true)
			e.RetryAfter = tc.pause
			m.FailNode(at, "a", e, wire.Trusted)
			require.Contains(t, payloadOf(t, m, wire.EventNodeRetried), `"reason":"model_failed"`)
			require.Contains(t, payloadOf(t, m, wire.EventNodeRetried), `"delayMs":1,`)
		})
	}
}

// An ordinary retry begins with the node's own model again.
func TestFailNode_ARetryBeginsWithTheNodesOwnModel(t *testing.T) {
	t.Parallel()
	_, m, _ := trace(t, graph{nodes: []string{"a:core.ai.callPrompt"}, settings: `{"maxRetries":1}`})
	m.FailNode(at, "a", modelDown(0, false), wire.Trusted)
	due, _ := m.Due()
	require.NotNil(t, m.Advance(due)[0].Input.Next)
	m.FailNode(due, "a", &wire.NodeError{Code: "provider_unavailable", Message: "down", Retryable: true}, wire.Trusted)
	due, _ = m.Due()
	effects := m.Advance(due)
	require.Len(t, effects, 1)
	require.Nil(t, effects[0].Input.Next)
	require.Equal(t, 2, effects[0].Attempt)
}

// The retries of a provider's settings apply if neither the node nor its workflow has any.
func TestFailNode_UsesTheRetriesOfTheFailedPeer(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		workflow, node string
		retries        bool
	}{
		"none elsewhere":    {"", `{}`, true},
		"the node has 0":    {"", `{"maxRetries":0}`, false},
		"in settings.retry": {"", `{"retry":{"maxRetries":0}}`, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			m := machine.New(planOf(t, one("a", "core.ai.callPrompt", "{}", "{}", tc.node), "", noVars), limits, runstate.New(record()))
			m.Advance(at)
			m.Flushed()
			m.FailNode(at, "a", &wire.NodeError{Code: "provider_unavailable", Message: "down", Retryable: true, Retries: 1}, wire.Trusted)
			m.Advance(at)
			require.Equal(t, tc.retries, strings.Join(names(m), " ") == "node.retried@a")
		})
	}
}
