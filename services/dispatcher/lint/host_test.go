package lint_test

import (
	"encoding/json"
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"waybill.dev/waybill/protocol/workflow"
	"waybill.dev/waybill/services/dispatcher/lint"
	"waybill.dev/waybill/services/dispatcher/node"
)

func host() lint.Host {
	return lint.Host{
		Types: node.Builtin().And(node.PeerTypes()...), Limits: limits, Complete: true,
		Providers: []string{"sample", "openai"}, Kinds: []string{"vendor.acme.note"},
	}
}

// doc is a definition with one model node.
func doc(config string) []byte {
	return fmt.Appendf(nil, `{"id":"w","name":"w","version":"1","nodes":[{"id":"a","typeId":"core.ai.callPrompt","config":%s}],
		"variables":[{"name":"mail","type":"string"}]}`, config)
}

func paths(found []workflow.Problem) []string {
	out := []string{}
	for _, p := range found {
		out = append(out, p.Path+" "+p.Rule)
	}
	return out
}

func TestCheck_FindsNothingInSoundConfigs(t *testing.T) {
	t.Parallel()
	for _, config := range []string{
		`{"prompt":"{{mail}}"}`,
		`{"prompt":"{{ mail }} {{mail}}","x-mine":{"a":1},"temperature":0,"maxTokens":0}`,
		`{"prompt":"{{mail}}","envelopeType":"vendor.acme.note","turn":"payload","repairJson":true}`,
		`{"prompt":"{{mail}}","provider":"openai"}`,
		`{"prompt":"{{mail}}","provider":"sample","onError":{"models":["openai/gpt-5"]}}`,
		`{"prompt":"{{mail}}","promptId":"prompt-of-another-host","expectsStreaming":true}`,
	} {
		r := host().Check(doc(config))
		require.Empty(t, r.Problems, config)
		require.Empty(t, r.Warnings, config)
	}
}

// A provider that cannot be called is no error if another model is called instead.
func TestCheck_WarnsAboutAProviderWithAnAlternative(t *testing.T) {
	t.Parallel()
	r := host().Check(doc(`{"prompt":"{{mail}}","provider":"gemini","model":"gemini-3-flash","onError":{"models":["openai/gpt-5"]}}`))
	require.Empty(t, r.Problems)
	require.Contains(t, paths(r.Warnings), "/nodes/0/config/provider provider")
}

// What only a host can know is a warning, or nothing, without one.
func TestCheck_KnowsLessWithoutAHost(t *testing.T) {
	t.Parallel()
	h := lint.Host{Types: node.Builtin(), Limits: limits}
	for config, want := range map[string][]string{
		`{"prompt":"{{mail}}","envelopeType":"vendor.acme.other"}`: {},
		`{"prompt":"{{mail}}","provider":"house"}`:                 {"/nodes/0/config/provider provider"},
		`{"userPromptRef":"prompt:greet"}`:                         {},
		`{"prompt":"{{mail}}","model":"claude-sonet-5-5"}`:         {"/nodes/0/config/model model"}, // of one vendor only
		`{"prompt":"{{mail}}","model":"claude-sonnet-5-5"}`:        {},
		`{"prompt":"{{mail}}","model":"gpt-oss-20b"}`:              {},
		`{"prompt":"{{mail}}","model":"llama-9-instruct"}`:         {},
	} {
		r := h.Check(doc(config))
		require.Empty(t, r.Problems, config)
		require.Equal(t, want, paths(r.Warnings), config)
	}
}

// A variable that an unknown node may set is not certainly missing.
func TestCheck_IsUnsureAboutVariablesOfUnknownNodes(t *testing.T) {
	t.Parallel()
	r := lint.Host{Types: node.Builtin(), Limits: limits}.Check([]byte(`{"id":"w","name":"w","version":"1","nodes":[
		{"id":"a","typeId":"vendor.acme.set"},{"id":"b","typeId":"core.ai.callPrompt","config":{"prompt":"{{made}}"}}],
		"edges":[{"id":"e","sourceNodeId":"a","targetNodeId":"b"}]}`))
	require.Empty(t, r.Problems)
	require.Contains(t, paths(r.Warnings), "/nodes/1/config/prompt name")
}

// Variables that nodes set, and ports, are names of placeholders.
func TestCheck_KnowsWhatNodesSet(t *testing.T) {
	t.Parallel()
	r := host().Check([]byte(`{"id":"w","name":"w","version":"1","nodes":[
		{"id":"set","typeId":"core.setVariable","config":{"name":"a","value":1}},
		{"id":"id","typeId":"core.identity","inputs":{"b":{"type":"static","value":1}}},
		{"id":"log","typeId":"core.channelWrite","config":{"channelName":"c","reducer":"append","value":1}},
		{"id":"sub","typeId":"core.subWorkflow","config":{"workflowId":"other","outputMapping":{"d":"x"}}},
		{"id":"ask","typeId":"core.ai.callPrompt","config":{"prompt":"{{a}} {{b}} {{c}} {{d}} {{e}} {{f}}"},"inputs":{"e":{"type":"static","value":1}}}],
		"edges":[{"id":"1","sourceNodeId":"set","targetNodeId":"id","targetInput":"input"},{"id":"2","sourceNodeId":"id","targetNodeId":"log"},
			{"id":"3","sourceNodeId":"log","targetNodeId":"sub"},{"id":"4","sourceNodeId":"sub","sourceOutput":"childRunId","targetNodeId":"ask","targetInput":"f"}]}`))
	require.Empty(t, r.Problems)
}

func TestCheck_ReportsTheProblemsOfBrokenDocuments(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		`{`:                   " json",
		`[]`:                  " type",
		`{"id":"w","id":"w"}`: "/id json",
		`{"id":"W","name":"w","version":"1","nodes":[{"id":"a","typeId":"core.noop"}]}`: "/id pattern",
	} {
		r := host().Check([]byte(text))
		require.Nil(t, r.Def)
		require.NotEmpty(t, r.Problems, text)
		require.Equal(t, want, paths(r.Problems)[0], text)
	}
}

// The schema of an envelope kind types the output of the node that asks for it.
func TestCheck_KnowsThePayloadsOfKinds(t *testing.T) {
	t.Parallel()
	h := host()
	h.Kinds = []string{"vendor.acme.ticket", "vendor.acme.other"}
	h.KindSchemas = map[string]json.RawMessage{"vendor.acme.ticket": json.RawMessage(`{"type":"object","$defs":{"urgency":{"enum":["low","high"]}},
		"properties":{"urgency":{"$ref":"#/$defs/urgency"},"tags":{"type":"array"}}}`)}
	definition := func(accepts, condition string) []byte {
		return []byte(`{"id":"w","name":"w","version":"1","nodes":[
			{"id":"ask","typeId":"core.ai.callPrompt","config":{"prompt":"x"},"envelopeContract":{"accepts":[` + accepts + `]}},
			{"id":"b","typeId":"core.noop","config":{}}],
			"edges":[{"id":"e","sourceNodeId":"ask","targetNodeId":"b","condition":` + condition + `}]}`)
	}
	for condition, says := range map[string]string{
		`{"type":"equals","left":"output.urgency","right":"hihg"}`: `is never "hihg", did you mean high?`,
		`{"expression":"outputs.output.urgency == 'urgent'"}`:      `is never "urgent"; its values are "low", "high"`,
		`{"expression":"outputs.output.tags.length > 0"}`:          "size(…output.tags) is the length",
		`{"expression":"outputs.output.length > 0"}`:               "reads the member length, which the schema of the output does not have",
		`{"expression":"outputs.output.urgancy == 'low'"}`:         "did you mean urgency?",
	} {
		r := h.Check(definition(`"vendor.acme.ticket"`, condition))
		require.Empty(t, r.Problems, condition)
		require.Len(t, r.Warnings, 1, condition)
		require.Contains(t, r.Warnings[0].Message, says)
		require.Empty(t, h.Check(definition(`"vendor.acme.ticket","vendor.acme.other"`, condition)).Warnings, "the payload of either kind: %s", condition)
	}
	require.Empty(t, h.Check(definition(`"vendor.acme.ticket"`, `{"expression":"outputs.output.urgency == 'low' && size(outputs.output.tags) > 0"}`)).Warnings)
}
