package anthropic_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"waybill.dev/waybill/services/dispatcher/provider"
	double "waybill.dev/waybill/test/double/anthropic"
)

// Streams and errors of servers with Anthropic's interface that broke clients in public reports.
func TestReports_Answers(t *testing.T) {
	t.Parallel()
	whole := stream(evStart, evText, evA, evShut, evEnd, evStop).Raw
	ends := func(end string) double.Reply { return stream(evStart, evText, evA, evShut, end, evStop) }
	for name, reply := range map[string]double.Reply{
		"NaN in the usage":           ends(strings.Replace(evEnd, `"output_tokens":4`, `"output_tokens":4,"speed":NaN`, 1)),
		"an infinite speed":          ends(strings.Replace(evEnd, `"usage":{`, `"timings":{"per_second":-Infinity},"usage":{`, 1)),
		"a stream called a page":     raw("text/html", whole),
		"a comment as data":          raw(eventStream, "data: : PROCESSING\n\n"+whole),
		"a heartbeat with the time":  raw(eventStream, strings.ReplaceAll(whole, "\n\n", "\n\nevent: heartbeat\ndata: 1764257463\n\n")),
		"a ping with a cost":         raw(eventStream, strings.ReplaceAll(whole, "\n\n", "\n\nevent: ping\ndata: {\"type\":\"ping\",\"cost\":\"0\"}\n\n")),
		"usage null at the end":      ends(strings.Replace(evEnd, `{"output_tokens":4}`, "null", 1)),
		"members of Bedrock":         raw(eventStream, strings.Replace(whole, `{"type":"message_stop"}`, `{"type":"message_stop","amazon-bedrock-invocationMetrics":{"inputTokenCount":3,"outputTokenCount":4}}`, 1)),
		"a container and context":    ends(strings.Replace(evEnd, `"usage"`, `"context_management":{"applied_edits":[]},"usage"`, 1)),
		"an index beyond any":        raw(eventStream, strings.ReplaceAll(whole, `"index":0`, `"index":1e3`)),
		"half a surrogate in the id": raw(eventStream, strings.Replace(whole, `"id":"msg_1"`, `"id":"\ud800"`, 1)),
		"members twice":              raw(eventStream, strings.Replace(whole, `"role":"assistant"`, `"role":"user","role":"assistant"`, 1)),
		"a stop of numbers":          ends(strings.Replace(evEnd, `"stop_sequence":null`, `"stop_sequence":7`, 1)),
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			res, _ := newRig(t, nil).call(t, free.ask(), reply)
			require.Equal(t, "a", res.Text)
			require.Equal(t, provider.StopClean, res.Stop)
			require.True(t, res.Usage.Known)
		})
	}
}

func TestReports_Errors(t *testing.T) {
	t.Parallel()
	status := func(code int, doc string) double.Reply {
		return double.Reply{Status: code, ContentType: "application/json", Raw: doc}
	}
	said := func(code int, kind, message string) double.Reply {
		return status(code, `{"type":"error","error":{"type":"`+kind+`","message":"`+message+`"}}`)
	}
	event := func(doc string) double.Reply { return raw(eventStream, "event: error\ndata: "+doc+"\n\n") }
	for name, tc := range map[string]struct {
		double.Reply
		code                string
		retryable, capacity bool
	}{
		"a disabled organization":   {said(400, "invalid_request_error", "This organization has been disabled."), provider.CodeCredentialRequired, false, false},
		"extra usage":               {said(429, "rate_limit_error", "Extra usage is required for long context requests."), provider.CodeQuota, false, false},
		"a balance, 403":            {said(403, "permission_error", "Your account x is suspended due to insufficient balance, please recharge your account"), provider.CodeQuota, false, false},
		"a limit, 403":              {said(403, "permission_error", "RPM limit exceeded. Please complete identity verification to lift the restriction."), provider.CodeQuota, true, true},
		"a plan, 403":               {said(403, "permission_error", "Your plan allows no requests per minute for this model."), provider.CodeCredentialRequired, false, false},
		"a member's schema":         {said(400, "invalid_request_error", "messages.1.content: value does not match schema"), provider.CodeInvalidRequest, false, false},
		"arrears":                   {said(400, "invalid_request_error", "Access denied, please make sure your account is in good standing."), provider.CodeQuota, false, false},
		"Bedrock, tokens, 400":      {status(400, `{"message":"Too many tokens, please wait before trying again."}`), provider.CodeQuota, true, true},
		"Bedrock, tokens, 429":      {status(429, `{"message":"Too many tokens, please wait before trying again."}`), provider.CodeQuota, true, true},
		"Zhipu, too long":           {status(400, `{"type":"error","error":{"type":"1261","message":"Prompt exceeds max length"}}`), provider.CodeContentTooLong, false, false},
		"vLLM, harmony":             {status(400, `{"error":{"message":"unexpected tokens remaining in message header: Some(x)","type":"BadRequestError","code":400}}`), provider.CodeUnavailable, true, false},
		"Ollama, a call":            {said(500, "api_error", "error parsing tool call: raw='{', err=unexpected end of JSON input"), provider.CodeUnavailable, true, false},
		"overloaded at once":        {event(`{"type":"error","error":{"details":null,"type":"overloaded_error","message":"Overloaded"},"request_id":"r"}`), provider.CodeUnavailable, true, true},
		"an error as a document":    {raw("application/json", `{"type":"error","error":{"type":"rate_limit_error","message":"slow"}}`), provider.CodeQuota, true, true},
		"a page of a firewall, 403": {double.Reply{Status: 403, ContentType: "text/html", Raw: "<html>Attention Required!</html>"}, provider.CodeUnavailable, false, false},
		"a region, 403":             {said(403, "forbidden", "Request not allowed: unsupported region"), provider.CodeUnavailable, false, false},
		"generation, 424":           {status(424, `{"error":"Request failed during generation: out of memory","error_type":"generation"}`), provider.CodeUnavailable, true, false},
		"too long, 502":             {said(502, "api_error", "Input is too long for requested model."), provider.CodeContentTooLong, false, false},
		"no model, in the stream":   {event(`{"error":{"message":"model 'x' not found, try pulling it first"}}`), provider.CodeModelNotSupported, false, false},
		"an hour's limit":           {double.Reply{Status: 429, ContentType: "application/json", RetryAfter: "1", Raw: `{"error":"you've reached your hourly usage limit"}`}, provider.CodeQuota, true, true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			e := newRig(t, nil).fail(t, tool.ask(), tc.Reply)
			require.Equal(t, tc.code, e.Code, "%s %s", e.Message, e.Quote)
			require.Equal(t, tc.retryable, e.Retryable, e.Message)
			require.Equal(t, tc.capacity, e.Capacity, e.Message)
		})
	}
	for name, reply := range map[string]double.Reply{
		"MiniMax":   said(400, "api_error", "input new_sensitive (1026)"),
		"Portkey":   status(446, `{"error":{"message":"The guardrail checks defined in the config failed.","type":"hooks_failed"}}`),
		"Anthropic": said(400, "invalid_request_error", "Output blocked by content filtering policy"),
		"streamed":  event(`{"type":"error","error":{"type":"invalid_request_error","message":"Output blocked by content filtering policy"}}`),
	} {
		res, _ := newRig(t, nil).call(t, free.ask(), reply)
		require.Equal(t, provider.StopRefused, res.Stop, name)
	}
}
