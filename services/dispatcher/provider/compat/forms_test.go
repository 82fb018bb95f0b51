package compat_test

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"waybill.dev/waybill/services/dispatcher/provider"
	"waybill.dev/waybill/services/dispatcher/provider/compat"
)

// served is the response of a server, byte for byte.
type served struct {
	status int    // 0: 200
	label  string // the Content-Type; "-" for none, empty for a stream
	body   string
	header map[string]string
}

// callServed calls a server with one response, for an answer with a schema.
func callServed(t *testing.T, s served, via provider.SchemaVia) (provider.Result, error) {
	t.Helper()
	req := ask()
	req.Schema, req.SchemaName, req.Via = []byte(`{"type":"object"}`), "answer", via
	return s.call(t, compat.Config{}, req, nil)
}

// call calls a server with one response.
func (s served) call(
	t *testing.T, cfg compat.Config, req provider.Request, emit func(provider.Delta) error,
) (provider.Result, error) {
	t.Helper()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		switch s.label {
		case "-":
			w.Header()["Content-Type"] = nil
		case "":
			w.Header().Set("Content-Type", "text/event-stream")
		default:
			w.Header().Set("Content-Type", s.label)
		}
		for name, value := range s.header {
			w.Header().Set(name, value)
		}
		if s.status != 0 {
			w.WriteHeader(s.status)
		}
		_, _ = w.Write([]byte(s.body))
	}))
	t.Cleanup(server.Close)
	cfg.BaseURL = server.URL
	p, err := compat.New(cfg)
	require.NoError(t, err)
	t.Cleanup(p.Close)
	return p.Call(t.Context(), req, emit)
}

// delta is a chunk with a delta, and more members of its choice.
func delta(content, more string) string {
	return fmt.Sprintf(`data: {"choices":[{"index":0,"delta":{"content":%s}%s}]}`+"\n\n", content, more)
}

const doneEvent = "data: [DONE]\n\n"

// The answers of servers that deviate from OpenAI's API are the answers that they mean.
func TestCall_ReadsTheAnswersOfServers(t *testing.T) {
	t.Parallel()
	const want = `{"title":"Call 😀","urgent":true}`
	whole := delta(`"{\"title\":\"Call 😀\",\"urgent\":true}"`, `,"finish_reason":"stop"`)
	open := delta(`"{\"title\":\"Call 😀\",\"urgent\":true}"`, `,"finish_reason":null`)
	stop := `data: {"choices":[{"index":0,"delta":{},"finish_reason":"stop"}]}` + "\n\n"
	tool := func(index int, more string) string {
		return fmt.Sprintf(`data: {"choices":[{"index":0,"delta":{"tool_calls":[{"index":%d%s}]}}]}`+"\n\n", index, more)
	}
	toolStop := `data: {"choices":[{"index":0,"delta":{},"finish_reason":"tool_calls"}]}` + "\n\n"
	completion := `{"id":"c","object":"chat.completion","model":"m","choices":[{"index":0,"message":{"role":"assistant","content":"{\"title\":\"Call 😀\",\"urgent\":true}"},"finish_reason":"stop"}],"usage":{"prompt_tokens":10,"completion_tokens":5,"total_tokens":15}}`
	for name, tc := range map[string]struct {
		served
		via  provider.SchemaVia
		stop provider.StopClass
	}{
		"plain":                       {served: served{body: whole + doneEvent}},
		"content as parts":            {served: served{body: delta(`[{"type":"text","text":"{\"title\":"}]`, "") + delta(`[{"type":"text","text":"\"Call 😀\""},{"type":"text","text":",\"urgent\":true}"}]`, "") + stop + doneEvent}},
		"thinking as a part":          {served: served{body: delta(`[{"type":"thinking","thinking":[{"type":"text","text":"hm"}]}]`, "") + whole + doneEvent}},
		"reasoning in its own member": {served: served{body: `data: {"choices":[{"index":0,"delta":{"reasoning_content":"hm","content":null}}]}` + "\n\n" + whole + doneEvent}},
		"no finish reason":            {served: served{body: open + doneEvent}},
		"an empty finish reason":      {served: served{body: delta(`"{\"title\":\"Call 😀\",\"urgent\":true}"`, `,"finish_reason":""`) + doneEvent}},
		"another word for stop":       {served: served{body: delta(`"{\"title\":\"Call 😀\",\"urgent\":true}"`, `,"finish_reason":"eos"`) + doneEvent}},
		"a word in capitals":          {served: served{body: delta(`"{\"title\":\"Call 😀\",\"urgent\":true}"`, `,"finish_reason":"STOP"`) + doneEvent}},
		"cut at a limit, max_tokens": {
			served: served{body: delta(`"{\"title\":\"Call 😀\",\"urgent\":true}"`, `,"finish_reason":"max_tokens"`) + doneEvent},
			stop:   provider.StopTruncated,
		},
		"cut at a limit, model_length": {
			served: served{body: delta(`"{\"title\":\"Call 😀\",\"urgent\":true}"`, `,"finish_reason":"model_length"`) + doneEvent},
			stop:   provider.StopTruncated,
		},
		"another index":            {served: served{body: strings.ReplaceAll(whole, `"index":0`, `"index":1`) + doneEvent}},
		"no index":                 {served: served{body: strings.ReplaceAll(whole, `"index":0,`, ``) + doneEvent}},
		"a split character":        {served: served{body: delta(`"{\"title\":\"Call \ud83d"`, "") + delta(`"\ude00\",\"urgent\":true}"`, "") + stop + doneEvent}},
		"an escaped character":     {served: served{body: delta(`"{\"title\":\"Call \ud83d\ude00\",\"urgent\":true}"`, "") + stop + doneEvent}},
		"keep-alive events":        {served: served{body: "data: \n\ndata:\n\n" + open + "data: \n\n" + stop + doneEvent}},
		"comments":                 {served: served{body: ": OPENROUTER PROCESSING\n\n" + open + ": ping\n\n" + stop + doneEvent}},
		"a byte order mark":        {served: served{body: "\ufeff" + whole + doneEvent}},
		"carriage returns":         {served: served{body: strings.ReplaceAll(whole+doneEvent, "\n", "\r\n")}},
		"no empty line at the end": {served: served{body: strings.TrimRight(open+stop, "\n")}},
		"no [DONE]":                {served: served{body: whole}},
		"no Content-Type":          {served: served{label: "-", body: whole + doneEvent}},
		"text/plain":               {served: served{label: "text/plain; charset=utf-8", body: whole + doneEvent}},
		"octets":                   {served: served{label: "application/octet-stream", body: whole + doneEvent}},
		"a stream called JSON":     {served: served{label: "application/json", body: whole + doneEvent}},
		"no stream":                {served: served{label: "application/json", body: completion}},
		"no stream, on many lines": {served: served{
			label: "application/json",
			body:  strings.ReplaceAll(completion, `"choices":`, "\n  \"choices\":\n "),
		}},
		"no stream, labelled as one": {served: served{body: completion}},
		"no stream, no reason": {served: served{
			label: "application/json",
			body:  strings.Replace(completion, `"stop"`, "null", 1),
		}},
		"a line for each chunk": {served: served{
			label: "application/x-ndjson",
			body:  strings.ReplaceAll(strings.ReplaceAll(open+stop, "data: ", ""), "\n\n", "\n"),
		}},
		"a growing message":     {served: served{body: strings.Replace(whole, `"finish_reason"`, `"message":{"role":"assistant","content":"{}"},"finish_reason"`, 1) + doneEvent}},
		"filters of Azure":      {served: served{body: `data: {"choices":[],"prompt_filter_results":[{"prompt_index":0}]}` + "\n\n" + open + `data: {"choices":[{"index":0,"content_filter_results":{},"finish_reason":null}]}` + "\n\n" + stop + doneEvent}},
		"junk after the reason": {served: served{body: whole + `data: {"choi` + "\n\n"}},
		"a forced tool": {
			served: served{body: tool(0, `,"id":"c","function":{"name":"answer","arguments":"{\"title\":\"Call 😀\","}`) + tool(0, `,"function":{"arguments":"\"urgent\":true}"}`) + toolStop + doneEvent},
			via:    provider.ViaTool,
		},
		"a tool of index 1": {
			served: served{body: tool(1, `,"id":"c","function":{"name":"answer","arguments":"{\"title\":\"Call 😀\","}`) + tool(1, `,"function":{"arguments":"\"urgent\":true}"}`) + toolStop + doneEvent},
			via:    provider.ViaTool,
		},
		"two tools of index 0": {
			served: served{body: tool(0, `,"id":"c","function":{"name":"answer","arguments":"{\"title\":\"Call 😀\",\"urgent\":true}"}`) + tool(0, `,"id":"d","function":{"name":"answer","arguments":"{}"}`) + stop + doneEvent},
			via:    provider.ViaTool,
			stop:   provider.StopUnknown,
		},
		"a tool's name repeated": {
			served: served{body: tool(0, `,"id":"c","function":{"name":"answer","arguments":"{\"title\":\"Call 😀\","}`) + tool(0, `,"id":"c","function":{"name":"answer","arguments":"\"urgent\":true}"}`) + toolStop + doneEvent},
			via:    provider.ViaTool,
		},
		"a tool's split character": {
			served: served{body: tool(0, `,"id":"c","function":{"name":"answer","arguments":"{\"title\":\"Call \ud83d"}`) + tool(0, `,"function":{"arguments":"\ude00\",\"urgent\":true}"}`) + toolStop + doneEvent},
			via:    provider.ViaTool,
		},
		"arguments as an object": {
			served: served{body: tool(0, `,"id":"c","function":{"name":"answer","arguments":{"title":"Call 😀","urgent":true}}`) + toolStop + doneEvent},
			via:    provider.ViaTool,
		},
		"the older form of a tool": {
			served: served{body: `data: {"choices":[{"index":0,"delta":{"function_call":{"name":"answer","arguments":"{\"title\":\"Call 😀\",\"urgent\":true}"}}}]}` + "\n\n" + strings.ReplaceAll(toolStop, "tool_calls", "function_call") + doneEvent},
			via:    provider.ViaTool,
		},
		"text instead of the tool": {served: served{body: whole + doneEvent}, via: provider.ViaTool},
		"the older interface":      {served: served{body: `data: {"choices":[{"text":"{\"title\":\"Call 😀\",","finish_reason":null}]}` + "\n\n" + `data: {"choices":[{"text":"\"urgent\":true}","finish_reason":"stop"}]}` + "\n\n" + doneEvent}},
		"content as one part":      {served: served{body: delta(`{"type":"text","text":"{\"title\":\"Call 😀\",\"urgent\":true}"}`, "") + stop + doneEvent}},
		"content as output_text":   {served: served{body: delta(`[{"type":"output_text","text":"{\"title\":\"Call 😀\",\"urgent\":true}"}]`, "") + stop + doneEvent}},
		"parts with half letters":  {served: served{body: delta(`[{"type":"text","text":"{\"title\":\"Call \ud83d"}]`, "") + delta(`[{"type":"text","text":"\ude00\",\"urgent\":true}"}]`, "") + stop + doneEvent}},
		"content that was parsed":  {served: served{body: delta(`{"title":"Call 😀","urgent":true}`, "") + stop + doneEvent}},
		"null members":             {served: served{body: `data: {"choices":null,"usage":null}` + "\n\n" + `data: {"choices":[{"index":null,"delta":null,"finish_reason":null}]}` + "\n\n" + `data: {"choices":[{"delta":{"content":null,"tool_calls":null,"refusal":null,"audio":null}}]}` + "\n\n" + whole + doneEvent}},
		"a filter's word": {
			served: served{body: delta(`"{\"title\":\"Call 😀\",\"urgent\":true}"`, `,"finish_reason":"SAFETY"`) + doneEvent},
			stop:   provider.StopRefused,
		},
		"an unknown word": {
			served: served{body: delta(`"{\"title\":\"Call 😀\",\"urgent\":true}"`, `,"finish_reason":"bored"`) + doneEvent},
			stop:   provider.StopUnknown,
		},
		"a reason that is a number": {
			served: served{body: delta(`"{\"title\":\"Call 😀\",\"urgent\":true}"`, `,"finish_reason":7`) + doneEvent},
			stop:   provider.StopUnknown,
		},
		"two tools without index": {
			served: served{body: `data: {"choices":[{"delta":{"tool_calls":[{"id":"c","function":{"name":"answer","arguments":"{\"title\":\"Call 😀\",\"urgent\":true}"}},{"id":"d","function":{"name":"answer","arguments":"{}"}}]}}]}` + "\n\n" + toolStop + doneEvent},
			via:    provider.ViaTool,
			stop:   provider.StopUnknown,
		},
		"a tool in a document": {
			served: served{label: "application/json", body: `{"choices":[{"index":0,"message":{"content":null,"tool_calls":[{"id":"c","type":"function","function":{"name":"answer","arguments":"{\"title\":\"Call 😀\",\"urgent\":true}"}}]},"finish_reason":"tool_calls"}]}`},
			via:    provider.ViaTool,
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			res, err := callServed(t, tc.served, tc.via)
			require.NoError(t, err)
			require.Equal(t, want, res.Text)
			if tc.stop == "" {
				tc.stop = provider.StopClean
			}
			require.Equal(t, tc.stop, res.Stop)
		})
	}
}

// Usage is read wherever servers put it. Without it, it is unknown, and not 0.
func TestCall_FindsTheUsage(t *testing.T) {
	t.Parallel()
	const usage = `{"prompt_tokens":10,"completion_tokens":5,"total_tokens":15}`
	whole := delta(`"a"`, `,"finish_reason":"stop"`)
	for name, tc := range map[string]struct {
		body  string
		known bool
	}{
		"in a chunk of its own": {whole + `data: {"choices":[],"usage":` + usage + "}\n\n" + doneEvent, true},
		"in the last choice":    {delta(`"a"`, `,"finish_reason":"stop","usage":`+usage) + doneEvent, true},
		"in x_groq": {
			strings.TrimSuffix(whole, "}\n\n") + `,"x_groq":{"usage":` + usage + "}}\n\n" + doneEvent,
			true,
		},
		"as strings": {
			whole + `data: {"usage":{"prompt_tokens":"10","completion_tokens":"5","total_tokens":"15"}}` + "\n\n" + doneEvent,
			true,
		},
		"as fractions": {
			whole + `data: {"usage":{"prompt_tokens":10.0,"completion_tokens":5.0,"total_tokens":15.0}}` + "\n\n" + doneEvent,
			true,
		},
		"in each chunk": {
			strings.TrimSuffix(whole, "}\n\n") + `,"usage":` + usage + "}\n\n" + `data: {"choices":[],"usage":` + usage + "}\n\n" + doneEvent,
			true,
		},
		"in a document":     {`{"choices":[{"message":{"content":"a"},"finish_reason":"stop"}],"usage":` + usage + `}`, true},
		"after [DONE]":      {whole + doneEvent + `data: {"choices":[],"usage":` + usage + "}\n\n", true},
		"some of it, later": {whole + doneEvent + ": ping\n\n" + `data: {"usage":` + usage + `}`, true},
		"growing": {
			strings.TrimSuffix(whole, "}\n\n") + `,"usage":{"prompt_tokens":10,"completion_tokens":1,"total_tokens":11}}` + "\n\n" + `data: {"choices":[],"usage":` + usage + "}\n\n" + doneEvent,
			true,
		},
		"before the text":    {`data: {"usage":` + usage + "}\n\n" + whole + doneEvent, true},
		"by other names":     {whole + `data: {"usage":{"input_tokens":10,"output_tokens":5,"total_tokens":15}}` + "\n\n" + doneEvent, true},
		"a list":             {whole + `data: {"usage":[10,5]}` + "\n\n" + doneEvent, false},
		"junk after the end": {whole + doneEvent + "data: {\n\n", false},
		"nowhere":            {whole + doneEvent, false},
		"null":               {whole + `data: {"choices":[],"usage":null}` + "\n\n" + doneEvent, false},
		"empty":              {whole + `data: {"choices":[],"usage":{}}` + "\n\n" + doneEvent, false},
		"of no numbers":      {whole + `data: {"choices":[],"usage":{"prompt_tokens":"many"}}` + "\n\n" + doneEvent, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			res, err := callServed(t, served{body: tc.body}, provider.ViaFormat)
			require.NoError(t, err)
			require.Equal(t, tc.known, res.Usage.Known)
			if tc.known {
				require.Equal(t, provider.Usage{InputTokens: 10, OutputTokens: 5, TotalTokens: 15, Known: true}, res.Usage)
			}
		})
	}
}

// An error is what it says and its status together, whatever its form.
func TestCall_ClassifiesTheErrorsOfServers(t *testing.T) {
	t.Parallel()
	stream := func(doc string) served { return served{body: "data: " + doc + "\n\n" + doneEvent} }
	status := func(code int, doc string) served { return served{status: code, label: "application/json", body: doc} }
	for name, tc := range map[string]struct {
		served
		code      string
		retryable bool
		quote     string
	}{
		"a string, 400": {
			status(400, `{"error":"something is wrong here"}`), provider.CodeInvalidRequest, false,
			"something is wrong here",
		},
		"a string, 404": {
			status(404, `{"error":"model 'm' not found, try pulling it first"}`),
			provider.CodeModelNotSupported, false, "model 'm' not found, try pulling it first",
		},
		"a string, 422": {status(422, `{"error":"no"}`), provider.CodeInvalidRequest, false, "no"},
		"a string, 503": {status(503, `{"error":"no"}`), provider.CodeUnavailable, true, "no"},
		"text, 500": {
			served{status: 500, label: "text/plain", body: "CUDA out of memory\n"},
			provider.CodeUnavailable, true, "CUDA out of memory",
		},
		"a page, 502": {
			served{status: 502, label: "text/html", body: "<html>Bad Gateway</html>"},
			provider.CodeUnavailable, true, "<html>Bad Gateway</html>",
		},
		"empty, 500": {served{status: 500, label: "-"}, provider.CodeUnavailable, true, ""},
		"a detail": {
			status(422, `{"detail":[{"loc":["body"],"msg":"field required","type":"missing"}]}`),
			provider.CodeInvalidRequest, false, "field required",
		},
		"a list": {
			status(400, `[{"error":{"code":400,"message":"bad"}}]`), provider.CodeInvalidRequest, false,
			"bad",
		},
		"members at the top": {
			status(400, `{"object":"error","message":"bad","type":"BadRequestError","code":400}`),
			provider.CodeInvalidRequest, false, "bad",
		},
		"too long, llama.cpp": {
			status(400, `{"error":{"code":400,"message":"the request exceeds the available context size","type":"exceed_context_size_error","n_ctx":4096}}`),
			provider.CodeContentTooLong, false, "the request exceeds the available context size",
		},
		"too long, vLLM": {
			status(400, `{"object":"error","message":"This model's maximum context length is 4096 tokens.","code":400}`),
			provider.CodeContentTooLong, false, "This model's maximum context length is 4096 tokens.",
		},
		"too long, Mistral": {
			status(422, `{"message":"Prompt contains 40000 tokens, too many tokens for the model"}`),
			provider.CodeContentTooLong, false,
			"Prompt contains 40000 tokens, too many tokens for the model",
		},
		"too long, in a stream": {
			stream(`{"error":{"message":"the request exceeds the available context size","type":"exceed_context_size_error","code":400}}`),
			provider.CodeContentTooLong, false, "the request exceeds the available context size",
		},
		"no schemas, DeepSeek": {
			status(400, `{"error":{"message":"This response_format type is unavailable now","type":"invalid_request_error","param":null,"code":"invalid_request_error"}}`),
			provider.CodeSchemaInvalid, false, "This response_format type is unavailable now",
		},
		"no schemas, Groq": {
			status(400, "{\"error\":{\"message\":\"This model does not support response format `json_schema`. See supported models\",\"type\":\"invalid_request_error\"}}"),
			provider.CodeSchemaInvalid, false,
			"This model does not support response format `json_schema`. See supported models",
		},
		"a grammar": {
			status(400, `{"error":{"code":400,"message":"failed to parse grammar","type":"invalid_request_error"}}`),
			provider.CodeSchemaInvalid, false, "failed to parse grammar",
		},
		"a bad generation": {
			status(400, `{"error":{"message":"Failed to generate JSON. Please adjust your prompt.","type":"invalid_request_error","code":"json_validate_failed","failed_generation":"{"}}`),
			provider.CodeUnavailable, true, "Failed to generate JSON. Please adjust your prompt.",
		},
		"a loading model": {
			status(503, `{"error":{"code":503,"message":"Loading model","type":"unavailable_error"}}`),
			provider.CodeUnavailable, true, "Loading model",
		},
		"a rate limit": {
			status(429, `{"message":"Requests rate limit exceeded"}`), provider.CodeQuota, true,
			"Requests rate limit exceeded",
		},
		"a rate limit in a stream": {
			stream(`{"error":{"message":"Rate limit reached","code":"rate_limit_exceeded"}}`),
			provider.CodeQuota, true, "Rate limit reached",
		},
		"an empty account": {
			status(429, `{"error":{"message":"You exceeded your current quota","code":"insufficient_quota"}}`),
			provider.CodeQuota, false, "You exceeded your current quota",
		},
		"an empty account, 402": {
			status(402, `{"error":{"message":"Insufficient Balance","code":"invalid_request_error"}}`),
			provider.CodeQuota, false, "Insufficient Balance",
		},
		"no key": {
			status(401, `{"error":"Unauthorized"}`), provider.CodeCredentialRequired, false, "Unauthorized",
		},
		"no key, in a stream": {
			stream(`{"error":{"message":"Incorrect API key provided","code":"invalid_api_key"}}`),
			provider.CodeCredentialRequired, false, "Incorrect API key provided",
		},
		"no such model, 400": {
			status(400, `{"error":{"message":"invalid model: m","type":"invalid_request_error"}}`),
			provider.CodeModelNotSupported, false, "invalid model: m",
		},
		"overloaded, in a stream": {
			stream(`{"error":{"message":"The server is overloaded","type":"server_error"}}`),
			provider.CodeUnavailable, true, "The server is overloaded",
		},
		"a word for a failure":   {served{body: delta(`"{"`, `,"finish_reason":"error"`) + doneEvent}, provider.CodeUnavailable, true, ""},
		"a word for no capacity": {served{body: delta(`"{"`, `,"finish_reason":"insufficient_system_resource"`) + doneEvent}, provider.CodeUnavailable, true, ""},
		"an error with a choice": {
			stream(`{"error":{"code":502,"message":"Provider disconnected"},"choices":[{"delta":{"content":""},"finish_reason":"error"}]}`),
			provider.CodeUnavailable, true, "Provider disconnected",
		},
		"a number in a stream":  {stream(`{"error":7}`), provider.CodeUnavailable, true, ""},
		"a list in a stream":    {stream(`{"error":[{"message":"boom"}]}`), provider.CodeUnavailable, true, "boom"},
		"a list as the event":   {stream(`[{"error":{"message":"boom"}}]`), provider.CodeUnavailable, true, "boom"},
		"a status in the error": {stream(`{"error":{"status":429,"message":"slow"}}`), provider.CodeQuota, true, "slow"},
		"a string in a stream":  {stream(`{"error":"boom"}`), provider.CodeUnavailable, true, "boom"},
		"vLLM's error in a stream": {
			stream(`{"object":"error","message":"boom","type":"InternalServerError","code":500}`),
			provider.CodeUnavailable, true, "boom",
		},
		"an error document, 200": {
			served{label: "application/json", body: `{"error":{"message":"boom"}}`},
			provider.CodeUnavailable, true, "boom",
		},
		"an error event": {
			served{body: "event: error\ndata: {\"error\":{\"message\":\"boom\"}}\n\n"},
			provider.CodeUnavailable, true, "boom",
		},
		"a long message": {
			status(400, `{"error":{"message":"`+strings.Repeat("ä", 1025)+`"}}`),
			provider.CodeInvalidRequest, false, "",
		},
		"another service": {
			served{label: "application/json", body: `{"status":"ok"}`},
			provider.CodeUnavailable, false, "",
		},
		"a page":               {served{label: "text/html", body: "<html></html>"}, provider.CodeUnavailable, false, ""},
		"a page without label": {served{label: "-", body: "<html></html>"}, provider.CodeUnavailable, false, ""},
		"half a document": {
			served{label: "application/json", body: `{"choices":[{"message":{"content":"a`},
			provider.CodeUnavailable, true, "",
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, err := callServed(t, tc.served, provider.ViaFormat)
			e, ok := provider.As(err)
			require.True(t, ok, err)
			require.Equal(t, tc.code, e.Code, e.Message)
			require.Equal(t, tc.retryable, e.Retryable)
			require.Equal(t, tc.quote, e.Quote)
			require.Equal(t, tc.status, e.Status)
			if tc.status != 0 || strings.Contains(name, "stream") {
				require.NotContains(t, e.Message, "could not be reached")
			}
		})
	}
}

// The text of a server is not in the message, and the key of the call is not in its quote.
func TestCall_QuotesNoKey(t *testing.T) {
	t.Parallel()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.WriteHeader(http.StatusUnauthorized)
		_, _ = fmt.Fprintf(w, `{"error":{"message":"wrong key: %s"}}`, strings.TrimPrefix(r.Header.Get("Authorization"), "Bearer "))
	}))
	t.Cleanup(server.Close)
	p, err := compat.New(compat.Config{BaseURL: server.URL})
	require.NoError(t, err)
	t.Cleanup(p.Close)
	req := ask()
	req.Credential = "sk-of-a-tenant"
	_, err = p.Call(t.Context(), req, nil)
	e, ok := provider.As(err)
	require.True(t, ok)
	require.Equal(t, "wrong key: [REDACTED]", e.Quote)
	require.NotContains(t, e.Error(), "wrong key")
}
