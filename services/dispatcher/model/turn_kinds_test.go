package model_test

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"waybill.dev/waybill/internal/projection"
	"waybill.dev/waybill/protocol/wire"
	"waybill.dev/waybill/services/dispatcher/model"
	"waybill.dev/waybill/services/dispatcher/node"
	"waybill.dev/waybill/services/dispatcher/provider"
	"waybill.dev/waybill/services/dispatcher/provider/mock"
)

// manyKinds has kinds of one schema, vendor.x.k1 and so on, and the universal ones.
type manyKinds struct{ schema string }

func (k manyKinds) Kind(_ context.Context, name string) (model.Kind, bool, error) {
	source := k.schema
	switch name {
	case wire.KindClarificationRequest:
		source = `{"type":"object","additionalProperties":false,"required":["questions"],"properties":{"reasoning":{"type":"string"},
			"contextType":{"type":"string"},"questions":{"type":"array","minItems":1,"items":{"type":"object","additionalProperties":false,
			"required":["id","question"],"properties":{"id":{"type":"string"},"question":{"type":"string"},"schema":{"type":"object"},"context":{"type":"object"}}}}}}`
	case wire.KindSchemaRequest:
		source = `{"type":"object","additionalProperties":false,"required":["envelopeType"],"properties":{"envelopeType":{"type":"string"},"reason":{"type":"string"}}}`
	case wire.KindError:
		source = `{"type":"object","additionalProperties":false,"required":["code","message"],"properties":{"code":{"type":"string"},"message":{"type":"string"},"details":{"type":"object"}}}`
	}
	return model.Kind{Name: name, Version: 1, Schema: json.RawMessage(source)}, true, nil
}

func (manyKinds) Limits(context.Context) (model.Limits, error) {
	return model.Limits{EnvelopesPerTurn: 50, SchemaRounds: 2, ClarificationRounds: 3}, nil
}

// inDialect is a provider with a dialect.
type inDialect struct {
	*spy

	dialect projection.Vendor
}

func (p inDialect) Dialect(string) projection.Vendor { return p.dialect }

func (inDialect) SchemaForms(string) []provider.SchemaVia {
	return []provider.SchemaVia{provider.ViaFormat, provider.ViaTool, provider.ViaWords}
}

// askKinds runs a node whose contract accepts n kinds.
func askKinds(t *testing.T, v projection.Vendor, schema, config string, n int, answer string) rig {
	t.Helper()
	scripts := newScripts()
	require.NoError(t, scripts.Program(t.Context(), "acme", "n", []mock.Entry{{Content: answer}}))
	s := &spy{Provider: mock.New(scripts)}
	reg, err := provider.NewRegistry(inDialect{spy: s, dialect: v})
	require.NoError(t, err)
	loop := model.New(model.Config{
		MaxAttempts: 3, Multiplier: 2, Timeout: 5 * time.Second, Defaults: model.Defaults{Provider: "mock", Model: "m", MaxTokens: 100},
	}, model.Deps{Models: reg, Schemas: manyKinds{schema}, Clock: time.Now})
	names := make([]string, n)
	for i := range names {
		names[i] = fmt.Sprintf(`"vendor.x.k%d"`, i+1)
	}
	j := &journal{accept: acceptAll}
	res := loop.Run(t.Context(), model.Task{
		Tenant: "acme", RunID: "run_1", TypeID: node.TypeCallPrompt,
		Input: node.Input{NodeID: "n", Config: json.RawMessage(`{"prompt":"Go.","expectsStreaming":false,` + config + `"envelopeContract":{"accepts":[` + strings.Join(names, ",") + `]}}`)},
	}, j)
	return rig{journal: j, spy: s, result: res}
}

// Every vendor gets the turn of a contract in a schema that it takes, whatever the number of kinds. Where
// the kinds exceed the vendor's limits, the model is not offered rendering hints, and in the end gets the
// schema in words (RFC 0031 §A).
func TestTurn_TellsTheModelEveryKindOfAContract(t *testing.T) {
	t.Parallel()
	const plain = `{"type":"object","additionalProperties":false,"required":["v"],"properties":{"reasoning":{"type":"string"},"v":{"type":"integer"},"note":{"type":"string"}}}`
	const recursive = `{"type":"object","additionalProperties":false,"required":["v"],"properties":{"v":{"type":"integer"},"below":{"type":"array","items":{"$ref":"#"}}}}`
	for _, v := range projection.Vendors() {
		for _, n := range []int{1, 2, 5, 20, 40} {
			for name, schema := range map[string]string{"plain": plain, "recursive": recursive} {
				t.Run(fmt.Sprintf("%s/%d %s", v, n, name), func(t *testing.T) {
					t.Parallel()
					r := askKinds(t, v, schema, "", n, `{"envelopes":[{"type":"vendor.x.k1","payload":{"v":1}}]}`)
					require.Nil(t, r.result.Err)
					require.Len(t, r.spy.reqs, 1)
					require.JSONEq(t, `{"v":1}`, string(r.result.Output.Ports["output"]))
					req := r.spy.reqs[0]
					shown := string(req.Schema)
					if len(req.Schema) == 0 {
						shown = req.System
						require.Equal(t, provider.ViaWords, req.Via)
						require.Contains(t, r.payload(t, wire.EventLogAppended), `"schemaForm":"words"`, "the form is recorded")
					} else {
						require.Empty(t, projection.LintFor(v, req.Schema))
						require.NotContains(t, r.names(), "log.appended")
					}
					for i := range n {
						require.Contains(t, shown, fmt.Sprintf(`"vendor.x.k%d"`, i+1))
					}
					require.Equal(t, name == "plain", strings.Contains(req.System, `the member "reasoning"`), "the directive")
				})
			}
		}
	}
}

func TestTurn_OffersRenderingHintsWhereTheVendorHasRoom(t *testing.T) {
	t.Parallel()
	const schema = `{"type":"object","additionalProperties":false,"required":["v"],"properties":{"v":{"type":"integer"}}}`
	for n, hints := range map[int]bool{1: true, 5: true, 20: false} {
		r := askKinds(t, projection.Anthropic, schema, "", n, `{"envelopes":[{"type":"vendor.x.k1","payload":{"v":1}}]}`)
		require.Nil(t, r.result.Err)
		require.Equal(t, hints, strings.Contains(string(r.spy.reqs[0].Schema), `"rendering"`), "%d kinds", n)
		require.NotEmpty(t, r.spy.reqs[0].Schema)
	}
}

// A kind is its operator's, not the workflow author's: if its schema has rules that the vendor cannot
// express, the model gets them in words, whatever the form of the answer.
func TestTurn_ThatTheVendorCannotExpressIsSentInWords(t *testing.T) {
	t.Parallel()
	const schema = `{"type":"object","required":["v"],"properties":{"v":{"type":"integer"}},"if":{"properties":{"v":{"const":1}}},"then":{"required":["w"]}}`
	for turn, answer := range map[string]string{
		"envelopes": `{"envelopes":[{"type":"vendor.x.k1","payload":{"v":2}}]}`, "payload": `{"v":2}`, "auto": `{"v":2}`,
	} {
		r := askKinds(t, projection.OpenAI, schema, `"turn":"`+turn+`","envelopeType":"vendor.x.k1",`, 2, answer)
		require.Nil(t, r.result.Err, turn)
		require.JSONEq(t, `{"v":2}`, string(r.result.Output.Ports["output"]))
		require.Contains(t, r.spy.reqs[0].System, `"then"`)
		require.Empty(t, r.spy.reqs[0].Schema)
		require.Equal(t, "the model's vendor cannot express the response schema; it was sent as words",
			messageOf(t, r.payload(t, wire.EventLogAppended)))
	}
}

func messageOf(t *testing.T, payload string) string {
	t.Helper()
	var p struct{ Message string }
	require.NoError(t, json.Unmarshal([]byte(payload), &p))
	return p.Message
}
