package compat_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"waybill.dev/waybill/services/dispatcher/provider"
	"waybill.dev/waybill/services/dispatcher/provider/compat"
)

// Errors of servers in further words, by what follows from them.
func TestReports_ErrorsByTheirMeaning(t *testing.T) {
	t.Parallel()
	status := func(code int, doc string) served { return served{status: code, label: "application/json", body: doc} }
	said := func(code int, message, kind, id string) served {
		return status(code, `{"error":{"message":`+quote(message)+`,"type":"`+kind+`","param":null,"code":"`+id+`"}}`)
	}
	plain := func(code int, body string) served { return served{status: code, label: "text/plain", body: body} }
	page := func(code int) served { return served{status: code, label: "text/html", body: "<html>no</html>"} }
	event := func(doc string) served { return served{body: "data: " + doc + "\n\n"} }
	doc := func(body string) served { return served{label: "application/json", body: body} }
	for _, group := range []struct {
		code                string
		retryable, capacity bool
		via                 provider.SchemaVia
		rows                map[string]served
	}{
		{code: provider.CodeContentTooLong, rows: map[string]served{
			"counts of ds4":             status(400, `{"error":{"message":"Prompt tokens (9000) exceeds context size (8192)","type":"context_exceeded","n_prompt_tokens":9000,"n_ctx":8192}}`),
			"a configured size":         said(400, "Prompt has 9000 tokens, but the configured context size is 8192 tokens", "invalid_request_error", ""),
			"MiMo, in Chinese":          status(400, `{"error":{"type":"context_window_exceeded","code":400,"message":"[错误码 400 · 请求超出模型上下文限制]"}}`),
			"Mistral":                   status(400, `{"object":"error","message":"Prompt contains 66000 tokens and 0 draft tokens, too large for model with 32768 maximum context length","type":"invalid_request_error","code":3051}`),
			"Perplexity":                said(400, "The total length of all messages is too long.", "invalid_request", ""),
			"Azure, requested tokens":   said(400, "Requested token count exceeds the model's maximum context length of 131072 tokens.", "", ""),
			"counts without words":      status(400, `{"error":{"code":400,"message":"the request cannot be processed","type":"exceed_context_size_error"}}`),
			"Bedrock, Claude":           status(400, `{"message":"The model returned the following errors: Input is too long for requested model."}`),
			"Bedrock, Nova":             status(400, `{"message":"Input Tokens Exceeded: Number of input tokens exceeds maximum length."}`),
			"Cohere":                    status(400, `{"message":"too many tokens: total number of tokens in the prompt cannot exceed 4081"}`),
			"AI21":                      status(422, `{"detail":"Prompt has too many tokens, limit is 256000"}`),
			"SageMaker":                 status(424, `{"message":"Input validation error: inputs must have less than 4096 tokens. Given: 5000"}`),
			"Hugging Face":              status(422, `{"error":"Input validation error: inputs tokens + max_new_tokens must be <= 4096. Given: 5000 inputs tokens and 20 max_new_tokens","error_type":"validation"}`),
			"SGLang":                    status(400, `{"object":"error","message":"The input (9000 tokens) is longer than the model's context length (8192 tokens).","type":"BadRequestError"}`),
			"SGLang, truncate":          status(400, `{"object":"error","message":"Input length (9000 tokens) exceeds the maximum allowed length (8191 tokens). Use a shorter input or enable --allow-auto-truncate."}`),
			"vLLM, the decoder":         said(400, "The decoder prompt (length 9000) is longer than the maximum model length of 8192.", "BadRequestError", "400"),
			"vLLM, with images":         said(400, "The prompt (total length 9000) is too long to fit into the model (context length 8192).", "BadRequestError", "400"),
			"TensorRT-LLM":              said(400, "The sum of prompt length (9000.0), query length (0) should not exceed max_num_tokens (8192)", "", ""),
			"MLX":                       status(400, `{"error":"Prompt too large: 9000 tokens, maximum 8192"}`),
			"LM Studio, tokens to keep": status(400, `{"error":"The number of tokens to keep from the initial prompt is greater than the context length. Try to load the model with a larger context length, or provide a shorter input"}`),
			"LM Studio, an answer":      status(400, `{"error":"Reached context length of 4096 tokens with model (arch: llama) that does not currently support mid-generation context overflow."}`),
			"llama.cpp, 500":            status(500, `{"error":{"message":"the request exceeds the available context size, try increasing it","type":"server_error","code":500}}`),
			"GPT4All":                   status(400, `{"error":"ERROR: The prompt size exceeds the context window size and cannot be processed."}`),
			"KoboldCpp":                 status(400, `{"detail":{"msg":"Your prompt exceeded the context limit","type":"bad_input"}}`),
			"DeepInfra":                 status(400, `{"detail":{"error":"This model's maximum context length is 8192 tokens"}}`),
			"OpenRouter, a quote":       status(400, `{"error":{"message":"Provider returned error","code":400,"metadata":{"raw":"{\"error\":{\"message\":\"prompt is too long: 210000 tokens > 200000 maximum\"}}","provider_name":"Anthropic"}}}`),
			"Groq, a rate":              said(413, "Request too large for model `x` in organization `y` on tokens per minute (TPM): Limit 6000, Requested 9000, please reduce your message size and try again.", "tokens", "rate_limit_exceeded"),
			"a page, 413":               page(413),
			"MiniMax":                   status(400, `{"type":"error","error":{"type":"bad_request_error","message":"invalid params, context window exceeds limit (2013)","http_code":"400"}}`),
			"Yi":                        status(400, `{"error":{"code":"400","message":"the length of the prompt exceeds the limit of model"}}`),
			"Hunyuan, in Chinese":       status(400, `{"Response":{"Error":{"Code":"InvalidParameterValue","Message":"输入超过模型最大长度限制"}}}`),
			"Spark, 200":                doc(`{"error":{"message":"tokens total exceeds the limit","type":"","code":"10907"}}`),
			"SiliconFlow":               status(400, `{"code":20015,"message":"length of prompt_tokens (40000) must be less than max_seq_len (32768).","data":null}`),
			"Cerebras":                  said(400, "Current length is 9000 while limit is 8192", "invalid_request_error", "context_length_exceeded"),
			"GitHub":                    said(413, "Request body too large for gpt-4o model. Max size: 8000 tokens.", "", "tokens_limit_reached"),
			"in the stream":             event(`{"error":{"message":"context length exceeded","code":400}}`),
			"new words":                 said(400, "The conversation's context is larger than this deployment permits", "", ""),
		}},
		{code: provider.CodeInvalidRequest, rows: map[string]served{
			"tokens of the answer":   said(400, "max_tokens is too large: 100000. This model supports at most 16384 completion tokens, whereas you provided 100000.", "invalid_request_error", ""),
			"Groq, max_tokens":       said(400, "`max_tokens` must be less than or equal to `8192`, the maximum value for `max_tokens` is less than the `context_window` for this model", "invalid_request_error", ""),
			"DeepSeek, max_tokens":   said(400, "Invalid max_tokens value, the valid range of max_tokens is [1, 8192]", "invalid_request_error", "invalid_request_error"),
			"a temperature":          said(400, "temperature exceeds the maximum allowed value of 2", "invalid_request_error", ""),
			"a limit of pydantic":    status(422, `{"detail":[{"type":"less_than_equal","loc":["body","max_tokens"],"msg":"Input should be less than or equal to 8192"}]}`),
			"a missing member":       status(422, `{"detail":[{"type":"missing","loc":["body","messages"],"msg":"Field required","input":{}}]}`),
			"a large image":          said(400, "The input image size exceeds the limit of 5 MB", "", ""),
			"too many images":        said(400, "At most 1 image(s) may be provided in one request.", "BadRequestError", "400"),
			"no chat template":       said(400, "As of transformers v4.44, default chat template is no longer allowed, so you must provide a chat template if the tokenizer does not define one.", "BadRequestError", "400"),
			"roles in turn":          said(400, "Conversation roles must alternate user/assistant/user/assistant/...", "BadRequestError", "400"),
			"another method":         plain(405, "Method Not Allowed"),
			"a number of characters": said(400, "stop sequence is too long: the length exceeds 100 tokens of input", "", ""),
		}},
		{code: provider.CodeSchemaInvalid, rows: map[string]served{
			"Novita":                    status(400, `{"code":400,"reason":"INVALID_REQUEST_BODY","message":"model: deepseek/deepseek-r1-distill-llama-70b does not support feature: structured-outputs","metadata":{}}`),
			"Groq":                      said(400, "This model does not support response format `json_schema`. See supported models", "invalid_request_error", ""),
			"OpenRouter":                status(404, `{"error":{"message":"No endpoints found that can handle the requested parameters.","code":404}}`),
			"vLLM, XGrammar":            said(400, "The provided JSON schema contains features not supported by xgrammar.", "BadRequestError", "400"),
			"vLLM, Outlines":            said(400, "Failed to convert JSON schema to regex", "BadRequestError", "400"),
			"vLLM, structured outputs":  said(400, "Invalid structured_outputs specification", "", ""),
			"llama.cpp":                 said(400, "JSON schema conversion failed:\nUnrecognized schema: {\"not\":{}}", "invalid_request_error", ""),
			"LM Studio, the type":       status(400, `{"error":"'response_format.type' must be 'json_schema' or 'text'"}`),
			"LM Studio, the schema":     status(400, `{"error":"Error in iterating prediction stream: ValueError: Invalid JSON schema"}`),
			"Mistral":                   status(422, `{"detail":[{"type":"extra_forbidden","loc":["body","response_format","json_schema"],"msg":"Extra inputs are not permitted"}]}`),
			"Azure, a model":            said(400, "Invalid parameter: 'response_format' of type 'json_schema' is not supported with this model.", "invalid_request_error", ""),
			"Azure, a version":          said(400, "response_format value as json_schema is enabled only for api versions 2024-08-01-preview and later", "BadRequest", "BadRequest"),
			"Anthropic behind":          said(400, "output_config.format.schema: Compiled grammar is too large", "invalid_request_error", ""),
			"Gemini, a keyword":         status(400, `[{"error":{"code":400,"message":"Invalid JSON payload received. Unknown name \"$ref\" at 'generation_config.response_schema': Cannot find field.","status":"INVALID_ARGUMENT"}}]`),
			"Gemini, states":            status(400, `[{"error":{"code":400,"message":"The specified schema produces a constraint that has too many states for serving.","status":"INVALID_ARGUMENT"}}]`),
			"Gemini, both":              status(400, `[{"error":{"code":400,"message":"Function calling with a response mime type: 'application/json' is unsupported","status":"INVALID_ARGUMENT"}}]`),
			"Moonshot":                  said(400, "At path 'properties.x.type': type is not defined", "invalid_request_error", ""),
			"Databricks":                status(400, `{"error_code":"BAD_REQUEST","message":"response_format json_schema is not supported for this model"}`),
			"Snowflake":                 status(400, `{"message":"structured output not supported for this model"}`),
			"xAI":                       status(400, `{"code":"invalid","error":"Argument not supported on this model: responseFormat"}`),
			"Alibaba, the word JSON":    said(400, "<400> InternalError.Algo.InvalidParameter: 'messages' must contain the word 'json' in some form, to use 'response_format' of type 'json_object'.", "invalid_parameter_error", ""),
			"TGI":                       status(422, `{"error":"Failed to compile grammar","error_type":"validation"}`),
			"a schema that is too long": said(400, "schema is too long", "", ""),
			"in the stream":             event(`{"error":{"message":"Failed to initialize samplers: failed to parse grammar","code":400,"type":"invalid_request_error"}}`),
		}},
		{code: provider.CodeSchemaInvalid, via: provider.ViaTool, rows: map[string]served{
			"Ollama, no tools":     said(400, "registry.ollama.ai/library/gemma3:latest does not support tools", "api_error", ""),
			"vLLM, a flag":         said(400, "\"auto\" tool choice requires --enable-auto-tool-choice and --tool-call-parser to be set", "BadRequestError", "400"),
			"llama.cpp, a flag":    said(500, "tools param requires --jinja flag", "server_error", ""),
			"OpenRouter, no tools": status(404, `{"error":{"message":"No endpoints found that support tool use.","code":404}}`),
			"watsonx, no tools":    status(400, `{"errors":[{"code":"model_not_support_for_function","message":"Tool usage is not supported for this model"}]}`),
			"Bedrock, a choice":    status(400, `{"message":"This model doesn't support the toolConfig.toolChoice.any field. Remove toolConfig.toolChoice.any and try again."}`),
			"Anthropic, thinking":  said(400, "Thinking may not be enabled when tool_choice forces tool use.", "invalid_request_error", ""),
			"Alibaba, thinking":    said(400, "<400> InternalError.Algo.InvalidParameter: The tool_choice parameter does not support being set to required or object in thinking mode", "invalid_parameter_error", ""),
			"Moonshot, a schema":   said(400, "tools.function.parameters is not a valid moonshot flavored json schema, details: <At path 'properties.x.anyOf': x>", "invalid_request_error", ""),
		}},
		{code: provider.CodeUnavailable, retryable: true, rows: map[string]served{
			"llama.cpp, its format": said(500, "The model produced output that does not match the expected peg-native format", "server_error", "500"),
			"Cloudflare, JSON mode": status(400, `{"errors":[{"message":"AiError: AiError: JSON Mode couldn't be met","code":5024}],"success":false,"result":{},"messages":[]}`),
			"a closed client":       plain(499, ""),
			"a gateway":             page(502),
			"a timeout of one":      page(504),
			"Cloudflare, 524":       page(524),
			"vLLM, a dead engine":   said(500, "EngineCore encountered an issue. See stack trace (above) for the root cause.", "InternalServerError", "500"),
			"Ollama, a dead runner": said(500, "llama runner process has terminated: exit status 2", "api_error", ""),
			"OpenRouter, 502":       event(`{"id":"gen-1","provider":"X","error":{"code":502,"message":"Provider disconnected"},"choices":[{"index":0,"delta":{"content":""},"finish_reason":"error"}]}`),
			"a detail, 200":         doc(`{"detail":"Internal error"}`),
		}},
		{code: provider.CodeUnavailable, retryable: true, capacity: true, rows: map[string]served{
			"OpenRouter, no provider":  status(503, `{"error":{"message":"No available model provider that meets your routing requirements","code":503}}`),
			"Hugging Face, loading":    status(503, `{"error":"Model x is currently loading"}`),
			"Anthropic behind LiteLLM": said(500, `litellm.InternalServerError: AnthropicError - {"type":"error","error":{"type":"overloaded_error","message":"Overloaded"}}`, "", "500"),
			"529":                      plain(529, ""),
			"vLLM, asleep":             said(503, "The engine is sleeping", "", ""),
			"529 in the stream":        event(`{"error":{"message":"Overloaded","code":529}}`),
		}},
		{code: provider.CodeQuota, retryable: true, capacity: true, rows: map[string]served{
			"a quota of tokens":      said(429, "Current token count exceeds your organization quota", "", ""),
			"OpenRouter, upstream":   status(429, `{"error":{"message":"Provider returned error","code":429,"metadata":{"raw":"x is temporarily rate-limited upstream. Please retry shortly, or add your own key","provider_name":"Chutes"}}}`),
			"Moonshot, overloaded":   said(429, "The engine is currently overloaded, please try again later", "engine_overloaded_error", ""),
			"Zhipu, in Chinese":      status(429, `{"error":{"code":"1302","message":"您的账户已达到速率限制，请您控制请求频率"}}`),
			"Mistral, a tier":        status(429, `{"object":"error","message":"Service tier capacity exceeded for this model.","type":"service_tier_capacity_exceeded","param":null,"code":"3505"}`),
			"Cloudflare, no body":    plain(429, "error code: 1015"),
			"a code and a word, 200": doc(`{"code":1001,"msg":"Rate limit reached","data":null}`),
			"a word, 200":            doc(`{"error":"Too many requests, please slow down"}`),
			"free models":            event(`{"error":{"code":429,"message":"Rate limit exceeded: free-models-per-min. "}}`),
		}},
		{code: provider.CodeQuota, rows: map[string]served{
			"OpenRouter, few credits": status(402, `{"error":{"message":"This request requires more credits, or fewer max_tokens. You requested up to 65536 tokens, but can only afford 1200.","code":402}}`),
			"Hugging Face, a month":   status(402, `{"error":"You have exceeded your monthly included credits for Inference Providers. Subscribe to PRO to get 20x more monthly included credits."}`),
			"Moonshot, suspended":     said(429, "Your account org-x is suspended, please check your plan and billing details", "exceeded_current_quota_error", ""),
			"Zhipu, a balance":        status(429, `{"error":{"code":"1113","message":"余额不足或无可用资源包,请充值。"}}`),
			"Alibaba, free":           said(403, "The free quota has been exhausted", "AccessDenied.Unpurchased", ""),
			"Cloudflare, a day":       status(429, `{"errors":[{"message":"you have used up your daily free allocation of 10,000 neurons, please upgrade","code":4006}],"success":false}`),
			"credits, in the stream":  event(`{"error":{"message":"Insufficient credits","code":402}}`),
		}},
		{code: provider.CodeUnavailable, rows: map[string]served{
			"OpenAI, a country":   said(403, "Country, region, or territory not supported", "request_forbidden", "unsupported_country_region_territory"),
			"Azure, a firewall":   status(403, `{"error":{"code":"403","message":"Access denied due to Virtual Network/Firewall rules."}}`),
			"Cloudflare, a block": {status: 403, label: "text/html", body: "<!DOCTYPE html><title>Attention Required! | Cloudflare</title>"},
			"a legal reason":      status(451, `{"error":{"message":"This model is not available in your country"}}`),
		}},
		{code: provider.CodeCredentialRequired, rows: map[string]served{
			"OpenAI, an issuer":     said(401, "Your authentication token is not from a valid issuer.", "invalid_request_error", "invalid_issuer"),
			"OpenRouter, no user":   status(401, `{"error":{"message":"User not found.","code":401}}`),
			"a page, 401":           page(401),
			"without success, 200":  doc(`{"success":false,"message":"invalid api key"}`),
			"a key, in the stream":  event(`{"error":{"message":"Invalid API key","code":401}}`),
			"Azure, a subscription": status(401, `{"error":{"code":"401","message":"Access denied due to invalid subscription key or wrong API endpoint."}}`),
		}},
		{code: provider.CodeModelNotSupported, rows: map[string]served{
			"Azure, no deployment": status(404, `{"error":{"code":"DeploymentNotFound","message":"The API deployment for this resource does not exist."}}`),
			"OpenRouter, a name":   status(400, `{"error":{"message":"foo/bar is not a valid model ID","code":400}}`),
			"OpenRouter, a policy": status(404, `{"error":{"message":"No endpoints found matching your data policy. Enable prompt training here: https://openrouter.ai/settings/privacy","code":404}}`),
			"retired, 410":         status(410, `{"error":{"message":"The model x has been deprecated","code":"model_deprecated"}}`),
			"retired, 404":         said(404, "The model `gpt-4-32k` has been deprecated, learn more here: https://platform.openai.com/docs/deprecations", "invalid_request_error", "model_not_found"),
			"another path":         plain(404, "404 page not found"),
		}},
	} {
		for name, s := range group.rows {
			t.Run(group.code+"/"+name, func(t *testing.T) {
				t.Parallel()
				req := ask()
				req.Schema, req.SchemaName, req.Via = []byte(`{"type":"object"}`), "answer", group.via
				_, err := s.call(t, compat.Config{}, req, nil)
				e, ok := provider.As(err)
				require.True(t, ok, err)
				require.Equal(t, group.code, e.Code, "%s %s", e.Message, e.Quote)
				require.Equal(t, group.retryable, e.Retryable, e.Message)
				require.Equal(t, group.capacity, e.Capacity, e.Message)
				require.NotContains(t, e.Message, "could not be reached")
			})
		}
	}
}

// Streams in further forms.
func TestReports_Streams(t *testing.T) {
	t.Parallel()
	halves := delta(firstHalf, "") + delta(secondHalf, "")
	event := func(doc string) string { return "data: " + doc + "\n\n" }
	calls := func(list string) string { return chunkOf(`{"index":0,"delta":{"tool_calls":[` + list + `]}}`) }
	end := func(reason string) string { return chunkOf(`{"index":0,"delta":{},"finish_reason":"` + reason + `"}`) }
	called := func(arguments, more string) string {
		return `{` + more + `"function":{"name":"answer","arguments":` + arguments + `}}`
	}
	more := func(arguments, more string) string {
		return `{` + more + `"function":{"arguments":` + arguments + `}}`
	}
	begin := calls(called(firstHalf, `"index":0,"id":"c1","type":"function",`))
	tool := provider.ViaTool
	for name, tc := range map[string]struct {
		body string
		via  provider.SchemaVia
	}{
		"an empty id later":            {begin + calls(more(secondHalf, `"index":0,"id":"",`)) + end("tool_calls"), tool},
		"an empty name later":          {begin + calls(`{"index":0,"id":"","type":"","function":{"name":"","arguments":`+secondHalf+`}}`) + end("tool_calls"), tool},
		"a null name later":            {begin + calls(`{"index":0,"id":null,"function":{"name":null,"arguments":`+secondHalf+`}}`) + end("tool_calls"), tool},
		"the name each time":           {begin + calls(called(secondHalf, `"index":0,`)) + end("tool_calls"), tool},
		"the name in pieces":           {calls(`{"index":0,"id":"c1","function":{"name":"ans","arguments":""}}`) + calls(`{"index":0,"function":{"name":"wer","arguments":""}}`) + calls(more(wholeText, `"index":0,`)) + end("tool_calls"), tool},
		"the name last":                {calls(more(firstHalf, `"index":0,"id":"c1",`)) + calls(more(secondHalf, `"index":0,`)) + calls(`{"index":0,"function":{"name":"answer"}}`) + end("tool_calls"), tool},
		"another id each time":         {begin + calls(more(secondHalf, `"index":0,"id":"c2",`)) + end("tool_calls"), tool},
		"another index each time":      {begin + calls(more(secondHalf, `"index":1,"id":"c1",`)) + end("tool_calls"), tool},
		"an index later":               {calls(called(firstHalf, `"id":"c1",`)) + calls(more(secondHalf, `"index":0,`)) + end("tool_calls"), tool},
		"null arguments first":         {calls(`{"index":0,"id":"c1","function":{"name":"answer","arguments":null}}`) + calls(more(wholeText, `"index":0,`)) + end("tool_calls"), tool},
		"a negative index":             {calls(called(wholeText, `"index":-1,"id":"c1",`)) + end("tool_calls"), tool},
		"an id that says null":         {calls(called(wholeText, `"index":0,"id":"null",`)) + end("tool_calls"), tool},
		"an empty id":                  {calls(called(wholeText, `"index":0,"id":"",`)) + end("tool_calls"), tool},
		"two pieces at once":           {calls(called(firstHalf, `"index":0,"id":"c1",`)+","+more(secondHalf, `"index":0,`)) + end("tool_calls"), tool},
		"usage between pieces":         {begin + event(`{"choices":[],"usage":{"prompt_tokens":1,"completion_tokens":1}}`) + calls(more(secondHalf, `"index":0,`)) + end("tool_calls"), tool},
		"the call once more":           {begin + calls(more(secondHalf, `"index":0,`)) + chunkOf(`{"index":0,"delta":{"tool_calls":[`+called(wholeText, `"index":0,"id":"c1",`)+`]},"finish_reason":"tool_calls"}`), tool},
		"the call in a last message":   {begin + calls(more(secondHalf, `"index":0,`)) + chunkOf(`{"index":0,"delta":{},"message":{"tool_calls":[`+called(wholeText, `"id":"c1",`)+`]},"finish_reason":"tool_calls"}`), tool},
		"the call in a message alone":  {delta(`""`, "") + chunkOf(`{"index":0,"message":{"role":"assistant","content":null,"tool_calls":[`+called(wholeText, `"id":"c1",`)+`]},"finish_reason":"tool_calls"}`), tool},
		"a list that is its item":      {chunkOf(`{"index":0,"delta":{"tool_calls":`+called(wholeText, `"index":0,"id":"c1",`)+`}}`) + end("tool_calls"), tool},
		"a tool with spaces":           {calls(`{"index":0,"id":"c1","function":{"name":" functions.answer ","arguments":`+wholeText+`}}`) + end("tool_calls"), tool},
		"a call that ends with DONE":   {calls(called(wholeText, `"index":0,"id":"c1",`)) + doneEvent, tool},
		"a reason of Anthropic":        {calls(called(wholeText, `"index":0,"id":"c1",`)) + end("tool_use"), tool},
		"a reason in capitals":         {calls(called(wholeText, `"index":0,"id":"c1",`)) + end("TOOL_CALL"), tool},
		"an input of a custom tool":    {calls(`{"index":0,"id":"c","type":"custom","custom":{"name":"answer","input":`+wholeText+`}}`) + end("tool_calls"), tool},
		"two choices in turn":          {chunkOf(`{"index":0,"delta":{"content":`+firstHalf+`}},{"index":1,"delta":{"content":"x"}}`) + chunkOf(`{"index":1,"delta":{"content":"y"}},{"index":0,"delta":{"content":`+secondHalf+`}}`) + stopChunk, ""},
		"another choice begins":        {chunkOf(`{"index":1,"delta":{"role":"assistant","content":""}}`) + halves + stopChunk, ""},
		"another choice ends":          {delta(firstHalf, "") + chunkOf(`{"index":1,"delta":{},"finish_reason":"length"}`) + delta(secondHalf, "") + stopChunk, ""},
		"another choice ends alone":    {halves + chunkOf(`{"index":1,"delta":{},"finish_reason":"stop"}`) + doneEvent, ""},
		"choices by their index":       {event(`{"choices":{"0":{"index":0,"delta":{"content":` + wholeText + `},"finish_reason":"stop"}}}`), ""},
		"an empty object first":        {delta(`{}`, "") + halves + delta(`{}`, "") + stopChunk, ""},
		"false first":                  {delta(`false`, "") + halves + stopChunk, ""},
		"an empty list first":          {delta(`[]`, "") + halves + stopChunk, ""},
		"a value with annotations":     {delta(`[{"type":"text","text":{"value":`+wholeText+`,"annotations":[]}}]`, "") + stopChunk, ""},
		"the text as reasoning, too":   {chunkOf(`{"index":0,"delta":{"content":`+wholeText+`,"reasoning":`+wholeText+`,"reasoning_content":`+wholeText+`}}`) + stopChunk, ""},
		"an event named done":          {halves + "event: done\ndata: {}\n\n", ""},
		"an event named end":           {halves + "event: end\ndata: {}\n\n", ""},
		"an event named complete":      {"event: complete\n" + delta(wholeText, `,"finish_reason":"stop"`), ""},
		"an event named after a chunk": {halves + "event: error\n" + stopChunk, ""},
		"lines of ids and pauses":      {"id: 7\nretry: 3000\nevent: message\n" + halves + "id: 8\nretry: 3000\n" + stopChunk, ""},
		"a late failure":               {halves + stopChunk + event(`{"error":{"message":"late failure","code":500}}`), ""},
		"a reason of the model":        {halves + chunkOf(`{"index":0,"delta":{},"finish_reason":"stop","stop_reason":151645}`), ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			req := ask()
			req.Schema, req.SchemaName, req.Via = []byte(`{"type":"object","properties":{"title":{"type":"string"},"urgent":{"type":"boolean"}}}`), "answer", tc.via
			res, err := served{body: tc.body}.call(t, compat.Config{}, req, nil)
			require.NoError(t, err)
			require.JSONEq(t, wanted, res.Text)
			require.Equal(t, provider.StopClean, res.Stop)
		})
	}
}

// A count that is missing follows from the total; without that, nothing is known of it.
func TestReports_UsageFromTotals(t *testing.T) {
	t.Parallel()
	for counts, want := range map[string]provider.Usage{
		`"prompt_tokens":10,"total_tokens":15`:                         {InputTokens: 10, OutputTokens: 5, TotalTokens: 15, Known: true},
		`"completion_tokens":5,"total_tokens":15`:                      {InputTokens: 10, OutputTokens: 5, TotalTokens: 15, Known: true},
		`"completion_tokens":5,"total_tokens":3`:                       {OutputTokens: 5, TotalTokens: 3, Known: true},
		`"total_tokens":15`:                                            {},
		`"prompt_tokens":"10","completion_tokens":"5"`:                 {InputTokens: 10, OutputTokens: 5, Known: true},
		`"input_tokens":10,"output_tokens":5,"total_tokens":null`:      {InputTokens: 10, OutputTokens: 5, Known: true},
		`"prompt_tokens":-1,"completion_tokens":-1,"total_tokens":-1`:  {},
		`"prompt_tokens":{},"completion_tokens":[],"total_tokens":"x"`: {},
		`"prompt_tokens":10,"completion_tokens":5,"prompt_tokens_details":{"audio_tokens":4,"cached_tokens":8},"completion_tokens_details":{"audio_tokens":2,"accepted_prediction_tokens":1}`: {InputTokens: 10, OutputTokens: 5, CacheReadTokens: 8, Known: true},
	} {
		res, err := served{body: delta(wholeText, "") + stopChunk + `data: {"choices":[],"usage":{` + counts + "}}\n\n" + doneEvent}.call(t, compat.Config{}, ask(), nil)
		require.NoError(t, err)
		require.Equal(t, want, res.Usage, counts)
	}
}

// What an event at the end of a stream says counts, whatever its name.
func TestReports_EventsAtTheEnd(t *testing.T) {
	t.Parallel()
	res, err := served{body: delta(wholeText, "") + "event: done\ndata: {\"usage\":{\"prompt_tokens\":10,\"completion_tokens\":5}}\n\n"}.call(t, compat.Config{}, ask(), nil)
	require.NoError(t, err)
	require.Equal(t, provider.Usage{InputTokens: 10, OutputTokens: 5, Known: true}, res.Usage)
	_, err = served{body: delta(`"{"`, "") + "event: end\ndata: {\"error\":{\"message\":\"overloaded\",\"code\":503}}\n\n"}.call(t, compat.Config{}, ask(), nil)
	e, ok := provider.As(err)
	require.True(t, ok, "%v", err)
	require.Equal(t, provider.CodeUnavailable, e.Code)
}
