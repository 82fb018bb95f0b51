package models

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"waybill.dev/waybill/test/harness"
)

// streamOf returns a stream of a vendor's interface with these pieces of text, and the end of a complete answer
// of 10 and 5 tokens.
func streamOf(vendor string, pieces ...string) string {
	path, end := "/chat/completions", `data: {"choices":[{"index":0,"delta":{},"finish_reason":"stop"}]}`+"\n\n"+
		`data: {"choices":[],"usage":{"prompt_tokens":10,"completion_tokens":5,"total_tokens":15}}`+"\n\ndata: [DONE]\n\n"
	switch vendor {
	case "anthropic":
		path, end = "/messages", "event: content_block_stop\n"+`data: {"type":"content_block_stop","index":0}`+"\n\nevent: message_delta\n"+
			`data: {"type":"message_delta","delta":{"stop_reason":"end_turn"},"usage":{"input_tokens":10,"output_tokens":5}}`+"\n\nevent: message_stop\n"+
			`data: {"type":"message_stop"}`+"\n\n"
	case "gemini":
		path, end = "", `data: {"candidates":[{"content":{"role":"model","parts":[{"text":""}]},"finishReason":"STOP"}],`+
			`"usageMetadata":{"promptTokenCount":10,"candidatesTokenCount":5,"totalTokenCount":15}}`+"\n\n"
	}
	say := wordsOf(path)
	var body strings.Builder
	body.WriteString(say.begin)
	for _, p := range pieces {
		quoted, _ := json.Marshal(p) // a string
		body.WriteString(say.before + string(quoted[1:len(quoted)-1]) + say.after)
	}
	return body.String() + end
}

// outputOf returns the port output of a run's node.
func outputOf(t *testing.T, events []harness.Event) string {
	t.Helper()
	list := of(events, completed)
	require.Len(t, list, 1, "%s", dump(events))
	var p struct {
		Outputs struct{ Output json.RawMessage }
	}
	require.NoError(t, json.Unmarshal(list[0].Payload, &p))
	return string(p.Outputs.Output)
}

// Servers that repeat the text so far in each piece, and models that write the call of their tool into the text,
// through a host: one call each, the right answer, and its tokens.
func TestServers_AnswersThroughAHost(t *testing.T) {
	needsHost(t)
	c := client(t, apiKey)
	call := `{"name":"%","arguments":` + good + `}`
	for name, pieces := range map[string][]string{
		"repeated":       {`{"answer":`, `{"answer":42,`, good, good},
		"repeated-long":  {`{"`, `{"answer":42`, `{"answer":42,"note":`, good},
		"at the end":     {`{"answer":`, `42,"note"`, `:null}`, good},
		"twice":          {good, good},
		"tool Hermes":    {"<tool_call>\n", call, "\n</tool_call>"},
		"tool thinking":  {"<think>", "Maybe {}?</think>\n\n", "<tool_call>" + call + "</tool_call>"},
		"tool Qwen":      {"<tool_call>\n<function=%>\n<parameter=answer>\n42\n</parameter>\n", "<parameter=note>\nnull\n</parameter>\n</function>\n</tool_call>"},
		"tool Mistral":   {"[TOOL_CALLS]", "%[ARGS]", good},
		"tool Mistral 2": {`[TOOL_CALLS] [`, call, `]`},
		"tool Llama":     {"<|python_tag|>", `{"name":"%","parameters":` + good + `}`},
		"tool Llama 3":   {"<function=%>", good, "</function>"},
		"tool Llama 4":   {`[%(answer=42, note=None)]`},
		"tool DeepSeek":  {"<｜tool▁calls▁begin｜><｜tool▁call▁begin｜>%<｜tool▁sep｜>", good, "<｜tool▁call▁end｜><｜tool▁calls▁end｜>"},
		"tool GLM":       {"<tool_call>%\n<arg_key>answer</arg_key>\n<arg_value>42</arg_value>\n", "<arg_key>note</arg_key>\n<arg_value>null</arg_value>\n</tool_call>"},
		"tool so far":    {"<tool_call>\n", "<tool_call>\n" + call, "<tool_call>\n" + call + "\n</tool_call>"},
	} {
		for _, v := range append([]*vendor{house}, vendors...) {
			model := v.seeing
			if strings.HasPrefix(name, "tool") {
				model = v.blind
			}
			t.Run(v.id+"/"+name, func(t *testing.T) {
				t.Parallel()
				id := unsafeInName.ReplaceAllString(strings.ToLower("servers-"+v.id+"-"+name), "-")
				named := make([]string, len(pieces))
				for i, p := range pieces {
					named[i] = strings.ReplaceAll(p, "%", "answer")
				}
				v.desk.put(id, answer{raw: streamOf(v.id, named...), rawType: "text/event-stream"})
				events := finish(t, c, start(t, c, asks("value-streamed", id, v, model, "")))
				require.JSONEq(t, good, outputOf(t, events), "%s", dump(events))
				require.Equal(t, 1, v.desk.count(id))
				requireHas(t, `{"inputTokens":10,"outputTokens":5}`, of(events, usage)[0].Payload)
				if name == "repeated" || name == "at the end" {
					require.JSONEq(t, good, textOf(t, events), "what streams is the answer once")
				}
			})
		}
	}
}

// textOf joins the text of the chunks.
func textOf(t *testing.T, events []harness.Event) (text string) {
	t.Helper()
	for _, e := range of(events, chunk) {
		var p struct{ Chunk string }
		require.NoError(t, json.Unmarshal(e.Payload, &p))
		text += p.Chunk
	}
	return text
}

// A plain text has no schema that would show a mistake: it is read once, or the call is repeated.
func TestServers_TextThroughAHost(t *testing.T) {
	needsHost(t)
	c := client(t, apiKey)
	const text = "Six times seven is 42."
	right := answer{raw: streamOf("house", "Six times", " seven", " is 42."), rawType: "text/event-stream"}
	each := func(reason string) string {
		body, _, _ := strings.Cut(streamOf("house", "Six times", " seven"), `data: {"choices":[{"index":0,"delta":{},`)
		return strings.ReplaceAll(body, `"}}]}`, `"},"finish_reason":"`+reason+`"}]}`)
	}
	for name, tc := range map[string]struct {
		body  string
		calls int
		says  string // of the error of a repeated call
	}{
		"new pieces":              {streamOf("house", "Six times", " seven", " is 42."), 1, ""},
		"repeated":                {streamOf("house", "Six", "Six times", "Six times seven", "Six times seven is 42."), 1, ""},
		"all of it at the end":    {streamOf("house", "Six times", " seven", " is 42.", text), 1, ""},
		"repeated, and changed":   {streamOf("house", "Six", "Six times", "Six times seven", "Seven is a lot."), 2, "repeats its text in each piece, and changed it"},
		"null with each piece":    {each("null"), 2, "ended its answer before it was complete"},
		"stop with each piece":    {each("stop") + "data: {\"error\":{\"message\":\"out of memory\",\"code\":500}}\n\n", 2, "out of memory"},
		"not finished, each":      {each("not_finished"), 2, "ended its answer before it was complete"},
		"the client is cancelled": {each("cancelled"), 2, "broke off its answer: cancelled"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			id := unsafeInName.ReplaceAllString("servers text "+name, "-")
			house.desk.put(id, answer{raw: tc.body, rawType: "text/event-stream"}, right)
			events := finish(t, c, start(t, c, asks("talk", id, house, house.seeing, "")))
			require.Equal(t, `"`+text+`"`, outputOf(t, events), "%s", dump(events))
			require.Equal(t, tc.calls, house.desk.count(id))
			if tc.calls > 1 {
				requireHas(t, `{"lastError":{"code":"provider_unavailable"}}`, of(events, again)[0].Payload)
				require.Contains(t, string(of(events, again)[0].Payload), tc.says)
			}
		})
	}
}

// An answer that came as thinking alone is none, and the reason names it: servers that parse their model's thoughts
// wrongly leave nothing of the text.
func TestServers_ThinkingAlone(t *testing.T) {
	needsHost(t)
	c := client(t, apiKey)
	quoted, err := json.Marshal(good)
	require.NoError(t, err)
	thinking := strings.Replace(streamOf("house", "x"), `"content":"x"`, `"content":null,"reasoning_content":`+string(quoted), 1)
	for flow, want := range map[string]string{"value-whole": good, "talk": string(quoted)} {
		id := "servers-thinking-" + flow
		house.desk.put(id, answer{raw: thinking, rawType: "text/event-stream"}, answer{raw: streamOf("house", good), rawType: "text/event-stream"})
		events := finish(t, c, start(t, c, asks(flow, id, house, house.seeing, "")))
		require.JSONEq(t, want, outputOf(t, events), "%s", dump(events))
		requireHas(t, `{"reason":"parse-error","previousError":"it ends after its thinking, without an answer"}`, of(events, retry)[0].Payload)
		require.Equal(t, 2, house.desk.count(id))
	}
	called := strings.Replace(streamOf("house"), `"delta":{},"finish_reason":"stop"`, `"delta":{"tool_calls":[{"index":0,"id":"c","function":{"name":"search","arguments":"{}"}}]},"finish_reason":"tool_calls"`, 1)
	house.desk.put("servers-called", answer{raw: called, rawType: "text/event-stream"}, answer{raw: streamOf("house", good), rawType: "text/event-stream"})
	events := finish(t, c, start(t, c, asks("talk", "servers-called", house, house.seeing, "")))
	require.JSONEq(t, string(quoted), outputOf(t, events), "%s", dump(events))
	requireHas(t, `{"reason":"unknown","previousError":"it calls a tool that it was not offered, and what it says before that is not its answer"}`, of(events, retry)[0].Payload)
}
