package anthropic_test

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

	"waybill.dev/waybill/test/double/anthropic"
)

func TestMain(m *testing.M) {
	// The default client's idle connections do not belong to the server.
	goleak.VerifyTestMain(m, goleak.Cleanup(func(int) { http.DefaultClient.CloseIdleConnections() }))
}

func start(t *testing.T, o anthropic.Options) *anthropic.Server {
	t.Helper()
	s := anthropic.New(o)
	t.Cleanup(s.Close)
	return s
}

func newRequest(t *testing.T, s *anthropic.Server, body string) *http.Request {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, s.URL()+"/v1/messages", strings.NewReader(body))
	require.NoError(t, err)
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("X-Api-Key", "k")
	req.Header.Set("Anthropic-Version", anthropic.Version)
	return req
}

func post(t *testing.T, s *anthropic.Server, body string) *http.Response {
	t.Helper()
	return do(t, newRequest(t, s, body))
}

func do(t *testing.T, req *http.Request) *http.Response {
	t.Helper()
	res, err := http.DefaultClient.Do(req)
	require.NoError(t, err)
	t.Cleanup(func() { _ = res.Body.Close() })
	return res
}

type vendorError struct {
	Type  string
	Error struct{ Type, Message string }
}

func errorOf(t *testing.T, res *http.Response) vendorError {
	t.Helper()
	require.Equal(t, "application/json", res.Header.Get("Content-Type"))
	require.NotEmpty(t, res.Header.Get("Request-Id"))
	var e vendorError
	require.NoError(t, json.NewDecoder(res.Body).Decode(&e))
	require.Equal(t, "error", e.Type)
	require.NotEmpty(t, e.Error.Message)
	return e
}

// events reads a stream's events, each as "kind data". The error says how the body ended.
func events(res *http.Response) ([]string, error) {
	var list []string
	kind := ""
	lines := bufio.NewScanner(res.Body)
	for lines.Scan() {
		if k, ok := strings.CutPrefix(lines.Text(), "event: "); ok {
			kind = k
		}
		if data, ok := strings.CutPrefix(lines.Text(), "data: "); ok {
			list = append(list, kind+" "+data)
		}
	}
	return list, lines.Err()
}

func body(extra string) string {
	return `{"model":"claude-opus-4-6","max_tokens":100,"messages":[{"role":"user","content":"hi"}]` + extra + `}`
}

const streamed = `,"stream":true`

func TestServer_StreamsEventsAsTheVendor(t *testing.T) {
	t.Parallel()
	s := start(t, anthropic.Options{})
	s.Enqueue(anthropic.Reply{Pieces: []string{"a", "b"}, Usage: &anthropic.Usage{Input: 7, Output: 2, CacheRead: 3, CacheWrite: 4, Thinking: 1}})
	res := post(t, s, body(streamed))
	require.Equal(t, http.StatusOK, res.StatusCode)
	require.Equal(t, "text/event-stream; charset=utf-8", res.Header.Get("Content-Type"))
	got, err := events(res)
	require.NoError(t, err)
	want := []string{
		`message_start {"type":"message_start","message":{"id":"msg_double","type":"message","role":"assistant","model":"claude-opus-4-6","content":[],"stop_reason":null,"stop_sequence":null,
			"usage":{"input_tokens":7,"cache_creation_input_tokens":4,"cache_read_input_tokens":3,"cache_creation":{"ephemeral_5m_input_tokens":4,"ephemeral_1h_input_tokens":0},"output_tokens":1,"service_tier":"standard"}}}`,
		`ping {"type":"ping"}`,
		`content_block_start {"type":"content_block_start","index":0,"content_block":{"type":"text","text":""}}`,
		`content_block_delta {"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":"a"}}`,
		`content_block_delta {"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":"b"}}`,
		`content_block_stop {"type":"content_block_stop","index":0}`,
		`message_delta {"type":"message_delta","delta":{"stop_reason":"end_turn","stop_sequence":null,"stop_details":null},
			"usage":{"input_tokens":7,"cache_creation_input_tokens":4,"cache_read_input_tokens":3,"output_tokens":2,"output_tokens_details":{"thinking_tokens":1}}}`,
		`message_stop {"type":"message_stop"}`,
	}
	require.Len(t, got, len(want))
	for i := range want {
		wantKind, wantData, _ := strings.Cut(want[i], " ")
		kind, data, _ := strings.Cut(got[i], " ")
		require.Equal(t, wantKind, kind)
		require.JSONEq(t, wantData, data)
	}
}

func TestServer_StreamsThoughtsToolsAndRefusals(t *testing.T) {
	t.Parallel()
	s := start(t, anthropic.Options{})
	s.Enqueue(
		anthropic.Reply{Thoughts: []string{"hm"}, ToolCalls: []anthropic.ToolCall{{Name: "look", Input: `{"a":1}`}}},
		anthropic.Reply{Refusal: &anthropic.Refusal{Category: "bio"}},
	)
	got, err := events(post(t, s, body(streamed+`,"thinking":{"type":"adaptive"}`)))
	require.NoError(t, err)
	all := strings.Join(got, "\n")
	require.Contains(t, all, `{"thinking":"hm","type":"thinking_delta"}`)
	require.Contains(t, all, `"signature_delta"`)
	require.Contains(t, all, `{"id":"toolu_double_1","input":{},"name":"look","type":"tool_use"}`)
	require.Contains(t, all, `{"partial_json":"","type":"input_json_delta"}`)
	require.Contains(t, all, `"stop_reason":"tool_use"`)
	got, err = events(post(t, s, body(streamed)))
	require.NoError(t, err)
	require.Contains(t, strings.Join(got, "\n"), `"stop_details":{"category":"bio","explanation":null,"type":"refusal"},"stop_reason":"refusal"`)
}

func TestServer_AnswersWholeWithoutStream(t *testing.T) {
	t.Parallel()
	s := start(t, anthropic.Options{})
	s.Enqueue(anthropic.Reply{Thoughts: []string{"x"}, Pieces: []string{"a", "b"}, ToolCalls: []anthropic.ToolCall{{ID: "t", Name: "f", Input: `{"a":1}`}}})
	var got struct {
		Content    json.RawMessage
		StopReason string `json:"stop_reason"`
	}
	require.NoError(t, json.NewDecoder(post(t, s, body("")).Body).Decode(&got))
	require.JSONEq(t, `[{"type":"text","text":"ab"},{"type":"tool_use","id":"t","name":"f","input":{"a":1}}]`, string(got.Content), "thoughts were not requested")
	require.Equal(t, "tool_use", got.StopReason)
}

// The answer is cut at max_tokens. Thinking counts too.
func TestServer_CutsAtMaxTokens(t *testing.T) {
	t.Parallel()
	s := start(t, anthropic.Options{})
	for most, want := range map[int]string{1: "üabc", 2: "üabcdefg", 3: "üabcdefghi"} {
		s.Enqueue(anthropic.Reply{Pieces: []string{"üabcde", "fghi"}})
		var got struct {
			Content    []struct{ Text string }
			StopReason string `json:"stop_reason"`
			Usage      struct {
				Output int `json:"output_tokens"`
			}
		}
		res := post(t, s, strings.Replace(body(""), `"max_tokens":100`, fmt.Sprintf(`"max_tokens":%d`, most), 1))
		require.NoError(t, json.NewDecoder(res.Body).Decode(&got))
		require.Equal(t, want, got.Content[0].Text)
		require.Equal(t, most, got.Usage.Output)
		require.Equal(t, most < 3, got.StopReason == "max_tokens")
	}
	s.Enqueue(anthropic.Reply{Thoughts: []string{"abcdefgh"}, Pieces: []string{"never said"}})
	got, err := events(post(t, s, strings.Replace(body(streamed+`,"thinking":{"type":"adaptive"}`), `"max_tokens":100`, `"max_tokens":1`, 1)))
	require.NoError(t, err)
	require.Contains(t, strings.Join(got, "\n"), `"thinking":"abcd"`)
	require.NotContains(t, strings.Join(got, "\n"), "never")
}

func TestServer_AnswersAForcedToolByCallingIt(t *testing.T) {
	t.Parallel()
	s := start(t, anthropic.Options{RequireSchema: true})
	const schema = `{"type":"object","properties":{"a":{"$ref":"#/$defs/d"},"b":{"type":["string","null"]},"c":{"type":"array","items":{"enum":[3]}},"d":{"anyOf":[{"const":true}]}},"required":["a"],"additionalProperties":false,"$defs":{"d":{"type":"integer"}}}`
	for _, way := range []string{
		`,"tools":[{"name":"answer","strict":true,"input_schema":` + schema + `}],"tool_choice":{"type":"tool","name":"answer"}`,
		`,"tools":[{"name":"answer","strict":true,"input_schema":` + schema + `}],"tool_choice":{"type":"any"}`,
		`,"output_config":{"format":{"type":"json_schema","schema":` + schema + `}}`,
	} {
		raw, err := io.ReadAll(post(t, s, body(way)).Body)
		require.NoError(t, err)
		require.Contains(t, strings.ReplaceAll(string(raw), `\`, ""), `{"a":1,"b":"text","c":[3],"d":true}`)
	}
	for _, without := range []string{"", `,"tools":[{"name":"answer","input_schema":` + schema + `}],"tool_choice":{"type":"any"}`} {
		require.Contains(t, errorOf(t, post(t, s, body(without))).Error.Message, "strict schema with every call")
	}
}

func TestServer_EndsStreamsInEveryWay(t *testing.T) {
	t.Parallel()
	s := start(t, anthropic.Options{})
	for end, broken := range map[anthropic.End]bool{anthropic.EndCut: true, anthropic.EndSilent: false, anthropic.EndError: false} {
		s.Enqueue(anthropic.Reply{Pieces: []string{"a"}, End: end, Type: "overloaded_error", Message: "Overloaded"})
		got, err := events(post(t, s, body(streamed)))
		require.Equal(t, broken, err != nil)
		last := got[len(got)-1]
		if end == anthropic.EndError {
			require.Equal(t, `error {"type":"error","error":{"type":"overloaded_error","message":"Overloaded"}}`, last)
			continue
		}
		require.Contains(t, last, "text_delta")
	}
}

func TestServer_CutsAtTheByte(t *testing.T) {
	t.Parallel()
	s := start(t, anthropic.Options{})
	for at, want := range map[int]int{0: 0, 1: 1, 40: 40, 1 << 20: 1012} {
		for _, clean := range []bool{true, false} {
			s.Enqueue(anthropic.Reply{Pieces: []string{"a"}, Cut: &anthropic.Cut{At: at, Clean: clean}})
			raw, err := io.ReadAll(post(t, s, body(streamed)).Body)
			if at < 1<<20 {
				require.Len(t, raw, want)
			}
			require.Equal(t, clean || at == 1<<20, err == nil, "%d %v", at, clean)
		}
	}
}

func TestServer_DripsAtTheTestsPace(t *testing.T) {
	t.Parallel()
	s := start(t, anthropic.Options{})
	step := make(chan struct{})
	s.Enqueue(anthropic.Reply{Pieces: []string{"one", "two"}, Step: step, Noise: true, Interval: time.Microsecond})
	lines := bufio.NewScanner(post(t, s, body(streamed)).Body)
	until := func(what string) {
		for lines.Scan() {
			require.NotContains(t, lines.Text(), "two")
			if strings.Contains(lines.Text(), what) {
				return
			}
		}
		t.Fatalf("the stream ended before %s", what)
	}
	until("content_block_start")
	step <- struct{}{}
	until("one")
	close(step)
	rest := ""
	for lines.Scan() {
		rest += lines.Text() + "\n"
	}
	require.Contains(t, rest, "two")
	require.Contains(t, rest, "mood_delta")
	require.Contains(t, rest, ": keep-alive")
}

func TestServer_RefusesWhenItsLimitIsReached(t *testing.T) {
	t.Parallel()
	s := start(t, anthropic.Options{RateLimit: 1})
	require.Equal(t, 200, post(t, s, body("")).StatusCode)
	res := post(t, s, body(""))
	require.Equal(t, 429, res.StatusCode)
	require.Equal(t, "7", res.Header.Get("Retry-After"))
	require.Equal(t, "0", res.Header.Get("Anthropic-Ratelimit-Requests-Remaining"))
	require.Equal(t, "rate_limit_error", errorOf(t, res).Error.Type)
}

func TestServer_CloseEndsAStall(t *testing.T) {
	t.Parallel()
	s := start(t, anthropic.Options{})
	s.Enqueue(anthropic.Reply{End: anthropic.EndStall})
	res := post(t, s, body(streamed))
	s.Close()
	_, err := io.ReadAll(res.Body)
	require.Error(t, err)
	s.Close()
}

func TestServer_RecordsRequests(t *testing.T) {
	t.Parallel()
	s := start(t, anthropic.Options{Answer: func(r anthropic.Recorded) anthropic.Reply {
		return anthropic.Reply{Pieces: []string{fmt.Sprint(len(r.Body))}}
	}})
	raw, err := io.ReadAll(post(t, s, body("")).Body)
	require.NoError(t, err)
	require.Contains(t, string(raw), fmt.Sprintf(`"text":"%d"`, len(body(""))))
	post(t, s, "{")
	got := s.Requests()
	require.Len(t, got, 2)
	require.Equal(t, body(""), string(got[0].Body))
	require.Equal(t, []int{200, 400}, []int{got[0].Status, got[1].Status})
}
