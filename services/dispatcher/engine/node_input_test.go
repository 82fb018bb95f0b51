package engine_test

import (
	"context"
	"encoding/json"
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"waybill.dev/waybill/protocol/fault"
	"waybill.dev/waybill/services/dispatcher/model"
	"waybill.dev/waybill/services/dispatcher/node"
)

// The inputs of a node are those of its attempt, whatever its sources do later.
func TestNodeInput_IsWhatTheAttemptWasGiven(t *testing.T) {
	t.Parallel()
	var given []node.Input
	defs := define(t, nodeJSON("a", "core.ai.callPrompt", "{}")+","+nodeJSON("b", "core.ai.callPrompt", `{"prompt":"p"}`),
		`{"id":"e","sourceNodeId":"a","sourceOutput":"output","targetNodeId":"b","targetInput":"text"}`)
	r := newRig(t, defs, models(func(_ context.Context, task model.Task, _ model.Journal) model.Result {
		given = append(given, task.Input)
		return model.Result{Output: node.Output{Ports: map[string]json.RawMessage{
			"output": json.RawMessage(fmt.Sprintf(`"said by %s"`, task.Input.NodeID)),
		}}}
	}))
	r.create(t)
	r.next(t)
	require.Len(t, given, 2)
	doc, in, err := r.exec.NodeInput(t.Context(), "acme", "run_1", "b", -1)
	require.NoError(t, err)
	require.Equal(t, given[1].Ports, in.Ports)
	require.JSONEq(t, `{"text":"said by a"}`, string(renderedInput(t, doc.Inputs)))
	require.JSONEq(t, `{"prompt":"p"}`, string(doc.Config))
	require.Equal(t, "core.ai.callPrompt", doc.TypeID)
	require.Nil(t, doc.Error)
	again, _, err := r.exec.NodeInput(t.Context(), "acme", "run_1", "b", doc.Sequence)
	require.NoError(t, err)
	require.Equal(t, doc, again)

	for name, ask := range map[string]struct {
		tenant, run, node string
		at                int
		code              fault.Code
	}{
		"no such run":            {"acme", "run_9", "b", -1, fault.RunNotFound},
		"another tenant's run":   {"beta", "run_1", "b", -1, fault.RunNotFound},
		"no such node":           {"acme", "run_1", "c", -1, fault.NotFound},
		"before its first start": {"acme", "run_1", "b", doc.Sequence - 1, fault.NotFound},
	} {
		_, _, err := r.exec.NodeInput(t.Context(), ask.tenant, ask.run, ask.node, ask.at)
		require.Equal(t, ask.code, fault.CodeOf(err), name)
	}
}

func renderedInput(t *testing.T, v any) []byte {
	t.Helper()
	b, err := json.Marshal(v)
	require.NoError(t, err)
	return b
}
