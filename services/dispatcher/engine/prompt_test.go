package engine_test

import (
	"context"
	"encoding/json"
	"errors"
	"testing"

	"github.com/stretchr/testify/require"

	"waybill.dev/waybill/protocol/runstate"
	"waybill.dev/waybill/protocol/wire"
	"waybill.dev/waybill/services/dispatcher/model"
	"waybill.dev/waybill/services/dispatcher/node"
)

// The next dispatcher finds the composition of the running attempt in the log.
func TestExecute_TheNextExecutorKnowsThePromptThatIsInTheLog(t *testing.T) {
	t.Parallel()
	var tasks []model.Task
	asks := func(ctx context.Context, task model.Task, j model.Journal) model.Result {
		tasks = append(tasks, task)
		if len(tasks) == 2 {
			return model.Result{Output: node.Output{Ports: map[string]json.RawMessage{"output": json.RawMessage(`1`)}}}
		}
		draft := wire.Draft{
			Type:    wire.EventPromptComposed,
			NodeID:  "a",
			Payload: json.RawMessage(`{"nodeId":"a","refs":["prompt:w@1.0.0"],"kind":"user-only","hash":"sha256:0"}`),
		}
		usage := wire.Draft{ // the attempt continues after it
			Type:    wire.EventProviderUsage,
			NodeID:  "a",
			Payload: json.RawMessage(`{"nodeId":"a"}`),
		}
		return model.Result{Interrupted: errors.Join(errors.New("lost"), j.Record(ctx, draft, usage))}
	}
	r := newRig(t, define(t, nodeJSON("a", "core.ai.callPrompt", "{}")), models(asks))
	r.create(t)
	r.next(t)
	r.next(t) // delivered again
	require.Len(t, tasks, 2)
	require.Equal(t, "wf", tasks[0].WorkflowID)
	require.Nil(t, tasks[0].Composed)
	require.Equal(t, tasks[0].Attempt, tasks[1].Attempt)
	require.Equal(t, &runstate.Prompt{Refs: []string{"prompt:w@1.0.0"}, Hash: "sha256:0"}, tasks[1].Composed)
	st, _ := r.state(t)
	require.Equal(t, wire.StatusCompleted, st.Status)
}
