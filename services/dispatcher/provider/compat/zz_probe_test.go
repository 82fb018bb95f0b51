package compat_test

import (
	"fmt"
	"os"
	"strings"
	"testing"

	"waybill.dev/waybill/services/dispatcher/provider"
	"waybill.dev/waybill/services/dispatcher/provider/compat"
)

func TestProbeErrors(t *testing.T) {
	status := func(code int, doc string) served { return served{status: code, label: "application/json", body: doc} }
	said := func(code int, message, kind, id string) served {
		return status(code, `{"error":{"message":`+quote(message)+`,"type":"`+kind+`","param":null,"code":"`+id+`"}}`)
	}
	stream := func(doc string) served { return served{body: "data: " + doc + "\n\n"} }
	const (
		long  = "LONG"
		noSch = "SCHEMA"
		spent = "SPENT"
		limit = "LIMIT"
		busy  = "BUSY"
		brk   = "BROKEN"
		key   = "KEY"
		model = "MODEL"
		bad   = "INVALID"
		refus = "REFUSED"
	)
	type row struct {
		s    served
		want string
	}
	_ = stream
	for name, r := range map[string]row{
		"ds4":                      {status(400, `{"error":{"message":"Prompt tokens (9000) exceeds context size (8192)","type":"context_exceeded","n_prompt_tokens":9000,"n_ctx":8192}}`), long},
		"llama new":                {said(400, "Prompt has 9000 tokens, but the configured context size is 8192 tokens", "invalid_request_error", ""), long},
		"mimo":                     {status(400, `{"error":{"type":"context_window_exceeded","code":400,"message":"[错误码 400 · 请求超出模型上下文限制]"}}`), long},
		"mistral too large":        {status(400, `{"object":"error","message":"Prompt contains 66000 tokens and 0 draft tokens, too large for model with 32768 maximum context length","type":"invalid_request_error","code":3051}`), long},
		"perplexity":               {said(400, "The total length of all messages is too long.", "invalid_request", ""), long},
		"requested tokens":         {said(400, "Requested token count exceeds the model's maximum context length of 131072 tokens.", "", ""), long},
		"codes only n_prompt":      {status(400, `{"error":{"code":400,"message":"the request cannot be processed","type":"exceed_context_size_error","n_prompt_tokens":10,"n_ctx":5}}`), long},
		"replicate":                {status(422, `{"detail":"Input is too long for requested model."}`), long},
		"bedrock converse":         {status(400, `{"message":"The model returned the following errors: Input is too long for requested model."}`), long},
		"nova":                     {status(400, `{"message":"Input Tokens Exceeded: Number of input tokens exceeds maximum length."}`), long},
		"cohere":                   {status(400, `{"message":"too many tokens: total number of tokens in the prompt cannot exceed 4081"}`), long},
		"ai21":                     {status(422, `{"detail":"Prompt has too many tokens, limit is 256000"}`), long},
		"sagemaker":                {status(424, `{"message":"Input validation error: inputs must have less than 4096 tokens. Given: 5000"}`), long},
		"huggingface":              {status(422, `{"error":"Input validation error: inputs tokens + max_new_tokens must be <= 4096. Given: 5000 inputs tokens and 20 max_new_tokens","error_type":"validation"}`), long},
		"sglang":                   {status(400, `{"object":"error","message":"The input (9000 tokens) is longer than the model's context length (8192 tokens).","type":"BadRequestError"}`), long},
		"sglang 2":                 {status(400, `{"object":"error","message":"Input length (9000 tokens) exceeds the maximum allowed length (8191 tokens). Use a shorter input or enable --allow-auto-truncate."}`), long},
		"vllm":                     {said(400, "The decoder prompt (length 9000) is longer than the maximum model length of 8192.", "BadRequestError", "400"), long},
		"vllm multimodal":          {said(400, "The prompt (total length 9000) is too long to fit into the model (context length 8192).", "BadRequestError", "400"), long},
		"trtllm":                   {said(400, "The sum of prompt length (9000.0), query length (0) should not exceed max_num_tokens (8192)", "", ""), long},
		"mlx":                      {status(400, `{"error":"Prompt too large: 9000 tokens, maximum 8192"}`), long},
		"lmstudio 2":               {status(400, `{"error":"The number of tokens to keep from the initial prompt is greater than the context length. Try to load the model with a larger context length, or provide a shorter input"}`), long},
		"lmstudio 3":               {status(400, `{"error":"Reached context length of 4096 tokens with model (arch: llama) that does not currently support mid-generation context overflow."}`), long},
		"jan":                      {status(500, `{"error":{"message":"the request exceeds the available context size, try increasing it","type":"server_error","code":500}}`), long},
		"gpt4all":                  {status(400, `{"error":"ERROR: The prompt size exceeds the context window size and cannot be processed."}`), long},
		"koboldcpp":                {status(400, `{"detail":{"msg":"Your prompt exceeded the context limit","type":"bad_input"}}`), long},
		"together":                 {said(422, "Input validation error: `inputs` tokens + `max_new_tokens` must be <= 8193. Given: 9000", "invalid_request_error", ""), long},
		"fireworks":                {said(400, "The prompt is too long: 140000, model maximum context length: 131071", "invalid_request_error", ""), long},
		"deepinfra":                {status(400, `{"detail":{"error":"This model's maximum context length is 8192 tokens"}}`), long},
		"openrouter":               {status(400, `{"error":{"message":"This endpoint's maximum context length is 65536 tokens. However, you requested about 70000 tokens (60000 of text input, 10000 in the output). Please reduce the length of either one.","code":400}}`), long},
		"xai":                      {status(400, `{"code":"Client specified an invalid argument","error":"This model's maximum prompt length is 131072 but the request contains 140000 tokens."}`), long},
		"groq":                     {said(413, "Request too large for model `x` in organization `y` on tokens per minute (TPM): Limit 6000, Requested 9000, please reduce your message size and try again.", "tokens", "rate_limit_exceeded"), long},
		"groq 400":                 {said(400, "Please reduce the length of the messages or completion.", "invalid_request_error", "context_length_exceeded"), long},
		"413 plain":                {served{status: 413, label: "text/html", body: "<html>413 Request Entity Too Large</html>"}, long},
		"moonshot":                 {said(400, "Your request exceeded model token limit: 131072 (requested: 140000)", "invalid_request_error", ""), long},
		"qwen":                     {said(400, "Range of input length should be [1, 98304]", "invalid_request_error", "InvalidParameter"), long},
		"qwen token":               {said(400, "<400> InternalError.Algo.InvalidParameter: Range of input length should be [1, 30720]", "invalid_parameter_error", ""), long},
		"minimax":                  {status(200, `{"base_resp":{"status_code":1039,"status_msg":"token limit"}}`), long},
		"minimax 2013":             {status(400, `{"type":"error","error":{"type":"bad_request_error","message":"invalid params, context window exceeds limit (2013)","http_code":"400"}}`), long},
		"yi":                       {status(400, `{"error":{"code":"400","message":"the length of the prompt exceeds the limit of model"}}`), long},
		"hunyuan":                  {status(400, `{"Response":{"Error":{"Code":"InvalidParameterValue","Message":"输入超过模型最大长度限制"}}}`), long},
		"spark":                    {status(200, `{"error":{"message":"tokens total exceeds the limit","type":"","code":"10907"}}`), long},
		"siliconflow":              {status(400, `{"code":20015,"message":"length of prompt_tokens (40000) must be less than max_seq_len (32768).","data":null}`), long},
		"cerebras":                 {said(400, "Current length is 9000 while limit is 8192", "invalid_request_error", "context_length_exceeded"), long},
		"nvidia":                   {status(422, `{"error":{"message":"This model's maximum context length is 4096 tokens. However, you requested 5000 tokens"}}`), long},
		"github 413":               {said(413, "Request body too large for gpt-4o model. Max size: 8000 tokens.", "", "tokens_limit_reached"), long},
		"max_tokens too large":     {said(400, "max_tokens is too large: 100000. This model supports at most 16384 completion tokens, whereas you provided 100000.", "invalid_request_error", ""), bad},
		"max_tokens range":         {said(400, "`max_tokens` must be less than or equal to `8192`, the maximum value for `max_tokens` is less than the `context_window` for this model", "invalid_request_error", ""), bad},
		"deepseek max tokens":      {said(400, "Invalid max_tokens value, the valid range of max_tokens is [1, 8192]", "invalid_request_error", "invalid_request_error"), bad},
		"a temperature":            {said(400, "temperature exceeds the maximum allowed value of 2", "invalid_request_error", ""), bad},
		"org token quota":          {said(429, "Current token count exceeds your organization quota", "", ""), limit},
		"schema too long":          {said(400, "schema is too long", "", ""), noSch},
		// schema
		"novita":                   {status(400, `{"code":400,"reason":"INVALID_REQUEST_BODY","message":"model: deepseek/deepseek-r1-distill-llama-70b does not support feature: structured-outputs","metadata":{}}`), noSch},
		"groq schema":              {said(400, "This model does not support response format `json_schema`. See supported models", "invalid_request_error", ""), noSch},
		"deepseek":                 {said(400, "This response_format type is unavailable now", "invalid_request_error", "invalid_request_error"), noSch},
		"openrouter 404":           {status(404, `{"error":{"message":"No endpoints found that can handle the requested parameters.","code":404}}`), noSch},
		"openrouter tools 404":     {status(404, `{"error":{"message":"No endpoints found that support tool use.","code":404}}`), noSch},
		"ollama tools":             {said(400, "registry.ollama.ai/library/gemma3:latest does not support tools", "api_error", ""), noSch},
		"vllm tool choice":         {said(400, "\"auto\" tool choice requires --enable-auto-tool-choice and --tool-call-parser to be set", "BadRequestError", "400"), noSch},
		"vllm xgrammar":            {said(400, "The provided JSON schema contains features not supported by xgrammar.", "BadRequestError", "400"), noSch},
		"vllm outlines":            {said(400, "Failed to convert JSON schema to regex", "BadRequestError", "400"), noSch},
		"vllm structured":          {said(400, "Invalid structured_outputs specification", "", ""), noSch},
		"llama.cpp":                {said(400, "JSON schema conversion failed:\nUnrecognized schema: {\"not\":{}}", "invalid_request_error", ""), noSch},
		"llama.cpp tools jinja":    {said(500, "tools param requires --jinja flag", "server_error", ""), noSch},
		"llama.cpp peg":            {said(500, "The model produced output that does not match the expected peg-native format", "server_error", "500"), brk},
		"lm studio type":           {status(400, `{"error":"'response_format.type' must be 'json_schema' or 'text'"}`), noSch},
		"lm studio 2":              {status(400, `{"error":"Error in iterating prediction stream: ValueError: Invalid JSON schema"}`), noSch},
		"mistral":                  {status(422, `{"detail":[{"type":"extra_forbidden","loc":["body","response_format","json_schema"],"msg":"Extra inputs are not permitted"}]}`), noSch},
		"azure version":            {said(400, "Invalid parameter: 'response_format' of type 'json_schema' is not supported with this model.", "invalid_request_error", ""), noSch},
		"azure api version":        {said(400, "response_format value as json_schema is enabled only for api versions 2024-08-01-preview and later", "BadRequest", "BadRequest"), noSch},
		"openai schema":            {status(400, `{"error":{"message":"Invalid schema for response_format 'answer': In context=(), 'required' is required to be supplied","type":"invalid_request_error","param":"response_format","code":null}}`), noSch},
		"anthropic compiled":       {said(400, "output_config.format.schema: Compiled grammar is too large", "invalid_request_error", ""), noSch},
		"gemini compat":            {status(400, `[{"error":{"code":400,"message":"Invalid JSON payload received. Unknown name \"$ref\" at 'generation_config.response_schema': Cannot find field.","status":"INVALID_ARGUMENT"}}]`), noSch},
		"gemini states":            {status(400, `[{"error":{"code":400,"message":"The specified schema produces a constraint that has too many states for serving.","status":"INVALID_ARGUMENT"}}]`), noSch},
		"gemini fn + json":         {status(400, `[{"error":{"code":400,"message":"Function calling with a response mime type: 'application/json' is unsupported","status":"INVALID_ARGUMENT"}}]`), noSch},
		"moonshot schema":          {said(400, "At path 'properties.x.type': type is not defined", "invalid_request_error", ""), noSch},
		"kimi schema":              {said(400, "tools.function.parameters is not a valid moonshot flavored json schema, details: <At path 'properties.x.anyOf': x>", "invalid_request_error", ""), noSch},
		"watsonx tools":            {status(400, `{"errors":[{"code":"model_not_support_for_function","message":"Tool usage is not supported for this model"}]}`), noSch},
		"databricks":               {status(400, `{"error_code":"BAD_REQUEST","message":"response_format json_schema is not supported for this model"}`), noSch},
		"snowflake":                {status(400, `{"message":"structured output not supported for this model"}`), noSch},
		"sambanova":                {said(400, "json_schema response format strict mode not supported", "", ""), noSch},
		"deepinfra schema":         {status(422, `{"detail":[{"type":"literal_error","loc":["body","response_format","type"],"msg":"Input should be 'text' or 'json_object'"}]}`), noSch},
		"xai tool":                 {status(400, `{"code":"invalid","error":"Argument not supported on this model: responseFormat"}`), noSch},
		"bedrock forced tool":      {status(400, `{"message":"This model doesn't support the toolConfig.toolChoice.any field. Remove toolConfig.toolChoice.any and try again."}`), noSch},
		"thinking and tool choice": {said(400, "Thinking may not be enabled when tool_choice forces tool use.", "invalid_request_error", ""), noSch},
		"qwen thinking tool":       {said(400, "<400> InternalError.Algo.InvalidParameter: The tool_choice parameter does not support being set to required or object in thinking mode", "invalid_parameter_error", ""), noSch},
		"qwen json word":           {said(400, "<400> InternalError.Algo.InvalidParameter: 'messages' must contain the word 'json' in some form, to use 'response_format' of type 'json_object'.", "invalid_parameter_error", ""), noSch},
		"cloudflare":               {status(400, `{"errors":[{"message":"AiError: AiError: JSON Mode couldn't be met","code":5024}],"success":false,"result":{},"messages":[]}`), brk},
		"hf schema":                {status(422, `{"error":"Input validation error: grammar is not supported","error_type":"validation"}`), noSch},
		"portkey":                  {status(400, `{"status":"failure","message":"response_format is not supported by this provider"}`), noSch},
		"tgi":                      {status(422, `{"error":"Failed to compile grammar","error_type":"validation"}`), noSch},
		// keys, accounts
		"openai project":           {said(401, "Your authentication token is not from a valid issuer.", "invalid_request_error", "invalid_issuer"), key},
		"openai region":            {said(403, "Country, region, or territory not supported", "request_forbidden", "unsupported_country_region_territory"), key},
		"azure 401":                {status(401, `{"error":{"code":"401","message":"Access denied due to invalid subscription key or wrong API endpoint. Make sure to provide a valid key for an active subscription and use a correct regional API endpoint for your resource."}}`), key},
		"azure 404":                {status(404, `{"error":{"code":"DeploymentNotFound","message":"The API deployment for this resource does not exist. If you created the deployment within the last 5 minutes, please wait a moment and try again."}}`), model},
		"azure 404 plain":          {status(404, `{"error":{"code":"404","message":"Resource not found"}}`), model},
		"openrouter 402":           {status(402, `{"error":{"message":"This request requires more credits, or fewer max_tokens. You requested up to 65536 tokens, but can only afford 1200.","code":402}}`), spent},
		"openrouter 401":           {status(401, `{"error":{"message":"User not found.","code":401}}`), key},
		"openrouter 400 id":        {status(400, `{"error":{"message":"foo/bar is not a valid model ID","code":400}}`), model},
		"openrouter 429 upstream":  {status(429, `{"error":{"message":"Provider returned error","code":429,"metadata":{"raw":"x is temporarily rate-limited upstream. Please retry shortly, or add your own key","provider_name":"Chutes"}}}`), limit},
		"openrouter 400 wrap long": {status(400, `{"error":{"message":"Provider returned error","code":400,"metadata":{"raw":"{\"error\":{\"message\":\"prompt is too long: 210000 tokens > 200000 maximum\"}}","provider_name":"Anthropic"}}}`), long},
		"openrouter 503":           {status(503, `{"error":{"message":"No available model provider that meets your routing requirements","code":503}}`), busy},
		"openrouter data policy":   {status(404, `{"error":{"message":"No endpoints found matching your data policy. Enable prompt training here: https://openrouter.ai/settings/privacy","code":404}}`), model},
		"together key":             {said(401, "Invalid API key provided. You can find your API key at https://api.together.xyz/settings/api-keys.", "invalid_request_error", "invalid_api_key"), key},
		"github models":            {said(401, "Bad credentials", "", "unauthorized"), key},
		"hf 401":                   {status(401, `{"error":"Invalid username or password."}`), key},
		"hf 402":                   {status(402, `{"error":"You have exceeded your monthly included credits for Inference Providers. Subscribe to PRO to get 20x more monthly included credits."}`), spent},
		"hf 503 loading":           {status(503, `{"error":"Model x is currently loading","estimated_time":20.0}`), busy},
		"deepseek 402":             {said(402, "Insufficient Balance", "unknown_error", "invalid_request_error"), spent},
		"moonshot 429 overloaded":  {said(429, "The engine is currently overloaded, please try again later", "engine_overloaded_error", ""), limit},
		"moonshot suspended":       {said(429, "Your account org-x is suspended, please check your plan and billing details", "exceeded_current_quota_error", ""), spent},
		"zhipu 1302":               {status(429, `{"error":{"code":"1302","message":"您的账户已达到速率限制，请您控制请求频率"}}`), limit},
		"zhipu 1113":               {status(429, `{"error":{"code":"1113","message":"余额不足或无可用资源包,请充值。"}}`), spent},
		"qwen arrears 403":         {said(403, "The free quota has been exhausted", "AccessDenied.Unpurchased", ""), spent},
		"groq daily":               {said(429, "Rate limit reached for model `x` in organization `y` on tokens per day (TPD): Limit 100000, Used 99900, Requested 900. Please try again in 11m30.4s.", "tokens", "rate_limit_exceeded"), limit},
		"mistral capacity":         {status(429, `{"object":"error","message":"Service tier capacity exceeded for this model.","type":"service_tier_capacity_exceeded","param":null,"code":"3505"}`), limit},
		"anthropic via litellm":    {said(500, "litellm.InternalServerError: AnthropicError - {\"type\":\"error\",\"error\":{\"type\":\"overloaded_error\",\"message\":\"Overloaded\"}}", "", "500"), busy},
		"cloudflare 429":           {status(429, `{"errors":[{"message":"Capacity temporarily exceeded, please try again.","code":3040}],"success":false}`), limit},
		"cloudflare neurons":       {status(429, `{"errors":[{"message":"you have used up your daily free allocation of 10,000 neurons, please upgrade","code":4006}],"success":false}`), spent},
		"perplexity 401 html":      {served{status: 401, label: "text/html", body: "<html><center><h1>401 Authorization Required</h1></center></html>"}, key},
		"nginx 502":                {served{status: 502, label: "text/html", body: "<html>502 Bad Gateway</html>"}, brk},
		"nginx 504":                {served{status: 504, label: "text/html", body: "<html>504 Gateway Time-out</html>"}, brk},
		"cloudflare 524":           {served{status: 524, label: "text/html", body: "<html>A timeout occurred</html>"}, brk},
		"cloudflare 1015":          {served{status: 429, label: "text/plain", body: "error code: 1015"}, limit},
		"529":                      {served{status: 529, label: "text/plain", body: ""}, busy},
		"client closed":            {served{status: 499, label: "text/plain", body: ""}, brk},
		"422 pydantic":             {status(422, `{"detail":[{"type":"missing","loc":["body","messages"],"msg":"Field required","input":{}}]}`), bad},
		"404 html":                 {served{status: 404, label: "text/html", body: "<html>404</html>"}, model},
		"404 plain page":           {served{status: 404, label: "text/plain", body: "404 page not found"}, model},
		"405":                      {served{status: 405, label: "text/plain", body: "Method Not Allowed"}, bad},
		"410 retired":              {status(410, `{"error":{"message":"The model x has been deprecated","code":"model_deprecated"}}`), model},
		"404 deprecated":           {said(404, "The model `gpt-4-32k` has been deprecated, learn more here: https://platform.openai.com/docs/deprecations", "invalid_request_error", "model_not_found"), model},
		"400 no chat template":     {said(400, "As of transformers v4.44, default chat template is no longer allowed, so you must provide a chat template if the tokenizer does not define one.", "BadRequestError", "400"), bad},
		"400 roles":                {said(400, "Conversation roles must alternate user/assistant/user/assistant/...", "BadRequestError", "400"), bad},
		"400 images":               {said(400, "At most 1 image(s) may be provided in one request.", "BadRequestError", "400"), bad},
		"500 cuda":                 {said(500, "CUDA out of memory. Tried to allocate 2.00 GiB", "InternalServerError", "500"), brk},
		"500 ollama runner":        {said(500, "llama runner process has terminated: exit status 2", "api_error", ""), brk},
		"500 ollama memory":        {said(500, "model requires more system memory (8.0 GiB) than is available (4.0 GiB)", "api_error", ""), brk},
		"ollama 404":               {said(404, "model 'x' not found", "api_error", ""), model},
		"vllm engine dead":         {said(500, "EngineCore encountered an issue. See stack trace (above) for the root cause.", "InternalServerError", "500"), brk},
		"vllm sleeping":            {said(503, "The engine is sleeping", "", ""), busy},
		"openai 500":               {said(500, "The server had an error processing your request. Sorry about that!", "server_error", ""), brk},
		"openai 503 slow down":     {said(503, "Slow Down", "", ""), busy},
		"azure content filter":     {status(400, `{"error":{"message":"The response was filtered due to the prompt triggering Azure OpenAI's content management policy.","type":null,"param":"prompt","code":"content_filter","status":400}}`), refus},
		"azure jailbreak":          {status(400, `{"error":{"code":"content_filter","innererror":{"code":"ResponsibleAIPolicyViolation","content_filter_result":{"jailbreak":{"filtered":true,"detected":true}}},"message":"filtered"}}`), refus},
		"stream: too long":         {stream(`{"error":{"message":"context length exceeded","code":400}}`), long},
		"stream: rate":             {stream(`{"error":{"code":429,"message":"Rate limit exceeded: free-models-per-min. "}}`), limit},
		"stream: rate a day":       {stream(`{"error":{"code":429,"message":"Rate limit exceeded: free-models-per-day. Add 10 credits to unlock 1000 free model requests per day","metadata":{"headers":{"X-RateLimit-Reset":"1767225600000"}}}}`), spent},
		"stream: 502":              {stream(`{"id":"gen-1","provider":"X","error":{"code":502,"message":"Provider disconnected"},"choices":[{"index":0,"delta":{"content":""},"finish_reason":"error"}]}`), brk},
		"stream: key":              {stream(`{"error":{"message":"Invalid API key","code":401}}`), key},
		"stream: balance":          {stream(`{"error":{"message":"Insufficient credits","code":402}}`), spent},
		"stream: moderation 403":   {stream(`{"error":{"code":403,"message":"x requires moderation. Your input was flagged","metadata":{"reasons":["sexual"]}}}`), refus},
		"stream: schema":           {stream(`{"error":{"message":"Failed to initialize samplers: failed to parse grammar","code":400,"type":"invalid_request_error"}}`), noSch},
		"stream: overloaded":       {stream(`{"error":{"message":"Overloaded","code":529}}`), busy},
		"200 doc detail":           {served{label: "application/json", body: `{"detail":"Internal error"}`}, brk},
		"200 doc success false":    {served{label: "application/json", body: `{"success":false,"message":"invalid api key"}`}, key},
		"200 doc code msg":         {served{label: "application/json", body: `{"code":1001,"msg":"Rate limit reached","data":null}`}, limit},
		"200 doc error string":     {served{label: "application/json", body: `{"error":"Too many requests, please slow down"}`}, limit},
	} {
		for _, via := range []provider.SchemaVia{provider.ViaFormat} {
			req := ask()
			req.SchemaName, req.Via = "answer", via
			req.Schema = []byte(`{"type":"object"}`)
			res, err := r.s.call(t, compat.Config{}, req, nil)
			got, msg := "", ""
			if e, ok := provider.As(err); ok {
				msg = e.Message + " | " + e.Quote
				switch {
				case e.Code == provider.CodeContentTooLong:
					got = long
				case e.Code == provider.CodeSchemaInvalid:
					got = noSch
				case e.Code == provider.CodeQuota && !e.Retryable:
					got = spent
				case e.Code == provider.CodeQuota:
					got = limit
				case e.Code == provider.CodeUnavailable && e.Capacity:
					got = busy
				case e.Code == provider.CodeUnavailable && e.Retryable:
					got = brk
				case e.Code == provider.CodeCredentialRequired:
					got = key
				case e.Code == provider.CodeModelNotSupported:
					got = model
				case e.Code == provider.CodeInvalidRequest:
					got = bad
				default:
					got = e.Code
				}
				if e.Retryable && (got == long || got == bad || got == key) {
					got += "+retry"
				}
			} else if err != nil {
				got = "ERR " + err.Error()
			} else {
				got = fmt.Sprint("OK ", res.Text)
				if res.Stop == provider.StopRefused {
					got = refus
				}
			}
			if got != r.want {
				fmt.Fprintf(os.Stderr, "DIFF %-26s want %-8s got %-8s %s\n", name, r.want, got, msg)
			}
		}
	}
	_ = strings.Repeat
}
