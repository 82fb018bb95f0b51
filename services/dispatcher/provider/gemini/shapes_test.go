package gemini_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"waybill.dev/waybill/services/dispatcher/provider"
	double "waybill.dev/waybill/test/double/gemini"
)

// served is a response without status, byte for byte.
func served(label, body string) double.Reply { return double.Reply{ContentType: label, Raw: body} }

const eventStream = "text/event-stream"

// The answers of gateways that deviate from the vendor's API are the answers that they mean.
func TestCall_ReadsTheAnswersOfServers(t *testing.T) {
	t.Parallel()
	const (
		counts = `"usageMetadata":{"promptTokenCount":8,"candidatesTokenCount":9,"totalTokenCount":17}`
		first  = `{"candidates":[{"content":{"role":"model","parts":[{"text":"on"}]},"index":0}]}`
		last   = `{"candidates":[{"content":{"role":"model","parts":[{"text":"e"}]},"finishReason":"STOP","index":0}],` + counts + `}`
	)
	whole := "data: " + first + "\r\n\r\ndata: " + last + "\r\n\r\n"
	document := `{"candidates":[{"content":{"parts":[{"text":"one"}]},"finishReason":"STOP"}],` + counts + `}`
	for name, reply := range map[string]double.Reply{
		"plain":                    served(eventStream, whole),
		"single line feeds":        served(eventStream, strings.ReplaceAll(whole, "\r\n", "\n")),
		"a byte order mark":        served(eventStream, "\ufeff"+whole),
		"comments":                 served(eventStream, ": ping\n\n"+strings.ReplaceAll(whole, "\r\n\r\n", "\r\n\r\n: ping\r\n\r\n")),
		"empty data":               served(eventStream, strings.ReplaceAll(whole, "\r\n\r\n", "\r\n\r\ndata: \r\n\r\n")),
		"names and ids":            served(eventStream, strings.ReplaceAll(whole, "data: ", "event: message\nid: 7\ndata: ")),
		"no space after the colon": served(eventStream, strings.ReplaceAll(whole, "data: ", "data:")),
		"no empty line at the end": served(eventStream, strings.TrimRight(whole, "\r\n")),
		"[DONE] at the end":        served(eventStream, whole+"data: [DONE]\n\n"),
		"no label":                 served("-", whole),
		"text/plain":               served("text/plain; charset=utf-8", whole),
		"a stream called JSON":     served("application/json", whole),
		"no index":                 served(eventStream, strings.ReplaceAll(whole, `,"index":0`, "")),
		"error null":               served(eventStream, strings.ReplaceAll(whole, `{"candidates"`, `{"error":null,"candidates"`)),
		"usage before the end":     served(eventStream, "data: {"+counts+"}\n\n"+strings.Replace(whole, ","+counts, "", 1)),
		"usage after the end":      served(eventStream, strings.Replace(whole, ","+counts, "", 1)+"data: {"+counts+"}\n\n"),
		"usage that grows":         served(eventStream, strings.Replace(whole, `"index":0}]}`, `"index":0}],"usageMetadata":{"promptTokenCount":8,"candidatesTokenCount":1,"totalTokenCount":9}}`, 1)),
		"an array, as without sse": served("application/json", "["+first+"\n,\r\n"+last+"\n]"),
		"a document":               served("application/json", document),
		"on many lines":            served("application/json", strings.ReplaceAll(document, ",", ",\n ")),
		"a document as a stream":   served(eventStream, document),
		"a line for each piece":    served("application/x-ndjson", first+"\n"+last+"\n"),
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			res, _ := newRig(t, nil).call(t, ask(), reply)
			require.Equal(t, "one", res.Text)
			require.Equal(t, provider.StopClean, res.Stop)
			require.Equal(t, provider.Usage{InputTokens: 8, OutputTokens: 9, TotalTokens: 17, Known: true}, res.Usage)
		})
	}
	res, _ := newRig(t, nil).call(t, ask(), served(eventStream, strings.Replace(whole, ","+counts, "", 1)))
	require.Equal(t, provider.Usage{}, res.Usage, "what is not reported is unknown")
}

// An error is what it says and its status together, whatever its form.
func TestCall_ClassifiesTheErrorsOfServers(t *testing.T) {
	t.Parallel()
	begun := `data: {"candidates":[{"content":{"parts":[{"text":"on"}]}}]}` + "\n\n"
	event := func(doc string) double.Reply { return served(eventStream, begun+"data: "+doc+"\n\n") }
	status := func(code int, doc string) double.Reply {
		return double.Reply{Status: code, ContentType: "application/json", Raw: doc}
	}
	for name, tc := range map[string]struct {
		reply     double.Reply
		code      string
		retryable bool
		quote     string
	}{
		"the vendor's":          {status(400, `{"error":{"code":400,"message":"odd","status":"INVALID_ARGUMENT"}}`), provider.CodeInvalidRequest, false, "odd"},
		"a string":              {status(400, `{"error":"odd"}`), provider.CodeInvalidRequest, false, "odd"},
		"a number":              {status(400, `{"error":7}`), provider.CodeInvalidRequest, false, ""},
		"a list":                {status(429, `[{"error":{"code":429,"message":"slow","status":"RESOURCE_EXHAUSTED"}}]`), provider.CodeQuota, true, "slow"},
		"an empty list":         {status(400, `[]`), provider.CodeInvalidRequest, false, ""},
		"a message":             {status(404, `{"message":"no route"}`), provider.CodeModelNotSupported, false, "no route"},
		"text":                  {status(500, "boom"), provider.CodeUnavailable, true, "boom"},
		"null":                  {status(503, "null"), provider.CodeUnavailable, true, ""},
		"a stream's":            {event(`{"error":{"code":429,"message":"slow","status":"RESOURCE_EXHAUSTED"}}`), provider.CodeQuota, true, "slow"},
		"a string in a stream":  {event(`{"error":"boom"}`), provider.CodeUnavailable, true, "boom"},
		"a number in a stream":  {event(`{"error":7}`), provider.CodeUnavailable, true, ""},
		"a list in a stream":    {event(`{"error":[{"code":429,"message":"slow"}]}`), provider.CodeQuota, true, "slow"},
		"true in a stream":      {event(`{"error":true,"message":"boom"}`), provider.CodeUnavailable, true, "boom"},
		"a document, 200":       {served("application/json", `{"error":{"code":503,"message":"busy","status":"UNAVAILABLE"}}`), provider.CodeUnavailable, true, "busy"},
		"a listed one, 200":     {served("application/json", `[{"error":{"code":429,"message":"slow","status":"RESOURCE_EXHAUSTED"}}]`), provider.CodeQuota, true, "slow"},
		"a string, 200":         {served("application/json", `{"error":"boom"}`), provider.CodeUnavailable, true, "boom"},
		"another service":       {served("application/json", `{"status":"ok"}`), provider.CodeUnavailable, false, ""},
		"a page, 200":           {served("text/html", "<html></html>"), provider.CodeUnavailable, false, ""},
		"garbage":               {served(eventStream, begun+"data: {\"candi\n\n"), provider.CodeUnavailable, true, ""},
		"cut off":               {served(eventStream, begun), provider.CodeUnavailable, true, ""},
		"too long in a stream":  {event(`{"error":{"code":400,"message":"The input token count exceeds the maximum","status":"INVALID_ARGUMENT"}}`), provider.CodeContentTooLong, false, "The input token count exceeds the maximum"},
		"a schema in a stream":  {event(`{"error":{"code":400,"message":"The specified schema produces too many states","status":"INVALID_ARGUMENT"}}`), provider.CodeSchemaInvalid, false, "The specified schema produces too many states"},
		"no form in a document": {status(400, `{"detail":"responseJsonSchema: unknown field in schema"}`), provider.CodeSchemaInvalid, false, "responseJsonSchema: unknown field in schema"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			e := newRig(t, nil).fail(t, askVia(provider.ViaFormat), tc.reply)
			require.Equal(t, tc.code, e.Code, e.Message)
			require.Equal(t, tc.retryable, e.Retryable, e.Message)
			require.Equal(t, tc.quote, e.Quote)
			require.Equal(t, tc.reply.Status, e.Status)
			require.NotContains(t, e.Message, "could not be reached")
		})
	}
}
