package anthropic_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"waybill.dev/waybill/services/dispatcher/provider"
	double "waybill.dev/waybill/test/double/anthropic"
)

// Errors of servers with Anthropic's interface in further words, by what follows from them.
func TestReports_ErrorsByTheirMeaning(t *testing.T) {
	t.Parallel()
	status := func(code int, doc string) double.Reply {
		return double.Reply{Status: code, ContentType: "application/json", Raw: doc}
	}
	said := func(code int, kind, message string) double.Reply {
		return status(code, `{"type":"error","error":{"type":"`+kind+`","message":"`+message+`"}}`)
	}
	event := func(doc string) double.Reply { return raw(eventStream, "event: error\ndata: "+doc+"\n\n") }
	const bad = "invalid_request_error"
	for name, tc := range map[string]struct {
		double.Reply
		code                string
		retryable, capacity bool
	}{
		"a prompt":                 {said(400, bad, "prompt is too long: 210000 tokens > 200000 maximum"), provider.CodeContentTooLong, false, false},
		"input and max_tokens":     {said(400, bad, "input length and `max_tokens` exceed context limit: 190000 + 20000 > 200000, decrease input length or `max_tokens` and try again"), provider.CodeContentTooLong, false, false},
		"a request of megabytes":   {said(413, "request_too_large", "Request exceeds the maximum size"), provider.CodeContentTooLong, false, false},
		"Kimi, too long":           {said(400, bad, "Your request exceeded model token limit: 262144 (requested: 300000)"), provider.CodeContentTooLong, false, false},
		"MiniMax, too long":        {status(400, `{"type":"error","error":{"type":"bad_request_error","message":"invalid params, context window exceeds limit (2013)","http_code":"400"},"request_id":"x"}`), provider.CodeContentTooLong, false, false},
		"DeepSeek, too long":       {said(400, bad, "This model's maximum context length is 131072 tokens. However, you requested 140000 tokens"), provider.CodeContentTooLong, false, false},
		"llama.cpp, too long":      {status(400, `{"error":{"code":400,"message":"request (9000 tokens) exceeds the available context size (8192 tokens), try increasing it","type":"exceed_context_size_error"}}`), provider.CodeContentTooLong, false, false},
		"in the stream, too long":  {event(`{"type":"error","error":{"type":"invalid_request_error","message":"prompt is too long: 210000 tokens > 200000 maximum"}}`), provider.CodeContentTooLong, false, false},
		"a temperature":            {said(400, bad, "temperature: range: 0..1 exceeds the maximum allowed"), provider.CodeInvalidRequest, false, false},
		"a credit":                 {said(400, bad, "Your credit balance is too low to access the Anthropic API. Please go to Plans & Billing to upgrade or purchase credits."), provider.CodeQuota, false, false},
		"a limit of spending":      {said(400, bad, "You have reached your specified API usage limits. You will regain access on 2026-12-01 at 00:00 UTC."), provider.CodeQuota, false, false},
		"a compiled grammar":       {said(400, bad, "output_config.format.schema: The compiled grammar is too large"), provider.CodeSchemaInvalid, false, false},
		"a tool's schema":          {said(400, bad, "tools.0.custom.input_schema: JSON schema is invalid. It must match JSON Schema draft 2020-12"), provider.CodeSchemaInvalid, false, false},
		"a key":                    {said(401, "authentication_error", "invalid x-api-key"), provider.CodeCredentialRequired, false, false},
		"a token":                  {said(401, "authentication_error", "OAuth token has expired."), provider.CodeCredentialRequired, false, false},
		"no model":                 {said(404, "not_found_error", "model: claude-9"), provider.CodeModelNotSupported, false, false},
		"retired, 410":             {said(410, "not_found_error", "gone"), provider.CodeModelNotSupported, false, false},
		"a closed client":          {status(499, `{}`), provider.CodeUnavailable, true, false},
		"a timeout of the vendor":  {said(504, "timeout_error", "Request timed out"), provider.CodeUnavailable, true, false},
		"a page, 502":              {double.Reply{Status: 502, ContentType: "text/html", Raw: "<html>"}, provider.CodeUnavailable, true, false},
		"529 without a body":       {double.Reply{Status: 529, ContentType: "text/plain"}, provider.CodeUnavailable, true, true},
		"overloaded, 500":          {said(500, "overloaded_error", "Overloaded"), provider.CodeUnavailable, true, true},
		"a rate":                   {said(429, "rate_limit_error", "This request would exceed your organization's rate limit of 40,000 input tokens per minute."), provider.CodeQuota, true, true},
		"a rate, in the stream":    {event(`{"type":"error","error":{"type":"rate_limit_error","message":"slow down"}}`), provider.CodeQuota, true, true},
		"a failure, in the stream": {event(`{"type":"error","error":{"type":"api_error","message":"Internal server error"}}`), provider.CodeUnavailable, true, false},
		"an error of OpenAI's":     {event(`{"error":{"message":"slow down","type":"rate_limit_error","code":"rate_limit_exceeded"}}`), provider.CodeQuota, true, true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			e := newRig(t, nil).fail(t, tool.ask(), tc.Reply)
			require.Equal(t, tc.code, e.Code, "%s %s", e.Message, e.Quote)
			require.Equal(t, tc.retryable, e.Retryable, e.Message)
			require.Equal(t, tc.capacity, e.Capacity, e.Message)
			require.NotContains(t, e.Message, "could not be reached")
		})
	}
}

// Streams of servers with Anthropic's interface in further forms.
func TestReports_Streams(t *testing.T) {
	t.Parallel()
	const want = `{"title":"a","urgent":true}`
	begin := func(index, more string) string {
		return `{"type":"content_block_start","index":` + index + `,"content_block":{"type":"tool_use"` + more + `}}`
	}
	piece := func(index, json string) string {
		return `{"type":"content_block_delta","index":` + index + `,"delta":{"type":"input_json_delta","partial_json":"` + strings.ReplaceAll(json, `"`, `\"`) + `"}}`
	}
	shut := func(index string) string { return `{"type":"content_block_stop","index":` + index + `}` }
	used := strings.Replace(evEnd, "end_turn", "tool_use", 1)
	named := `,"id":"t","name":"answer","input":{}`
	for name, events := range map[string][]string{
		"an empty id":           {evStart, begin("0", `,"id":"","name":"answer","input":{}`), piece("0", want), shut("0"), used, evStop},
		"no input":              {evStart, begin("0", `,"id":"t","name":"answer"`), piece("0", want), shut("0"), used, evStop},
		"input null":            {evStart, begin("0", `,"id":"t","name":"answer","input":null`), piece("0", want), shut("0"), used, evStop},
		"input as empty text":   {evStart, begin("0", `,"id":"t","name":"answer","input":""`), piece("0", want), shut("0"), used, evStop},
		"an empty piece first":  {evStart, begin("0", named), piece("0", ""), piece("0", want[:9]), piece("0", want[9:]), shut("0"), used, evStop},
		"pings between":         {evStart, `{"type":"ping"}`, begin("0", named), `{"type":"ping"}`, piece("0", want[:9]), `{"type":"ping"}`, piece("0", want[9:]), shut("0"), used, evStop},
		"text before":           {evStart, evText, evA, evShut, begin("1", named), piece("1", want), shut("1"), used, evStop},
		"text after":            {evStart, begin("0", named), piece("0", want), shut("0"), strings.Replace(evText, `"index":0`, `"index":1`, 1), strings.Replace(evA, `"index":0`, `"index":1`, 1), shut("1"), used, evStop},
		"index from one":        {evStart, begin("1", named), piece("1", want), shut("1"), used, evStop},
		"the reason end_turn":   {evStart, begin("0", named), piece("0", want), shut("0"), evEnd, evStop},
		"an unknown event":      {evStart, `{"type":"vendor_event","x":1}`, begin("0", named), piece("0", want), shut("0"), used, `{"type":"vendor_end"}`, evStop},
		"an unknown block":      {evStart, `{"type":"content_block_start","index":0,"content_block":{"type":"server_tool_use","id":"s","name":"web","input":{}}}`, piece("0", "{}"), shut("0"), begin("1", named), piece("1", want), shut("1"), used, evStop},
		"the whole input twice": {evStart, begin("0", `,"id":"t","name":"answer","input":`+want), shut("0"), used, evStop},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			res, _ := newRig(t, nil).call(t, tool.ask(), stream(events...))
			require.JSONEq(t, want, res.Text)
			require.Equal(t, provider.StopClean, res.Stop)
		})
	}
}
