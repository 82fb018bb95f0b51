package gemini_test

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"waybill.dev/waybill/services/dispatcher/provider"
	double "waybill.dev/waybill/test/double/gemini"
)

// Errors of servers with Google's interface in further words, by what follows from them.
func TestReports_ErrorsByTheirMeaning(t *testing.T) {
	t.Parallel()
	vendor := func(code int, kind, message string) double.Reply {
		return double.Reply{Status: code, ContentType: "application/json", Raw: fmt.Sprintf(`{"error":{"code":%d,"message":%q,"status":%q}}`, code, message, kind)}
	}
	const bad = "INVALID_ARGUMENT"
	for name, tc := range map[string]struct {
		double.Reply
		code                string
		retryable, capacity bool
	}{
		"a token count":         {vendor(400, bad, "The input token count (1200000) exceeds the maximum number of tokens allowed (1048576)."), provider.CodeContentTooLong, false, false},
		"a token count, Vertex": {vendor(400, bad, "Unable to submit request because the input token count is 140000 but model only supports up to 131072. Reduce the input token count and try again."), provider.CodeContentTooLong, false, false},
		"a payload":             {vendor(400, bad, "Request payload size exceeds the limit: 20971520 bytes."), provider.CodeContentTooLong, false, false},
		"states":                {vendor(400, bad, "The specified schema produces a constraint that has too many states for serving."), provider.CodeSchemaInvalid, false, false},
		"a keyword":             {vendor(400, bad, `Invalid JSON payload received. Unknown name "additionalProperties" at 'generation_config.response_schema': Cannot find field.`), provider.CodeSchemaInvalid, false, false},
		"tools and JSON":        {vendor(400, bad, "Function calling with a response mime type: 'application/json' is unsupported"), provider.CodeSchemaInvalid, false, false},
		"no JSON mode":          {vendor(400, bad, "JSON mode is not enabled for this model"), provider.CodeSchemaInvalid, false, false},
		"no functions":          {vendor(400, bad, "Function calling is not enabled for this model"), provider.CodeSchemaInvalid, false, false},
		"a key":                 {vendor(400, bad, "API key not valid. Please pass a valid API key."), provider.CodeCredentialRequired, false, false},
		"an expired key":        {vendor(400, bad, "API key expired. Please renew the API key."), provider.CodeCredentialRequired, false, false},
		"no key":                {vendor(403, "PERMISSION_DENIED", "Method doesn't allow unregistered callers (callers without established identity). Please use API Key or other form of API consumer identity to call this API."), provider.CodeCredentialRequired, false, false},
		"an API that is off":    {vendor(403, "PERMISSION_DENIED", "Generative Language API has not been used in project 1 before or it is disabled."), provider.CodeCredentialRequired, false, false},
		"no model":              {vendor(404, "NOT_FOUND", "models/gemini-9 is not found for API version v1beta, or is not supported for generateContent."), provider.CodeModelNotSupported, false, false},
		"a country":             {vendor(400, "FAILED_PRECONDITION", "User location is not supported for the API use."), provider.CodeUnavailable, false, false},
		"an internal failure":   {vendor(500, "INTERNAL", "An internal error has occurred. Please retry or report in https://developers.generativeai.google/guide/troubleshooting"), provider.CodeUnavailable, true, false},
		"a deadline":            {vendor(504, "DEADLINE_EXCEEDED", "The request timed out. Please try again."), provider.CodeUnavailable, true, false},
		"overloaded":            {vendor(503, "UNAVAILABLE", "The model is overloaded. Please try again later."), provider.CodeUnavailable, true, true},
		"retired, 410":          {double.Reply{Status: 410, ContentType: "text/html", Raw: "<html>"}, provider.CodeModelNotSupported, false, false},
		"a page, 502":           {double.Reply{Status: 502, ContentType: "text/html", Raw: "<html>"}, provider.CodeUnavailable, true, false},
		"a limit":               {vendor(429, "RESOURCE_EXHAUSTED", "Resource exhausted. Please try again later."), provider.CodeQuota, true, true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			e := newRig(t, nil).fail(t, askVia(provider.ViaTool), tc.Reply)
			require.Equal(t, tc.code, e.Code, "%s %s", e.Message, e.Quote)
			require.Equal(t, tc.retryable, e.Retryable, e.Message)
			require.Equal(t, tc.capacity, e.Capacity, e.Message)
			require.NotContains(t, e.Message, "could not be reached")
		})
	}
}

// Usage of servers with Google's interface: what is missing is unknown, and thoughts count as output.
func TestReports_Usage(t *testing.T) {
	t.Parallel()
	for counts, want := range map[string]provider.Usage{
		`{}`:   {},
		`null`: {},
		`{"promptTokenCount":8,"candidatesTokenCount":2,"thoughtsTokenCount":5,"totalTokenCount":15}`:         {InputTokens: 8, OutputTokens: 7, TotalTokens: 15, ReasoningTokens: new(5), Known: true},
		`{"promptTokenCount":8,"candidatesTokenCount":2,"cachedContentTokenCount":6,"totalTokenCount":10}`:    {InputTokens: 8, OutputTokens: 2, CacheReadTokens: 6, TotalTokens: 10, Known: true},
		`{"promptTokenCount":"8","candidatesTokenCount":"2","totalTokenCount":"10"}`:                          {InputTokens: 8, OutputTokens: 2, TotalTokens: 10, Known: true},
		`{"promptTokenCount":8,"candidatesTokenCount":2,"toolUsePromptTokenCount":null,"totalTokenCount":10}`: {InputTokens: 8, OutputTokens: 2, TotalTokens: 10, Known: true},
	} {
		body := `data: {"candidates":[{"content":{"role":"model","parts":[{"text":"a"}]},"finishReason":"STOP"}],"usageMetadata":` + counts + "}\n\n"
		res, _ := newRig(t, nil).call(t, ask(), served(eventStream, body))
		require.Equal(t, want, res.Usage, counts)
	}
}
