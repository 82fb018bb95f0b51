package anthropic_test

import (
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"waybill.dev/waybill/protocol/strictjson"
	"waybill.dev/waybill/services/dispatcher/provider"
	double "waybill.dev/waybill/test/double/anthropic"
)

// said is an event with a piece of text.
func said(text string) string {
	return `{"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":` + string(strictjson.Render(text)) + `}}`
}

// Other servers' Messages APIs: they repeat the text so far, leave calls of tools in the text, and have their own
// words for the end.
func TestServers_Answers(t *testing.T) {
	t.Parallel()
	const wanted = `{"z":"Call it","a":1}`
	input := func(part string) string {
		return `{"type":"content_block_delta","index":0,"delta":{"type":"input_json_delta","partial_json":` + string(strictjson.Render(part)) + `}}`
	}
	called := `{"type":"content_block_start","index":0,"content_block":{"type":"tool_use","id":"t","name":"answer","input":{}}}`
	texts := func(list ...string) []string {
		events := []string{evStart, evText}
		for _, s := range list {
			events = append(events, said(s))
		}
		return append(events, evShut, evEnd, evStop)
	}
	ends := func(reason string) []string {
		list := texts(wanted)
		list[len(list)-2] = strings.Replace(evEnd, "end_turn", reason, 1)
		return list
	}
	for name, tc := range map[string]struct {
		events []string
		way    way
		stop   provider.StopClass
	}{
		"the text so far":            {events: texts(`{"z":"Call`, `{"z":"Call it",`, wanted), way: format},
		"the text so far, twice":     {events: texts(`{"z":"Call`, `{"z":"Call it",`, wanted, wanted), way: format},
		"all of it at the end":       {events: texts(`{"z":"Call`, ` it",`, `"a":1}`, wanted), way: format},
		"the input so far":           {events: []string{evStart, called, input(`{"z":"Call`), input(`{"z":"Call it",`), input(wanted), evShut, evEnd, evStop}, way: tool},
		"Hermes":                     {events: texts("<tool_call>\n", `{"name":"answer","arguments":`+wanted+"}\n</tool_call>"), way: tool},
		"Qwen Coder":                 {events: texts("<tool_call>\n<function=answer>\n<parameter=z>\nCall it\n</parameter>\n<parameter=a>\n1\n</parameter>\n</function>\n</tool_call>"), way: tool},
		"MiniMax":                    {events: texts("<minimax:tool_call>\n<invoke name=\"answer\">\n<parameter name=\"z\">Call it</parameter>\n<parameter name=\"a\">1</parameter>\n</invoke>\n</minimax:tool_call>"), way: tool},
		"Kimi":                       {events: texts("<|tool_calls_section_begin|><|tool_call_begin|>functions.answer:0<|tool_call_argument_begin|>", wanted, "<|tool_call_end|>"), way: tool},
		"GLM, so far":                {events: texts("<tool_call>", "<tool_call>answer\n<arg_key>z</arg_key>", "<tool_call>answer\n<arg_key>z</arg_key>\n<arg_value>Call it</arg_value>\n<arg_key>a</arg_key>\n<arg_value>1</arg_value>\n</tool_call>"), way: tool},
		"the word null, then an end": {events: append([]string{evStart, evText, said(wanted), evShut, strings.Replace(evEnd, "end_turn", "null", 1)}, evEnd, evStop), way: format},
		"a filter with its name":     {events: ends("content_filter: violence"), way: format, stop: provider.StopRefused},
		"a guardrail":                {events: ends("guardrail_intervened"), way: format, stop: provider.StopRefused},
		"sensitive":                  {events: ends("sensitive"), way: format, stop: provider.StopRefused},
		"max_new_tokens":             {events: ends("max_new_tokens"), way: format, stop: provider.StopTruncated},
		"end_of_turn":                {events: ends("end_of_turn"), way: format},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			res, _ := newRig(t, nil).call(t, tc.way.ask(), stream(tc.events...))
			require.JSONEq(t, wanted, res.Text)
			if tc.stop == "" {
				tc.stop = provider.StopClean
			}
			require.Equal(t, tc.stop, res.Stop)
		})
	}
	thinking := `{"type":"content_block_start","index":0,"content_block":{"type":"thinking","thinking":"hm"}}`
	res, _ := newRig(t, nil).call(t, format.ask(), stream(evStart, thinking, evShut, evEnd, evStop))
	require.True(t, res.Thought)
	require.Empty(t, res.Text)
	e := newRig(t, nil).fail(t, free.ask(), stream(texts("The answer", "The answer is", "The answer is 42", "No, 43")...))
	require.Equal(t, provider.CodeUnavailable, e.Code)
	require.Contains(t, e.Message, "repeats its text")
}

// Errors of clouds and gateways with Anthropic's interface, and the waits that they request.
func TestServers_Errors(t *testing.T) {
	t.Parallel()
	status := func(code int, doc string, header ...string) double.Reply {
		r := double.Reply{Status: code, ContentType: "application/json", Raw: doc, Header: http.Header{}}
		for i := 0; i < len(header); i += 2 {
			r.Header.Set(header[i], header[i+1])
		}
		return r
	}
	vendor := func(code int, kind, message string, header ...string) double.Reply {
		return status(code, `{"type":"error","error":{"type":"`+kind+`","message":"`+message+`"}}`, header...)
	}
	for name, tc := range map[string]struct {
		double.Reply
		code                string
		retryable, capacity bool
		after               time.Duration
	}{
		"a limit of tokens":       {vendor(429, "rate_limit_error", "This request would exceed your rate limit of 30,000 input tokens per minute", "Anthropic-Ratelimit-Input-Tokens-Remaining", "0", "Anthropic-Ratelimit-Input-Tokens-Reset", "2026-10-26T07:33:40Z", "Date", "Mon, 26 Oct 2026 07:33:20 GMT"), provider.CodeQuota, true, true, 20 * time.Second},
		"a subscription":          {vendor(429, "rate_limit_error", "limited", "Anthropic-Ratelimit-Unified-Reset", "1793000060", "Date", "Mon, 26 Oct 2026 07:33:20 GMT"), provider.CodeQuota, true, true, time.Minute},
		"a gateway's limit":       {vendor(429, "rate_limit_error", "limited", "X-Ratelimit-Reset", "4"), provider.CodeQuota, true, true, 4 * time.Second},
		"a limit in words":        {vendor(429, "rate_limit_error", "Please try again in 12s"), provider.CodeQuota, true, true, 12 * time.Second},
		"overloaded":              {vendor(529, "overloaded_error", "Overloaded", "Retry-After", "3"), provider.CodeUnavailable, true, true, 3 * time.Second},
		"overloaded, 500":         {vendor(500, "overloaded_error", "Overloaded"), provider.CodeUnavailable, true, true, 0},
		"a timeout":               {vendor(504, "timeout_error", "Request timed out"), provider.CodeUnavailable, true, false, 0},
		"long context":            {vendor(400, "invalid_request_error", "prompt is too long: 212345 tokens > 200000 maximum"), provider.CodeContentTooLong, false, false, 0},
		"max_tokens":              {vendor(400, "invalid_request_error", "max_tokens: 100000 > 64000, which is the maximum allowed number of output tokens for claude-sonnet-4"), provider.CodeInvalidRequest, false, false, 0},
		"a workspace's limit":     {vendor(400, "invalid_request_error", "You have reached your specified workspace API usage limits. You will regain access on 2026-12-01 at 00:00 UTC."), provider.CodeQuota, false, false, 0},
		"credit":                  {vendor(400, "invalid_request_error", "Your credit balance is too low to access the Anthropic API. Please go to Plans & Billing to upgrade or purchase credits."), provider.CodeQuota, false, false, 0},
		"no model":                {vendor(404, "not_found_error", "model: claude-9"), provider.CodeModelNotSupported, false, false, 0},
		"a disabled organization": {vendor(403, "permission_error", "This organization has been disabled."), provider.CodeCredentialRequired, false, false, 0},
		"Ollama, no tools":        {vendor(400, "invalid_request_error", "registry.ollama.ai/library/x does not support tools"), provider.CodeSchemaInvalid, false, false, 0},
		"vLLM, a schema":          {status(400, `{"error":{"message":"The provided JSON schema contains features not supported by xgrammar.","type":"BadRequestError","code":400}}`), provider.CodeSchemaInvalid, false, false, 0},
		"LiteLLM, a context":      {status(400, `{"error":{"message":"litellm.ContextWindowExceededError: AnthropicException","type":null,"param":null,"code":"400"}}`), provider.CodeContentTooLong, false, false, 0},
		"a page":                  {double.Reply{Status: 502, ContentType: "text/html", Raw: "<html>Bad Gateway</html>"}, provider.CodeUnavailable, true, false, 0},
		"schema complexity":       {vendor(400, "invalid_request_error", "Schema is too complex for compilation. Try reducing the number of tools or simplifying tool schemas."), provider.CodeSchemaInvalid, false, false, 0},
		"a compiled grammar":      {vendor(400, "invalid_request_error", "The compiled grammar is too large, which would cause performance issues."), provider.CodeSchemaInvalid, false, false, 0},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			e := newRig(t, nil).fail(t, tool.ask(), tc.Reply)
			require.Equal(t, tc.code, e.Code, "%s %s", e.Message, e.Quote)
			require.Equal(t, tc.retryable, e.Retryable, e.Message)
			require.Equal(t, tc.capacity, e.Capacity, e.Message)
			require.Equal(t, tc.after, e.RetryAfter)
		})
	}
}
