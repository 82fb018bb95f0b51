package compat_test

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"waybill.dev/waybill/services/dispatcher/provider"
	"waybill.dev/waybill/services/dispatcher/provider/compat"
)

// What servers and gateways send that no other test of this package has, in their own words.

// chunkOf is an event with a choice.
func chunkOf(choice string) string { return `data: {"choices":[` + choice + "]}\n\n" }

const (
	stopChunk = `data: {"choices":[{"index":0,"delta":{},"finish_reason":"stop"}]}` + "\n\n"
	// halves are two pieces of wanted.
	firstHalf, secondHalf = `"{\"title\":\"Call 😀\","`, `"\"urgent\":true}"`
	wholeText             = `"{\"title\":\"Call 😀\",\"urgent\":true}"`
)

func TestForeign_Answers(t *testing.T) {
	t.Parallel()
	halves := delta(firstHalf, "") + delta(secondHalf, "")
	whole := delta(wholeText, `,"finish_reason":"stop"`)
	message := `{"index":0,"message":{"role":"assistant","content":` + wholeText + `},"finish_reason":"stop"}`
	call := func(function string) string {
		return chunkOf(`{"index":0,"delta":{"tool_calls":[{"index":0,"id":"c","type":"function","function":` + function + `}]},"finish_reason":null}`)
	}
	cr := func(s string) string { return strings.ReplaceAll(s, "\n", "\r") }
	for name, tc := range map[string]struct {
		body string
		via  provider.SchemaVia
		text string // wanted, unless set
		stop provider.StopClass
	}{
		"line ends of old Macs":             {body: cr(halves + stopChunk + doneEvent)},
		"old Macs, comments and fields":     {body: cr(": hi\n\nid: 1\nretry: 5\n" + whole + doneEvent)},
		"mixed line ends":                   {body: strings.ReplaceAll(halves, "\n", "\r\n") + cr(stopChunk) + doneEvent},
		"old Macs, cut after the reason":    {body: cr(whole)},
		"data without space":                {body: strings.ReplaceAll(halves+stopChunk+doneEvent, "data: ", "data:")},
		"data with two spaces":              {body: strings.ReplaceAll(halves+stopChunk+doneEvent, "data: ", "data:  ")},
		"data on three lines":               {body: "data: {\"choices\":\ndata: [{\"index\":0,\"delta\":{\"content\":" + wholeText + "},\ndata: \"finish_reason\":\"stop\"}]}\n\n" + doneEvent},
		"a field without colon":             {body: "data\n\n" + whole + doneEvent},
		"a comment within an event":         {body: "data: {\"choices\":[{\"index\":0,\n: ping\ndata: \"delta\":{\"content\":" + wholeText + "},\"finish_reason\":\"stop\"}]}\n\n"},
		"id after the data":                 {body: strings.ReplaceAll(halves, "\n\n", "\nid: 9\n\n") + stopChunk},
		"event: message":                    {body: strings.ReplaceAll(halves+stopChunk, "data: ", "event: message\ndata: ")},
		"event: ping with data":             {body: "event: ping\ndata: {}\n\n" + whole + doneEvent},
		"a byte order mark and blank lines": {body: "\ufeff\n\n" + whole + doneEvent},
		"[DONE] with space":                 {body: whole + "data:  [DONE] \n\n"},
		"[DONE] as an event":                {body: whole + "event: done\ndata: [DONE]\n\n"},
		"lower case [done] after the end":   {body: whole + "data: [done]\n\n"},

		"bytes of a letter in two pieces":   {body: delta("\"{\\\"title\\\":\\\"Call \xf0\x9f\"", "") + delta("\"\x98\x80\\\",\\\"urgent\\\":true}\"", "") + stopChunk},
		"bytes of a letter in four pieces":  {body: delta("\"{\\\"title\\\":\\\"Call \xf0\"", "") + delta("\"\x9f\"", "") + delta("\"\x98\"", "") + delta("\"\x80\\\",\\\"urgent\\\":true}\"", "") + stopChunk},
		"bytes of a letter in parts":        {body: delta("[{\"type\":\"text\",\"text\":\"{\\\"title\\\":\\\"Call \xf0\x9f\"}]", "") + delta("[{\"type\":\"text\",\"text\":\"\x98\x80\\\",\\\"urgent\\\":true}\"}]", "") + stopChunk},
		"half a letter that stays so":       {body: delta("\"a\xf0\x9f\"", "") + delta(`"b"`, `,"finish_reason":"stop"`), text: "a\ufffd\ufffdb"},
		"half an escaped letter at the end": {body: delta(`"a\ud83d"`, `,"finish_reason":"stop"`), text: "a\ufffd"},
		"bytes of an argument in two":       {body: call("{\"name\":\"answer\",\"arguments\":\"{\\\"title\\\":\\\"Call \xf0\x9f\"}") + call("{\"arguments\":\"\x98\x80\\\",\\\"urgent\\\":true}\"}") + stopChunk, via: provider.ViaTool},

		"the whole repeated at the end": {body: halves + chunkOf(message) + doneEvent},
		"the whole after a stop":        {body: halves + stopChunk + `data: {"object":"chat.completion","choices":[` + message + `]}` + "\n\n" + doneEvent},
		"text as an object":             {body: delta(`[{"type":"text","text":{"value":`+wholeText+`,"annotations":[]}}]`, "") + stopChunk},
		"content within a part":         {body: delta(`[{"type":"text","content":`+wholeText+`}]`, "") + stopChunk},
		"parts of text without a type":  {body: delta(`[{"text":`+firstHalf+`},{"text":`+secondHalf+`}]`, "") + stopChunk},
		"a reference between parts":     {body: delta(`[{"type":"text","text":`+firstHalf+`},{"type":"reference","reference_ids":[1]},{"type":"text","text":`+secondHalf+`}]`, "") + stopChunk},
		"reasoning as a part":           {body: delta(`[{"type":"reasoning","text":"hm"},{"type":"text","text":`+wholeText+`}]`, "") + stopChunk},
		"redacted thinking as a part":   {body: delta(`[{"type":"redacted_thinking","data":"xx"},{"type":"text","text":`+wholeText+`}]`, "") + stopChunk},
		"an empty list of parts":        {body: delta(`[]`, "") + whole},
		"a list that the server parsed": {body: delta(`[{"type":"invoice","n":1},{"type":"note","n":2}]`, "") + stopChunk, text: `[{"type":"invoice","n":1},{"type":"note","n":2}]`},
		"a parsed object with a type":   {body: delta(`{"type":"invoice","text":"x","n":1}`, "") + stopChunk, text: `{"type":"invoice","text":"x","n":1}`},
		"a parsed list of texts":        {body: delta(`["a","b"]`, "") + stopChunk, text: `["a","b"]`},
		"a parsed number":               {body: delta(`42`, "") + stopChunk, text: `42`},
		"thinking in its own member":    {body: chunkOf(`{"index":0,"delta":{"thinking":"hm {"}}`) + whole},
		"reasoning_details":             {body: chunkOf(`{"index":0,"delta":{"reasoning_details":[{"type":"reasoning.text","text":"hm {"}]}}`) + whole},
		"reasoning null, content first": {body: chunkOf(`{"index":0,"delta":{"reasoning":null,"content":`+firstHalf+`}}`) + delta(secondHalf, "") + stopChunk},
		"a role in each piece":          {body: chunkOf(`{"index":0,"delta":{"role":"assistant","content":`+firstHalf+`}}`) + chunkOf(`{"index":0,"delta":{"role":"assistant","content":`+secondHalf+`}}`) + stopChunk},
		"two choices, one asked for":    {body: `data: {"choices":[{"index":0,"delta":{"content":` + firstHalf + `}},{"index":1,"delta":{"content":"x"}}]}` + "\n\n" + `data: {"choices":[{"index":1,"delta":{"content":"y"},"finish_reason":"stop"},{"index":0,"delta":{"content":` + secondHalf + `},"finish_reason":"stop"}]}` + "\n\n"},
		"a null choice list at the end": {body: halves + stopChunk + `data: {"choices":null}` + "\n\n" + doneEvent},
		"log probabilities":             {body: chunkOf(`{"index":0,"delta":{"content":` + wholeText + `},"logprobs":{"content":[{"token":"{","logprob":-0.1}]},"finish_reason":"stop"}`)},
		"members of Perplexity":         {body: `data: {"citations":["https://x.test"],"search_results":[],"choices":[{"index":0,"delta":{"content":` + wholeText + `},"message":{"content":"{"},"finish_reason":"stop"}]}` + "\n\n"},
		"members of OpenRouter":         {body: `data: {"provider":"x","choices":[{"index":0,"delta":{"content":` + wholeText + `},"finish_reason":"stop","native_finish_reason":"STOP"}]}` + "\n\n"},
		"members of vLLM":               {body: chunkOf(`{"index":0,"delta":{"content":` + wholeText + `,"reasoning_content":null},"logprobs":null,"finish_reason":"stop","stop_reason":151645}`)},
		"members of llama.cpp":          {body: `data: {"choices":[{"index":0,"delta":{"content":` + wholeText + `},"finish_reason":"stop"}],"timings":{"prompt_n":3,"predicted_n":5}}` + "\n\n"},

		"end_turn":                 {body: delta(wholeText, `,"finish_reason":"end_turn"`)},
		"COMPLETE":                 {body: delta(wholeText, `,"finish_reason":"COMPLETE"`)},
		"MAX_TOKENS":               {body: delta(wholeText, `,"finish_reason":"MAX_TOKENS"`), stop: provider.StopTruncated},
		"ERROR_LIMIT":              {body: delta(wholeText, `,"finish_reason":"ERROR_LIMIT"`), stop: provider.StopTruncated},
		"ERROR_TOXIC":              {body: delta(wholeText, `,"finish_reason":"ERROR_TOXIC"`), stop: provider.StopRefused},
		"sensitive":                {body: delta(wholeText, `,"finish_reason":"sensitive"`), stop: provider.StopRefused},
		"tool_use without a tool":  {body: delta(wholeText, `,"finish_reason":"tool_use"`), stop: provider.StopUnknown},
		"false as a reason":        {body: delta(wholeText, `,"finish_reason":false`), stop: provider.StopUnknown},
		"a reason, then null":      {body: delta(wholeText, `,"finish_reason":"stop"`) + chunkOf(`{"index":0,"delta":{},"finish_reason":null}`)},
		"two reasons, the later":   {body: delta(wholeText, `,"finish_reason":"stop"`) + chunkOf(`{"index":0,"delta":{},"finish_reason":"length"}`), stop: provider.StopTruncated},
		"a reason without a delta": {body: halves + chunkOf(`{"index":0,"finish_reason":"stop"}`)},
		"a refusal as a part": {
			body: delta(`[{"type":"refusal","refusal":"I will not"}]`, `,"finish_reason":"stop"`), text: "-", stop: provider.StopRefused,
		},

		"empty arguments":            {body: call(`{"name":"answer","arguments":""}`) + stopChunk, via: provider.ViaTool, text: "{}"},
		"null arguments":             {body: call(`{"name":"answer","arguments":null}`) + stopChunk, via: provider.ViaTool, text: "{}"},
		"no arguments":               {body: call(`{"name":"answer"}`) + stopChunk, via: provider.ViaTool, text: "{}"},
		"empty arguments, cut":       {body: call(`{"name":"answer","arguments":""}`) + chunkOf(`{"index":0,"delta":{},"finish_reason":"length"}`), via: provider.ViaTool, text: "-", stop: provider.StopTruncated},
		"arguments after empty ones": {body: call(`{"name":"answer","arguments":""}`) + call(`{"arguments":`+wholeText+`}`) + stopChunk, via: provider.ViaTool},
		"a call after prose":         {body: delta(`"Let me answer."`, "") + call(`{"name":"answer","arguments":`+wholeText+`}`) + stopChunk, via: provider.ViaTool},
		"a call in the text":         {body: delta(`"{\"name\":\"answer\",\"arguments\":{\"title\":\"Call 😀\",\"urgent\":true}}"`, `,"finish_reason":"stop"`), via: provider.ViaTool},
		"a call in a tag": {
			body: delta(`"<think>{</think><tool_call>\n{\"name\":\"answer\",\"arguments\":{\"title\":\"Call 😀\",\"urgent\":true}}\n</tool_call>"`, `,"finish_reason":"stop"`), via: provider.ViaTool,
		},
		"a call of Llama in the text": {body: delta(`"<|python_tag|>{\"name\":\"answer\",\"parameters\":{\"title\":\"Call 😀\",\"urgent\":true}}"`, `,"finish_reason":"stop"`), via: provider.ViaTool},
		"a call of Mistral in text":   {body: delta(`"[TOOL_CALLS][{\"name\":\"answer\",\"arguments\":{\"title\":\"Call 😀\",\"urgent\":true}}]"`, `,"finish_reason":"stop"`), via: provider.ViaTool},
		"arguments in the text as text": {
			body: delta(`"{\"name\":\"answer\",\"arguments\":\"{\\\"title\\\":\\\"Call 😀\\\",\\\"urgent\\\":true}\"}"`, `,"finish_reason":"stop"`), via: provider.ViaTool,
		},
		"an answer with a name": {
			body: delta(`"{\"name\":\"Ann\",\"arguments\":{}}"`, `,"finish_reason":"stop"`), via: provider.ViaTool, text: `{"name":"Ann","arguments":{}}`,
		},
		"a call of another tool": {
			body: call(`{"name":"search","arguments":"{}"}`) + stopChunk, via: provider.ViaTool, text: "-", stop: provider.StopUnknown,
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			res, err := callServed(t, served{body: tc.body}, tc.via)
			require.NoError(t, err)
			switch tc.text {
			case "":
				require.JSONEq(t, wanted, res.Text)
			case "-":
				require.Empty(t, res.Text)
			default:
				require.Equal(t, tc.text, res.Text)
			}
			if tc.stop == "" {
				tc.stop = provider.StopClean
			}
			require.Equal(t, tc.stop, res.Stop)
		})
	}
}

func TestForeign_Thoughts(t *testing.T) {
	t.Parallel()
	for name, piece := range map[string]string{
		"reasoning_content":       chunkOf(`{"index":0,"delta":{"reasoning_content":"hm"}}`),
		"reasoning":               chunkOf(`{"index":0,"delta":{"reasoning":"hm"}}`),
		"thinking":                chunkOf(`{"index":0,"delta":{"thinking":"hm"}}`),
		"reasoning_details":       chunkOf(`{"index":0,"delta":{"reasoning_details":[{"type":"reasoning.text","text":"hm"}]}}`),
		"a summary":               chunkOf(`{"index":0,"delta":{"reasoning_details":[{"type":"reasoning.summary","summary":"hm"}]}}`),
		"both, said once":         chunkOf(`{"index":0,"delta":{"reasoning":"hm","reasoning_details":[{"type":"reasoning.text","text":"hm"}]}}`),
		"a part":                  chunkOf(`{"index":0,"delta":{"content":[{"type":"thinking","thinking":"hm"}]}}`),
		"a part of parts":         chunkOf(`{"index":0,"delta":{"content":[{"type":"thinking","thinking":[{"type":"text","text":"h"},{"type":"text","text":"m"}]}]}}`),
		"encrypted, said by none": chunkOf(`{"index":0,"delta":{"reasoning_details":[{"type":"reasoning.encrypted","data":"xx"}],"reasoning":"hm"}}`),
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			req := ask()
			req.Thoughts = true
			said := ""
			res, err := served{body: piece + delta(`"a"`, `,"finish_reason":"stop"`)}.call(t, compat.Config{}, req, func(d provider.Delta) error {
				said += d.Thought
				return nil
			})
			require.NoError(t, err)
			require.Equal(t, "hm", said)
			require.Equal(t, "a", res.Text)
		})
	}
}

func TestForeign_Usage(t *testing.T) {
	t.Parallel()
	whole := delta(`"a"`, `,"finish_reason":"stop"`)
	counts := func(in, out, total int, thoughts *int) provider.Usage {
		return provider.Usage{InputTokens: in, OutputTokens: out, TotalTokens: total, ReasoningTokens: thoughts, Known: true}
	}
	for name, tc := range map[string]struct {
		usage string
		want  provider.Usage
	}{
		"OpenAI, with thoughts":     {`{"prompt_tokens":10,"completion_tokens":50,"total_tokens":60,"completion_tokens_details":{"reasoning_tokens":40}}`, counts(10, 50, 60, new(40))},
		"OpenAI, no thoughts":       {`{"prompt_tokens":10,"completion_tokens":50,"total_tokens":60,"completion_tokens_details":{"reasoning_tokens":0,"audio_tokens":0}}`, counts(10, 50, 60, new(0))},
		"no details":                {`{"prompt_tokens":10,"completion_tokens":50,"total_tokens":60}`, counts(10, 50, 60, nil)},
		"null details":              {`{"prompt_tokens":10,"completion_tokens":50,"total_tokens":60,"completion_tokens_details":null}`, counts(10, 50, 60, nil)},
		"null thoughts":             {`{"prompt_tokens":10,"completion_tokens":50,"total_tokens":60,"completion_tokens_details":{"reasoning_tokens":null}}`, counts(10, 50, 60, nil)},
		"thoughts as text":          {`{"prompt_tokens":10,"completion_tokens":50,"total_tokens":60,"completion_tokens_details":{"reasoning_tokens":"40"}}`, counts(10, 50, 60, new(40))},
		"xAI, thoughts apart":       {`{"prompt_tokens":32,"completion_tokens":9,"total_tokens":135,"completion_tokens_details":{"reasoning_tokens":94}}`, counts(32, 103, 135, new(94))},
		"apart, no total":           {`{"prompt_tokens":32,"completion_tokens":9,"completion_tokens_details":{"reasoning_tokens":94}}`, counts(32, 103, 0, new(94))},
		"SGLang":                    {`{"prompt_tokens":10,"completion_tokens":50,"total_tokens":60,"reasoning_tokens":40}`, counts(10, 50, 60, new(40))},
		"names of Responses":        {`{"input_tokens":10,"output_tokens":50,"total_tokens":60,"output_tokens_details":{"reasoning_tokens":40}}`, counts(10, 50, 60, new(40))},
		"more thoughts than output": {`{"prompt_tokens":10,"completion_tokens":5,"total_tokens":15,"completion_tokens_details":{"reasoning_tokens":40}}`, counts(10, 5, 15, nil)},
		"negative thoughts":         {`{"prompt_tokens":10,"completion_tokens":5,"total_tokens":15,"completion_tokens_details":{"reasoning_tokens":-4}}`, counts(10, 5, 15, nil)},
		"exponents":                 {`{"prompt_tokens":1e1,"completion_tokens":5e0,"total_tokens":1.5e1}`, counts(10, 5, 15, nil)},
		"DeepSeek": {
			`{"prompt_tokens":10,"completion_tokens":50,"total_tokens":60,"prompt_cache_hit_tokens":4,"prompt_cache_miss_tokens":6,"completion_tokens_details":{"reasoning_tokens":7}}`,
			provider.Usage{InputTokens: 10, OutputTokens: 50, TotalTokens: 60, CacheReadTokens: 4, ReasoningTokens: new(7), Known: true},
		},
		"short names":      {`{"prompt":10,"completion":5}`, counts(10, 5, 0, nil)},
		"shorter names":    {`{"input":10,"output":5,"total":15}`, counts(10, 5, 15, nil)},
		"counts of tokens": {`{"prompt_token_count":10,"completion_token_count":5,"total_token_count":15}`, counts(10, 5, 15, nil)},
		"watsonx":          {`{"input_token_count":10,"generated_token_count":5}`, counts(10, 5, 0, nil)},
		"in and out":       {`{"tokens_in":10,"tokens_out":5}`, counts(10, 5, 0, nil)},
		"unknown names":    {`{"cost":{"input":0.1,"output":0.2},"ms":12}`, provider.Usage{}},
		"the total alone":  {`{"total_tokens":15}`, provider.Usage{}},
		"all zero":         {`{"prompt_tokens":0,"completion_tokens":0,"total_tokens":0}`, counts(0, 0, 0, nil)},
		"huge":             {`{"prompt_tokens":1e300,"completion_tokens":5,"total_tokens":5}`, counts(0, 5, 5, nil)},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			res, err := served{body: whole + `data: {"choices":[],"usage":` + tc.usage + "}\n\n" + doneEvent}.call(t, compat.Config{}, ask(), nil)
			require.NoError(t, err)
			require.Equal(t, tc.want, res.Usage)
		})
	}
}

func TestForeign_Errors(t *testing.T) {
	t.Parallel()
	stream := func(doc string) served { return served{body: "data: " + doc + "\n\n" + doneEvent} }
	status := func(code int, doc string) served { return served{status: code, label: "application/json", body: doc} }
	openai := func(code int, message, kind, id string) served {
		return status(code, `{"error":{"message":"`+message+`","type":"`+kind+`","param":null,"code":"`+id+`"}}`)
	}
	type failure struct {
		served
		via                 provider.SchemaVia
		code                string
		retryable, capacity bool
		says                string // part of the quote
	}
	tooLong := func(s served) failure { return failure{served: s, code: provider.CodeContentTooLong} }
	noSchema := func(s served) failure { return failure{served: s, code: provider.CodeSchemaInvalid} }
	spent := func(s served) failure { return failure{served: s, code: provider.CodeQuota} }
	busy := func(s served) failure {
		return failure{served: s, code: provider.CodeUnavailable, retryable: true, capacity: true}
	}
	broken := func(s served) failure { return failure{served: s, code: provider.CodeUnavailable, retryable: true} }
	noModel := func(s served) failure { return failure{served: s, code: provider.CodeModelNotSupported} }
	invalid := func(s served, says string) failure {
		return failure{served: s, code: provider.CodeInvalidRequest, says: says}
	}
	for name, tc := range map[string]failure{
		"Ollama, no model":          noModel(openai(404, `model \"x\" not found, try pulling it first`, "api_error", "")),
		"Ollama, no tools":          {served: openai(400, "registry.ollama.ai/library/x:latest does not support tools", "api_error", ""), via: provider.ViaTool, code: provider.CodeSchemaInvalid},
		"Ollama, a bad format":      noSchema(status(400, `{"error":{"message":"invalid format: expected \"json\" or a JSON schema","type":"api_error"}}`)),
		"Ollama, too long":          tooLong(status(400, `{"error":"the input length exceeds the context length"}`)),
		"Ollama, busy":              busy(status(503, `{"error":"server busy, please try again.  maximum pending requests exceeded"}`)),
		"Ollama, a dead runner":     broken(status(500, `{"error":"llama runner process has terminated: exit status 2"}`)),
		"Ollama, in the stream":     broken(stream(`{"error":"an error was encountered while running the model: unexpected EOF"}`)),
		"LM Studio, too long":       tooLong(status(400, `{"error":"Trying to keep the first 5000 tokens when context the overflows. However, the model is loaded with context length of only 4096 tokens, which is not enough."}`)),
		"LM Studio, in the stream":  tooLong(served{body: "event: error\ndata: {\"error\":{\"message\":\"Trying to keep the first 5000 tokens when context the overflows. However, the model is loaded with context length of only 4096 tokens\"}}\n\n"}),
		"LM Studio, not loaded":     noModel(status(404, `{"error":{"message":"No models loaded. Please load a model in the developer page or use the lms load command.","type":"invalid_request_error","param":"model","code":"model_not_found"}}`)),
		"llama.cpp, context shift":  tooLong(status(500, `{"error":{"code":500,"message":"context shift is disabled","type":"server_error"}}`)),
		"llama.cpp, not built":      invalid(status(501, `{"error":{"code":501,"message":"This server does not support completions. Start it without --embeddings","type":"not_supported_error"}}`), "does not support completions"),
		"llama.cpp, a grammar, 500": noSchema(status(500, `{"error":{"code":500,"message":"Failed to initialize samplers: failed to parse grammar","type":"server_error"}}`)),
		"llama.cpp, in the stream":  tooLong(served{body: `error: {"code":400}` + "\n\n" + `data: {"error":{"code":400,"message":"the request exceeds the available context size, try increasing it","type":"exceed_context_size_error","n_prompt_tokens":9000,"n_ctx":4096}}` + "\n\n"}),
		"vLLM, too much asked":      tooLong(status(400, `{"error":{"message":"'max_tokens' or 'max_completion_tokens' is too large: 5000. This model's maximum context length is 4096 tokens and your request has 100 input tokens","type":"BadRequestError","param":null,"code":400}}`)),
		"vLLM, xgrammar":            noSchema(status(400, `{"error":{"message":"The provided JSON schema contains features not supported by xgrammar.","type":"BadRequestError","param":null,"code":400}}`)),
		"vLLM, a dead engine":       broken(status(500, `{"error":{"message":"EngineCore encountered an issue. See stack trace (above) for the root cause.","type":"InternalServerError","param":null,"code":500}}`)),
		"vLLM, no model":            noModel(status(404, "{\"error\":{\"message\":\"The model `x` does not exist.\",\"type\":\"NotFoundError\",\"param\":\"model\",\"code\":404}}")),
		"vLLM, no tools":            {served: status(400, `{"error":{"message":"\"auto\" tool choice requires --enable-auto-tool-choice and --tool-call-parser to be set","type":"BadRequestError","code":400}}`), via: provider.ViaTool, code: provider.CodeSchemaInvalid},
		"SGLang, too long":          tooLong(status(400, `{"object":"error","message":"The input (5000 tokens) is longer than the model's context length (4096 tokens).","type":"BadRequestError","param":null,"code":400}`)),
		"TGI, too long":             tooLong(status(422, "{\"error\":\"Input validation error: `inputs` tokens + `max_new_tokens` must be <= 4096. Given: 4000 `inputs` tokens and 512 `max_new_tokens`\",\"error_type\":\"validation\"}")),
		"TGI, too many inputs":      tooLong(status(422, "{\"error\":\"Input validation error: `inputs` must have less than 1024 tokens. Given: 1100\",\"error_type\":\"validation\"}")),
		"TGI, overloaded":           {served: status(429, `{"error":"Model is overloaded","error_type":"overloaded"}`), code: provider.CodeQuota, retryable: true, capacity: true},
		"TGI, in the stream":        broken(served{body: "event: error\ndata: {\"error\":\"Request failed during generation: Server error: CANCELLED\",\"error_type\":\"generation\"}\n\n"}),
		"Mistral, an inner detail":  invalid(status(422, `{"object":"error","message":{"detail":[{"type":"extra_forbidden","loc":["body","foo"],"msg":"Extra inputs are not permitted"}]},"type":"invalid_request_error","param":null,"code":null}`), "Extra inputs are not permitted"),
		"Mistral, no capacity":      {served: status(429, `{"object":"error","message":"Service tier capacity exceeded for this model.","type":"service_tier_capacity_exceeded","param":null,"code":"3505"}`), code: provider.CodeQuota, retryable: true, capacity: true},
		"Mistral, too long":         tooLong(status(400, `{"object":"error","message":"Prompt contains 40000 tokens and 0 draft tokens, too large for model with 32768 maximum context length","type":"invalid_request_error","param":null,"code":"3051"}`)),
		"Mistral, no model":         noModel(status(400, `{"object":"error","message":"Invalid model: x","type":"invalid_model","param":null,"code":"1500"}`)),
		"Mistral, no key":           {served: status(401, `{"detail":"Unauthorized"}`), code: provider.CodeCredentialRequired},
		"Groq, bad JSON, no schema": {served: status(400, `{"error":{"message":"Failed to generate JSON. Please adjust your prompt. See 'failed_generation' for more details.","type":"invalid_request_error","code":"json_validate_failed","failed_generation":"hi"}}`), via: provider.ViaObject, code: provider.CodeUnavailable, retryable: true},
		"Groq, a bad call":          {served: status(400, `{"error":{"message":"Failed to call a function. Please adjust your prompt.","type":"invalid_request_error","code":"tool_use_failed","failed_generation":"<function=x>"}}`), via: provider.ViaTool, code: provider.CodeUnavailable, retryable: true},
		"Groq, flex tier":           busy(status(498, `{"error":{"message":"Flex tier capacity exceeded, please try again","type":"capacity_exceeded","code":"capacity_exceeded"}}`)),
		"Groq, too much at once":    tooLong(status(413, "{\"error\":{\"message\":\"Request too large for model `x` on tokens per minute (TPM): Limit 6000, Requested 8000\",\"type\":\"tokens\",\"code\":\"rate_limit_exceeded\"}}")),
		"Groq, over capacity":       busy(status(503, `{"error":{"message":"x is currently over capacity. Please try again and back off exponentially.","type":"internal_server_error"}}`)),
		"DeepSeek, no balance":      spent(openai(402, "Insufficient Balance", "unknown_error", "invalid_request_error")),
		"DeepSeek, busy":            busy(openai(503, "Service is too busy. We advise users to temporarily switch to alternative LLM API service providers.", "service_unavailable_error", "")),
		"DeepSeek, no format":       noSchema(openai(422, "Failed to deserialize the JSON body into the target type: response_format: response_format.type `json_schema` is unavailable now at line 1 column 9", "invalid_request_error", "invalid_request_error")),
		"Together, too long":        tooLong(status(422, "{\"id\":\"x\",\"error\":{\"message\":\"Input validation error: `inputs` tokens + `max_new_tokens` must be <= 8193. Given: 9000 `inputs` tokens and 512 `max_new_tokens`\",\"type\":\"invalid_request_error\",\"param\":\"max_tokens\",\"code\":null}}")),
		"Together, no model":        noModel(status(404, `{"id":"x","error":{"message":"Unable to access model x. Please visit https://api.together.ai/models","type":"invalid_request_error","param":null,"code":"model_not_available"}}`)),
		"OpenRouter, credits":       spent(status(402, `{"error":{"code":402,"message":"This request requires more credits, or fewer max_tokens."}}`)),
		"OpenRouter, a limit, 200":  {served: served{label: "application/json", body: `{"error":{"code":429,"message":"Rate limit exceeded: free-models-per-day"}}`}, code: provider.CodeQuota, retryable: true, capacity: true},
		"OpenRouter, inner error":   tooLong(status(400, `{"error":{"code":400,"message":"Provider returned error","metadata":{"provider_name":"x","raw":"{\"error\":{\"message\":\"This model's maximum context length is 4096 tokens.\",\"code\":\"context_length_exceeded\"}}"}}}`)),
		"OpenRouter, inner text":    {served: status(400, `{"error":{"code":400,"message":"Provider returned error","metadata":{"provider_name":"x","raw":"the temperature is out of range"}}}`), code: provider.CodeInvalidRequest, says: "Provider returned error: the temperature is out of range"},
		"OpenRouter, a choice":      broken(stream(`{"choices":[{"index":0,"delta":{"content":""},"finish_reason":"error","error":{"code":502,"message":"Upstream idle timeout"}}]}`)),
		"OpenRouter, mid stream":    {served: served{body: delta(`"{"`, "") + `data: {"error":{"code":"server_error","message":"Provider disconnected unexpectedly"},"choices":[{"index":0,"delta":{"content":""},"finish_reason":"error"}]}` + "\n\n"}, code: provider.CodeUnavailable, retryable: true, says: "Provider disconnected"},
		"LiteLLM, too long":         tooLong(openai(400, "litellm.ContextWindowExceededError: litellm.BadRequestError: VertexException - the prompt does not fit", "None", "400")),
		"LiteLLM, a budget":         spent(openai(400, "Budget has been exceeded! Current cost: 20.1, Max budget: 20.0", "budget_exceeded", "400")),
		"LiteLLM, no model":         noModel(status(400, `{"error":{"message":"/chat/completions: Invalid model name passed in model=x. Call /v1/models to view available models","type":"invalid_request_error","param":"model","code":"400"}}`)),
		"LiteLLM, no parameter":     noSchema(openai(400, "litellm.UnsupportedParamsError: x does not support parameters: ['response_format'], for model=x", "None", "400")),
		"LiteLLM, no deployment":    {served: openai(429, "No deployments available for selected model, Try again in 5 seconds.", "None", "429"), code: provider.CodeQuota, retryable: true, capacity: true},
		"LiteLLM, no connection":    broken(openai(500, "litellm.APIConnectionError: OllamaException - Cannot connect to host", "None", "500")),
		"Azure, no deployment":      noModel(openai(404, "The API deployment for this resource does not exist.", "", "DeploymentNotFound")),
		"Azure, demand":             busy(openai(503, "The system is currently experiencing high demand and cannot process your request.", "", "NoCapacity")),
		"Azure, a gateway's quota":  spent(status(403, `{"statusCode":403,"message":"Out of call volume quota. Quota will be replenished in 01:12:30."}`)),
		"Azure, a gateway's key":    {served: status(401, `{"statusCode":401,"message":"Access denied due to missing subscription key."}`), code: provider.CodeCredentialRequired},
		"OpenAI, no access":         noModel(openai(403, "Project `proj_x` does not have access to model `gpt-x`", "invalid_request_error", "model_not_found")),
		"OpenAI, a region":          {served: openai(403, "Country, region, or territory not supported", "request_forbidden", "unsupported_country_region_territory"), code: provider.CodeUnavailable},
		"Fireworks, suspended":      spent(status(412, `{"error":{"object":"error","type":"invalid_request_error","message":"Account x is suspended, possibly due to reaching the monthly spending limit or failure to pay past invoices."}}`)),
		"Moonshot, an account":      spent(openai(403, "Your account is not active, exceeded_current_quota", "exceeded_current_quota_error", "")),
		"SiliconFlow, a balance":    spent(status(403, `{"code":30001,"message":"Sorry, your account balance is insufficient","data":null}`)),
		"SiliconFlow, no model":     noModel(status(400, `{"code":20012,"message":"Model does not exist. Please check it carefully.","data":null}`)),
		"a code and a message, 200": {served: served{label: "application/json", body: `{"code":50501,"message":"the request failed","data":null}`}, code: provider.CodeUnavailable, retryable: true, says: "the request failed"},
		"Hugging Face, loading":     busy(status(503, `{"error":"Model x is currently loading","estimated_time":20.0}`)),
		"Cloudflare, AI":            tooLong(status(400, `{"errors":[{"message":"AiError: This model's maximum context length is 4096 tokens","code":5021}],"success":false,"result":{},"messages":[]}`)),
		"Cloudflare, 524":           broken(served{status: 524, label: "text/html", body: "<html>A timeout occurred</html>"}),
		"NVIDIA, a problem":         invalid(status(400, `{"type":"urn:inference-service:problem-details:bad-request","title":"Bad Request","status":400,"detail":"Inference error: bad sampling","instance":"/v1/chat/completions"}`), "Inference error: bad sampling"),
		"an odd code in a stream":   broken(stream(`{"error":{"code":3505,"message":"boom"}}`)),
		"a status of the web":       broken(stream(`{"error":{"code":504,"message":"Gateway Timeout"}}`)),
		"HTTP version":              invalid(status(505, `{"error":"HTTP version not supported"}`), "HTTP version"),
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			via := tc.via
			req := ask()
			req.SchemaName, req.Via = "answer", via
			if via != provider.ViaObject {
				req.Schema = []byte(`{"type":"object"}`)
			}
			_, err := tc.call(t, compat.Config{}, req, nil)
			e, ok := provider.As(err)
			require.True(t, ok, err)
			require.Equal(t, tc.code, e.Code, "%s %s", e.Message, e.Quote)
			require.Equal(t, tc.retryable, e.Retryable, e.Message)
			require.Equal(t, tc.capacity, e.Capacity, e.Message)
			require.Contains(t, e.Quote, tc.says)
			require.NotContains(t, e.Message, "could not be reached")
		})
	}
}

// A filter's refusal is an answer, in whatever form a gateway passes it on.
func TestForeign_Filters(t *testing.T) {
	t.Parallel()
	for name, s := range map[string]served{
		"Azure":          {status: 400, body: `{"error":{"message":"The response was filtered due to the prompt triggering Azure OpenAI's content management policy.","type":null,"param":"prompt","code":"content_filter","status":400,"innererror":{"code":"ResponsibleAIPolicyViolation"}}}`},
		"Azure, LiteLLM": {status: 400, body: `{"error":{"message":"litellm.BadRequestError: litellm.ContentPolicyViolationError: AzureException - The response was filtered","type":null,"param":null,"code":"400"}}`},
		"OpenRouter":     {status: 403, body: `{"error":{"code":403,"message":"Your chosen model requires moderation and your input was flagged","metadata":{"reasons":["violence"],"flagged_input":"x"}}}`},
		"xAI":            {status: 403, body: `{"code":"The caller does not have permission to execute the specified operation","error":"Content violates usage guidelines. Team: x, API key ID: x, Model: x"}`},
		"DeepSeek":       {status: 400, body: `{"error":{"message":"Content Exists Risk","type":"invalid_request_error","param":null,"code":"invalid_request_error"}}`},
		"Alibaba":        {status: 400, body: `{"error":{"code":"data_inspection_failed","param":null,"message":"Input data may contain inappropriate content.","type":"data_inspection_failed"}}`},
		"Zhipu":          {status: 400, body: `{"contentFilter":[{"level":1,"role":"user"}],"error":{"code":"1301","message":"System detected potentially unsafe or sensitive content in input or generation."}}`},
		"in a stream":    {body: "data: {\"error\":{\"code\":\"data_inspection_failed\",\"message\":\"Output data may contain inappropriate content.\"}}\n\n"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if s.status != 0 {
				s.label = "application/json"
			}
			res, err := callServed(t, s, provider.ViaFormat)
			require.NoError(t, err)
			require.Equal(t, provider.StopRefused, res.Stop)
			require.NotEmpty(t, res.SafetyCategory)
			require.Empty(t, res.Text)
		})
	}
}

// The time to wait is read in each form.
func TestForeign_Waits(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		header map[string]string
		want   time.Duration
	}{
		"seconds":             {map[string]string{"Retry-After": "7"}, 7 * time.Second},
		"with a unit":         {map[string]string{"Retry-After": "2m30s"}, 150 * time.Second},
		"fractions":           {map[string]string{"Retry-After": "0.5"}, 500 * time.Millisecond},
		"milliseconds":        {map[string]string{"Retry-After-Ms": "1500", "Retry-After": "9"}, 1500 * time.Millisecond},
		"a date":              {map[string]string{"Retry-After": "Fri, 30 Jan 2026 12:00:10 GMT", "Date": "Fri, 30 Jan 2026 12:00:00 GMT"}, 10 * time.Second},
		"a date that is over": {map[string]string{"Retry-After": "Fri, 30 Jan 2026 11:00:00 GMT", "Date": "Fri, 30 Jan 2026 12:00:00 GMT"}, 0},
		"a year":              {map[string]string{"Retry-After": "31536000"}, 24 * time.Hour},
		"text":                {map[string]string{"Retry-After": "soon"}, 0},
		"below zero":          {map[string]string{"Retry-After": "-3"}, 0},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, err := callServed(t, served{status: 429, label: "application/json", body: `{"error":"slow"}`, header: tc.header}, provider.ViaFormat)
			e, ok := provider.As(err)
			require.True(t, ok, err)
			require.Equal(t, tc.want, e.RetryAfter)
		})
	}
}
