package model_test

import (
	"context"
	"encoding/json"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"waybill.dev/waybill/internal/projection"
	"waybill.dev/waybill/protocol/wire"
	"waybill.dev/waybill/services/dispatcher/model"
	"waybill.dev/waybill/services/dispatcher/node"
	"waybill.dev/waybill/services/dispatcher/provider"
	"waybill.dev/waybill/services/dispatcher/provider/catalogue"
	"waybill.dev/waybill/services/dispatcher/provider/mock"
)

// traits returns a catalogue with an entry for the mock's model m.
func traits(t *testing.T, of string) *catalogue.Catalogue {
	t.Helper()
	c, err := catalogue.Parse([]byte(`{"version":1,"asOf":"2026-11-01","rules":[{"match":"m","provider":"mock",` + of + `}]}`))
	require.NoError(t, err)
	return catalogue.Builtin().With(c)
}

// strict is a provider with a dialect of its own.
type strict struct {
	*spy

	lenient bool
}

func (s strict) Dialect(string) projection.Vendor {
	if s.lenient {
		return projection.AsWritten
	}
	return projection.OpenAI
}

// ask runs a core.ai.structuredOutput node with the mock's model m.
func ask(t *testing.T, c *catalogue.Catalogue, dialect bool, config string, entries ...mock.Entry) rig {
	t.Helper()
	return askOf(t, c, dialect, false, config, entries...)
}

func askOf(t *testing.T, c *catalogue.Catalogue, dialect, lenient bool, config string, entries ...mock.Entry) rig {
	t.Helper()
	scripts := newScripts()
	require.NoError(t, scripts.Program(t.Context(), "acme", "n", entries))
	s := &spy{Provider: mock.New(scripts)}
	var p provider.Provider = s
	if dialect {
		p = strict{spy: s, lenient: lenient}
	}
	reg, err := provider.NewRegistry(p)
	require.NoError(t, err)
	loop := model.New(model.Config{
		MaxAttempts: 5,
		Multiplier:  2,
		Timeout:     5 * time.Second,
		Defaults:    model.Defaults{Provider: "mock", Model: "m", MaxTokens: 100},
	}, model.Deps{Models: reg, Schemas: manyRounds{}, Catalogue: c, Clock: time.Now})
	j := &journal{accept: acceptAll}
	res := loop.Run(t.Context(), model.Task{
		Tenant: "acme",
		RunID:  "run_1",
		TypeID: node.TypeStructuredOutput,
		Input:  node.Input{NodeID: "n", Config: json.RawMessage(config)},
	}, j)
	return rig{journal: j, spy: s, result: res}
}

// manyRounds allows more schema rounds than the loop has attempts.
type manyRounds struct{ schemas }

func (manyRounds) Limits(context.Context) (model.Limits, error) {
	return model.Limits{EnvelopesPerTurn: 5, SchemaRounds: 9, ClarificationRounds: 3}, nil
}

// OpenWOP envelope contract §14.3, ceiling: an attempt with the model's largest budget that is
// truncated is the last.
func TestLoop_GivesNoMoreRoomThanTheModelHas(t *testing.T) {
	t.Parallel()
	cut := mock.Entry{Content: `{"val`, StopReason: "max_tokens"}
	small := traits(t, `"outputTokens":150`)
	r := ask(t, small, false, valueConfig, cut, cut, cut, cut)
	require.Equal(t, "provider.usage envelope.truncated envelope.retry.attempted provider.usage envelope.truncated envelope.retry.exhausted cap.breached", r.names())
	require.Equal(t, "envelope_truncation_unrecoverable", r.result.Err.Code)
	require.Equal(t, "the model was cut off with all the room that it has, 150 tokens", r.result.Err.Message)
	require.JSONEq(t, `{"nodeId":"n","totalAttempts":2,"finalReason":"truncation"}`, r.payload(t, wire.EventEnvelopeRetryExhausted))
	require.Len(t, r.spy.reqs, 2)
	require.Equal(t, []int{100, 150}, []int{r.spy.reqs[0].MaxTokens, r.spy.reqs[1].MaxTokens})

	r = ask(t, small, false, `{"maxTokens":9000,"outputSchema":{"type":"object"}}`, cut, mock.Entry{Content: `{}`})
	require.Len(t, r.spy.reqs, 1, "the first attempt had the model's largest budget")
	require.Equal(t, 150, r.spy.reqs[0].MaxTokens)

	r = ask(t, small, false, valueConfig, cut, mock.Entry{Content: `{"valid":true}`})
	require.Nil(t, r.result.Err, "the attempt with the largest budget succeeded")

	r = ask(t, traits(t, `"capabilities":[]`), false, valueConfig, cut, cut, cut, cut, mock.Entry{Content: `{"valid":true}`})
	require.Nil(t, r.result.Err)
	require.Equal(t, 1600, r.spy.reqs[4].MaxTokens, "no ceiling is known")
}

func TestLoop_FitsTheRequestToTheModel(t *testing.T) {
	t.Parallel()
	const config = `{"temperature":0.5,"topP":0.5,"outputSchema":{"type":"object","required":["valid"],"properties":{"valid":{"type":"boolean"}}}}`
	good := mock.Entry{Content: `{"valid":true}`}
	for name, tc := range map[string]struct {
		traits string
		check  func(t *testing.T, r provider.Request)
	}{
		"nothing is known": {`"capabilities":[]`, func(t *testing.T, r provider.Request) {
			t.Helper()
			require.NotNil(t, r.Temperature)
			require.NotNil(t, r.TopP)
			require.NotEmpty(t, r.Schema)
			require.Equal(t, provider.ViaFormat, r.Via)
		}},
		"it rejects sampling parameters": {`"sampling":false`, func(t *testing.T, r provider.Request) {
			t.Helper()
			require.Nil(t, r.Temperature)
			require.Nil(t, r.TopP)
		}},
		"only a tool holds it to a schema": {`"capabilities":["structured-output"],"structuredOutput":"tool"`, func(t *testing.T, r provider.Request) {
			t.Helper()
			require.Equal(t, provider.ViaTool, r.Via)
			require.NotEmpty(t, r.Schema)
		}},
		"nothing holds it to a schema": {`"structuredOutput":"none"`, func(t *testing.T, r provider.Request) {
			t.Helper()
			require.Empty(t, r.Schema)
			require.Contains(t, r.System, `"required":["valid"]`)
		}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := ask(t, traits(t, tc.traits), false, config, mock.Entry{Content: `{"valid":"no"}`}, good)
			require.Nil(t, r.result.Err)
			require.Len(t, r.spy.reqs, 2)
			for _, req := range r.spy.reqs {
				tc.check(t, req)
			}
		})
	}
}

const optional = `{"outputSchema":{"type":"object","required":["a"],"properties":{"a":{"type":"string","minLength":2},"b":{"type":"integer"}}}}`

// OpenWOP envelope contract §20: every attempt sends the projected schema. The answer is validated
// by the original one, with null as absent.
func TestLoop_SendsAProjectionAndJudgesByTheSchema(t *testing.T) {
	t.Parallel()
	r := ask(t, nil, true, optional, mock.Entry{Content: `{"a":"x","b":null}`}, mock.Entry{Content: `{"a":"xx","b":null}`})
	require.Nil(t, r.result.Err)
	require.JSONEq(t, `{"a":"xx"}`, string(r.result.Output.Ports["output"]))
	require.Equal(t, "provider.usage envelope.retry.attempted provider.usage", r.names(), "the original schema's length limit applies")
	for _, req := range r.spy.reqs {
		require.Empty(t, projection.LintFor(projection.OpenAI, req.Schema))
	}
	require.Contains(t, string(r.spy.reqs[0].Schema), `"additionalProperties":false`)

	r = ask(t, nil, false, optional, mock.Entry{Content: `{"a":"xx"}`})
	require.JSONEq(t, `{"type":"object","required":["a"],"properties":{"a":{"type":"string","minLength":2},"b":{"type":"integer"}}}`, string(r.spy.reqs[0].Schema), "other providers receive the author's schema")
}

// A schema that the vendor does not support fails the node without a call.
func TestLoop_RefusesWhatCannotBeProjected(t *testing.T) {
	t.Parallel()
	r := ask(t, nil, true, `{"outputSchema":{"type":"object","properties":{"a":{"allOf":[{"type":"string"},{"not":{"type":"string"}}]}}}}`, mock.Entry{Content: `{}`})
	require.NotNil(t, r.result.Err)
	require.Equal(t, "response_schema_invalid", r.result.Err.Code)
	require.Contains(t, r.result.Err.Message, "openai at \"/properties/a")
	require.False(t, r.result.Err.Retryable)
	require.Empty(t, r.spy.reqs)

	const deep = `{"outputSchema":{"type":"object","properties":{"a":{"allOf":[{"type":"string"},{"not":{"type":"string"}}]}}}}`
	r = askOf(t, nil, true, true, deep, mock.Entry{Content: `{}`})
	require.Nil(t, r.result.Err, "a server of one's own receives the original schema")
	require.Contains(t, string(r.spy.reqs[0].Schema), "allOf")
	require.True(t, r.spy.reqs[0].AsWritten)
}

// The catalogue names the dialect of a model.
func TestLoop_TakesTheDialectOfTheCatalogue(t *testing.T) {
	t.Parallel()
	const config = `{"outputSchema":{"type":"object","required":["a"],"properties":{"a":{"type":"string","minLength":2},"b":{"type":"integer"}}}}`
	answer := mock.Entry{Content: `{"a":"xx","b":null}`}
	r := askOf(t, traits(t, `"schemaDialect":"groq"`), true, true, config, answer)
	require.Nil(t, r.result.Err)
	require.Empty(t, projection.LintFor(projection.Groq, r.spy.reqs[0].Schema))
	require.False(t, r.spy.reqs[0].AsWritten)
	require.JSONEq(t, `{"a":"xx"}`, string(r.result.Output.Ports["output"]))

	r = askOf(t, traits(t, `"schemaDialect":"vllm"`), true, true, config, answer)
	require.Contains(t, string(r.spy.reqs[0].Schema), `"minLength":2`)

	r = askOf(t, traits(t, `"schemaDialect":"as-written"`), true, false, config, mock.Entry{Content: `{"a":"xx"}`})
	require.Nil(t, r.result.Err)
	require.True(t, r.spy.reqs[0].AsWritten)
	require.JSONEq(t, `{"type":"object","required":["a"],"properties":{"a":{"type":"string","minLength":2},"b":{"type":"integer"}}}`, string(r.spy.reqs[0].Schema))

	r = askOf(t, traits(t, `"schemaDialect":"groq"`), true, true, `{"outputSchema":{"not":{}}}`, answer)
	require.Equal(t, "response_schema_invalid", r.result.Err.Code)
	require.Contains(t, r.result.Err.Message, `groq at "/not"`)
}

// A tool's arguments are an object, also for a schema that is sent as it is written.
func TestLoop_WrapsAValueForATool(t *testing.T) {
	t.Parallel()
	tool := traits(t, `"capabilities":["structured-output"],"structuredOutput":"tool"`)
	r := askOf(t, tool, true, true, `{"outputSchema":{"enum":["yes","no"]}}`, mock.Entry{Content: `{"value":"maybe"}`}, mock.Entry{Content: `{"value":"no"}`})
	require.Nil(t, r.result.Err)
	require.JSONEq(t, `"no"`, string(r.result.Output.Ports["output"]))
	require.JSONEq(t, `{"type":"object","properties":{"value":{"enum":["yes","no"]}},"required":["value"],"additionalProperties":false}`, string(r.spy.reqs[0].Schema))
}

// A model that answers the bare value, although it was asked for the wrapped one, is understood.
func TestLoop_TakesBareAndWrappedScalars(t *testing.T) {
	t.Parallel()
	for schema, value := range map[string]string{
		`{"enum":["yes","no"]}`: `"yes"`, `{"type":"integer"}`: `7`, `{"type":"boolean"}`: `true`, `{"type":"string"}`: `"s"`, `{"type":"array","items":{"type":"integer"}}`: `[1]`,
	} {
		for _, text := range []string{value, `{"value":` + value + `}`} {
			r := ask(t, nil, true, `{"outputSchema":`+schema+`}`, mock.Entry{Content: text})
			require.Nil(t, r.result.Err, "%s %s", schema, text)
			require.JSONEq(t, value, string(r.result.Output.Ports["output"]))
		}
		r := askOf(t, nil, true, true, `{"outputSchema":`+schema+`}`, mock.Entry{Content: value})
		require.Nil(t, r.result.Err, schema)
	}
}

// A workflow that names the provider is rejected before a run is created.
func TestCheck_FindsSchemasThatTheirProviderCannotBeTold(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		lenient      bool
		typeID       string
		config, says string
	}{
		"unsupported":                  {false, node.TypeStructuredOutput, `{"provider":"mock","outputSchema":{"type":"object","properties":{"a":{"not":{}}}}}`, `openai at "/properties/a`},
		"supported":                    {false, node.TypeStructuredOutput, `{"provider":"mock","outputSchema":{"type":"object"}}`, ""},
		"does not insist":              {true, node.TypeStructuredOutput, `{"provider":"mock","outputSchema":{"type":"object","properties":{"a":{"not":{}}}}}`, ""},
		"the run may choose":           {false, node.TypeStructuredOutput, `{"outputSchema":{"type":"object","properties":{"a":{"not":{}}}}}`, ""},
		"a provider that is not":       {false, node.TypeStructuredOutput, `{"provider":"ghost","outputSchema":{"type":"object","properties":{"a":{"not":{}}}}}`, ""},
		"a model that is held to none": {false, node.TypeStructuredOutput, `{"provider":"mock","model":"words","outputSchema":{"type":"object","properties":{"a":{"not":{}}}}}`, ""},
		"another type":                 {false, node.TypeCallPrompt, `{"provider":"mock","outputSchema":{"not":{}}}`, ""},
		"a config that is none":        {false, node.TypeStructuredOutput, `7`, ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			reg, err := provider.NewRegistry(strict{
				spy:     &spy{Provider: mock.New(newScripts())},
				lenient: tc.lenient,
			})
			require.NoError(t, err)
			known, err := catalogue.Parse([]byte(`{"version":1,"asOf":"2026-01-31","models":[{"provider":"mock","model":"words","structuredOutput":"none"}]}`))
			require.NoError(t, err)
			loop := model.New(model.Config{Defaults: model.Defaults{
				Provider: "mock",
				Model:    "m",
			}}, model.Deps{Models: reg, Catalogue: known})
			bad := loop.Check(tc.typeID, json.RawMessage(tc.config))
			if tc.says == "" {
				require.Nil(t, bad)
				return
			}
			require.NotNil(t, bad)
			require.Equal(t, "response_schema_invalid", bad.Code)
			require.Contains(t, bad.Message, tc.says)
		})
	}
}
