package runspan_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"waybill.dev/waybill/internal/obs/runspan"
)

// facts is a definition whose nodes all request one model.
type facts struct{ provider, model, tool, agent string }

func (f facts) Model(string) (provider, model string)    { return f.provider, f.model }
func (f facts) Peer(string, string) (tool, agent string) { return f.tool, f.agent }

func genAI(s *runspan.Span) map[string]any {
	out := map[string]any{}
	for name, v := range s.Attributes {
		if strings.HasPrefix(name, "gen_ai.") || name == "error.type" {
			out[name] = v
		}
	}
	return out
}

const (
	started  = `{"type":"node.started","nodeId":"n","payload":{"nodeId":"n","typeId":"core.ai.callPrompt","attempt":0}}`
	nodeDone = `{"type":"node.completed","nodeId":"n","payload":{"nodeId":"n"}}`
	runDone  = `{"type":"run.completed","payload":{}}`
)

func usage(members string) string {
	return `{"type":"provider.usage","nodeId":"n","payload":{"nodeId":"n","inputTokens":10,"outputTokens":5,` + members + `}}`
}

func TestFold_NamesModelCallsByTheConventions(t *testing.T) {
	t.Parallel()
	openai := map[string]any{
		"gen_ai.operation.name": "chat", "gen_ai.provider.name": "openai",
		"gen_ai.response.model": "gpt-5-2026", "gen_ai.usage.input_tokens": int64(10), "gen_ai.usage.output_tokens": int64(5),
	}
	with := func(more map[string]any) map[string]any {
		out := map[string]any{}
		for _, m := range []map[string]any{openai, more} {
			for k, v := range m {
				out[k] = v
			}
		}
		return out
	}
	for name, tc := range map[string]struct {
		events []string
		want   map[string]any
	}{
		"complete": {
			[]string{started, usage(`"provider":"openai","model":"gpt-5-2026"`), nodeDone},
			with(map[string]any{"gen_ai.request.model": "gpt-5", "gen_ai.response.finish_reasons": []string{"stop"}}),
		},
		"cached": {
			[]string{started, usage(`"provider":"openai","model":"gpt-5-2026","cacheReadTokens":4,"cacheWriteTokens":2`), nodeDone},
			with(map[string]any{
				"gen_ai.request.model": "gpt-5", "gen_ai.response.finish_reasons": []string{"stop"},
				"gen_ai.usage.cache_read.input_tokens": int64(4), "gen_ai.usage.cache_creation.input_tokens": int64(2),
			}),
		},
		"thoughts": {
			[]string{
				started, `{"type":"log.appended","nodeId":"n","payload":{"nodeId":"n","fields":{"reason":"model_usage","reasoningTokens":3}}}`,
				usage(`"provider":"openai","model":"gpt-5-2026"`), nodeDone,
			},
			with(map[string]any{
				"gen_ai.request.model": "gpt-5", "gen_ai.response.finish_reasons": []string{"stop"},
				"gen_ai.usage.reasoning.output_tokens": int64(3),
			}),
		},
		"streamed": {
			[]string{
				started, `{"type":"output.chunk","nodeId":"n","payload":{"nodeId":"n","chunk":"a","isLast":true,"meta":{"finishReason":"tool_calls"}}}`,
				usage(`"provider":"openai","model":"gpt-5-2026"`), nodeDone,
			},
			with(map[string]any{"gen_ai.request.model": "gpt-5", "gen_ai.response.finish_reasons": []string{"tool_calls"}}),
		},
		"truncated": {
			[]string{
				started, usage(`"provider":"openai","model":"gpt-5-2026"`),
				`{"type":"envelope.truncated","nodeId":"n","payload":{"nodeId":"n","stopReason":"max_tokens"}}`, nodeDone,
			},
			with(map[string]any{"gen_ai.request.model": "gpt-5", "gen_ai.response.finish_reasons": []string{"length"}}),
		},
		"truncated for another reason": {
			[]string{
				started, usage(`"provider":"openai","model":"gpt-5-2026"`),
				`{"type":"envelope.truncated","nodeId":"n","payload":{"nodeId":"n","stopReason":"unknown"}}`, nodeDone,
			},
			with(map[string]any{"gen_ai.request.model": "gpt-5"}),
		},
		"refused": {
			[]string{
				started, usage(`"provider":"openai","model":"gpt-5-2026"`),
				`{"type":"envelope.refusal","nodeId":"n","payload":{"nodeId":"n","refusalText":"words"}}`, nodeDone,
			},
			with(map[string]any{"gen_ai.request.model": "gpt-5", "gen_ai.response.finish_reasons": []string{"content_filter"}}),
		},
		"the run ends first": {
			[]string{started, usage(`"provider":"openai","model":"gpt-5-2026"`), `{"type":"run.cancelled","payload":{}}`},
			with(map[string]any{"gen_ai.request.model": "gpt-5", "gen_ai.response.finish_reasons": []string{"stop"}}),
		},
		"gemini": {
			[]string{started, usage(`"provider":"gemini","model":"g"`), nodeDone},
			map[string]any{
				"gen_ai.operation.name": "generate_content", "gen_ai.provider.name": "gcp.gemini", "gen_ai.response.model": "g",
				"gen_ai.usage.input_tokens": int64(10), "gen_ai.usage.output_tokens": int64(5),
				"gen_ai.response.finish_reasons": []string{"stop"},
			},
		},
		"a deployment of Azure": {
			[]string{started, usage(`"provider":"my-azure","model":"m"`), nodeDone},
			map[string]any{
				"gen_ai.operation.name": "chat", "gen_ai.provider.name": "azure.ai.openai", "gen_ai.response.model": "m",
				"gen_ai.usage.input_tokens": int64(10), "gen_ai.usage.output_tokens": int64(5),
				"gen_ai.response.finish_reasons": []string{"stop"},
			},
		},
		"Bedrock": {
			[]string{started, usage(`"provider":"my-bedrock","model":"m"`), nodeDone},
			map[string]any{
				"gen_ai.operation.name": "chat", "gen_ai.provider.name": "aws.bedrock", "gen_ai.response.model": "m",
				"gen_ai.usage.input_tokens": int64(10), "gen_ai.usage.output_tokens": int64(5),
				"gen_ai.response.finish_reasons": []string{"stop"},
			},
		},
		"Vertex": {
			[]string{started, usage(`"provider":"my-vertex","model":"m"`), nodeDone},
			map[string]any{
				"gen_ai.operation.name": "generate_content", "gen_ai.provider.name": "gcp.vertex_ai", "gen_ai.response.model": "m",
				"gen_ai.usage.input_tokens": int64(10), "gen_ai.usage.output_tokens": int64(5),
				"gen_ai.response.finish_reasons": []string{"stop"},
			},
		},
		"a server of one's own": {
			[]string{started, usage(`"provider":"house","model":"m"`), nodeDone},
			map[string]any{
				"gen_ai.operation.name": "chat", "gen_ai.provider.name": "house", "gen_ai.response.model": "m",
				"gen_ai.usage.input_tokens": int64(10), "gen_ai.usage.output_tokens": int64(5),
				"gen_ai.response.finish_reasons": []string{"stop"},
			},
		},
		"anthropic counts cached tokens apart": {
			[]string{started, usage(`"provider":"anthropic","model":"c","cacheReadTokens":4,"cacheWriteTokens":2`), nodeDone},
			map[string]any{
				"gen_ai.operation.name": "chat", "gen_ai.provider.name": "anthropic", "gen_ai.response.model": "c",
				"gen_ai.usage.input_tokens": int64(16), "gen_ai.usage.output_tokens": int64(5),
				"gen_ai.usage.cache_read.input_tokens": int64(4), "gen_ai.usage.cache_creation.input_tokens": int64(2),
				"gen_ai.response.finish_reasons": []string{"stop"},
			},
		},
		"substituted": {
			[]string{
				`{"type":"model.capability.substituted","nodeId":"n","payload":{"nodeId":"n","fallbackProvider":"openai","fallbackModel":"gpt-6"}}`,
				started, usage(`"provider":"openai","model":"gpt-5-2026"`), nodeDone,
			},
			with(map[string]any{"gen_ai.request.model": "gpt-6", "gen_ai.response.finish_reasons": []string{"stop"}}),
		},
		"the next model": {
			[]string{
				started, `{"type":"node.retried","nodeId":"n","payload":{"nodeId":"n","attempt":1,"next":{"index":0,"provider":"openai","model":"gpt-4"}}}`,
				started, usage(`"provider":"openai","model":"gpt-5-2026"`), nodeDone,
			},
			with(map[string]any{"gen_ai.request.model": "gpt-4", "gen_ai.response.finish_reasons": []string{"stop"}}),
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := runspan.New(record(), runspan.Options{Definition: facts{provider: "openai", model: "gpt-5"}, APIs: apis})
			var calls []*runspan.Span
			for _, s := range feed(f, tc.events...) {
				if strings.HasPrefix(s.Name, runspan.NameCall) {
					calls = append(calls, s)
				}
			}
			require.Len(t, calls, 1, "each call once")
			require.Equal(t, tc.want, genAI(calls[0]))
			require.Equal(t, runspan.OK, calls[0].Code)
		})
	}
}

// The span of a call ends when its answer arrived, though the event after it completes it.
func TestFold_KeepsTheTimeOfACall(t *testing.T) {
	t.Parallel()
	f := runspan.New(record(), runspan.Options{})
	require.Empty(t, feed(f, started, usage(`"provider":"mock","model":"m"`)), "open until the next event")
	open := byName(t, f.All())["openwop.activity.mock"]
	require.Len(t, open, 1)
	require.False(t, open[0].Ended())

	f = runspan.New(record(), runspan.Options{})
	call := byName(t, feed(f, started, usage(`"provider":"mock","model":"m"`), nodeDone, runDone))["openwop.activity.mock"]
	require.Len(t, call, 1)
	require.Equal(t, began.Add(2e9), call[0].End)
}

func TestFold_NamesToolsAgentsAndWorkflows(t *testing.T) {
	t.Parallel()
	failed := `{"type":"node.failed","nodeId":"n","payload":{"nodeId":"n","error":{"code":"tool_failed","message":"words"}}}`
	for _, tc := range []struct {
		facts facts
		want  map[string]any
	}{
		{facts{tool: "read_file"}, map[string]any{
			"gen_ai.operation.name": "execute_tool", "gen_ai.tool.name": "read_file", "gen_ai.tool.type": "extension", "error.type": "tool_failed",
		}},
		{facts{agent: "desk"}, map[string]any{"gen_ai.operation.name": "invoke_agent", "gen_ai.agent.name": "desk", "error.type": "tool_failed"}},
		{facts{}, map[string]any{}},
	} {
		f := runspan.New(record(), runspan.Options{Definition: tc.facts})
		spans := byName(t, feed(f, started, failed, runDone))
		require.Equal(t, tc.want, genAI(spans["openwop.node.core.ai.callPrompt.attempt"][0]))
		require.Equal(t, map[string]any{"gen_ai.operation.name": "invoke_workflow", "gen_ai.workflow.name": "wf"}, genAI(spans["openwop.run"][0]))
	}
}

func TestFold_HasTextsOnlyOnDemand(t *testing.T) {
	t.Parallel()
	events := []string{
		started,
		`{"type":"prompt.composed","nodeId":"n","payload":{"nodeId":"n","composed":"{\"system\":\"Be brief.\",\"messages\":[{\"role\":\"user\",\"content\":\"Hello\"},{\"role\":\"user\",\"content\":[{\"type\":\"text\",\"text\":\"there\"},{\"type\":\"image_url\",\"image_url\":{\"url\":\"[9 bytes]\"}}]}]}"}}`,
		`{"type":"output.chunk","nodeId":"n","payload":{"nodeId":"n","chunk":"Good ","isLast":false}}`,
		`{"type":"output.chunk","nodeId":"n","payload":{"nodeId":"n","chunk":"day","isLast":true,"meta":{"finishReason":"stop"}}}`,
		usage(`"provider":"mock","model":"m"`), nodeDone, runDone,
	}
	call := byName(t, feed(runspan.New(record(), runspan.Options{Content: true}), events...))["openwop.activity.mock"][0]
	require.JSONEq(t, `[{"type":"text","content":"Be brief."}]`, call.Attributes["gen_ai.system_instructions"].(string))
	require.JSONEq(t, `[{"role":"user","parts":[{"type":"text","content":"Hello"}]},
		{"role":"user","parts":[{"type":"text","content":"there"},{"type":"image_url"}]}]`, call.Attributes["gen_ai.input.messages"].(string))
	require.JSONEq(t, `[{"role":"assistant","parts":[{"type":"text","content":"Good day"}],"finish_reason":"stop"}]`, call.Attributes["gen_ai.output.messages"].(string))

	for _, s := range feed(runspan.New(record(), runspan.Options{}), events...) {
		for name, v := range s.Attributes {
			require.NotContains(t, name, "messages")
			require.NotContains(t, name, "instructions")
			require.NotEqual(t, "Hello", v)
		}
	}

	long := strings.Repeat("ä", 40<<10)
	call = byName(t, feed(runspan.New(record(), runspan.Options{Content: true}), started,
		`{"type":"output.chunk","nodeId":"n","payload":{"nodeId":"n","chunk":"`+long+`","isLast":true}}`,
		usage(`"provider":"mock","model":"m"`), nodeDone, runDone))["openwop.activity.mock"][0]
	require.Less(t, len(call.Attributes["gen_ai.output.messages"].(string)), 34<<10)
}

// apis are the interfaces of the providers of these tests.
func apis(provider string) string {
	return map[string]string{"my-azure": "azure-openai", "my-bedrock": "bedrock", "my-vertex": "vertex", "house": "openai-chat"}[provider]
}
