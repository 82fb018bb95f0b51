package gemini_test

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"waybill.dev/waybill/protocol/strictjson"
	"waybill.dev/waybill/services/dispatcher/provider"
	double "waybill.dev/waybill/test/double/gemini"
)

// Gateways that repeat the text so far, models that write the call of their function into the text, and other
// words for the end.
func TestServers_Answers(t *testing.T) {
	t.Parallel()
	const wanted = `{"title":"Call it","urgent":true}`
	texts := func(list ...string) double.Reply {
		var body strings.Builder
		for _, s := range list {
			body.WriteString(`data: {"candidates":[{"content":{"role":"model","parts":[{"text":` + string(strictjson.Render(s)) + `}]}}]}` + "\n\n")
		}
		return served(eventStream, body.String()+`data: {"candidates":[{"finishReason":"STOP"}]}`+"\n\n")
	}
	ends := func(reason string) double.Reply {
		r := texts(wanted)
		r.Raw = strings.Replace(r.Raw, "STOP", reason, 1)
		return r
	}
	for name, tc := range map[string]struct {
		double.Reply
		via  provider.SchemaVia
		stop provider.StopClass
	}{
		"the text so far":        {Reply: texts(`{"title":"Call`, `{"title":"Call it",`, wanted)},
		"all of it at the end":   {Reply: texts(`{"title":"Call`, ` it",`, `"urgent":true}`, wanted)},
		"the whole twice":        {Reply: texts(wanted, wanted)},
		"Gemma, tool code":       {Reply: texts("```tool_code\nprint(default_api.answer(title=\"Call it\", urgent=True))\n```"), via: provider.ViaTool},
		"Gemma 4":                {Reply: texts(`<|tool_call>call:answer{title:<|"|>Call it<|"|>,urgent:true}<tool_call|>`), via: provider.ViaTool},
		"Hermes":                 {Reply: texts(`<tool_call>{"name":"answer","arguments":`, wanted+"}</tool_call>"), via: provider.ViaTool},
		"a filter with its name": {Reply: ends("content_filter: PROHIBITED_CONTENT"), stop: provider.StopRefused},
		"IMAGE_SAFETY":           {Reply: ends("IMAGE_SAFETY"), stop: provider.StopRefused},
		"a guardrail":            {Reply: ends("GUARDRAIL_INTERVENED"), stop: provider.StopRefused},
		"LANGUAGE":               {Reply: ends("LANGUAGE"), stop: provider.StopUnknown},
		"max_new_tokens":         {Reply: ends("max_new_tokens"), stop: provider.StopTruncated},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			res, _ := newRig(t, nil).call(t, askVia(tc.via), tc.Reply)
			require.JSONEq(t, wanted, res.Text)
			if tc.stop == "" {
				tc.stop = provider.StopClean
			}
			require.Equal(t, tc.stop, res.Stop)
		})
	}
	res, _ := newRig(t, nil).call(t, ask(), served(eventStream, `data: {"candidates":[{"content":{"parts":[{"thought":true,"text":"hm"}]},"finishReason":"STOP"}]}`+"\n\n"))
	require.True(t, res.Thought)
	require.Empty(t, res.Text)
}

// Errors of Vertex AI and of gateways, and the waits that they request.
func TestServers_Errors(t *testing.T) {
	t.Parallel()
	vendor := func(code int, kind, message string) double.Reply {
		return double.Reply{Status: code, ContentType: "application/json", Raw: `{"error":{"code":` + string(strictjson.Render(code)) + `,"message":"` + message + `","status":"` + kind + `"}}`}
	}
	for name, tc := range map[string]struct {
		double.Reply
		code                string
		retryable, capacity bool
		after               time.Duration
	}{
		"resources":         {vendor(429, "RESOURCE_EXHAUSTED", "Resource exhausted. Please try again later. Please refer to https://cloud.google.com/vertex-ai/generative-ai/docs/error-code-429 for more details."), provider.CodeQuota, true, true, 0},
		"a wait in words":   {vendor(429, "RESOURCE_EXHAUSTED", "You exceeded your current quota. Please retry in 44.08s."), provider.CodeQuota, true, true, 44080 * time.Millisecond},
		"overloaded":        {vendor(503, "UNAVAILABLE", "The model is overloaded. Please try again later."), provider.CodeUnavailable, true, true, 0},
		"internal":          {vendor(500, "INTERNAL", "An internal error has occurred."), provider.CodeUnavailable, true, false, 0},
		"a deadline":        {vendor(504, "DEADLINE_EXCEEDED", "Deadline expired before operation could complete."), provider.CodeUnavailable, true, false, 0},
		"no model":          {vendor(404, "NOT_FOUND", "models/gemini-9 is not found for API version v1beta"), provider.CodeModelNotSupported, false, false, 0},
		"too many tokens":   {vendor(400, "INVALID_ARGUMENT", "The input token count (1200000) exceeds the maximum number of tokens allowed (1048576)."), provider.CodeContentTooLong, false, false, 0},
		"a payload":         {vendor(400, "INVALID_ARGUMENT", "Request payload size exceeds the limit: 20971520 bytes."), provider.CodeContentTooLong, false, false, 0},
		"a schema":          {vendor(400, "INVALID_ARGUMENT", "A schema in GenerationConfig in the request exceeds the maximum allowed nesting depth."), provider.CodeSchemaInvalid, false, false, 0},
		"no JSON mode":      {vendor(400, "INVALID_ARGUMENT", "JSON mode is not enabled for models/gemma-3-27b-it"), provider.CodeSchemaInvalid, false, false, 0},
		"no functions":      {vendor(400, "INVALID_ARGUMENT", "Function calling is not enabled for models/gemma-3-27b-it"), provider.CodeSchemaInvalid, false, false, 0},
		"a mime type":       {vendor(400, "INVALID_ARGUMENT", "Function calling with a response mime type: 'application/json' is unsupported"), provider.CodeSchemaInvalid, false, false, 0},
		"a key":             {vendor(400, "INVALID_ARGUMENT", "API key expired. Please renew the API key."), provider.CodeCredentialRequired, false, false, 0},
		"a suspended key":   {vendor(403, "PERMISSION_DENIED", "Permission denied: Consumer 'api_key:x' has been suspended."), provider.CodeCredentialRequired, false, false, 0},
		"a location":        {vendor(400, "FAILED_PRECONDITION", "User location is not supported for the API use."), provider.CodeUnavailable, false, false, 0},
		"a system text":     {vendor(400, "INVALID_ARGUMENT", "Developer instruction is not enabled for models/gemma-3-1b-it"), provider.CodeInvalidRequest, false, false, 0},
		"a thinking budget": {vendor(400, "INVALID_ARGUMENT", "The thinking budget 5 is invalid. Please choose a value between 512 and 24576."), provider.CodeInvalidRequest, false, false, 0},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			e := newRig(t, nil).fail(t, askVia(provider.ViaTool), tc.Reply)
			require.Equal(t, tc.code, e.Code, "%s %s", e.Message, e.Quote)
			require.Equal(t, tc.retryable, e.Retryable, e.Message)
			require.Equal(t, tc.capacity, e.Capacity, e.Message)
			require.Equal(t, tc.after, e.RetryAfter)
		})
	}
}
