package gemini_test

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"waybill.dev/waybill/test/double/gemini"
)

func TestMain(m *testing.M) {
	// The default client's idle connections do not belong to the server.
	goleak.VerifyTestMain(m, goleak.Cleanup(func(int) { http.DefaultClient.CloseIdleConnections() }))
}

func start(t *testing.T, o gemini.Options) *gemini.Server {
	t.Helper()
	s := gemini.New(o)
	t.Cleanup(s.Close)
	return s
}

func request(t *testing.T, s *gemini.Server, model, method, body string) *http.Request {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, s.URL()+"/v1beta/models/"+model+":"+method, strings.NewReader(body))
	require.NoError(t, err)
	req.Header.Set("Content-Type", "application/json")
	return req
}

// stream sends a request for a streamed answer.
func stream(t *testing.T, s *gemini.Server, body string) *http.Response {
	t.Helper()
	return do(t, request(t, s, gemini.DefaultModel, "streamGenerateContent?alt=sse", body))
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
		Code            int
		Message, Status string
		Details         []map[string]any
	}
}

func errorOf(t *testing.T, res *http.Response) vendorError {
	t.Helper()
	require.Equal(t, "application/json; charset=UTF-8", res.Header.Get("Content-Type"))
	var e vendorError
	require.NoError(t, json.NewDecoder(res.Body).Decode(&e))
	require.NotEmpty(t, e.Error.Message)
	require.Equal(t, res.StatusCode, e.Error.Code)
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

// body is a request with one message and the extra members.
func body(extra string) string {
	return `{"contents":[{"role":"user","parts":[{"text":"hi there"}]}]` + extra + `}`
}

func config(members string) string { return body(`,"generationConfig":{` + members + `}`) }

func format(schema string) string {
	return config(`"responseMimeType":"application/json","responseJsonSchema":` + schema)
}

func tool(function, choice string) string {
	return body(`,"tools":[{"functionDeclarations":[` + function + `]}],"toolConfig":{"functionCallingConfig":` + choice + `}`)
}

func TestServer_StreamsEventsAsTheVendor(t *testing.T) {
	t.Parallel()
	s := start(t, gemini.Options{})
	s.Enqueue(gemini.Reply{Thoughts: []string{"hm"}, Pieces: []string{"a", "b"}, Usage: &gemini.Usage{Prompt: 7, Candidates: 2, Thoughts: 1, Cached: 3, Total: 10}})
	res := stream(t, s, config(`"thinkingConfig":{"includeThoughts":true}`))
	require.Equal(t, http.StatusOK, res.StatusCode)
	require.Equal(t, "text/event-stream", res.Header.Get("Content-Type"))
	got, err := events(res)
	require.NoError(t, err)
	const tail = `"usageMetadata":{"promptTokenCount":7,"candidatesTokenCount":2,"totalTokenCount":10,"cachedContentTokenCount":3,"thoughtsTokenCount":1},"modelVersion":"gemini-2.5-double","responseId":"double-response"}`
	require.Equal(t, []string{
		`{"candidates":[{"content":{"parts":[{"text":"hm","thought":true}],"role":"model"},"index":0}],` + tail,
		`{"candidates":[{"content":{"parts":[{"text":"a"}],"role":"model"},"index":0}],` + tail,
		`{"candidates":[{"content":{"parts":[{"text":"b"}],"role":"model"},"finishReason":"STOP","index":0}],` + tail,
	}, got)
}

func TestServer_OmitsThoughtsNotRequested(t *testing.T) {
	t.Parallel()
	s := start(t, gemini.Options{})
	s.Enqueue(gemini.Reply{Thoughts: []string{"hm"}})
	got, err := events(stream(t, s, body("")))
	require.NoError(t, err)
	require.NotContains(t, strings.Join(got, ""), "hm")
}

func TestServer_CutsTheTextAtTheBound(t *testing.T) {
	t.Parallel()
	s := start(t, gemini.Options{})
	s.Enqueue(gemini.Reply{Pieces: []string{"0123", "456789abc"}}, gemini.Reply{Thoughts: []string{"0123"}, Pieces: []string{"012345"}}, gemini.Reply{Pieces: []string{"01234567"}})
	got, err := events(stream(t, s, config(`"maxOutputTokens":2`)))
	require.NoError(t, err)
	require.Contains(t, got[1], `{"text":"4567"}],"role":"model"},"finishReason":"MAX_TOKENS"`)
	require.Contains(t, got[1], `"candidatesTokenCount":2,"totalTokenCount":4`)
	got, err = events(stream(t, s, config(`"maxOutputTokens":2,"thinkingConfig":{"includeThoughts":true}`)))
	require.NoError(t, err)
	require.Contains(t, got[1], `{"text":"0123"}`, "thoughts count")
	got, err = events(stream(t, s, config(`"maxOutputTokens":2`)))
	require.NoError(t, err)
	require.Contains(t, got[0], "STOP", "an answer at the limit is complete")
}

func TestServer_StreamsCallsMediaRefusalsAndBlocks(t *testing.T) {
	t.Parallel()
	s := start(t, gemini.Options{})
	for _, tc := range []struct {
		reply gemini.Reply
		want  string
	}{
		{gemini.Reply{Calls: []gemini.Call{{Name: "look", Args: `{"b":1,"a":2}`}}}, `{"functionCall":{"name":"look","args":{"b":1,"a":2}},"thoughtSignature":"c2lnbmVk"}`},
		{gemini.Reply{Media: []gemini.Media{{MIME: "image/png", Data: []byte{1, 2}}}}, `{"inlineData":{"mimeType":"image/png","data":"AQI="}}`},
		{gemini.Reply{FinishReason: "SAFETY", Harm: "HARM_CATEGORY_HATE_SPEECH"}, `{"finishReason":"SAFETY","index":0,"safetyRatings":[{"category":"HARM_CATEGORY_HARASSMENT","probability":"NEGLIGIBLE"},{"category":"HARM_CATEGORY_HATE_SPEECH","probability":"HIGH","blocked":true}]}`},
		{gemini.Reply{FinishReason: "OTHER", FinishMessage: "why"}, `"finishReason":"OTHER","finishMessage":"why"`},
		{gemini.Reply{Blocked: "SAFETY"}, `{"promptFeedback":{"blockReason":"SAFETY",`},
		{gemini.Reply{NoUsage: true}, `"index":0}],"modelVersion":`},
	} {
		s.Enqueue(tc.reply)
		got, err := events(stream(t, s, body("")))
		require.NoError(t, err)
		require.Len(t, got, 1)
		require.Contains(t, got[0], tc.want)
	}
}

func TestServer_AnswersWholeWithoutStream(t *testing.T) {
	t.Parallel()
	s := start(t, gemini.Options{})
	for method, want := range map[string]string{"generateContent": "{\n", "streamGenerateContent": "[\n"} {
		raw, err := io.ReadAll(do(t, request(t, s, gemini.DefaultModel, method, body(""))).Body)
		require.NoError(t, err)
		require.True(t, strings.HasPrefix(string(raw), want), method)
		require.Contains(t, string(raw), `"finishReason": "STOP"`)
	}
}

func TestServer_EndsStreamsBadly(t *testing.T) {
	t.Parallel()
	s := start(t, gemini.Options{})
	for _, tc := range []struct {
		reply gemini.Reply
		last  string
		cut   bool
	}{
		{gemini.Reply{Pieces: []string{"a"}, End: gemini.EndCut}, `"text":"a"`, true},
		{gemini.Reply{Pieces: []string{"a"}, End: gemini.EndSilent}, `"text":"a"`, false},
		{gemini.Reply{Pieces: []string{"a"}, End: gemini.EndError, Status: 503, Message: "oops"}, `{"error": {"code": 503,"message": "oops","status": "UNAVAILABLE"}}`, false},
		{gemini.Reply{Pieces: []string{"a", "b"}, Cut: &gemini.Cut{At: 20}}, `{"candidates"`, true},
		{gemini.Reply{Pieces: []string{"a", "b"}, Cut: &gemini.Cut{At: 20, Clean: true}}, `{"candidates"`, false},
	} {
		s.Enqueue(tc.reply)
		got, err := events(stream(t, s, body("")))
		require.Equal(t, tc.cut, err != nil, "%v", err)
		require.Contains(t, got[len(got)-1], tc.last)
	}
	s.Enqueue(gemini.Reply{End: gemini.EndBareError, Status: 503}, gemini.Reply{Raw: "0123456789", ContentType: "text/event-stream", Cut: &gemini.Cut{At: 4, Clean: true}})
	raw, err := io.ReadAll(stream(t, s, body("")).Body)
	require.NoError(t, err)
	require.True(t, strings.HasPrefix(string(raw), "{\n  \"error\""))
	raw, err = io.ReadAll(stream(t, s, body("")).Body)
	require.NoError(t, err)
	require.Equal(t, "0123", string(raw))
}

func TestServer_SendsOneEventPerStep(t *testing.T) {
	t.Parallel()
	s := start(t, gemini.Options{})
	step := make(chan struct{})
	s.Enqueue(gemini.Reply{Pieces: []string{"a", "b"}, Step: step, Noise: ": ping\r\n\r\n"})
	res := stream(t, s, body(""))
	lines := bufio.NewScanner(res.Body)
	for _, want := range []string{`"text":"a"`, `"text":"b"`} {
		step <- struct{}{}
		require.True(t, lines.Scan())
		require.Equal(t, ": ping", lines.Text())
		require.True(t, lines.Scan())
		require.True(t, lines.Scan())
		require.Contains(t, lines.Text(), want)
		require.True(t, lines.Scan())
	}
}

func TestServer_StallsUntilItIsClosed(t *testing.T) {
	t.Parallel()
	s := start(t, gemini.Options{})
	s.Enqueue(gemini.Reply{Pieces: []string{"a"}, End: gemini.EndStall})
	res := stream(t, s, body(""))
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
	s := start(t, gemini.Options{})
	s.Enqueue(gemini.Reply{Pieces: []string{"a", "b", "c"}, Wait: 20 * time.Millisecond, Interval: 20 * time.Millisecond})
	begin := time.Now()
	_, err := events(stream(t, s, body("")))
	require.NoError(t, err)
	require.GreaterOrEqual(t, time.Since(begin), 80*time.Millisecond)
}

func TestServer_SendsErrorsAsTheVendor(t *testing.T) {
	t.Parallel()
	s := start(t, gemini.Options{})
	s.Enqueue(gemini.RateLimited("PerDay", "34s"), gemini.Reply{Status: 503, Message: "overloaded", RetryAfter: "7", Header: http.Header{"X-Test": {"1"}}}, gemini.Reply{Status: 500, Listed: true})
	e := errorOf(t, stream(t, s, body("")))
	require.Equal(t, "RESOURCE_EXHAUSTED", e.Error.Status)
	require.Equal(t, "34s", e.Error.Details[2]["retryDelay"])
	res := stream(t, s, body(""))
	require.Equal(t, "7", res.Header.Get("Retry-After"))
	require.Equal(t, "1", res.Header.Get("X-Test"))
	require.Equal(t, "UNAVAILABLE", errorOf(t, res).Error.Status)
	raw, err := io.ReadAll(stream(t, s, body("")).Body)
	require.NoError(t, err)
	require.True(t, strings.HasPrefix(string(raw), "[\n"))
}

func TestServer_AdmitsByKeyPathMethodAndType(t *testing.T) {
	t.Parallel()
	s := start(t, gemini.Options{Key: "k"})
	for _, tc := range []struct {
		edit   func(*http.Request)
		status int
		phrase string
	}{
		{func(*http.Request) {}, 403, "unregistered callers"},
		{func(r *http.Request) { r.Header.Set("X-Goog-Api-Key", "wrong") }, 400, "API key not valid"},
		{func(r *http.Request) { r.Header.Set("Authorization", "Bearer k") }, 401, "invalid authentication"},
		{func(r *http.Request) { r.Header.Set("X-Goog-Api-Key", "k"); r.Header.Set("Content-Type", "text/plain") }, 400, "content type"},
		{func(r *http.Request) {
			r.Header.Set("X-Goog-Api-Key", "k")
			r.URL.Path = "/v1beta/models/other:generateContent"
		}, 404, "models/other is not found"},
		{func(r *http.Request) { r.Header.Set("X-Goog-Api-Key", "k"); r.Method = http.MethodPut }, 404, ""},
		{func(r *http.Request) { r.URL.Path = "/v1/chat" }, 404, ""},
		{func(r *http.Request) { r.Header.Set("X-Goog-Api-Key", "k") }, 200, ""},
		{func(r *http.Request) { r.URL.RawQuery += "&key=k" }, 200, ""},
	} {
		req := request(t, s, gemini.DefaultModel, "streamGenerateContent?alt=sse", body(""))
		tc.edit(req)
		res := do(t, req)
		require.Equal(t, tc.status, res.StatusCode, tc.phrase)
		if tc.phrase != "" {
			require.Contains(t, errorOf(t, res).Error.Message, tc.phrase)
		}
	}
	require.Len(t, s.Requests(), 9)
}

func TestServer_RefusesBodiesThatAreTooLarge(t *testing.T) {
	t.Parallel()
	res := stream(t, start(t, gemini.Options{}), body("")+strings.Repeat(" ", 20<<20))
	require.Equal(t, 400, res.StatusCode)
	require.Contains(t, errorOf(t, res).Error.Message, "payload size exceeds the limit: 20971520 bytes")
}

func TestServer_RecordsRequests(t *testing.T) {
	t.Parallel()
	s := start(t, gemini.Options{Answer: func(r gemini.Recorded) gemini.Reply {
		return gemini.Reply{Pieces: []string{fmt.Sprint(len(r.Body))}}
	}})
	b := body("")
	got, err := events(stream(t, s, b))
	require.NoError(t, err)
	require.Contains(t, got[0], fmt.Sprintf(`"text":"%d"`, len(b)))
	stream(t, s, "{")
	all := s.Requests()
	require.Len(t, all, 2)
	require.Equal(t, b, string(all[0].Body))
	require.Equal(t, "sse", all[0].Query.Get("alt"))
	require.Equal(t, []int{200, 400}, []int{all[0].Status, all[1].Status})
}
