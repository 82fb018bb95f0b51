package machine_test

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"waybill.dev/waybill/protocol/runstate"
	"waybill.dev/waybill/protocol/wire"
	"waybill.dev/waybill/services/dispatcher/machine"
	"waybill.dev/waybill/services/dispatcher/node"
)

// full returns the error of a peer without capacity.
func full(pause time.Duration) *wire.NodeError {
	return &wire.NodeError{
		Code:       "provider_quota_exhausted",
		Message:    "slow down",
		Retryable:  true,
		Capacity:   true,
		RetryAfter: pause,
		Details:    map[string]any{"provider": "p"},
	}
}

// A wait for capacity counts neither as a retry of the node nor as an execution of the run. A
// dispatcher that folds the log waits until the same instant.
func TestCapacity_WaitsAsRecordedWithoutUsingRetries(t *testing.T) {
	t.Parallel()
	g := graph{nodes: []string{"a:core.ai.callPrompt"}}
	plan, tight := g.plan(t), limits
	tight.MaxNodeExecutions = 1
	m := machine.New(plan, tight, runstate.New(record()))
	var log []wire.Event
	flush := func() string {
		events, _ := m.Pending()
		log = append(log, events...)
		out := strings.Join(names(m), " ")
		m.Flushed()
		return out
	}
	effects, now := m.Advance(at), at
	flush()
	for waits := range 3 {
		require.Len(t, effects, 1)
		require.Equal(t, waits, effects[0].Waits)
		require.Equal(t, waits, effects[0].Attempt)
		pause := time.Duration(waits+1) * 1234 * time.Millisecond
		m.FailNode(now, "a", full(pause), wire.Trusted)
		require.Contains(t, payloadOf(t, m, wire.EventNodeRetried), `"reason":"no_capacity"`)
		require.Contains(t, payloadOf(t, m, wire.EventNodeRetried), `"provider":"p"`)
		require.Equal(t, "node.retried@a", flush())

		m = machine.New(plan, tight, runstate.Fold(record(), log)) // another dispatcher
		require.Empty(t, m.Advance(now.Add(pause-time.Millisecond)))
		due, ok := m.Due()
		require.True(t, ok)
		require.Equal(t, now.Add(pause), due)
		now = due
		effects = m.Advance(now)
		require.Equal(t, "node.started@a", flush())
	}
	m.Complete(now, "a", node.Output{}, wire.Trusted)
	m.Advance(now)
	require.Equal(t, "node.completed@a run.completed", flush())
}

// After waits for capacity, the first retry has the backoff of a first retry.
func TestCapacity_LeavesThePauseOfARetryAsItIs(t *testing.T) {
	t.Parallel()
	m := machine.New(planOf(t, one("a", "core.ai.callPrompt", "{}", "{}", `{"maxRetries":1}`), "", noVars), limits, runstate.New(record()))
	now := at
	m.Advance(now)
	for range 5 {
		m.Flushed()
		m.FailNode(now, "a", full(time.Second), wire.Trusted)
		now = now.Add(time.Second)
		require.Len(t, m.Advance(now), 1)
	}
	m.Flushed()
	m.FailNode(now, "a", &wire.NodeError{Code: "provider_unavailable", Message: "no", Retryable: true}, wire.Trusted)
	require.Contains(t, payloadOf(t, m, wire.EventNodeRetried), `"delayMs":500`)
	require.Zero(t, m.State().Nodes["a"].Waits)
}

func TestCapacity_EndsWithTheTime(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		settings string
		failure  *wire.NodeError
		want     string
	}{
		"the run's":               {`{}`, full(limits.MaxDuration), "node.failed@a run.failed"},
		"the attempt's":           {`{"timeoutMs":5000}`, full(5 * time.Second), "node.failed@a run.failed"},
		"not yet the attempt's":   {`{"timeoutMs":5000}`, full(4 * time.Second), "node.retried@a"},
		"the author forbids it":   {`{"retry":{"onCapacity":"fail"}}`, full(time.Second), "node.failed@a run.failed"},
		"it uses up a retry then": {`{"retry":{"onCapacity":"fail","maxRetries":1}}`, full(time.Second), "node.retried@a"},
		"another failure":         {`{}`, &wire.NodeError{Code: "provider_unavailable", Message: "no", Retryable: true}, "node.failed@a run.failed"},
		"no retry can help":       {`{}`, &wire.NodeError{Code: "provider_quota_exhausted", Message: "no money", Capacity: true}, "node.failed@a run.failed"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			m := machine.New(planOf(t, one("a", "core.ai.callPrompt", "{}", "{}", tc.settings), "", noVars), limits, runstate.New(record()))
			m.Advance(at)
			m.Flushed()
			m.FailNode(at, "a", tc.failure, wire.Trusted)
			m.Advance(at)
			require.Equal(t, tc.want, strings.Join(names(m), " "))
			if strings.HasPrefix(tc.want, "node.failed") {
				require.NotContains(t, payloadOf(t, m, wire.EventNodeFailed), "no_capacity")
			}
		})
	}
}

// Waits for capacity count against the time limit of the attempt. A replay repeats the recorded
// limits and does not wait.
func TestCapacity_WaitsCountAgainstTheAttemptsTime(t *testing.T) {
	t.Parallel()
	plan := planOf(t, one("a", "core.ai.callPrompt", "{}", "{}", `{"timeoutMs":10000}`), "", noVars)
	m := machine.New(plan, limits, runstate.New(record()))
	var log []wire.Event
	flush := func() {
		events, _ := m.Pending()
		log = append(log, events...)
		m.Flushed()
	}
	m.Advance(at)
	flush()
	m.FailNode(at.Add(time.Second), "a", full(3*time.Second), wire.Trusted)
	m.Advance(at.Add(time.Second))
	flush()
	m.Advance(at.Add(4 * time.Second))
	require.Contains(t, payloadOf(t, m, wire.EventNodeStarted), `"timeoutMs":6000`)
	flush()
	due, ok := m.Due()
	require.True(t, ok)
	require.Equal(t, at.Add(10*time.Second), due)
	m.Complete(at.Add(5*time.Second), "a", node.Output{}, wire.Trusted)
	m.Advance(at.Add(5 * time.Second))
	flush()

	rec := *record()
	rec.RunID, rec.Fork = "run_2", &wire.Fork{SourceRunID: record().RunID, Mode: wire.ForkReplay, Head: len(log)}
	replay := machine.NewReplay(plan, limits, runstate.New(&rec), machine.NewHistory(*rec.Fork, log, nil))
	require.Empty(t, replay.Advance(at.Add(time.Hour)))
	events, _ := replay.Pending()
	require.Equal(t, facts(log), facts(events))
}
