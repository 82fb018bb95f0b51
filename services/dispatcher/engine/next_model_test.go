package engine_test

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"waybill.dev/waybill/protocol/wire"
	"waybill.dev/waybill/services/dispatcher/model"
	"waybill.dev/waybill/services/dispatcher/node"
)

// The next model of onError.models is recorded before it is called: a process that takes the run over
// calls the same one.
func TestNextModel_AnotherProcessCallsTheRecordedOne(t *testing.T) {
	t.Parallel()
	next := &wire.NextModel{Index: 1, Provider: "b", Model: "m"}
	var called []*wire.NextModel
	first := models(func(_ context.Context, task model.Task, _ model.Journal) model.Result {
		if task.Input.Next != nil { // the process is lost before its second call
			return model.Result{Interrupted: context.Canceled, Unsent: true}
		}
		called = append(called, task.Input.Next)
		return model.Result{Err: &wire.NodeError{
			Code: "provider_quota_exhausted", Message: "slow down", Retryable: true, Capacity: true,
			RetryAfter: 50 * time.Second, Next: next,
		}}
	})
	defs := define(t, `{"id":"a","typeId":"core.ai.callPrompt","name":"n","position":{"x":0,"y":0},"config":{},"inputs":{},"settings":{"retry":{"onCapacity":"fail"}}}`)
	r := newRig(t, defs, first)
	r.create(t)
	r.next(t)
	st, frames := r.state(t)
	require.Equal(t, next, st.Nodes["a"].Next, "recorded before the next attempt")

	r.exec = r.executor(defs, models(func(_ context.Context, task model.Task, _ model.Journal) model.Result {
		called = append(called, task.Input.Next)
		return model.Result{Output: node.Output{}}
	}))
	r.ahead.Add(int64(time.Minute))
	require.NoError(t, r.exec.Wake(t.Context(), theRun, frames[len(frames)-1].Head()))
	r.next(t)
	st, _ = r.state(t)
	require.Equal(t, wire.StatusCompleted, st.Status)
	require.Equal(t, []*wire.NextModel{nil, next}, called)
}
