package seam

import (
	"testing"

	"github.com/stretchr/testify/require"

	"waybill.dev/waybill/protocol/fault"
	"waybill.dev/waybill/services/dispatcher/model"
	"waybill.dev/waybill/services/dispatcher/node"
	"waybill.dev/waybill/services/dispatcher/tool"
)

// OpenWOP host contract §5.6: a replay without a recorded outcome performs no side effect.
func TestSideEffect_IsNotPerformedInAReplay(t *testing.T) {
	t.Parallel()
	task := model.Task{Tenant: "acme", RunID: "run_1", Input: node.Input{NodeID: "effect"}, Replay: true}
	res := sideEffect{}.Run(t.Context(), task, nil)
	require.Equal(t, "replay_source_missing", res.Err.Code)
	require.Empty(t, res.Drafts)
	require.Empty(t, res.Output.Ports)
}

// The side effect is recorded with its outcome, under the same id in each attempt.
func TestSideEffect_HasOneIDForEveryAttempt(t *testing.T) {
	t.Parallel()
	task := model.Task{Tenant: "acme", RunID: "run_1", Input: node.Input{NodeID: "effect"}}
	first := sideEffect{}.Run(t.Context(), task, nil)
	task.Attempt = 1
	second := sideEffect{}.Run(t.Context(), task, nil)
	require.Nil(t, first.Err)
	require.Len(t, first.Drafts, 1)
	require.Contains(t, string(first.Drafts[0].Payload), string(first.Output.Ports["logicalInvocationId"]))
	require.Equal(t, first, second)
	task.RunID = "run_2"
	require.NotEqual(t, first, sideEffect{}.Run(t.Context(), task, nil))
}

// The member in which the suite plants a key is not searched for secrets; every other one is.
func TestWithoutPlanted_LeavesOutTheAttributesOfCostNodesOnly(t *testing.T) {
	t.Parallel()
	require.JSONEq(t, `{"id":"wf","nodes":[{"typeId":"conformance.cost.emit","config":{},"name":"n"},{"typeId":"core.noop","config":{"k":"v"}}]}`,
		string((&Seams{}).WithoutPlantedSecret([]byte(`{"id":"wf","nodes":[{"typeId":"conformance.cost.emit","config":{"attrs":{"k":"v"}},"name":"n"},{"typeId":"core.noop","config":{"k":"v"}}]}`))))
	for _, doc := range []string{`{"nodes":[{"typeId":"core.noop"}]}`, `{"nodes":1}`, `[]`} {
		require.Equal(t, doc, string((&Seams{}).WithoutPlantedSecret([]byte(doc))))
	}
}

// Without test seams a dispatcher has no node type, runner, template or provider of the tests.
func TestSeams_NilAddsNothing(t *testing.T) {
	t.Parallel()
	var none *Seams
	types, runners := node.Builtin(), tool.Runners{}
	require.Len(t, none.Types(types), len(types))
	require.NotContains(t, none.Types(types), node.TypeSideEffect)
	require.Empty(t, none.Runners(runners, model.Prompts{}))
	require.Empty(t, none.MockProviders())
	require.Nil(t, none.Canned())
	require.False(t, none.HasSecrets())
	p, err := none.Prompts(model.Prompts{})
	require.NoError(t, err)
	require.Nil(t, p.Library)
	require.Nil(t, p.Secret)
	doc := []byte(`{"nodes":[{"typeId":"conformance.cost.emit","config":{"attrs":{"k":"v"}}}]}`)
	require.Equal(t, doc, none.WithoutPlantedSecret(doc))
	require.Equal(t, fault.NotFound, fault.CodeOf(none.Check("acme")))
}
