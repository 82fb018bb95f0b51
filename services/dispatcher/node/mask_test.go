package node_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"waybill.dev/waybill/protocol/wire"
	"waybill.dev/waybill/protocol/workflow"
	"waybill.dev/waybill/services/dispatcher/node"
)

// def is a workflow: its nodes as members after id, and the rest of its members.
func def(t *testing.T, nodes map[string]string, rest ...string) *workflow.Definition {
	t.Helper()
	members := map[string]string{"edges": `[]`, "variables": `[]`, "metadata": `{}`, "channels": `{}`}
	for _, m := range rest {
		name, value, _ := strings.Cut(m, "=")
		members[name] = value
	}
	var list []string
	for id, body := range nodes {
		list = append(list, fmt.Sprintf(`{"id":%q,"name":"x","position":{"x":0,"y":0},%s}`, id, body))
	}
	d, problems := workflow.Parse(fmt.Appendf(nil, `{"id":"wf","name":"wf","version":"1","nodes":[%s],"edges":%s,"triggers":[],"variables":%s,"channels":%s,"metadata":%s,"settings":{}}`,
		strings.Join(list, ","), members["edges"], members["variables"], members["channels"], members["metadata"]))
	require.Empty(t, problems)
	return d
}

const (
	plain  = `"typeId":"core.noop","config":{},"inputs":{}`
	marked = `"typeId":"core.identity","config":{},"inputs":{},"outputSensitivity":{"ssn":true}`
	secret = `variables=[{"name":"ssn","type":"string","sensitive":true},{"name":"lang","type":"string"}]`
	reader = `"typeId":"core.identity","config":{},"inputs":{"copy":{"type":"variable","variableName":"ssn"}}`
)

// maskedPayload is the payload of an event after the policy, one of "type node payload".
func maskedPayload(p *node.MaskPolicy, typ wire.EventType, nodeID, payload string) string {
	return string(p.Event(wire.Draft{
		Type:    typ,
		NodeID:  nodeID,
		Payload: json.RawMessage(payload),
	}.Place("r", 0, time.Unix(0, 0))).Payload)
}

func TestOf_IsNilWhereNothingIsSensitive(t *testing.T) {
	t.Parallel()
	require.Nil(t, node.NewMaskPolicy(def(t, map[string]string{"a": plain}), node.Builtin()))
	require.Nil(t, node.NewMaskPolicy(def(t, map[string]string{"a": plain}, `metadata={"complianceClass":"public"}`), node.Builtin()))
	require.Nil(t, node.NewMaskPolicy(def(t, map[string]string{"a": reader}, secret, `metadata={"complianceConfig":{"maskingMode":"passthrough"}}`), node.Builtin()))
}

// The masking modes, OpenWOP host contract §10.3.
func TestModes_MaskOmitOrHashValues(t *testing.T) {
	t.Parallel()
	for mode, want := range map[string]string{
		"mask": `{"workflowId":"wf","inputs":{"lang":"de","ssn":"[REDACTED]"}}`,
		"omit": `{"workflowId":"wf","inputs":{"lang":"de"}}`,
		"hash": `{"workflowId":"wf","inputs":{"lang":"de","ssn":"sha256:3140d59420ca920c79fdef003360543c12b14da984f00f8665756e9da9c4b743"}}`,
	} {
		p := node.NewMaskPolicy(def(t, map[string]string{"a": plain}, secret, `metadata={"complianceConfig":{"maskingMode":"`+mode+`"}}`), node.Builtin())
		require.JSONEq(t, want, maskedPayload(p, wire.EventRunStarted, "", `{"workflowId":"wf","inputs":{"lang":"de","ssn":"123"}}`), mode)
	}
}

// OpenWOP host contract §10.3: every source of sensitivity, and the events with its values.
func TestSources_AreMaskedInEveryEvent(t *testing.T) {
	t.Parallel()
	types := node.Builtin()
	packed := types["core.noop"]
	packed.ID, packed.Sensitive = "vendor.a.b", map[string]bool{"ssn": true, "open": true}
	types["vendor.a.b"] = packed
	for name, c := range map[string]struct {
		nodes         map[string]string
		rest          string
		typ           wire.EventType
		node          string
		payload, want string
	}{
		"a variable": {
			map[string]string{"a": plain},
			secret, wire.EventVariableChanged, "a", `{"name":"ssn","previous":"1","next":"2"}`,
			`{"name":"ssn","previous":"[REDACTED]","next":"[REDACTED]"}`,
		},
		"another variable": {
			map[string]string{"a": plain},
			secret, wire.EventVariableChanged, "a", `{"name":"lang","next":"de"}`,
			`{"name":"lang","next":"de"}`,
		},
		"a port of a node": {
			map[string]string{"a": marked},
			"", wire.EventNodeCompleted, "a", `{"outputs":{"ssn":"1","x":2}}`,
			`{"outputs":{"ssn":"[REDACTED]","x":2}}`,
		},
		"a port of a type": {
			map[string]string{"a": `"typeId":"vendor.a.b","config":{},"inputs":{}`},
			"", wire.EventNodeCompleted, "a", `{"outputs":{"ssn":1}}`, `{"outputs":{"ssn":"[REDACTED]"}}`,
		},
		"the instance overrides": {
			map[string]string{"a": `"typeId":"vendor.a.b","config":{},"inputs":{},"outputSensitivity":{"open":false}`},
			"", wire.EventNodeCompleted, "a", `{"outputs":{"open":1,"ssn":1}}`,
			`{"outputs":{"open":1,"ssn":"[REDACTED]"}}`,
		},
		"what the run puts out": {
			map[string]string{"a": marked},
			"", wire.EventRunCompleted, "", `{"outputs":{"ssn":"1","x":2}}`,
			`{"outputs":{"ssn":"[REDACTED]","x":2}}`,
		},
		"a channel": {
			map[string]string{"a": plain},
			`channels={"c":{"reducer":"append","sensitive":true}}`, wire.EventChannelWritten, "a",
			`{"channel":"c","value":1,"reducer":"append"}`,
			`{"channel":"c","value":"[REDACTED]","reducer":"append"}`,
		},
		"the workflow's class": {
			map[string]string{"a": plain},
			`metadata={"complianceClass":"phi"}`, wire.EventNodeCompleted, "a", `{"outputs":{"x":2}}`,
			`{"outputs":{"x":"[REDACTED]"}}`,
		},
		"who reads a variable": {
			map[string]string{"a": reader},
			secret, wire.EventNodeCompleted, "a", `{"outputs":{"copy":"1"}}`,
			`{"outputs":{"copy":"[REDACTED]"}}`,
		},
		"and what it writes": {
			map[string]string{"a": reader},
			secret, wire.EventVariableChanged, "a", `{"name":"copy","next":"1"}`,
			`{"name":"copy","next":"[REDACTED]"}`,
		},
		"and who reads that": {
			map[string]string{
				"a": reader,
				"b": `"typeId":"core.channelWrite","config":{"channelName":"c","reducer":"append"},"inputs":{"value":{"type":"variable","variableName":"copy"}}`,
			},
			secret, wire.EventChannelWritten, "b", `{"channel":"c","value":1,"reducer":"append"}`,
			`{"channel":"c","value":"[REDACTED]","reducer":"append"}`,
		},
		"over an edge": {
			map[string]string{"a": marked, "b": `"typeId":"core.identity","config":{},"inputs":{}`},
			`edges=[{"id":"e","sourceNodeId":"a","sourceOutput":"ssn","targetNodeId":"b"}]`,
			wire.EventNodeCompleted, "b", `{"outputs":{"input":"1"}}`, `{"outputs":{"input":"[REDACTED]"}}`,
		},
		"over another edge": {
			map[string]string{"a": marked, "b": `"typeId":"core.identity","config":{},"inputs":{}`},
			`edges=[{"id":"e","sourceNodeId":"a","sourceOutput":"x","targetNodeId":"b"}]`,
			wire.EventNodeCompleted, "b", `{"outputs":{"input":"1"}}`, `{"outputs":{"input":"1"}}`,
		},
		"over a connection": {
			map[string]string{
				"a": marked,
				"b": `"typeId":"core.identity","config":{},"inputs":{"v":{"type":"connection","nodeId":"a","outputKey":"ssn"}}`,
			},
			"", wire.EventNodeCompleted, "b", `{"outputs":{"v":"1"}}`, `{"outputs":{"v":"[REDACTED]"}}`,
		},
		"what a reader fails of": {
			map[string]string{"a": reader},
			secret, wire.EventNodeFailed, "a",
			`{"nodeId":"a","error":{"code":"x","message":"no 123","details":{"v":"123"}}}`,
			`{"nodeId":"a","error":{"code":"x","message":"[REDACTED]"}}`,
		},
		"what a reader logs": {
			map[string]string{"a": reader},
			secret, wire.EventLogAppended, "a", `{"level":"info","message":"123","fields":{"a":"123"}}`,
			`{"level":"info","message":"[REDACTED]"}`,
		},
		"facts stay": {
			map[string]string{"a": reader},
			secret, wire.EventNodeStarted, "a", `{"nodeId":"a","typeId":"core.identity","attempt":0}`,
			`{"nodeId":"a","typeId":"core.identity","attempt":0}`,
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := node.NewMaskPolicy(def(t, c.nodes, c.rest), types)
			require.NotNil(t, p)
			require.JSONEq(t, c.want, maskedPayload(p, c.typ, c.node, c.payload))
		})
	}
}

func TestRecord_MasksSensitiveInputsDefaultsAndChannels(t *testing.T) {
	t.Parallel()
	p := node.NewMaskPolicy(def(t, map[string]string{"a": plain}, secret, `channels={"c":{"reducer":"append","sensitive":true,"default":["123"]}}`), node.Builtin())
	r := &wire.RunRecord{
		Inputs:   map[string]json.RawMessage{"ssn": json.RawMessage(`"123"`), "lang": json.RawMessage(`"de"`)},
		Defaults: map[string]json.RawMessage{"ssn": json.RawMessage(`"123"`)},
		Channels: map[string]wire.Channel{"c": {Reducer: "append", Default: json.RawMessage(`["123"]`)}},
	}
	got, err := json.Marshal(p.Record(r))
	require.NoError(t, err)
	require.NotContains(t, string(got), "123")
	require.Contains(t, string(got), `"lang":"de"`)
	require.Contains(t, string(got), `"masking":"mask"`)
	require.JSONEq(t, `"123"`, string(r.Inputs["ssn"]), "the record itself stays as it was")
}

func TestFindUnmaskable_FindsNodesThatStream(t *testing.T) {
	t.Parallel()
	n, refused := node.FindUnmaskable(def(t, map[string]string{"m": `"typeId":"core.ai.callPrompt","config":{},"inputs":{}`}), node.Builtin())
	require.True(t, refused)
	require.Equal(t, "m", n.ID)
	_, refused = node.FindUnmaskable(def(t, map[string]string{"a": reader}), node.Builtin())
	require.False(t, refused)
}

func TestMaskAll_MasksEveryValue(t *testing.T) {
	t.Parallel()
	p := node.NewMaskAll(node.Mask)
	require.JSONEq(t, `{"outputs":{"a":"[REDACTED]"}}`, maskedPayload(p, wire.EventNodeCompleted, "n", `{"outputs":{"a":1}}`))
	require.JSONEq(t, `{"name":"v","next":"[REDACTED]"}`, maskedPayload(p, wire.EventVariableChanged, "n", `{"name":"v","next":1}`))
}

// A node that reads sensitive variables by an expression or its config is sensitive, and so are the
// nodes that depend on it.
func TestSpread_FollowsExpressionsAndNodesThatReadVariables(t *testing.T) {
	t.Parallel()
	for name, body := range map[string]string{
		"an expression in a port": `"typeId":"core.identity","config":{},"inputs":{"v":{"type":"expression","expression":"variables.ssn"}}`,
		"core.getVariable":        `"typeId":"core.getVariable","config":{"name":"ssn"},"inputs":{}`,
		"core.loop":               `"typeId":"core.loop","config":{"count":1,"expression":"variables.ssn"},"inputs":{}`,
		"core.start":              `"typeId":"core.start","config":{},"inputs":{}`,
		"core.conditional":        `"typeId":"core.conditional","config":{"expression":"variables.ssn == '1'"},"inputs":{}`,
	} {
		p := node.NewMaskPolicy(def(t, map[string]string{
			"a": body, "b": `"typeId":"core.setVariable","config":{"name":"copy"},"inputs":{}`,
		}, secret, `edges=[{"id":"e","sourceNodeId":"a","targetNodeId":"b"}]`), node.Builtin())
		require.NotNil(t, p, name)
		require.NotContains(t, maskedPayload(p, wire.EventNodeCompleted, "a", `{"nodeId":"a","outputs":{"output":"078-05-1120"}}`), "078", name)
		require.NotContains(t, maskedPayload(p, wire.EventNodeCompleted, "b", `{"nodeId":"b","outputs":{"output":"078-05-1120"}}`), "078", name)
		require.NotContains(t, maskedPayload(p, wire.EventVariableChanged, "b", `{"name":"copy","next":"078-05-1120","nodeId":"b"}`), "078", name)
	}
}
