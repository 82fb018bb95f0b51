package machine_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"waybill.dev/waybill/protocol/runstate"
	"waybill.dev/waybill/protocol/wire"
	"waybill.dev/waybill/services/dispatcher/machine"
)

// What a person reads has the values of its placeholders. Untrusted ones make the question untrusted.
func TestQuestion_FillsPlaceholders(t *testing.T) {
	t.Parallel()
	const variables = `,"settings":{},"variables":[{"name":"mail","type":"string"},{"name":"fine","type":"object"},{"name":"unset","type":"string"}]`
	for name, tt := range map[string]struct {
		node  string
		data  string // parts of the question
		trust wire.Trust
	}{
		"title and description": {
			one("b", "core.approvalGate", `{"title":"Send {{fine}}?","description":"none: {{unset}}.","actions":["accept"]}`, "{}"),
			`"title":"Send {\"n\":1}?","description":"none: ."`, wire.Trusted,
		},
		"untrusted variable": {
			one("b", "core.approvalGate", `{"title":"Send?","description":"{{ mail }}","actions":["accept"]}`, "{}"),
			`"description":"a {{fine}} b"`, wire.Untrusted,
		},
		"artifact": {
			one("b", "core.approvalGate", `{"title":"Send?","artifactData":{"of":"{{fine}}","none":"{{unset}}"},"actions":["accept"]}`, "{}"),
			`"artifactData":{"none":null,"of":{"n":1}}`, wire.Trusted,
		},
		"a port is no template": {
			one("b", "core.approvalGate", `{"title":"Send {{fine}}?","actions":["accept"]}`, `{"input":{"type":"static","value":"{{mail}}"}}`),
			`"artifactData":"{{mail}}"`, wire.Trusted,
		},
		"port": {
			one("b", "core.approvalGate", `{"title":"Send {{n}}?","actions":["accept"]}`, `{"n":{"type":"static","value":7}}`),
			`"title":"Send 7?"`, wire.Trusted,
		},
		"optional port without a value": {
			one("b", "core.approvalGate", `{"title":"Send {{n}}?","actions":["accept"]}`, `{"n":{"type":"variable","variableName":"unset","optional":true}}`),
			`"title":"Send ?"`, wire.Trusted,
		},
		"question": {
			one("b", "core.clarificationGate", `{"questions":[{"id":"q","question":"Which of {{fine}}?","schema":{"const":"{{fine}}"}}]}`, "{}"),
			`"question":"Which of {\"n\":1}?","schema":{"const":"{{fine}}"}`, wire.Trusted,
		},
		"question of a kind": {
			one("b", "core.interrupt", `{"kind":"approval","key":"{{fine}}","data":{"title":"Send {{fine}}?","actions":["accept"]}}`, "{}"),
			`"title":"Send {\"n\":1}?"`, wire.Trusted,
		},
		"form": {
			one("b", "core.interrupt", `{"kind":"custom","data":{"customKind":"sign","payload":{"text":"{{fine}}"}}}`, "{}"),
			`"payload":{"text":"{{fine}}"}`, wire.Trusted,
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			st := runstate.New(record())
			st.Variables["mail"], st.Tainted["mail"] = json.RawMessage(`"a {{fine}} b"`), true
			st.Variables["fine"] = json.RawMessage(`{"n":1}`)
			m := machine.New(planOf(t, tt.node, "", variables), limits, st)
			m.Advance(at)
			q := m.State().Open("b")
			require.NotNil(t, q, "%s", strings.Join(names(m), " "))
			require.Contains(t, string(q.Data), tt.data)
			require.Equal(t, tt.trust, q.Trust.Meet(wire.Trusted))
		})
	}
}

// A question that cannot be asked fails its node.
func TestQuestion_FailsWithoutValues(t *testing.T) {
	t.Parallel()
	const variables = `,"settings":{},"variables":[{"name":"unset","type":"string"},{"name":"long","type":"string"}]`
	for name, tt := range map[string]struct{ config, code, message string }{
		"unknown name": {`{"title":"Send {{nope}}?","actions":["accept"]}`, "prompt_variable", "node b: /config/title: no port and no variable is named nope"},
		"no text":      {`{"title":"{{unset}}","actions":["accept"]}`, "validation_error", "node b: /config/title: is empty"},
		"too long": {
			`{"title":"t","description":"` + strings.Repeat("{{long}}", 40) + `","actions":["accept"]}`, "content_too_long", "node b: /config/description: the values of the placeholders have more than",
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			st := runstate.New(record())
			st.Variables["long"] = json.RawMessage(`"` + strings.Repeat("x", 1<<20) + `"`)
			m := machine.New(planOf(t, one("b", "core.approvalGate", tt.config, "{}"), "", variables), limits, st)
			m.Advance(at)
			require.Equal(t, runstate.NodeFailed, m.State().Nodes["b"].Status)
			require.Contains(t, payloadOf(t, m, wire.EventNodeFailed), tt.message)
			require.Contains(t, payloadOf(t, m, wire.EventNodeFailed), tt.code)
		})
	}
}
