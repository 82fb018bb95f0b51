package engine_test

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"waybill.dev/waybill/protocol/runstate"
	"waybill.dev/waybill/protocol/wire"
	"waybill.dev/waybill/services/dispatcher/model"
	"waybill.dev/waybill/services/dispatcher/node"
)

// A run whose model has no capacity waits without a session. Another process continues after the
// recorded pause and counts the node's waits on.
func TestCapacity_TheRunSleepsAndAnotherProcessGoesOn(t *testing.T) {
	t.Parallel()
	var waits []int
	busy := models(func(_ context.Context, task model.Task, _ model.Journal) model.Result {
		if waits = append(waits, task.Waits); len(waits) <= 3 {
			return model.Result{Err: &wire.NodeError{
				Code:       "provider_quota_exhausted",
				Message:    "slow down",
				Retryable:  true,
				Capacity:   true,
				RetryAfter: 50 * time.Second,
			}}
		}
		return model.Result{Output: node.Output{}}
	})
	defs := define(t, nodeJSON("a", "core.ai.callPrompt", "{}"))
	r := newRig(t, defs, busy)
	r.create(t)
	for n := range 3 {
		r.next(t)
		st, frames := r.state(t)
		require.Equal(t, runstate.NodeRetrying, st.Nodes["a"].Status)
		require.Zero(t, r.exec.Active())
		require.Len(t, r.sleep, n+1)
		require.Equal(t, st.Nodes["a"].Due(), r.sleep[n].UTC())
		require.Equal(t, int64(50_000), st.Nodes["a"].DelayMs)
		r.exec = r.executor(defs, busy)
		r.ahead.Add(int64(time.Minute))
		require.NoError(t, r.exec.Wake(t.Context(), theRun, frames[len(frames)-1].Head()))
	}
	r.next(t)
	st, _ := r.state(t)
	require.Equal(t, wire.StatusCompleted, st.Status)
	require.Equal(t, []int{0, 1, 2, 3}, waits)
	require.Equal(t, 1, st.Executions)
}
