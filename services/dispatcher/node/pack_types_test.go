package node_test

import (
	"encoding/json"
	"testing"
	"testing/fstest"

	"github.com/stretchr/testify/require"

	"waybill.dev/waybill/protocol/pack"
	"waybill.dev/waybill/services/dispatcher/node"
)

// desk is a pack of two nodes; the second has no base.
func desk(t *testing.T) []*pack.Pack {
	t.Helper()
	file := func(text string) *fstest.MapFile { return &fstest.MapFile{Data: []byte(text)} }
	packs, _, err := pack.Load([]pack.Source{{Folder: "desk", FS: fstest.MapFS{
		"pack.json": file(`{"name":"vendor.acme.desk","version":"1.2.0","engines":{"openwop":"*"},"nodes":[
			{"typeId":"vendor.acme.desk.echo","version":"1.0.0","category":"data","role":"pure","configSchemaRef":"config.json","inputSchemaRef":"in.json","outputSchemaRef":"out.json",
				"envelopeContractRef":"contract.json","requiredModelCapabilities":["reasoning"]},
			{"typeId":"vendor.acme.desk.code","version":"1.0.0","category":"data","role":"pure"}]}`),
		"waybill.json":  file(`{"nodes":{"vendor.acme.desk.echo":{"base":"core.identity","config":{"a":1,"b":2}}}}`),
		"config.json":   file(`{"type":"object","properties":{"b":{"type":"integer"}}}`),
		"in.json":       file(`{"type":"object","required":["x"]}`),
		"out.json":      file(`{"type":"object","properties":{"x":{"type":"string"}}}`),
		"contract.json": file(`{"accepts":["error"]}`),
	}}}, pack.Host{Types: node.Builtin().IDs()})
	require.NoError(t, err)
	return packs
}

func TestWith_DerivesTypesFromTheHosts(t *testing.T) {
	t.Parallel()
	c := node.Builtin().With(desk(t))
	require.NotContains(t, c, "vendor.acme.desk.code")
	typ := c["vendor.acme.desk.echo"]
	require.Equal(t, "vendor.acme.desk.echo core.identity vendor.acme.desk@1.2.0", typ.ID+" "+typ.Executes()+" "+typ.Source)
	require.Equal(t, node.Pure, typ.Class)
	require.NotNil(t, typ.Do)
	require.Equal(t, []string{"reasoning"}, typ.Needs.Required)
	require.Equal(t, []string{"error"}, typ.Made.Contract.Accepts)
	require.NotContains(t, node.Builtin(), "vendor.acme.desk.echo", "the host's own catalog is as it was")
	require.Equal(t, "core.noop", c["core.noop"].Executes())
}

func TestConfigure_FillsInWhatTheAuthorLeftOut(t *testing.T) {
	t.Parallel()
	typ := node.Builtin().With(desk(t))["vendor.acme.desk.echo"]
	for given, want := range map[string]string{
		``:              `{"a":1,"b":2}`,
		`{}`:            `{"a":1,"b":2}`,
		`{"b":3,"c":4}`: `{"a":1,"b":3,"c":4}`,
	} {
		require.JSONEq(t, want, string(typ.Configure(json.RawMessage(given))), given)
	}
	require.Equal(t, `7`, string(typ.Configure(json.RawMessage(`7`))), "the node fails on it")
	require.Equal(t, `{"b":3}`, string(node.Builtin()["core.noop"].Configure(json.RawMessage(`{"b":3}`))))
}

func TestChecks_ApplyTheSchemasOfTheType(t *testing.T) {
	t.Parallel()
	typ := node.Builtin().With(desk(t))["vendor.acme.desk.echo"]
	require.Empty(t, typ.CheckConfig(nil))
	wrong := typ.CheckConfig(json.RawMessage(`{"b":"SECRET"}`))
	require.Len(t, wrong, 1)
	require.Equal(t, "/b", wrong[0].Path)
	require.NotContains(t, wrong[0].Message, "SECRET")

	require.Nil(t, typ.CheckInput(raw(map[string]string{"x": "1"})))
	bad := typ.CheckInput(nil)
	require.Equal(t, "validation_error", bad.Code)
	require.Contains(t, bad.Message, "/inputs: ")
	require.Nil(t, typ.CheckOutput(raw(map[string]string{"x": `"s"`})))
	bad = typ.CheckOutput(raw(map[string]string{"x": `["SECRET"]`}))
	require.Contains(t, bad.Message, "/outputs: ")
	require.NotContains(t, bad.Message, "SECRET")

	noop := node.Builtin()["core.noop"]
	require.Empty(t, noop.CheckConfig(json.RawMessage(`{}`)))
	require.Nil(t, noop.CheckInput(nil))
	require.Nil(t, noop.CheckOutput(nil))
}

// The model nodes are a pack: it declares their config; the host implements them.
func TestBuiltin_ModelNodesShipAsAPack(t *testing.T) {
	t.Parallel()
	for _, id := range []string{node.TypeCallPrompt, node.TypeStructuredOutput} {
		typ := node.Builtin()[id]
		require.Equal(t, "core.ai.nodes@1.0.0", typ.Source)
		require.Equal(t, node.Effect, typ.Class)
		require.True(t, typ.EmitsEnvelopes)
		require.Equal(t, id, typ.Executes())
		require.Empty(t, typ.CheckConfig(json.RawMessage(`{"maxTokens":100,"x-later":1,"retryOnInvalidJson":true}`)))
		wrong := typ.CheckConfig(json.RawMessage(`{"maxTokens":"many"}`))
		require.Len(t, wrong, 1)
		require.Equal(t, "/maxTokens", wrong[0].Path)
		require.Empty(t, typ.CheckConfig(json.RawMessage(`{"timeouts":{"connectMs":1,"firstByteMs":1,"silenceMs":1,"callMs":604800000}}`)))
		for _, wrong := range []string{
			`{"timeouts":{"callMs":0}}`, `{"timeouts":{"callMs":604800001}}`, `{"timeouts":{"call":5}}`,
			`{"timeouts":5}`,
		} {
			require.NotEmpty(t, typ.CheckConfig(json.RawMessage(wrong)), wrong)
		}
	}
}

// A pack's type accepts the config of its base, whether the pack fills it in or not.
func TestWith_ChecksTheWholeConfigAgainstTheBase(t *testing.T) {
	t.Parallel()
	file := func(text string) *fstest.MapFile { return &fstest.MapFile{Data: []byte(text)} }
	packs, _, err := pack.Load([]pack.Source{{Folder: "desk", FS: fstest.MapFS{
		"pack.json":    file(`{"name":"vendor.acme.desk","version":"1.0.0","engines":{"openwop":"*"},"nodes":[{"typeId":"vendor.acme.desk.ask","version":"1.0.0","category":"chat","role":"pure"}]}`),
		"waybill.json": file(`{"nodes":{"vendor.acme.desk.ask":{"base":"core.ai.callPrompt","config":{"prompt":7}}}}`),
	}}}, pack.Host{Types: node.Builtin().IDs()})
	require.NoError(t, err)
	typ := node.Builtin().With(packs)["vendor.acme.desk.ask"]
	bad := typ.Check(typ.Configure(json.RawMessage(`{}`)))
	require.NotNil(t, bad)
	require.Contains(t, bad.Message, "/config/prompt")
	require.Nil(t, typ.Check(typ.Configure(json.RawMessage(`{"prompt":"hi"}`))))
}
