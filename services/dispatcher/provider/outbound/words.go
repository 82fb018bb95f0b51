package outbound

import (
	"slices"
	"strings"

	"waybill.dev/waybill/services/dispatcher/provider"
)

// Word returns a vendor's word in one notation, because gateways mix those of their vendors: lower case
// without the marks between its parts, such as maxtokens for max_tokens, MAX_TOKENS and maxTokens. What
// follows a colon explains the word.
func Word(vendor string) string {
	vendor, _, _ = strings.Cut(vendor, ":")
	word := strings.Map(func(r rune) rune {
		switch {
		case 'A' <= r && r <= 'Z':
			return r + 'a' - 'A'
		case r == '_', r == '-', r == ' ', r == '.':
			return -1
		}
		return r
	}, vendor)
	return strings.TrimPrefix(word, "finishreason")
}

// IsForeignRole reports whether a message is not the model's: servers that run tools themselves stream the
// results, and some echo the prompt.
func IsForeignRole(role string) bool {
	return slices.Contains([]string{"tool", "tools", "function", "toolresult", "ipython", "user", "human", "system", "developer"}, Word(role))
}

// IsComplete reports whether a finish reason, a Word, means that the model ended its answer by itself.
func IsComplete(word string) bool {
	return slices.Contains([]string{
		"", "stop", "endturn", "stopsequence", "eos", "eostoken", "complete", "completed", "finished", "done",
		"eot", "eom", "endofturn", "endoftext", "endofsequence", "stoptoken", "stopstring", "stopword", "stopwords", "finish",
		"success", "normal",
	}, word)
}

// IsNoReason reports whether a finish reason, a Word, says that the answer has not ended. Some servers send
// it with each piece.
func IsNoReason(word string) bool {
	return slices.Contains([]string{
		"", "null", "none", "nil", "undefined", "unspecified", "notfinished", "unfinished", "inprogress", "queued",
		"running", "generating",
	}, word)
}

// IsProgress reports whether a status, a Word, says how far a call is: servers send it while the call waits for
// its model.
func IsProgress(word string) bool {
	return IsNoReason(word) || IsComplete(word) || slices.Contains([]string{
		"ok", "accepted", "created", "pending", "waiting", "scheduled", "assigned", "starting", "started", "booting", "warming",
		"warmingup", "warmup", "initializing", "initialising", "connecting", "connected", "loading", "loaded", "preparing", "ready",
		"processing", "working", "active", "thinking", "searching", "progress", "streaming", "alive", "online", "info", "heartbeat",
	}, word)
}

// IsUnfinishedTurn reports whether a finish reason, a Word, means that the model called a tool that it was not
// offered. What it said before is not its answer.
func IsUnfinishedTurn(word string) bool {
	return slices.Contains([]string{
		"malformedfunctioncall", "malformedtoolcall", "unexpectedtoolcall", "toomanytoolcalls",
	}, word)
}

// IsFilter reports whether a finish reason or an error's code, a Word, means that a filter stopped the prompt or
// the answer.
func IsFilter(word string) bool {
	return slices.Contains([]string{
		"contentfilter", "contentfiltered", "contentpolicyviolation", "invalidprompt", "sensitive", "safety", "blocklist",
		"prohibitedcontent", "recitation", "guardrailintervened", "datainspectionfailed", "errortoxic", "refusal", "spii",
		"modelarmor", "imagesafety", "imageprohibitedcontent", "imagerecitation", "contentblocked", "blocked", "filtered",
		"moderation", "moderationblocked", "policyviolation", "responsibleaipolicyviolation",
	}, word) || strings.HasSuffix(word, "sensitivecontentdetected") // of Volcengine
}

// noResources is DeepSeek's reason for an answer that its servers had no room for.
const noResources = "insufficientsystemresource"

// BrokenOff returns the error of an answer whose finish reason means that a failure broke it off; nil for other
// reasons.
func BrokenOff(reason string) error {
	word := Word(reason)
	if !slices.Contains([]string{
		"error", "abort", "aborted", "cancelled", "canceled", "networkerror", "servererror", "timeout", noResources,
		"usercancel", "usercancelled", "interrupted", "internalerror", "modelerror", "providererror", "upstreamerror", "failed", "failure",
		"timelimit", "preempted", "preemption", "evicted", "load", "unload", "shutdown", "disconnected", "disconnect", "connectionerror",
		"repetition", "repetitiondetected", "loopdetected",
	}, word) {
		return nil
	}
	return &provider.Error{
		Code:      provider.CodeUnavailable,
		Message:   "the model's server broke off its answer: " + reason,
		Retryable: true,
		Capacity:  word == noResources,
	}
}

// IsTruncated reports whether a finish reason, a Word, means that a limit of tokens cut the answer.
func IsTruncated(word string) bool {
	return slices.Contains([]string{
		"length", "maxtokens", "maxoutputtokens", "maxcompletiontokens", "modellength", "maxlength", "tokenlimit", "errorlimit",
		"modelcontextwindowexceeded", "contextwindowexceeded", "contextlengthexceeded", "contextlength", "contextoverflow",
		"maxcontextlength", "maxcontextlengthexceeded", "maxnewtokens", "maxtoken", "maxtokensreached", "maxtokensexceeded",
		"maximumtokens", "tokenlimitreached", "tokenlimitexceeded", "maxoutputlength", "maximumlength", "maximumoutputtokens",
		"maxtokenlimit", "maxlengthreached", "outputlengthlimit", "maxoutputreached", "outputlimit", "limit", "lengthlimit", "truncated",
	}, word)
}

// Phrases in the errors of servers, in lower case: of the vendors, vLLM, SGLang, llama.cpp, Ollama, LM
// Studio, TensorRT-LLM, Mistral, Groq, DeepSeek, xAI, Moonshot, Zhipu and gateways. Servers have few
// codes in common, so their text decides where the status does not.

// IsTooLong reports whether an error says that prompt and answer exceed a limit of the model.
func (e ErrorBody) IsTooLong() bool {
	if e.IsThrottled() || e.Says("maximum value for `max_") { // "too many tokens, please wait"; a limit of the answer alone
		return false
	}
	return e.Says(
		"context_length", "context length", "context size", "context window", "context_window", "context limit",
		"exceed_context_size", "maximum context", "max_model_len", "maximum model length", "maximum prompt length",
		"maximum input length", "max_input_len", "maximum allowed length", "exceeds max length",
		"string_above_max_length", "prompt is too long", "input is too long", "input too long",
		"prompt too long", "too many tokens", "too many input tokens", "too many total text bytes", "token count",
		"reduce the length", "exceeds the available context", "larger than the maximum",
		"token limit exceeded", "model token limit", "contextwindowexceeded", "context shift is disabled",
		"`inputs` tokens + `max_new_tokens`", "`inputs` must have less than", "exceeds the model's maximum",
		"maximum number of tokens allowed", "range of input length should be", "payload size exceeds", "image exceeds",
		"input tokens exceed", "too large to process", "max_tokens must be at least 1, got -", "total tokens limit",
		"max_seq_len", "max_num_tokens", "n_ctx", "tokens too long", "exceed max message tokens", "messages is too long",
		"max input characters", "maximum input characters", "超长", "上下文限制", "最大长度", "长度限制",
	) || e.Says("max tokens of ") && e.Says(" exceeded") || e.overflows()
}

// overflows reports whether an error says in any words that a prompt has more than a limit.
func (e ErrorBody) overflows() bool {
	return e.Says("prompt", "input", "context", "tokens total", "total tokens") &&
		e.Says("token", "length", "context", "size", "prompt too", "prompt is too") &&
		e.Says("exceed", "too long", "too large", "longer than", "larger than", "greater than", "must have less than", "must be <=", "must be less than") &&
		!e.Says(
			"schema", "output tokens", "output limit", "completion tokens", "quota", "rate limit", "per minute", "per day", "temperature", "top_p", "top_k",
			"penalty", "image", "audio", "file", "stop sequence", "tool", "input should be", "`max_tokens` must", "grammar", "timeout", "metadata",
		)
}

// IsOversized reports whether a rate limit refuses a prompt that is larger than the whole limit: it would
// be refused again.
func (e ErrorBody) IsOversized() bool {
	return e.Says("request too large", "tokens must be reduced")
}

// IsAboutSchema reports whether an error is about the schema of the answer, or about its form.
func (e ErrorBody) IsAboutSchema() bool {
	return e.Says(
		"response_format", "response format", "json_schema", "json schema", "invalid_json_schema", "invalid schema",
		"response_schema", "specified schema", "a schema in", "output_format", "output_config", "additionalproperties",
		"invalid_function_parameters", "structured output", "structured_output", "guided_json",
		"guided decoding", "grammar", "function parameters", "tools[0]", "tool_choice", "json mode",
		"json_object", "requested parameters", "text.format", `"strict"`, `'strict'`, ".strict",
		"structured-output", "toolchoice", "tool choice", "responseformat", "response mime type", "response_mime_type", "--jinja",
		"at path 'properties", "at path 'items", "at path '$defs",
	)
}

// IsRefusedSchema reports whether a bad request is about the schema that was sent by a name: the word alone
// can also be that of the API's own schema.
func (e ErrorBody) IsRefusedSchema(name string) bool {
	return e.Says("schema") && !e.IsAboutMessages() && e.Says(
		"unsupported", "not support", "unknown keyword", "invalid keyword", "unrecognized", "schema must", "schema contains", "schema has", "schema is",
		"schema exceeds", "schema produces", "schema cannot", "schema at", "schema type", "too complex", "in schema", "in the schema", "of the schema", "schema:",
		"'"+strings.ToLower(name)+"'", `"`+strings.ToLower(name)+`"`, "`"+strings.ToLower(name)+"`",
	)
}

// IsAboutMessages reports whether an error names the messages of a request, and no schema of an answer.
func (e ErrorBody) IsAboutMessages() bool {
	return e.Says("messages[", "messages.", "messages/", "contents[", "input[", "match schema") &&
		!e.Says("response_format", "response format", "json_schema", "response_schema", "text.format", "output_format", "output_config", "tool")
}

// IsUsedUp reports whether an error says that an account has no credit, which retrying does not help. A link
// to a vendor's prices, as rate limits have it, does not say so, and neither does an error that names a time
// to wait, or a usage limit that ends soon.
func (e ErrorBody) IsUsedUp() bool {
	if e.After != "" {
		return false
	}
	if e.RetryDelay != "" { // Google says the same of a limit per minute
		return strings.Contains(e.QuotaID, "PerDay")
	}
	if !e.Soon && e.Says("usage limit", "usage_limit", "token_quota_reached") && !e.Says("hourly", "per hour", "per minute") {
		return true
	}
	return e.Says(
		"insufficient_quota", "billing_hard_limit", "billing_not_active", "billing details", "insufficient balance",
		"insufficient_balance", "insufficient credit", "credit balance", "out of credit",
		"payment required", "exceeded your current quota", "budget has been exceeded", "budget_exceeded",
		"balance is insufficient", "exceeded_current_quota", "spending limit", "spend limit", "call volume quota",
		"not enough credits", "freetieronly", "used up your", "key limit exceeded", "余额不足", "欠费",
		"credit_balance", "credits are depleted", "extra usage is required",
		"arrearage", "account is in good standing", "not enough balance", "not_enough_balance",
		"requires a valid credit card", "calls / month", "free quota has been", "unpurchased",
	)
}

// IsUnpaid is IsUsedUp for an error whose status is about the account. Its ordinary words could also be part
// of a prompt that a bad request quotes.
func (e ErrorBody) IsUnpaid() bool {
	return e.IsUsedUp() || e.After == "" && e.RetryDelay == "" && e.Says("no credits", "any credits", "add credits", "purchase credits", "overdue")
}

// IsRateLimit reports whether an error says that calls come too fast.
func (e ErrorBody) IsRateLimit() bool {
	return e.IsNamedRateLimit() || e.Says("requests per", "tokens per min", "rate exceeded", "request limit reached")
}

// IsNamedRateLimit reports whether an error names a rate limit. A refused key can also mention requests per
// minute: those of its plan.
func (e ErrorBody) IsNamedRateLimit() bool {
	return e.Says("rate_limit", "rate limit", "ratelimit", "too many requests", "rpm limit", "tpm limit") || e.IsThrottled()
}

// IsThrottled reports a rate limit of Amazon, which has the status of a bad request, or another one behind
// gateways.
func (e ErrorBody) IsThrottled() bool {
	return e.Says("throttlingexception", "throttled") || e.Says("too many tokens") && e.Says("please wait")
}

// IsBadGeneration reports whether an error is about what the model wrote, so that another attempt may do: JSON
// that its server rejects, or a call that its server cannot read.
func (e ErrorBody) IsBadGeneration() bool {
	return e.Says(
		"json_validate_failed", "failed_generation", "failed to generate json", "tool_use_failed", "output_parse_failed",
		"failed to call a function", "failed to validate json", "error parsing tool call", "tool call parsing failed",
		"xml syntax error", "failed to parse input at pos", "invalid diff:", "unexpected tokens remaining in message header",
		"json mode couldn't be met", "model produced output that does not match",
		"request failed during generation", "incomplete_generation", "incomplete generation",
	)
}

// IsOverloaded reports whether an error says that the server has no capacity at the moment.
func (e ErrorBody) IsOverloaded() bool {
	return e.IsLoading() || e.Says(
		"overloaded", "server_busy", "server is busy", "slow_down", "no capacity", "at capacity",
		"out of capacity", "model too busy", "capacity_exceeded",
		"capacity exceeded", "over capacity", "high demand", "too busy",
		"try again later", "temporarily unavailable", "service_unavailable", "service unavailable",
	)
}

// IsLoading reports whether an error says that the server has not loaded its model yet.
func (e ErrorBody) IsLoading() bool {
	return e.Says("loading model", "model is loading", "currently loading", "model_loading")
}

// IsNoModel reports whether an error says that the server does not have the model.
func (e ErrorBody) IsNoModel() bool {
	return e.Says(
		"model_not_found", "model not found", "unknown model", "no such model", "invalid model",
		"not exist", "not a valid model", "decommissioned", "work with the specified model",
		"try pulling it", "is not loaded", "no models loaded",
		"model identifier is invalid", "on-demand throughput", "inference profile",
	)
}

// IsRegion reports whether an error says that the vendor does not serve the place of the caller.
func (e ErrorBody) IsRegion() bool {
	return e.Says(
		"unsupported_country", "region, or territory", "unsupported region", "unsupported_region", "location is not supported",
		"region is not supported", "country is not supported", "not available in your region", "not available in your country",
		"not supported in your region", "not supported in your country",
	)
}

// IsNetwork reports whether an error says that a rule of a network refused the caller: the vendor's, or that of
// something in front of it, which answers with a page.
func (e ErrorBody) IsNetwork() bool {
	text := strings.ToLower(strings.TrimSpace(e.Message))
	return strings.HasPrefix(text, "<!doctype html") || strings.HasPrefix(text, "<html") || e.Says(
		"firewall", "virtual network", "cloudflare", "public network access", "private endpoint", "vpc service controls",
		"ip address", "ip_not_allowed", "ip not allowed", "ip is not allowed", "allowlist", "whitelist",
	)
}

// IsNoKey reports whether an error says that the key is missing or wrong.
func (e ErrorBody) IsNoKey() bool {
	return e.IsBadKey() || e.Says("missing api key", "unauthorized", "authentication", "access token", "login fail")
}

// IsBadKey reports whether an error says that the key is wrong, which some servers report as a bad request.
func (e ErrorBody) IsBadKey() bool {
	return e.Says(
		"invalid_api_key", "invalid api key", "incorrect api key", "api key not valid", "api key expired", "api_key_invalid",
		"organization has been disabled", "organization has been restricted",
	)
}

// IsFiltered reports whether an error without a code of its own is that of a filter: of Azure behind
// gateways, OpenAI, OpenRouter, xAI, DeepSeek, Alibaba, Zhipu, MiniMax, Volcengine, Anthropic and guardrails.
func (e ErrorBody) IsFiltered() bool {
	return e.Says(
		"content management policy", "contentpolicyviolation", "responsibleaipolicyviolation", "your input was flagged",
		"violates usage guidelines", "content exists risk", "inappropriate content", "unsafe or sensitive content",
		"blocked by content filtering", "new_sensitive", "may contain sensitive information", "不安全或敏感内容",
		"flagged as potentially violating", "result of our safety system", "violated guardrail", "guardrail checks",
		"blocked due to security configurations",
	)
}
