package node_test

import (
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/require"

	"waybill.dev/waybill/services/dispatcher/node"
)

func TestChannelWrite_TakesItsValueFromThePortFirst(t *testing.T) {
	t.Parallel()
	do := node.Builtin()["core.channelWrite"].Do
	for name, tt := range map[string]struct{ config, port, input, want string }{
		"config":          {`{"channelName":"c","value":1}`, ``, `3`, `1`},
		"port":            {`{"channelName":"c","value":1}`, `2`, ``, `2`},
		"what came in":    {`{"channelName":"c"}`, ``, `3`, `3`},
		"null is a value": {`{"channelName":"c","value":null}`, ``, ``, `null`},
	} {
		in := node.Input{Config: json.RawMessage(tt.config), Ports: map[string]json.RawMessage{}}
		if tt.port != "" {
			in.Ports["value"] = json.RawMessage(tt.port)
		}
		if tt.input != "" {
			in.Ports["input"] = json.RawMessage(tt.input)
		}
		out, bad := do(in)
		require.Nil(t, bad, name)
		require.Equal(t, []node.ChannelWrite{{Channel: "c", Value: json.RawMessage(tt.want)}}, out.Channels, name)
	}
	for config, says := range map[string]string{
		`{"value":1}`:         "/config/channelName",
		`{"channelName":"c"}`: "/config/value",
		`{"channelName":1}`:   "/config/channelName",
	} {
		_, bad := do(node.Input{Config: json.RawMessage(config)})
		require.Equal(t, "validation_error", bad.Code)
		require.Contains(t, bad.Message, says)
	}
}

// OpenWOP host contract §5.6: the node records digest and length of the value, never the value.
func TestSecretEcho_OutputsDigestAndLength(t *testing.T) {
	t.Parallel()
	do := node.Builtin().Conformance(map[string]string{"s1": "abc"})["conformance.secret.echo"].Do
	out, bad := do(node.Input{NodeID: "n", Config: json.RawMessage(`{"secretId":"s1"}`)})
	require.Nil(t, bad)
	require.JSONEq(t, `{"secretSha256":"ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad","secretLength":3}`, string(out.Writes["n"]))
	require.Empty(t, out.Ports)
	_, bad = do(node.Input{NodeID: "n", Config: json.RawMessage(`{"secretId":"s2"}`)})
	require.Equal(t, "credential_not_found", bad.Code)
	require.NotContains(t, bad.Message, "abc")
	_, bad = do(node.Input{NodeID: "n", Config: json.RawMessage(`{}`)})
	require.Equal(t, "validation_error", bad.Code)
}

func TestCostEmit_DropsWhatIsNotOnTheList(t *testing.T) {
	t.Parallel()
	do := node.Builtin().Conformance(nil)["conformance.cost.emit"].Do
	out, bad := do(node.Input{Config: json.RawMessage(`{"attrs":{"openwop.cost.usd":1.5,"openwop.cost.evil":"x"}}`)})
	require.Nil(t, bad)
	got, err := json.Marshal(out.Cost)
	require.NoError(t, err)
	require.JSONEq(t, `{"openwop.cost.usd":1.5}`, string(got))
	_, bad = do(node.Input{Config: json.RawMessage(`{}`)})
	require.Equal(t, "validation_error", bad.Code)
}

func TestHold_WaitsAsLongAsItsPortSays(t *testing.T) {
	t.Parallel()
	delay := node.Builtin().Conformance(nil)["core.conformance.hold"].Delay
	ms, bad := delay(node.Input{
		Ports:     raw(map[string]string{"delayMs": "250"}),
		RunInputs: raw(map[string]string{"delaySeconds": "9"}),
	})
	require.Nil(t, bad)
	require.EqualValues(t, 250, ms)
	_, bad = delay(node.Input{})
	require.Equal(t, "validation_error", bad.Code)
}

// The node types of the fixtures exist only with test seams.
func TestConformance_LeavesTheCatalogAlone(t *testing.T) {
	t.Parallel()
	plain := node.Builtin()
	seams := plain.Conformance(nil)
	require.Equal(t, node.Builtin().IDs(), plain.IDs())
	for _, id := range []string{
		"conformance.requiresMissing", "conformance.cost.emit", "conformance.secret.echo",
		"core.conformance.hold", "core.conformance.side-effect", "local.sample.demo.mock-ai",
	} {
		require.NotContains(t, plain, id)
		require.Equal(t, "conformance", seams[id].Source)
	}
	out, bad := plain["core.identity"].Do(node.Input{
		Config:   json.RawMessage(`{"emitDuplicateMessageId":true}`),
		Channels: map[string]string{"m": "message"},
	})
	require.Nil(t, bad)
	require.Empty(t, out.Channels)
}
