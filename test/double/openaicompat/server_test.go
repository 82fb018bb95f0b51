package openaicompat_test

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"waybill.dev/waybill/test/double/openaicompat"
)

func TestMain(m *testing.M) {
	// The default client's idle connections do not belong to the server.
	goleak.VerifyTestMain(m, goleak.Cleanup(func(int) { http.DefaultClient.CloseIdleConnections() }))
}

func start(t *testing.T, o openaicompat.Options) *openaicompat.Server {
	t.Helper()
	s := openaicompat.New(o)
	t.Cleanup(s.Close)
	return s
}

// post sends a body as JSON.
func post(t *testing.T, s *openaicompat.Server, body string) *http.Response {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, s.URL()+"/chat/completions", strings.NewReader(body))
	require.NoError(t, err)
	req.Header.Set("Content-Type", "application/json")
	return do(t, req)
}

func do(t *testing.T, req *http.Request) *http.Response {
	t.Helper()
	res, err := http.DefaultClient.Do(req)
	require.NoError(t, err)
	t.Cleanup(func() { _ = res.Body.Close() })
	return res
}

type vendorError struct {
	Error struct {
		Message, Type string
		Param, Code   *string
	}
}

func errorOf(t *testing.T, res *http.Response) vendorError {
	t.Helper()
	require.Equal(t, "application/json", res.Header.Get("Content-Type"))
	var e vendorError
	require.NoError(t, json.NewDecoder(res.Body).Decode(&e))
	require.NotEmpty(t, e.Error.Message)
	require.NotEmpty(t, e.Error.Type)
	return e
}

// events reads a stream's data lines. The error says how the body ended.
func events(res *http.Response) ([]string, error) {
	var list []string
	lines := bufio.NewScanner(res.Body)
	for lines.Scan() {
		if data, ok := strings.CutPrefix(lines.Text(), "data: "); ok {
			list = append(list, data)
		}
	}
	return list, lines.Err()
}

func body(extra string) string {
	return `{"model":"gpt-double","messages":[{"role":"user","content":"hi"}]` + extra + `}`
}

func TestServer_StreamsChunksAsTheVendor(t *testing.T) {
	t.Parallel()
	s := start(t, openaicompat.Options{})
	s.Enqueue(openaicompat.Reply{Pieces: []string{"a", "b"}, Usage: &openaicompat.Usage{Prompt: 7, Completion: 2, Cached: 3}})
	res := post(t, s, body(`,"stream":true,"stream_options":{"include_usage":true}`))
	require.Equal(t, http.StatusOK, res.StatusCode)
	require.Equal(t, "text/event-stream", res.Header.Get("Content-Type"))
	got, err := events(res)
	require.NoError(t, err)
	const head = `{"id":"chatcmpl-double","object":"chat.completion.chunk","created":1767225600,"model":"gpt-double","choices":`
	require.Equal(t, []string{
		head + `[{"index":0,"delta":{"role":"assistant","content":""},"finish_reason":null}],"usage":null}`,
		head + `[{"index":0,"delta":{"content":"a"},"finish_reason":null}],"usage":null}`,
		head + `[{"index":0,"delta":{"content":"b"},"finish_reason":null}],"usage":null}`,
		head + `[{"index":0,"delta":{},"finish_reason":"stop"}],"usage":null}`,
		head + `[],"usage":{"prompt_tokens":7,"completion_tokens":2,"total_tokens":9,"prompt_tokens_details":{"cached_tokens":3}}}`,
		"[DONE]",
	}, got)
}

func TestServer_SendsUsageOnlyOnRequest(t *testing.T) {
	t.Parallel()
	got, err := events(post(t, start(t, openaicompat.Options{}), body(`,"stream":true`)))
	require.NoError(t, err)
	require.NotContains(t, strings.Join(got, "\n"), "usage")
}

func TestServer_AnswersWholeWithoutStream(t *testing.T) {
	t.Parallel()
	s := start(t, openaicompat.Options{})
	s.Enqueue(openaicompat.Reply{Pieces: []string{"a", "b"}, FinishReason: "length"})
	raw, err := io.ReadAll(post(t, s, body("")).Body)
	require.NoError(t, err)
	require.Contains(t, string(raw), `"object":"chat.completion"`)
	require.Contains(t, string(raw), `"message":{"role":"assistant","content":"ab"},"finish_reason":"length"`)
	require.Contains(t, string(raw), `"completion_tokens":2`)
}

func TestServer_StreamsRefusalsAndToolCalls(t *testing.T) {
	t.Parallel()
	s := start(t, openaicompat.Options{})
	s.Enqueue(openaicompat.Reply{Refusal: "I will not"}, openaicompat.Reply{ToolCalls: []openaicompat.ToolCall{{Name: "look", Arguments: `{"a":1}`}}})
	got, err := events(post(t, s, body(`,"stream":true`)))
	require.NoError(t, err)
	require.Contains(t, strings.Join(got, "\n"), `{"refusal":"will "}`)
	got, err = events(post(t, s, body(`,"stream":true`)))
	require.NoError(t, err)
	all := strings.Join(got, "\n")
	require.Contains(t, all, `"id":"call_0","type":"function","function":{"name":"look","arguments":"{\"a"}`)
	require.Contains(t, all, `"arguments":"\":1}"`)
	require.Contains(t, all, `"finish_reason":"tool_calls"`)
}

func TestServer_EndsStreamsBadly(t *testing.T) {
	t.Parallel()
	s := start(t, openaicompat.Options{})
	for _, tc := range []struct {
		reply openaicompat.Reply
		last  string
		cut   bool
	}{
		{openaicompat.Reply{Pieces: []string{"a"}, End: openaicompat.EndCut}, `"content":"a"`, true},
		{openaicompat.Reply{Pieces: []string{"a"}, End: openaicompat.EndSilent}, `"content":"a"`, false},
		{openaicompat.Reply{Pieces: []string{"a"}, End: openaicompat.EndError, Code: "server_error", Message: "oops"}, `"message":"oops"`, false},
	} {
		s.Enqueue(tc.reply)
		got, err := events(post(t, s, body(`,"stream":true`)))
		require.Equal(t, tc.cut, err != nil, "%v", err)
		require.Contains(t, got[len(got)-1], tc.last)
	}
}

func TestServer_StallsUntilItIsClosed(t *testing.T) {
	t.Parallel()
	s := start(t, openaicompat.Options{})
	s.Enqueue(openaicompat.Reply{Pieces: []string{"a"}, End: openaicompat.EndStall})
	res := post(t, s, body(`,"stream":true`))
	lines := bufio.NewReader(res.Body)
	_, err := lines.ReadString('\n')
	require.NoError(t, err)
	s.Close()
	s.Close()
	_, err = io.ReadAll(lines)
	require.ErrorIs(t, err, io.ErrUnexpectedEOF)
}

func TestServer_DripsAtTheInterval(t *testing.T) {
	t.Parallel()
	s := start(t, openaicompat.Options{})
	s.Enqueue(openaicompat.Reply{Pieces: []string{"a", "b", "c"}, Wait: 20 * time.Millisecond, Interval: 20 * time.Millisecond})
	begin := time.Now()
	_, err := events(post(t, s, body(`,"stream":true`)))
	require.NoError(t, err)
	require.GreaterOrEqual(t, time.Since(begin), 80*time.Millisecond)
}

func TestServer_SendsErrorsAsTheVendor(t *testing.T) {
	t.Parallel()
	s := start(t, openaicompat.Options{})
	s.Enqueue(
		openaicompat.Reply{Status: 429, Code: "rate_limit_exceeded", RetryAfter: "7", Header: http.Header{"X-Test": {"1"}}},
		openaicompat.Reply{Status: 503, Message: "overloaded"},
	)
	res := post(t, s, body(""))
	require.Equal(t, 429, res.StatusCode)
	require.Equal(t, "7", res.Header.Get("Retry-After"))
	require.Equal(t, "1", res.Header.Get("X-Test"))
	e := errorOf(t, res)
	require.Equal(t, "rate_limit_error", e.Error.Type)
	require.Equal(t, "rate_limit_exceeded", *e.Error.Code)
	require.Nil(t, e.Error.Param)

	res = post(t, s, body(""))
	require.Equal(t, 503, res.StatusCode)
	require.Equal(t, "server_error", errorOf(t, res).Error.Type)
}

func TestServer_SendsRawBodies(t *testing.T) {
	t.Parallel()
	s := start(t, openaicompat.Options{})
	s.Enqueue(openaicompat.Reply{ContentType: "text/html", Raw: "<html>"})
	raw, err := io.ReadAll(post(t, s, body("")).Body)
	require.NoError(t, err)
	require.Equal(t, "<html>", string(raw))
}

func TestServer_RequiresTheKey(t *testing.T) {
	t.Parallel()
	s := start(t, openaicompat.Options{Key: "sk-right"})
	for auth, want := range map[string]int{"": 401, "Bearer sk-wrong": 401, "sk-right": 401, "Bearer sk-right": 200} {
		req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, s.URL()+"/chat/completions", strings.NewReader(body("")))
		require.NoError(t, err)
		req.Header.Set("Content-Type", "application/json; charset=utf-8")
		if auth != "" {
			req.Header.Set("Authorization", auth)
		}
		require.Equal(t, want, do(t, req).StatusCode, auth)
	}
}

func TestServer_RefusesWrongPathMethodAndContentType(t *testing.T) {
	t.Parallel()
	s := start(t, openaicompat.Options{})
	for _, tc := range []struct {
		method, path, contentType string
		want                      int
	}{
		{http.MethodPost, "/completions", "application/json", 404},
		{http.MethodGet, "/chat/completions", "application/json", 405},
		{http.MethodPost, "/chat/completions", "text/plain", 415},
	} {
		req, err := http.NewRequestWithContext(t.Context(), tc.method, s.URL()+tc.path, strings.NewReader(body("")))
		require.NoError(t, err)
		req.Header.Set("Content-Type", tc.contentType)
		res := do(t, req)
		require.Equal(t, tc.want, res.StatusCode)
		errorOf(t, res)
	}
}

func TestServer_RefusesBodiesThatAreTooLarge(t *testing.T) {
	t.Parallel()
	res := post(t, start(t, openaicompat.Options{}), body("")+strings.Repeat(" ", 16<<20))
	require.Equal(t, 413, res.StatusCode)
	require.Contains(t, errorOf(t, res).Error.Message, "16777216 bytes")
}

func TestServer_RefusesRequestsTheVendorWould(t *testing.T) {
	t.Parallel()
	s := start(t, openaicompat.Options{Models: []string{"gpt-double", "other"}})
	format := func(schema string) string {
		return body(`,"response_format":{"type":"json_schema","json_schema":{"name":"n","strict":true,"schema":` + schema + `}}`)
	}
	for _, tc := range []struct {
		body          string
		status        int
		param, phrase string
	}{
		{`{`, 400, "", "parse the JSON"},
		{`null`, 400, "", "parse the JSON"},
		{`{"messages":[]}`, 400, "model", "Missing required parameter"},
		{`{"model":"gpt-double"}`, 400, "messages", "Missing required parameter"},
		{`{"model":"gpt-double","messages":[]}`, 400, "messages", "empty array"},
		{`{"model":"gpt-double","messages":{}}`, 400, "messages", "array of objects"},
		{`{"model":"nobody","messages":[{"role":"user","content":"x"}]}`, 404, "", "does not exist"},
		{`{"model":"gpt-double","messages":[{"role":"robot","content":"x"}]}`, 400, "messages[0].role", "'robot'"},
		{`{"model":"gpt-double","messages":[{"role":"user","content":7}]}`, 400, "messages[0].content", "content parts"},
		{`{"model":"gpt-double","messages":[{"role":"user","content":null}]}`, 400, "messages[0].content", "content parts"},
		{`{"model":"gpt-double","messages":[{"role":"user","content":[{"type":"smell"}]}]}`, 400, "messages[0].content", "of type"},
		{`{"model":"gpt-double","messages":[{"role":"tool","content":"x"}]}`, 400, "messages[0].tool_call_id", "tool_call_id"},
		{body(`,"nodeId":"n"`), 400, "nodeId", "Unknown parameter"},
		{body(`,"temperature":3`), 400, "temperature", "from 0 to 2"},
		{body(`,"top_p":"x"`), 400, "top_p", "from 0 to 1"},
		{body(`,"max_tokens":0`), 400, "max_tokens", "at least 1"},
		{body(`,"max_tokens":1,"max_completion_tokens":1`), 400, "max_tokens", "at the same time"},
		{body(`,"seed":1.5`), 400, "seed", "integer"},
		{body(`,"stop":["1","2","3","4","5"]`), 400, "stop", "1 to 4"},
		{body(`,"stream":"yes"`), 400, "stream", "boolean"},
		{body(`,"stream_options":{"include_usage":true}`), 400, "stream_options", "only allowed when"},
		{body(`,"stream":true,"stream_options":{"usage":true}`), 400, "stream_options", "Invalid value"},
		{body(`,"response_format":{"type":"xml"}`), 400, "response_format.type", "'xml'"},
		{body(`,"response_format":{"type":"json_schema"}`), 400, "response_format.json_schema", "Missing"},
		{body(`,"response_format":{"type":"json_schema","json_schema":{"name":"a b","schema":{}}}`), 400, "response_format.json_schema.name", "pattern"},
		{format(`{"type":"string"}`), 400, "response_format", "Invalid schema for response_format 'n'"},
	} {
		res := post(t, s, tc.body)
		require.Equal(t, tc.status, res.StatusCode, tc.body)
		e := errorOf(t, res)
		require.Contains(t, e.Error.Message, tc.phrase, tc.body)
		if tc.param != "" {
			require.NotNil(t, e.Error.Param, tc.body)
			require.Equal(t, tc.param, *e.Error.Param)
		}
	}
	require.Equal(t, 200, post(t, s, body("")).StatusCode, "a rejected request consumes no reply")
}

func TestServer_AcceptsWhatTheVendorAccepts(t *testing.T) {
	t.Parallel()
	s := start(t, openaicompat.Options{})
	for _, b := range []string{
		body(`,"temperature":null,"stop":"x","seed":-1,"max_completion_tokens":5,"n":1,"metadata":{}`),
		body(`,"stop":["a","b"],"response_format":{"type":"json_object"}`),
		body(`,"response_format":{"type":"json_schema","json_schema":{"name":"n","schema":{"type":"string","minLength":3}}}`),
		`{"model":"gpt-double","messages":[{"role":"developer","content":[{"type":"text","text":"x"}]},{"role":"assistant","tool_calls":[{}]},{"role":"tool","content":"x","tool_call_id":"1"}]}`,
	} {
		require.Equal(t, 200, post(t, s, b).StatusCode, b)
	}
}

// OpenWOP envelope contract §20, column "OpenAI strict".
func TestServer_ChecksStrictSchemas(t *testing.T) {
	t.Parallel()
	s := start(t, openaicompat.Options{})
	object := func(props, required string) string {
		return `{"type":"object","properties":{` + props + `},"required":[` + required + `],"additionalProperties":false}`
	}
	nested := `{"type":"string"}`
	for range 6 {
		nested = object(`"a":`+nested, `"a"`)
	}
	var wide, names []string
	for i := range 101 {
		wide, names = append(wide, fmt.Sprintf(`"p%d":{"type":"string"}`, i)), append(names, fmt.Sprintf(`"p%d"`, i))
	}
	type row struct{ schema, want string }
	rows := []row{
		{object(`"a":{"type":["string","null"]},"b":{"type":"array","items":{"enum":[1,"x"]}}`, `"a","b"`), ""},
		{object(`"not":{"type":"string"},"format":{"type":"number"}`, `"not","format"`), ""},
		{object(`"a":{"anyOf":[{"type":"null"},`+object(`"k":{"type":"string","enum":["x"]}`, `"k"`)+`]}`, `"a"`), ""},
		{`{"type":"object","properties":{"n":{"$ref":"#/$defs/d"},"self":{"$ref":"#"}},"required":["n","self"],"additionalProperties":false,"$defs":{"d":{"type":"string"}}}`, ""},
		{`{"anyOf":[{"type":"object"}]}`, "'type: \"object\"'"},
		{`{"type":"object","anyOf":[],"properties":{},"required":[],"additionalProperties":false}`, "top level"},
		{`[]`, "'type: \"None\"'"},
		{`{"type":"object","properties":{"a":{"type":"string"}},"required":["a"]}`, "additionalProperties"},
		{object(`"a":{"type":"string"}`, ``), "Missing 'a'"},
		{object(``, `"a"`), "extra required key 'a'"},
		{object(`"a":{}`, `"a"`), "must have a 'type' key"},
		{object(`"a":true`, `"a"`), "In context=('properties', 'a'), schema must be an object."},
		{object(`"a":{"type":"array"}`, `"a"`), "missing items"},
		{object(`"a":{"type":"array","items":{"type":"object"}}`, `"a"`), "In context=('properties', 'a', 'items')"},
		{object(`"a":{"anyOf":[{"type":"string","pattern":"x"}]}`, `"a"`), "In context=('properties', 'a', 'anyOf', '0'), 'pattern' is not permitted."},
		{object(`"a":{"$ref":"https://example.com/x"}`, `"a"`), "definitions of the same schema"},
		{object(`"a":{"$ref":"#/$defs/none"}`, `"a"`), "definitions of the same schema"},
		{nested, "deeper than 5"},
		{object(strings.Join(wide, ","), strings.Join(names, ",")), "101 properties"},
	}
	for _, keyword := range []string{"oneOf", "allOf", "not", "if", "prefixItems", "propertyNames", "minLength", "maximum", "minItems", "uniqueItems", "format"} {
		rows = append(rows, row{object(`"a":{"type":"string","`+keyword+`":1}`, `"a"`), "'" + keyword + "' is not permitted"})
	}
	for _, r := range slices.Concat(rows[:1], rows) { // repeat the first: the server has cached it by then
		res := post(t, s, body(`,"response_format":{"type":"json_schema","json_schema":{"name":"n","strict":true,"schema":`+r.schema+`}}`))
		if r.want == "" {
			require.Equal(t, 200, res.StatusCode, r.schema)
			continue
		}
		require.Equal(t, 400, res.StatusCode, r.schema)
		e := errorOf(t, res)
		require.Contains(t, e.Error.Message, r.want)
		require.Equal(t, "response_format", *e.Error.Param)
	}
}

func TestServer_RecordsRequests(t *testing.T) {
	t.Parallel()
	s := start(t, openaicompat.Options{Answer: func(r openaicompat.Recorded) openaicompat.Reply {
		return openaicompat.Reply{Pieces: []string{fmt.Sprint(len(r.Body))}}
	}})
	b := body("")
	raw, err := io.ReadAll(post(t, s, b).Body)
	require.NoError(t, err)
	require.Contains(t, string(raw), fmt.Sprintf(`"content":"%d"`, len(b)))
	post(t, s, "{")
	got := s.Requests()
	require.Len(t, got, 2)
	require.Equal(t, b, string(got[0].Body))
	require.Equal(t, []int{200, 400}, []int{got[0].Status, got[1].Status})
	require.Equal(t, "application/json", got[0].Header.Get("Content-Type"))
}

func TestWatch_ReportsWhenTheAnswerWasSent(t *testing.T) {
	t.Parallel()
	seen := make(chan openaicompat.Watched, 1)
	s := start(t, openaicompat.Options{Watch: func(w openaicompat.Watched) { seen <- w }})
	s.Enqueue(openaicompat.Reply{Pieces: []string{"a", "b"}})
	began := time.Now()
	res := post(t, s, `{"model":"gpt-double","stream":true,"messages":[{"role":"user","content":"hello"}]}`)
	_, err := io.ReadAll(res.Body)
	require.NoError(t, err)
	w := <-seen
	require.Equal(t, http.StatusOK, w.Status)
	require.Contains(t, string(w.Body), "hello")
	require.Len(t, w.Writes, 5, "the role, two pieces, the finish reason and the end")
	for last := began; len(w.Writes) > 0; w.Writes = w.Writes[1:] {
		require.False(t, w.Arrived.Before(began))
		require.False(t, w.Writes[0].Before(last))
		last = w.Writes[0]
	}
	require.Empty(t, s.Requests(), "with Watch, requests are passed on and not stored")
}
