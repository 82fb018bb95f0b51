package engine_test

import (
	"context"
	"encoding/json"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"waybill.dev/waybill/protocol/runstate"
	"waybill.dev/waybill/protocol/wire"
	"waybill.dev/waybill/services/dispatcher/model"
	"waybill.dev/waybill/services/dispatcher/node"
)

// OpenWOP host contract §5.4: an attempt that exceeds its time is cancelled, its node is retried,
// and no event of the late attempt is recorded.
func TestTimeout_EndsTheEffectAndTheRunGoesOn(t *testing.T) {
	t.Parallel()
	var calls atomic.Int32
	refused := make(chan error, 1)
	slow := func(ctx context.Context, task model.Task, j model.Journal) model.Result {
		if calls.Add(1) > 1 {
			return model.Result{Output: node.Output{Ports: map[string]json.RawMessage{"output": json.RawMessage(`"second"`)}}}
		}
		<-ctx.Done() // cancelled by the node's timeout, not by the run's
		refused <- j.Record(context.WithoutCancel(ctx), wire.Draft{
			Type:    wire.EventLogAppended,
			NodeID:  task.Input.NodeID,
			Payload: json.RawMessage(`{"message":"late"}`),
		})
		return model.Result{Output: node.Output{Ports: map[string]json.RawMessage{"output": json.RawMessage(`"first"`)}}}
	}
	ask := `{"id":"a","typeId":"core.ai.callPrompt","name":"n","position":{"x":0,"y":0},"config":{},"inputs":{},
		"settings":{"timeoutMs":500,"retry":{"maxRetries":1,"backoffMs":20000}}}`
	r := newRig(t, define(t, ask), models(slow))
	r.create(t)
	r.next(t)
	require.ErrorIs(t, <-refused, context.Canceled)
	st, frames := r.state(t)
	require.Equal(t, runstate.NodeRetrying, st.Nodes["a"].Status)
	require.Len(t, r.sleep, 1, "the next attempt is a timer, too")
	r.ahead.Store(int64(time.Minute))
	require.NoError(t, r.exec.Wake(t.Context(), theRun, frames[len(frames)-1].Head()))
	r.next(t)
	st, frames = r.state(t)
	require.Equal(t, wire.StatusCompleted, st.Status)
	require.JSONEq(t, `"second"`, string(st.Nodes["a"].Outputs["output"]))
	require.Equal(t, 1, st.Nodes["a"].Attempt)
	for _, f := range frames {
		require.NotContains(t, string(f.Body), "late")
		require.NotContains(t, string(f.Body), "first")
	}
}

func TestTimeout_LeavesOtherEffectsAlone(t *testing.T) {
	t.Parallel()
	over := make(chan struct{})
	both := func(ctx context.Context, task model.Task, _ model.Journal) model.Result {
		if task.Input.NodeID == "a" {
			<-ctx.Done()
			close(over)
			return model.Result{Interrupted: ctx.Err()}
		}
		<-over
		if ctx.Err() != nil {
			return model.Result{Interrupted: ctx.Err()}
		}
		return model.Result{}
	}
	ask := `{"id":"a","typeId":"core.ai.callPrompt","name":"n","position":{"x":0,"y":0},"config":{},"inputs":{},"settings":{"timeoutMs":30}}`
	r := newRig(t, define(t, ask+","+nodeJSON("b", "core.ai.callPrompt", "{}")), models(both))
	r.create(t)
	r.next(t)
	st, _ := r.state(t)
	require.Equal(t, runstate.NodeFailed, st.Nodes["a"].Status)
	require.Equal(t, "node_timeout", st.Nodes["a"].Error.Code)
	require.Equal(t, runstate.NodeCompleted, st.Nodes["b"].Status)
}
