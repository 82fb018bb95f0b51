package node_test

import (
	"encoding/json"
	"testing"
	"testing/fstest"

	"github.com/stretchr/testify/require"

	"waybill.dev/waybill/protocol/pack"
	"waybill.dev/waybill/protocol/workflow"
	"waybill.dev/waybill/services/dispatcher/node"
)

func TestReview_RejectsAskOnNodesWithoutCalls(t *testing.T) {
	t.Parallel()
	const ask = `,"config":{},"inputs":{},"settings":{"onUnknownOutcome":"ask"}`
	for _, typ := range []string{"core.noop", "core.delay", "core.end"} {
		problems, warned := node.Builtin().Review(definitionOf(t, nodeJSON("a", typ, ask), ""), nil)
		require.Empty(t, warned)
		require.Len(t, problems, 1, typ)
		require.Equal(t, "/nodes/0/settings/onUnknownOutcome", problems[0].Path)
		require.Equal(t, workflow.RuleUnknownOutcome, problems[0].Rule)
	}
	problems, warned := node.Builtin().Review(definitionOf(t, nodeJSON("a", node.TypeCallPrompt, ask), ""), nil)
	require.Empty(t, problems)
	require.Empty(t, warned)
}

func TestOnUnknownOutcome_FollowsTheTypeUnlessTheNodeSays(t *testing.T) {
	t.Parallel()
	tool := node.Type{ID: node.TypeMCPCallTool, Class: node.Effect, Idempotent: node.MarkedIdempotent}
	model := node.Builtin()[node.TypeCallPrompt]
	for name, tc := range map[string]struct {
		typ              node.Type
		config, settings string
		want             workflow.UnknownOutcome
	}{
		"a model":                {model, `{}`, `{}`, workflow.OutcomeRetry},
		"a model that says fail": {model, `{}`, `{"onUnknownOutcome":"fail"}`, workflow.OutcomeFail},
		"a tool":                 {tool, `{}`, `{}`, workflow.OutcomeFail},
		"a type without a mark": {
			node.Type{ID: "x", Class: node.Effect},
			`{"idempotent":true}`, `{}`, workflow.OutcomeFail,
		},
		"an idempotent tool":           {tool, `{"idempotent":true}`, `{}`, workflow.OutcomeRetry},
		"an idempotent tool that asks": {tool, `{"idempotent":true}`, `{"onUnknownOutcome":"ask"}`, workflow.OutcomeAsk},
		"a marker that is none":        {tool, `{"idempotent":"true"}`, `{}`, workflow.OutcomeFail},
	} {
		n := &workflow.Node{Config: json.RawMessage(tc.config), Settings: json.RawMessage(tc.settings)}
		require.Equal(t, tc.want, tc.typ.OnUnknownOutcome(n), name)
	}
}

// A pack marks its calls in the config that it fills in.
func TestOnUnknownOutcome_OfAPackFollowsItsConfig(t *testing.T) {
	t.Parallel()
	host := node.Builtin().And(node.Type{ID: node.TypeMCPCallTool, Class: node.Effect, Idempotent: node.MarkedIdempotent})
	packs, _, err := pack.Load([]pack.Source{{Folder: "shop", FS: fstest.MapFS{
		"pack.json": {Data: []byte(`{"name":"vendor.acme.shop","version":"1.0.0","engines":{"openwop":"*"},"nodes":[
			{"typeId":"vendor.acme.shop.find","version":"1.0.0","category":"data","role":"side-effect"}]}`)},
		"waybill.json": {Data: []byte(`{"nodes":{"vendor.acme.shop.find":{"base":"core.mcp.callTool","config":{"server":"shop","tool":"find","idempotent":true}}}}`)},
	}}}, pack.Host{Types: host.IDs()})
	require.NoError(t, err)
	find := host.With(packs)["vendor.acme.shop.find"]
	require.Equal(t, workflow.OutcomeRetry, find.OnUnknownOutcome(&workflow.Node{Config: json.RawMessage(`{}`)}))
	require.Equal(t, workflow.OutcomeFail, find.OnUnknownOutcome(&workflow.Node{Config: json.RawMessage(`{"idempotent":false}`)}))
}
