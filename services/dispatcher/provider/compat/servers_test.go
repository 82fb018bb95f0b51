package compat_test

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"waybill.dev/waybill/protocol/strictjson"
	"waybill.dev/waybill/services/dispatcher/provider"
	"waybill.dev/waybill/services/dispatcher/provider/compat"
)

func quote(text string) string { return string(strictjson.Render(text)) }

// Answers of servers that repeat the text so far, that leave calls of tools in the text, and that send a finish
// reason with each piece.
func TestServers_Answers(t *testing.T) {
	t.Parallel()
	const half, most = `"{\"title\":\"Call"`, `"{\"title\":\"Call 😀\",\"urgent\""`
	repeated := delta(half, "") + delta(most, "") + delta(wholeText, "")
	halves := delta(firstHalf, "") + delta(secondHalf, "")
	end := func(reason string) string { return chunkOf(`{"index":0,"delta":{},"finish_reason":"` + reason + `"}`) }
	call := func(arguments, more string) string {
		return chunkOf(`{"index":0,"delta":{"tool_calls":[{"index":0` + more + `,"function":{"name":"answer","arguments":` + arguments + `}}]}}`)
	}
	text := func(s string) string { return delta(quote(s), "") }
	for name, tc := range map[string]struct {
		body string
		via  provider.SchemaVia
		text string // wanted, unless set
		stop provider.StopClass
	}{
		"the text so far in each piece":       {body: repeated + stopChunk + doneEvent},
		"the text so far, the end twice":      {body: repeated + delta(wholeText, `,"finish_reason":"stop"`) + doneEvent},
		"the text so far, as parts":           {body: delta(`[{"type":"text","text":`+half+`}]`, "") + delta(`[{"type":"text","text":`+most+`}]`, "") + delta(`[{"type":"text","text":`+wholeText+`}]`, `,"finish_reason":"stop"`)},
		"the text so far, as messages":        {body: chunkOf(`{"index":0,"message":{"content":`+half+`}}`) + chunkOf(`{"index":0,"message":{"content":`+most+`}}`) + chunkOf(`{"index":0,"message":{"content":`+wholeText+`},"finish_reason":"stop"}`)},
		"the text so far, a reason each":      {body: strings.ReplaceAll(repeated, `}}]`, `},"finish_reason":"null"}]`) + stopChunk},
		"the text so far, older interface":    {body: chunkOf(`{"index":0,"text":`+half+`}`) + chunkOf(`{"index":0,"text":`+most+`}`) + chunkOf(`{"index":0,"text":`+wholeText+`,"finish_reason":"stop"}`)},
		"arguments so far in each piece":      {body: call(half, `,"id":"c"`) + call(most, "") + call(wholeText, "") + stopChunk, via: provider.ViaTool},
		"arguments so far, an id each":        {body: call(half, `,"id":"c"`) + call(most, `,"id":"c"`) + call(wholeText, `,"id":"c"`) + stopChunk, via: provider.ViaTool},
		"arguments so far, function_call":     {body: chunkOf(`{"index":0,"delta":{"function_call":{"name":"answer","arguments":`+half+`}}}`) + chunkOf(`{"index":0,"delta":{"function_call":{"name":"answer","arguments":`+most+`}}}`) + chunkOf(`{"index":0,"delta":{"function_call":{"name":"answer","arguments":`+wholeText+`}}}`) + stopChunk, via: provider.ViaTool},
		"prose so far, no call":               {body: repeated + stopChunk, via: provider.ViaTool},
		"all of it once more":                 {body: delta(half, "") + delta(`" 😀\","`, "") + delta(secondHalf, "") + delta(wholeText, `,"finish_reason":"stop"`)},
		"the whole twice":                     {body: delta(wholeText, "") + delta(wholeText, `,"finish_reason":"stop"`)},
		"a reason with each piece":            {body: strings.ReplaceAll(halves, `}}]`, `},"finish_reason":"stop"}]`) + doneEvent},
		"a reason with each piece, no done":   {body: strings.ReplaceAll(halves, `}}]`, `},"finish_reason":"stop"}]`)},
		"the word null with each piece":       {body: strings.ReplaceAll(halves, `}}]`, `},"finish_reason":"null"}]`) + stopChunk},
		"the word None with each piece":       {body: strings.ReplaceAll(halves, `}}]`, `},"finish_reason":"None"}]`) + doneEvent},
		"not_finished with each piece":        {body: strings.ReplaceAll(halves, `}}]`, `},"finish_reason":"not_finished"}]`) + end("eos_token")},
		"an unspecified reason":               {body: strings.ReplaceAll(halves, `}}]`, `},"finish_reason":"FINISH_REASON_UNSPECIFIED"}]`) + end("STOP")},
		"watsonx, tokens":                     {body: halves + end("max_tokens"), stop: provider.StopTruncated},
		"watsonx, a limit":                    {body: halves + end("token_limit"), stop: provider.StopTruncated},
		"Titan, an end":                       {body: halves + end("FINISH")},
		"Titan, a length":                     {body: halves + end("LENGTH"), stop: provider.StopTruncated},
		"Titan, a filter":                     {body: halves + end("CONTENT_FILTERED"), stop: provider.StopRefused},
		"a limit":                             {body: halves + end("limit"), stop: provider.StopTruncated},
		"max_new_tokens":                      {body: halves + end("max_new_tokens"), stop: provider.StopTruncated},
		"end_of_turn":                         {body: halves + end("end_of_turn")},
		"a stop token":                        {body: halves + end("stop_token")},
		"Gemini, a filter with its name":      {body: halves + end("content_filter: PROHIBITED_CONTENT"), stop: provider.StopRefused},
		"Gemini, a call that is malformed":    {body: halves + end("function_call_filter: MALFORMED_FUNCTION_CALL"), stop: provider.StopUnknown},
		"Vertex, Model Armor":                 {body: halves + end("MODEL_ARMOR"), stop: provider.StopRefused},
		"Gemini, a language":                  {body: halves + end("LANGUAGE"), stop: provider.StopUnknown},
		"Bedrock, a guardrail":                {body: halves + end("guardrail_intervened"), stop: provider.StopRefused},
		"a policy":                            {body: halves + end("policy_violation"), stop: provider.StopRefused},
		"a content that was blocked":          {body: halves + end("content_blocked"), stop: provider.StopRefused},
		"OpenRouter, a native reason":         {body: halves + chunkOf(`{"index":0,"delta":{"content":""},"finish_reason":"stop","native_finish_reason":"end_turn"}`)},
		"Azure, results of filters":           {body: `data: {"choices":[],"prompt_filter_results":[{"prompt_index":0,"content_filter_results":{"hate":{"filtered":false,"severity":"safe"}}}]}` + "\n\n" + halves + chunkOf(`{"index":0,"finish_reason":null,"content_filter_offsets":{"check_offset":44},"content_filter_results":{"hate":{"filtered":false}}}`) + stopChunk},
		"Azure, results without a delta":      {body: halves + stopChunk + chunkOf(`{"index":0,"finish_reason":null,"content_filter_results":{"violence":{"filtered":false,"severity":"low"}}}`) + doneEvent},
		"Cloudflare, a response next to it":   {body: strings.ReplaceAll(halves, `{"choices"`, `{"response":"","p":"abc","choices"`) + stopChunk},
		"Hermes":                              {body: text("<tool_call>\n"+`{"name":"answer","arguments":`+wanted+"}") + text("\n</tool_call>") + stopChunk, via: provider.ViaTool},
		"Qwen Coder":                          {body: text("<tool_call>\n<function=answer>\n<parameter=title>\nCall 😀\n</parameter>\n<parameter=urgent>\ntrue\n</parameter>\n</function>\n</tool_call>") + stopChunk, via: provider.ViaTool},
		"Mistral":                             {body: text("[TOOL_CALLS]") + text("answer[ARGS]"+wanted) + stopChunk, via: provider.ViaTool},
		"Llama":                               {body: text("<|python_tag|>"+`{"name":"answer","parameters":`+wanted+`}`) + stopChunk, via: provider.ViaTool},
		"Llama 4":                             {body: text(`[answer(title="Call 😀", urgent=True)]`) + stopChunk, via: provider.ViaTool},
		"GLM":                                 {body: text("<tool_call>answer\n<arg_key>title</arg_key>\n<arg_value>Call 😀</arg_value>\n<arg_key>urgent</arg_key>\n<arg_value>true</arg_value>\n</tool_call>") + stopChunk, via: provider.ViaTool},
		"DeepSeek":                            {body: text("<｜tool▁calls▁begin｜><｜tool▁call▁begin｜>answer<｜tool▁sep｜>"+wanted+"<｜tool▁call▁end｜><｜tool▁calls▁end｜>") + stopChunk, via: provider.ViaTool},
		"Kimi":                                {body: text("<|tool_calls_section_begin|><|tool_call_begin|>functions.answer:0<|tool_call_argument_begin|>"+wanted+"<|tool_call_end|><|tool_calls_section_end|>") + stopChunk, via: provider.ViaTool},
		"Hermes, the reason of a call":        {body: text("<tool_call>"+`{"name":"answer","arguments":`+wanted+"}</tool_call>") + end("tool_calls"), via: provider.ViaTool, stop: provider.StopUnknown},
		"Hermes, so far":                      {body: text("<tool_call>\n") + text("<tool_call>\n"+`{"name":"answer",`) + text("<tool_call>\n"+`{"name":"answer","arguments":`+wanted+"}\n</tool_call>") + stopChunk, via: provider.ViaTool},
		"Hermes, cut":                         {body: text("<tool_call>\n"+`{"name":"answer","arguments":{"title":"Ca`) + end("length"), via: provider.ViaTool, stop: provider.StopTruncated, text: "<tool_call>\n" + `{"name":"answer","arguments":{"title":"Ca`},
		"marks of a call, no tool offered":    {body: text("[TOOL_CALLS]answer[ARGS]"+wanted) + stopChunk, text: "[TOOL_CALLS]answer[ARGS]" + wanted},
		"a call in both, the first":           {body: text("<tool_call>"+`{"name":"answer","arguments":{}}</tool_call>`) + call(wholeText, `,"id":"c"`) + stopChunk, via: provider.ViaTool},
		"reasoning so far in each piece":      {body: chunkOf(`{"index":0,"delta":{"reasoning_content":"Let"}}`) + chunkOf(`{"index":0,"delta":{"reasoning_content":"Let me"}}`) + halves + stopChunk},
		"a stop of the server's word, no end": {body: halves + end("eos")},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			req := ask()
			req.Schema, req.SchemaName, req.Via = []byte(`{"type":"object","properties":{"title":{"type":"string"},"urgent":{"type":"boolean"}}}`), "answer", tc.via
			res, err := served{body: tc.body}.call(t, compat.Config{}, req, nil)
			require.NoError(t, err)
			if tc.text == "" {
				require.JSONEq(t, wanted, res.Text)
			} else {
				require.Equal(t, tc.text, res.Text)
			}
			if tc.stop == "" {
				tc.stop = provider.StopClean
			}
			require.Equal(t, tc.stop, res.Stop)
		})
	}
}

// An answer that its server did not end is an error, whatever it says in each piece.
func TestServers_UnfinishedAnswers(t *testing.T) {
	t.Parallel()
	halves := delta(firstHalf, "") + delta(secondHalf, "")
	each := func(reason string) string {
		return strings.ReplaceAll(halves, `}}]`, `},"finish_reason":"`+reason+`"}]`)
	}
	for name, tc := range map[string]struct {
		body string
		says string
	}{
		"null as a word":          {each("null"), "ended its answer before it was complete"},
		"None as a word":          {each("None"), "ended its answer before it was complete"},
		"not_finished":            {each("not_finished"), "ended its answer before it was complete"},
		"in_progress":             {each("in_progress"), "ended its answer before it was complete"},
		"a reason each, an error": {each("stop") + `data: {"error":{"message":"out of memory","code":500}}` + "\n\n", "failed with status 500"},
		"a reason each, garbage":  {each("stop") + "data: {\"choices\":[{\"del\n\n", "no part of an answer"},
		"a cancelled call":        {halves + chunkOf(`{"index":0,"delta":{},"finish_reason":"USER_CANCEL"}`), "broke off its answer: USER_CANCEL"},
		"a failure":               {halves + chunkOf(`{"index":0,"delta":{},"finish_reason":"failed"}`), "broke off its answer: failed"},
		"a preemption":            {halves + chunkOf(`{"index":0,"delta":{},"finish_reason":"preempted"}`), "broke off its answer: preempted"},
		"an unloaded model":       {halves + chunkOf(`{"index":0,"delta":{},"finish_reason":"unload"}`), "broke off its answer: unload"},
		"a time limit":            {halves + chunkOf(`{"index":0,"delta":{},"finish_reason":"time_limit"}`), "broke off its answer: time_limit"},
		"an error with a text":    {halves + chunkOf(`{"index":0,"delta":{},"finish_reason":"error: upstream"}`), "broke off its answer"},
		"a text that changes":     {delta(`"The answer"`, "") + delta(`"The answer is"`, "") + delta(`"The answer is 42"`, "") + delta(`"No, it is 43"`, `,"finish_reason":"stop"`), "repeats its text in each piece"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, err := callServed(t, served{body: tc.body}, provider.ViaFormat)
			e, ok := provider.As(err)
			require.True(t, ok, err)
			require.Equal(t, provider.CodeUnavailable, e.Code)
			require.True(t, e.Retryable)
			require.Contains(t, e.Message, tc.says)
		})
	}
}

// Errors in the words of servers.
func TestServers_Errors(t *testing.T) {
	t.Parallel()
	status := func(code int, doc string) served { return served{status: code, label: "application/json", body: doc} }
	openai := func(code int, message, kind, id string) served {
		return status(code, `{"error":{"message":`+quote(message)+`,"type":"`+kind+`","param":null,"code":"`+id+`"}}`)
	}
	said := func(code int, message string) served { return openai(code, message, "invalid_request_error", "") }
	stream := func(doc string) served { return served{body: "data: " + doc + "\n\n"} }
	with := func(s served, pairs ...string) served {
		s.header = map[string]string{}
		for i := 0; i < len(pairs); i += 2 {
			s.header[pairs[i]] = pairs[i+1]
		}
		return s
	}
	type failure struct {
		served
		via                 provider.SchemaVia
		code                string
		retryable, capacity bool
		after               time.Duration
	}
	limited := func(after time.Duration, s served) failure {
		return failure{served: s, code: provider.CodeQuota, retryable: true, capacity: true, after: after}
	}
	tooLong := func(s served) failure { return failure{served: s, code: provider.CodeContentTooLong} }
	noSchema := func(s served) failure { return failure{served: s, code: provider.CodeSchemaInvalid} }
	spent := func(s served) failure { return failure{served: s, code: provider.CodeQuota} }
	broken := func(s served) failure { return failure{served: s, code: provider.CodeUnavailable, retryable: true} }
	busy := func(after time.Duration, s served) failure {
		return failure{served: s, code: provider.CodeUnavailable, retryable: true, capacity: true, after: after}
	}
	noKey := func(s served) failure { return failure{served: s, code: provider.CodeCredentialRequired} }
	noModel := func(s served) failure { return failure{served: s, code: provider.CodeModelNotSupported} }
	invalid := func(s served) failure { return failure{served: s, code: provider.CodeInvalidRequest} }
	tool := func(f failure) failure { f.via = provider.ViaTool; return f }
	for name, tc := range map[string]failure{
		// Rate limits and their waits.
		"OpenAI, a reset":               limited(6*time.Minute, with(openai(429, "Rate limit reached for x", "tokens", "rate_limit_exceeded"), "X-Ratelimit-Remaining-Tokens", "0", "X-Ratelimit-Reset-Tokens", "6m0s")),
		"OpenAI, milliseconds":          limited(120*time.Millisecond, with(openai(429, "Rate limit reached", "requests", "rate_limit_exceeded"), "Retry-After-Ms", "120", "Retry-After", "1")),
		"Azure, a reset":                limited(8*time.Second, with(openai(429, "Requests to the ChatCompletions_Create Operation have exceeded the token rate limit of your current pricing tier.", "", "429"), "X-Ratelimit-Reset-Tokens", "8")),
		"Cerebras":                      limited(11382*time.Millisecond, with(openai(429, "Requests per minute limit exceeded - too many requests sent.", "too_many_requests_error", "request_quota_exceeded"), "X-Ratelimit-Remaining-Tokens-Minute", "0", "X-Ratelimit-Reset-Tokens-Minute", "11.382")),
		"Cerebras, a queue":             busy(0, openai(503, "We're experiencing high traffic right now! Please try again soon.", "too_many_requests_error", "queue_exceeded")),
		"OpenRouter, headers in it":     limited(time.Second, status(429, `{"error":{"code":429,"message":"Rate limit exceeded: free-models-per-min","metadata":{"headers":{"X-RateLimit-Limit":"20","X-RateLimit-Remaining":"0","X-RateLimit-Reset":"1"}}}}`)),
		"Together, a reset":             limited(3*time.Second, with(openai(429, "You have been rate limited. Your rate limit is 60 queries per minute.", "credit_limit", ""), "X-Ratelimit-Reset", "3", "X-Ratelimit-Remaining", "0")),
		"Together, dynamic":             limited(0, openai(429, "Request was rejected due to request rate limiting. Your rate limits are 1 RPM.", "request_rate_limit", "dynamic_request_limited")),
		"Mistral":                       limited(30*time.Second, with(status(429, `{"message":"Requests rate limit exceeded"}`), "Ratelimitbysize-Reset", "30", "Ratelimitbysize-Remaining", "0")),
		"a body with its wait":          limited(5*time.Second, status(429, `{"error":{"message":"slow down","retry_after":5}}`)),
		"a plain text":                  limited(0, served{status: 429, label: "text/plain", body: "Too Many Requests"}),
		"an empty body":                 limited(0, served{status: 429, label: "text/plain"}),
		"Bedrock, 429":                  limited(0, status(429, `{"error":{"message":"Too many tokens, please wait before trying again.","type":"ThrottlingException"}}`)),
		"Vertex, resources":             limited(0, status(429, `[{"error":{"code":429,"message":"Resource exhausted. Please try again later. Please refer to https://cloud.google.com/vertex-ai/generative-ai/docs/error-code-429 for more details.","status":"RESOURCE_EXHAUSTED"}}]`)),
		"Groq, a day of tokens":         limited(12*time.Minute+34500*time.Millisecond, openai(429, "Rate limit reached for model x in organization o on tokens per day (TPD): Limit 100000, Used 99000, Requested 2000. Please try again in 12m34.5s.", "tokens", "rate_limit_exceeded")),
		"Moonshot, concurrency":         limited(time.Second, openai(429, "Your account x request reached max organization concurrency: 1, please try again after 1 seconds", "rate_limit_reached_error", "")),
		"Zhipu, concurrency":            limited(0, status(429, `{"error":{"code":"1302","message":"您当前使用该API的并发数过高，请降低并发，或联系客服增加限额"}}`)),
		"Zhipu, a balance":              spent(status(429, `{"error":{"code":"1113","message":"您的账户已欠费，请充值后重试"}}`)),
		"Zhipu, a balance, in English":  spent(status(429, `{"error":{"code":"1113","message":"Insufficient balance or no resource package. Please recharge."}}`)),
		"Perplexity, no credit":         spent(openai(401, "You have exceeded your current quota, please check your plan and billing details", "insufficient_quota", "401")),
		"xAI, no credit":                spent(status(403, `{"code":"The caller does not have permission","error":"Your team x has either used all available credits or reached its monthly spending limit. To continue making API requests, please purchase more credits or raise your spending limit."}`)),
		"OpenAI, a hard limit":          spent(openai(400, "Billing hard limit has been reached", "invalid_request_error", "billing_hard_limit_reached")),
		"OpenRouter, a key's limit":     spent(status(402, `{"error":{"message":"This request requires more credits, or fewer max_tokens. You requested up to 65536 tokens, but can only afford 26213.","code":402}}`)),
		"OpenRouter, a key's limit 403": spent(status(403, `{"error":{"message":"Key limit exceeded (total limit). Manage it using https://openrouter.ai/settings/keys","code":403}}`)),
		"Hugging Face, credits":         spent(status(402, `{"error":"You have exceeded your monthly included credits for Inference Providers. Subscribe to PRO to get 20x more monthly included credits."}`)),
		"DeepInfra, a balance":          spent(status(402, `{"detail":{"error":"inference prohibited, please enter a payment method or set up automatic top-up"}}`)),

		// Prompts that are too long.
		"OpenAI, a context":         tooLong(openai(400, "This model's maximum context length is 8192 tokens. However, your messages resulted in 9001 tokens. Please reduce the length of the messages.", "invalid_request_error", "context_length_exceeded")),
		"OpenAI, the newer one":     tooLong(openai(400, "Your input exceeds the context window of this model. Please adjust your input and try again.", "invalid_request_error", "context_length_exceeded")),
		"vLLM, v1":                  tooLong(status(400, `{"error":{"message":"max_tokens must be at least 1, got -100. (parameter=max_tokens, value=-100)","type":"BadRequestError","param":"max_tokens","code":400}}`)),
		"vLLM, newer":               tooLong(status(400, `{"error":{"message":"This model's maximum context length is 4096 tokens. However, you requested 512 output tokens and your prompt contains at least 3585 input tokens, for a total of at least 4097 tokens. Please reduce the length of the input prompt or the number of requested output tokens. (parameter=input_tokens, value=3585)","type":"BadRequestError","param":"input_tokens","code":400}}`)),
		"vLLM, max_model_len":       tooLong(status(400, `{"object":"error","message":"'max_tokens' or 'max_completion_tokens' is too large: 5000. This model's maximum context length is 4096 tokens and your request has 20 input tokens (5000 > 4096 - 20).","type":"BadRequestError","param":null,"code":400}`)),
		"llama.cpp, a request":      tooLong(status(400, `{"error":{"code":400,"message":"request (5000 tokens) exceeds the available context size (4096 tokens), try increasing it","type":"exceed_context_size_error","n_prompt_tokens":5000,"n_ctx":4096}}`)),
		"llama.cpp, a slot":         tooLong(status(500, `{"error":{"code":500,"message":"the request exceeds the available context size. try increasing the context size or enable context shift","type":"invalid_request_error"}}`)),
		"llama.cpp, physical batch": tooLong(status(500, `{"error":{"code":500,"message":"input is too large to process. increase the physical batch size","type":"server_error"}}`)),
		"LM Studio, a trap":         tooLong(status(400, `{"error":"Trying to keep the first 5020 tokens when context the overflows. However, the model is loaded with context length of only 4096 tokens, which is not enough. Try to load the model with a larger context length, or provide a shorter input"}`)),
		"LM Studio, a stream":       tooLong(served{body: "event: error\ndata: {\"error\":{\"message\":\"Reached context length of 4096 tokens with model (arch: qwen2) that does not currently support mid-generation context overflow.\"},\"message\":\"Reached context length\"}\n\n"}),
		"Ollama, an input":          tooLong(status(400, `{"error":{"message":"the input length exceeds the context length","type":"invalid_request_error","param":null,"code":null}}`)),
		"Groq, 413":                 tooLong(openai(413, "Request Entity Too Large", "invalid_request_error", "request_too_large")),
		"Groq, a context":           tooLong(openai(400, "Please reduce the length of the messages or completion.", "invalid_request_error", "context_length_exceeded")),
		"DeepSeek, a context":       tooLong(openai(400, "This model's maximum context length is 131072 tokens. However, you requested 140000 tokens (139000 in the messages, 1000 in the completion). Please reduce the length of the messages or completion.", "invalid_request_error", "invalid_request_error")),
		"OpenRouter, endpoints":     tooLong(status(400, `{"error":{"message":"This endpoint's maximum context length is 32768 tokens. However, you requested about 40000 tokens (39000 of text input, 1000 in the output). Please reduce the length of either one, or use the \"middle-out\" transform to compress your prompt automatically.","code":400}}`)),
		"Fireworks":                 tooLong(openai(400, "The prompt is too long: 140000, model maximum context length: 131071", "invalid_request_error", "")),
		"Cerebras, a context":       tooLong(openai(400, "Please reduce the length of the messages or completion. Current length is 9000 while limit is 8192", "invalid_request_error", "context_length_exceeded")),
		"Bedrock, Claude":           tooLong(status(400, `{"error":{"message":"prompt is too long: 210000 tokens > 200000 maximum","type":"ValidationException"}}`)),
		"Bedrock, Llama":            tooLong(status(400, `{"message":"This model's maximum context length is 8192 tokens. Please reduce the length of the prompt"}`)),
		"Bedrock, Nova":             tooLong(status(400, `{"message":"Input Tokens Exceeded: Number of input tokens exceeds maximum length. Please update the input to try again."}`)),
		"Vertex, Llama":             tooLong(status(400, `[{"error":{"code":400,"message":"The input token count exceeds the maximum number of tokens allowed 128000.","status":"INVALID_ARGUMENT"}}]`)),
		"Databricks":                tooLong(status(400, `{"error_code":"BAD_REQUEST","message":"Bad request: the input tokens 140000 plus max_tokens 1000 exceeds the context window of 131072"}`)),
		"Alibaba":                   tooLong(status(400, `{"error":{"code":"invalid_parameter_error","param":null,"message":"Range of input length should be [1, 30720]","type":"invalid_request_error"}}`)),
		"MLX":                       tooLong(status(400, `{"error":"Prompt length 5000 exceeds the model context window 4096"}`)),
		"Mistral, too large":        tooLong(status(400, `{"object":"error","message":"Prompt contains 140000 tokens, too large for model with 131072 maximum context length","type":"invalid_request_prompt","param":null,"code":"3051"}`)),

		// Schemas and tools.
		"Groq, no schemas":            noSchema(openai(400, "This model does not support response format `json_schema`. See supported models at https://console.groq.com/docs/structured-outputs#supported-models", "invalid_request_error", "")),
		"Groq, a strict schema":       noSchema(openai(400, "invalid JSON schema for response_format: 'answer': /properties/x: `additionalProperties:false` must be set on every object", "invalid_request_error", "")),
		"Groq, a call that broke":     tool(broken(openai(400, "tool call validation failed: parameters for tool answer did not match schema: errors: [missing properties: 'title']", "invalid_request_error", "tool_use_failed"))),
		"Groq, no tool called":        tool(broken(openai(400, "Tool choice is required, but model did not call a tool", "invalid_request_error", "tool_use_failed"))),
		"Groq, no tools":              tool(noSchema(openai(400, "`tool calling` is not supported with this model", "invalid_request_error", ""))),
		"Ollama, no tools":            tool(noSchema(status(400, `{"error":{"message":"registry.ollama.ai/library/x does not support tools","type":"api_error","param":null,"code":null}}`))),
		"OpenRouter, no tools":        tool(noSchema(status(404, `{"error":{"message":"No endpoints found that support tool use. To learn more about provider routing, visit: https://openrouter.ai/docs/provider-routing","code":404}}`))),
		"OpenRouter, no parameters":   noSchema(status(404, `{"error":{"message":"No endpoints found that can handle the requested parameters.","code":404}}`)),
		"OpenRouter, a tool_choice":   tool(noSchema(status(404, `{"error":{"message":"No endpoints found that support the provided 'tool_choice' value.","code":404}}`))),
		"Mistral, a schema":           noSchema(status(422, `{"detail":[{"type":"literal_error","loc":["body","response_format","type"],"msg":"Input should be 'text' or 'json_object'"}]}`)),
		"vLLM, guided":                noSchema(status(400, `{"error":{"message":"Failed to convert the grammar from GBNF to Lark","type":"BadRequestError","param":null,"code":400}}`)),
		"vLLM, a schema":              noSchema(status(400, `{"error":{"message":"The provided JSON schema contains features not supported by xgrammar.","type":"BadRequestError"}}`)),
		"vLLM, a named tool":          tool(noSchema(status(400, `{"error":{"message":"tool_choice 'named' requires a guided decoding backend","type":"BadRequestError"}}`))),
		"LM Studio, an object":        noSchema(status(400, `{"error":"'response_format.type' must be 'json_schema' or 'text'"}`)),
		"LM Studio, a tool choice":    tool(noSchema(status(400, `{"error":"Invalid tool_choice type: 'object'. Supported string values: none, auto, required"}`))),
		"llama.cpp, a template":       tool(noSchema(status(500, `{"error":{"code":500,"message":"tools param requires --jinja flag","type":"server_error"}}`))),
		"llama.cpp, a schema":         noSchema(status(400, `{"error":{"code":400,"message":"Failed to initialize samplers: failed to parse grammar","type":"invalid_request_error"}}`)),
		"llama.cpp, JSON schema":      noSchema(status(500, `{"error":{"code":500,"message":"JSON schema conversion failed:\nUnrecognized schema: {}","type":"server_error"}}`)),
		"SGLang, a grammar":           noSchema(status(400, `{"object":"error","message":"Failed to compile json_schema: unsupported","type":"BadRequestError","param":null,"code":400}`)),
		"Bedrock, tools":              tool(noSchema(status(400, `{"message":"This model doesn't support tool use."}`))),
		"Bedrock, tool choice":        tool(noSchema(status(400, `{"message":"This model doesn't support the toolConfig.toolChoice.tool field. Remove toolConfig.toolChoice.tool and try again."}`))),
		"Azure, a model":              noSchema(openai(400, "Invalid parameter: 'response_format' of type 'json_schema' is not supported with this model. Learn more about supported models at the Structured Outputs guide: https://platform.openai.com/docs/guides/structured-outputs", "invalid_request_error", "")),
		"DeepSeek, the word":          {served: said(400, "Prompt must contain the word 'json' in some form to use 'response_format' of type 'json_object'."), via: provider.ViaObject, code: provider.CodeSchemaInvalid},
		"DeepSeek, thinking":          tool(noSchema(said(400, "deepseek-reasoner does not support this tool_choice"))),
		"Moonshot, thinking":          tool(noSchema(said(400, "tool_choice 'specified' is incompatible with thinking enabled"))),
		"Alibaba, thinking":           tool(noSchema(said(400, "The tool_choice parameter does not support being set to required or object in thinking mode"))),
		"Cerebras, both":              noSchema(said(422, "\"tools\" is incompatible with \"response_format\"")),
		"Fireworks, a grammar":        noSchema(said(400, "Error building grammar: unsupported keyword patternProperties")),
		"Together, a schema":          noSchema(status(400, `{"error":{"message":"invalid schema: unsupported type","type":"invalid_request_error","param":"response_format","code":"invalid_request"}}`)),
		"OpenAI, an unsupported type": noSchema(openai(400, "Invalid schema for response_format 'answer': In context=(), 'required' is required to be supplied and to be an array including every key in properties.", "invalid_request_error", "")),

		// Models, keys and addresses.
		"Ollama, no model":          noModel(status(404, `{"error":{"message":"model 'x' not found","type":"api_error","param":null,"code":null}}`)),
		"LM Studio, no model":       noModel(status(404, `{"error":{"message":"Model \"x\" not found. Please load a model first.","type":"invalid_request_error","param":"model","code":"model_not_found"}}`)),
		"LM Studio, none loaded":    noModel(status(400, `{"error":{"message":"No models loaded. Please load a model in the developer page or use the 'lms load' command.","type":"invalid_request_error","param":"model","code":"model_not_found"}}`)),
		"Groq, a model retired":     noModel(openai(400, "The model `x` has been decommissioned and is no longer supported. Please refer to https://console.groq.com/docs/deprecations for a recommendation on which model to use instead.", "invalid_request_error", "model_decommissioned")),
		"DeepSeek, no model":        noModel(said(400, "Model Not Exist")),
		"OpenRouter, no model":      noModel(status(400, `{"error":{"message":"x is not a valid model ID","code":400}}`)),
		"Azure, a wrong deployment": noModel(openai(404, "The API deployment for this resource does not exist. If you created the deployment within the last 5 minutes, please wait a moment and try again.", "", "DeploymentNotFound")),
		"Azure, no operation":       noModel(openai(400, "The chatCompletion operation does not work with the specified model, x. Please choose different model and try again.", "", "OperationNotSupported")),
		"Azure, a version":          noModel(openai(404, "Resource not found", "", "404")),
		"Bedrock, an inference id":  noModel(status(400, `{"message":"Invocation of model ID x with on-demand throughput isn’t supported. Retry your request with the ID or ARN of an inference profile that contains this model."}`)),
		"Vertex, no model":          noModel(status(404, "[{\"error\":{\"code\":404,\"message\":\"Publisher Model `projects/p/locations/l/publishers/x/models/y` was not found or your project does not have access to it.\",\"status\":\"NOT_FOUND\"}}]")),
		"Vertex, permissions":       noKey(status(403, `[{"error":{"code":403,"message":"Permission 'aiplatform.endpoints.predict' denied on resource","status":"PERMISSION_DENIED"}}]`)),
		"Azure, a wrong key":        noKey(openai(401, "Access denied due to invalid subscription key or wrong API endpoint.", "", "401")),
		"Gemini, a wrong key":       noKey(status(400, `[{"error":{"code":400,"message":"API key not valid. Please pass a valid API key.","status":"INVALID_ARGUMENT","details":[{"reason":"API_KEY_INVALID"}]}}]`)),
		"OpenRouter, a wrong key":   noKey(status(401, `{"error":{"message":"No auth credentials found","code":401}}`)),
		"an HTML page":              noModel(served{status: 404, label: "text/html", body: "<html><body>404</body></html>"}),

		// Failures that pass, and those that do not.
		"vLLM, it sleeps":            busy(0, status(503, `{"error":"engine is sleeping"}`)),
		"LM Studio, a crash":         broken(stream(`{"error":{"message":"The model has crashed without additional information. (Exit code: 18446744072635812000)"}}`)),
		"LM Studio, unloaded":        broken(status(500, `{"error":"Model unloaded."}`)),
		"llama.cpp, loading":         busy(0, status(503, `{"error":{"code":503,"message":"Loading model","type":"unavailable_error"}}`)),
		"Ollama, busy":               busy(0, status(503, `{"error":{"message":"server busy, please try again.  maximum pending requests exceeded","type":"api_error","param":null,"code":null}}`)),
		"Ollama, the runner":         broken(status(500, `{"error":{"message":"model runner has unexpectedly stopped, this may be due to resource limitations or an internal error, check ollama server logs for details","type":"api_error","param":null,"code":null}}`)),
		"Azure, an internal error":   broken(openai(500, "The server had an error while processing your request. Sorry about that!", "server_error", "")),
		"OpenRouter, no provider":    busy(0, status(503, `{"error":{"message":"No instances available","code":503}}`)),
		"OpenRouter, a bad gateway":  broken(status(502, `{"error":{"message":"Provider returned error","code":502,"metadata":{"raw":"upstream connect error","provider_name":"x"}}}`)),
		"Cloudflare, a timeout":      broken(status(504, `{"errors":[{"message":"AiError: Request timed out","code":3046}],"success":false}`)),
		"Vertex, unavailable":        busy(0, status(503, `[{"error":{"code":503,"message":"The service is currently unavailable.","status":"UNAVAILABLE"}}]`)),
		"Hugging Face, a cold start": busy(20*time.Second, status(503, `{"error":"Model x is currently loading","estimated_time":20.0}`)),
		"a temperature":              invalid(status(400, `{"error":{"message":"Unsupported value: 'temperature' does not support 0.2 with this model. Only the default (1) value is supported.","type":"invalid_request_error","param":"temperature","code":"unsupported_value"}}`)),
		"max_tokens of a model":      invalid(status(400, `{"error":{"message":"max_tokens is too large: 100000. This model supports at most 16384 completion tokens, whereas you provided 100000.","type":"invalid_request_error","param":"max_tokens","code":"invalid_value"}}`)),
		"max_tokens of DeepSeek":     invalid(said(400, "Invalid max_tokens value, the valid range of max_tokens is [1, 8192]")),
		"an image for no eyes":       invalid(said(400, "This model does not support image input")),
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			req := ask()
			req.SchemaName, req.Via = "answer", tc.via
			if tc.via != provider.ViaObject {
				req.Schema = []byte(`{"type":"object"}`)
			}
			_, err := tc.call(t, compat.Config{}, req, nil)
			e, ok := provider.As(err)
			require.True(t, ok, err)
			require.Equal(t, tc.code, e.Code, "%s %s", e.Message, e.Quote)
			require.Equal(t, tc.retryable, e.Retryable, e.Message)
			require.Equal(t, tc.capacity, e.Capacity, e.Message)
			require.Equal(t, tc.after, e.RetryAfter)
			require.NotContains(t, e.Message, "could not be reached")
		})
	}
}
