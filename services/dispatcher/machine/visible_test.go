package machine_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"waybill.dev/waybill/protocol/wire"
	"waybill.dev/waybill/protocol/workflow"
	"waybill.dev/waybill/services/dispatcher/definition"
)

// OpenWOP host contract §5.9: a channel is hidden from a node that is not one of its readers: in
// its expressions, the conditions of its edges, and the inputs of its child.
func TestChannels_AreHiddenFromExpressionsOfNonReaders(t *testing.T) {
	t.Parallel()
	const channels = `{"priv":{"reducer":"replace","access":{"readers":["nobody"]}}}`
	write := "w:core.channelWrite:" + writes("priv", `"TOPSECRET"`)
	for name, reader := range map[string]string{
		"an expression": `r:core.identity:"config":{},"inputs":{"v":{"type":"expression","expression":"variables.priv"}}`,
		"a variable":    `r:core.identity:"config":{},"inputs":{"v":{"type":"variable","variableName":"priv"}}`,
		"a node's own":  `r:core.getVariable:"config":{"name":"priv"},"inputs":{}`,
	} {
		p := planned(t, channels, write, reader)
		compiled, problems := definition.Compile(p.Def)
		require.Empty(t, problems)
		p.Flow = compiled
		m := begun(p)
		m.Advance(at)
		require.Equal(t, wire.StatusFailed, m.State().Status, name)
		require.NotContains(t, payloadOf(t, m, wire.EventRunFailed), "TOPSECRET", name)
	}

	p := planned(t, channels, write, `r:core.noop:"config":{},"inputs":{}`)
	p.Def.Edges[0].Condition = &workflow.EdgeCondition{
		Type:       workflow.ConditionExpression,
		Expression: `variables.priv == "TOPSECRET"`,
	}
	compiled, problems := definition.Compile(p.Def)
	require.Empty(t, problems)
	p.Flow = compiled
	m := begun(p)
	m.Advance(at)
	require.Equal(t, wire.StatusFailed, m.State().Status, "the target may not read it")

	p = planned(t, channels, write, `r:core.subWorkflow:"config":{"workflowId":"child","inputMapping":{"x":"priv"}},"inputs":{}`)
	m = begun(p)
	spawned := m.Advance(at)
	require.Len(t, spawned, 1)
	require.NotNil(t, spawned[0].Spawn)
	require.Empty(t, spawned[0].Spawn.Inputs)
	require.Equal(t, []string{"x"}, spawned[0].Spawn.Unset)
}
