package node_test

import (
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/require"

	"waybill.dev/waybill/protocol/untrusted"
	"waybill.dev/waybill/services/dispatcher/node"
)

// OpenWOP envelope contract §12, marking for prompts.
func TestOrigin_NamesToolsAndAgents(t *testing.T) {
	t.Parallel()
	tool := node.Origin(node.TypeMCPCallTool, json.RawMessage(`{"server":"s","tool":"t","agent":"no"}`))
	require.Equal(t, untrusted.Mark{Source: "mcp-tool", Attributes: map[string]string{"server": "s", "tool": "t"}}, tool)
	agent := node.Origin(node.TypeA2ASendMessage, json.RawMessage(`{"agent":"a"}`))
	require.Equal(t, untrusted.Mark{Source: "a2a", Attributes: map[string]string{"agent": "a"}}, agent)
	require.Zero(t, node.Origin("core.identity", json.RawMessage(`{"agent":"a"}`)))

	in := node.Input{Origins: map[string]untrusted.Mark{"p": tool}}
	require.Equal(t, untrusted.Mark{
		Source: "mcp-tool", Type: "input", Attributes: map[string]string{"name": "p", "server": "s", "tool": "t"},
	}, in.Mark("input", "p"))
	require.Equal(t, untrusted.Mark{Type: "input", Attributes: map[string]string{"name": "q"}}, in.Mark("input", "q"))
	require.Len(t, tool.Attributes, 2, "marks are not shared")
}

func TestAnd_AddsTypesToACopy(t *testing.T) {
	t.Parallel()
	c := node.Builtin().And(node.Type{ID: node.TypeMCPCallTool, Class: node.Effect})
	require.Equal(t, "builtin", c[node.TypeMCPCallTool].Source)
	require.NotContains(t, node.Builtin(), node.TypeMCPCallTool)
}
