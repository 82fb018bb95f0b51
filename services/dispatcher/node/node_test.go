package node_test

import (
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/require"

	"waybill.dev/waybill/services/dispatcher/node"
)

func raw(members map[string]string) map[string]json.RawMessage {
	out := map[string]json.RawMessage{}
	for k, v := range members {
		out[k] = json.RawMessage(v)
	}
	return out
}

func TestIDs_AreThoseTheHostAdvertises(t *testing.T) {
	t.Parallel()
	c := node.Builtin()
	require.Equal(t, []string{
		"core.ai.callPrompt", "core.ai.structuredOutput", "core.approvalGate", "core.channelWrite",
		"core.clarificationGate", "core.conditional", "core.delay", "core.end",
		"core.fail", "core.getVariable", "core.identity", "core.interrupt", "core.loop", "core.merge",
		"core.noop", "core.parallel",
		"core.setVariable", "core.start", "core.subWorkflow",
	}, c.IDs())
	for id, typ := range c {
		require.Equal(t, id, typ.ID)
		require.Equal(t, typ.Class == node.Pure, typ.Do != nil, "%s: a pure type, and no other, is done by the loop", id)
		require.Equal(t, typ.Class == node.Timer, typ.Delay != nil, id)
		require.Equal(t, typ.Class == node.Effect, typ.EmitsEnvelopes, id)
	}
}

// Host contract §5.6.
func TestIdentity_EchoesItsPortsAndSetsVariables(t *testing.T) {
	t.Parallel()
	do := node.Builtin()["core.identity"].Do
	for name, tt := range map[string]struct{ in, ports, writes map[string]string }{
		"nothing": {},
		"a port":  {map[string]string{"a": "1"}, map[string]string{"a": "1"}, map[string]string{"a": "1"}},
		"the default input": {
			map[string]string{"input": `"x"`},
			map[string]string{"input": `"x"`, "output": `"x"`},
			map[string]string{"input": `"x"`},
		},
		"a named output": {
			map[string]string{"input": "1", "output": "2"},
			map[string]string{"input": "1", "output": "2"},
			map[string]string{"input": "1", "output": "2"},
		},
	} {
		out, err := do(node.Input{Ports: raw(tt.in)})
		require.Nil(t, err, name)
		require.Equal(t, raw(tt.ports), out.Ports, name)
		require.Equal(t, raw(tt.writes), out.Writes, name)
	}
	out, err := node.Builtin()["core.noop"].Do(node.Input{Ports: raw(map[string]string{"a": "1"})})
	require.Nil(t, err)
	require.Equal(t, node.Output{}, out)
}

func TestFail_FailsAsConfigured(t *testing.T) {
	t.Parallel()
	const code, message = "conformance_test_failure", "Intentional conformance failure"
	for config, want := range map[string][2]string{
		``: {code, message}, `{}`: {code, message}, `[]`: {code, message}, `{"code":7}`: {code, message},
		`{"code":"mine"}`:                             {"mine", message},
		`{"message":"words"}`:                         {code, "words"},
		`{"code":"mine","Code":"yours","message":""}`: {"mine", message},
	} {
		_, err := node.Builtin()["core.fail"].Do(node.Input{Config: json.RawMessage(config)})
		require.Equal(t, want, [2]string{err.Code, err.Message}, config)
	}
}

func TestDelay_ReadsItsWait(t *testing.T) {
	t.Parallel()
	delay := node.Builtin()["core.delay"].Delay
	for name, tt := range map[string]struct {
		in   node.Input
		want int64
	}{
		"nothing":           {node.Input{}, 0},
		"config delayMs":    {node.Input{Config: json.RawMessage(`{"ms":2,"delayMs":1,"durationMs":3}`)}, 1},
		"config ms":         {node.Input{Config: json.RawMessage(`{"durationMs":3,"ms":2}`)}, 2},
		"config durationMs": {node.Input{Config: json.RawMessage(`{"durationMs":3}`)}, 3},
		"the port before that": {
			node.Input{Ports: raw(map[string]string{"delayMs": "5"}), Config: json.RawMessage(`{"ms":2}`)},
			5,
		},
		"the run's input first": {
			node.Input{RunInputs: raw(map[string]string{"delaySeconds": "1.5"}), Ports: raw(map[string]string{"delayMs": "5"})},
			1500,
		},
		"a week is the most":     {node.Input{Config: json.RawMessage(`{"ms":604800000}`)}, 604800000},
		"zero":                   {node.Input{Config: json.RawMessage(`{"ms":0}`)}, 0},
		"another spelling is no": {node.Input{Config: json.RawMessage(`{"MS":9}`)}, 0},
	} {
		got, err := delay(tt.in)
		require.Nil(t, err, name)
		require.Equal(t, tt.want, got, name)
	}
	for path, in := range map[string]node.Input{
		"/config/ms":           {Config: json.RawMessage(`{"ms":-1}`)},
		"/config/delayMs":      {Config: json.RawMessage(`{"delayMs":"soon"}`)},
		"/config/durationMs":   {Config: json.RawMessage(`{"durationMs":604800001}`)},
		"/inputs/delayMs":      {Ports: raw(map[string]string{"delayMs": "1e300"})},
		"/inputs/delaySeconds": {RunInputs: raw(map[string]string{"delaySeconds": "604801"})},
	} {
		_, err := delay(in)
		require.NotNil(t, err, path)
		require.Equal(t, "validation_error", err.Code)
		require.Contains(t, err.Message, path)
	}
}
