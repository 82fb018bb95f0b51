package mcp_test

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"waybill.dev/waybill/protocol/wire"
	"waybill.dev/waybill/services/dispatcher/model"
	"waybill.dev/waybill/services/dispatcher/tool"
)

// raw is a server whose documents are written by hand.
type raw struct {
	*httptest.Server

	// stream makes it answer calls as a stream of events.
	stream bool

	mu       sync.Mutex // guards all below
	tools    []string   // pages of the result of tools/list; empty refuses to list
	result   string     // of a call
	progress []string   // the params of notifications before it; $TOKEN is that of the call
	hold     chan struct{}
	lists    int
	versions map[string]string // the header Mcp-Protocol-Version of each method
}

func newRaw(t *testing.T, result string, tools ...string) *raw {
	t.Helper()
	r := &raw{result: result, tools: tools, versions: map[string]string{}}
	r.Server = httptest.NewServer(r)
	t.Cleanup(r.Close)
	return r
}

// called is a JSON-RPC request.
type called struct {
	ID     json.RawMessage
	Method string
	Params struct {
		Cursor string
		Meta   struct {
			ProgressToken json.RawMessage `json:"progressToken"`
		} `json:"_meta"`
	}
}

func (s *raw) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	var c called
	if r.Method != http.MethodPost || json.NewDecoder(r.Body).Decode(&c) != nil {
		w.WriteHeader(http.StatusMethodNotAllowed)
		return
	}
	s.mu.Lock()
	s.versions[c.Method] = r.Header.Get("Mcp-Protocol-Version")
	s.mu.Unlock()
	if c.Method == "tools/call" && s.stream {
		s.streamed(w, c)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	switch c.Method {
	case "initialize":
		s.answer(w, c, `"result":{"protocolVersion":"2025-06-18","capabilities":{"tools":{}},"serverInfo":{"name":"raw","version":"1"}}`)
	case "tools/list":
		s.answer(w, c, s.page(c.Params.Cursor))
	case "tools/call":
		s.mu.Lock()
		defer s.mu.Unlock()
		s.answer(w, c, `"result":`+s.result)
	default:
		if len(c.ID) == 0 {
			w.WriteHeader(http.StatusAccepted)
			return
		}
		s.answer(w, c, `"error":{"code":-32601,"message":"`+hush+`"}`)
	}
}

func (*raw) answer(w http.ResponseWriter, c called, member string) {
	_, _ = fmt.Fprintf(w, `{"jsonrpc":"2.0","id":%s,%s}`, c.ID, member)
}

// page returns a page of the list; the cursor is its number.
func (s *raw) page(cursor string) string {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.lists++
	if len(s.tools) == 0 {
		return `"error":{"code":-32601,"message":"` + hush + `"}`
	}
	n, next := 0, ""
	_, _ = fmt.Sscan(cursor, &n)
	if n+1 < len(s.tools) {
		next = fmt.Sprintf(`,"nextCursor":"%d"`, n+1)
	}
	return `"result":{"tools":[` + s.tools[n] + `]` + next + `}`
}

func (s *raw) streamed(w http.ResponseWriter, c called) {
	w.Header().Set("Content-Type", "text/event-stream")
	s.mu.Lock()
	progress, result, hold := s.progress, s.result, s.hold
	s.mu.Unlock()
	for _, p := range progress {
		params := strings.ReplaceAll(p, "$TOKEN", string(c.Params.Meta.ProgressToken))
		_, _ = fmt.Fprintf(w, "event: message\ndata: {\"jsonrpc\":\"2.0\",\"method\":\"notifications/progress\",\"params\":%s}\n\n", params)
		_ = http.NewResponseController(w).Flush()
	}
	if hold != nil {
		<-hold
	}
	_, _ = fmt.Fprintf(w, "data: {\"jsonrpc\":\"2.0\",\"id\":%s,\"result\":%s}\n\n", c.ID, strings.ReplaceAll(result, "\n", ""))
}

func (s *raw) set(result string, tools ...string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.result, s.tools = result, tools
}

func (s *raw) listed() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.lists
}

// definition is a tool of a list.
func definition(name, outputSchema string) string {
	schema := ""
	if outputSchema != "" {
		schema = `,"outputSchema":` + outputSchema
	}
	return `{"name":"` + name + `","inputSchema":{"type":"object"}` + schema + `}`
}

// journal keeps the recorded events.
type journal struct {
	mu     sync.Mutex // guards drafts
	drafts []wire.Draft
	heard  chan struct{}
}

func newJournal() *journal { return &journal{heard: make(chan struct{}, 100)} }

func (j *journal) Record(_ context.Context, drafts ...wire.Draft) error {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.drafts = append(j.drafts, drafts...)
	j.heard <- struct{}{}
	return nil
}

func (*journal) Accept(context.Context, model.AcceptRequest) (model.Outcome, error) {
	panic("a tool submits no envelopes")
}

func (j *journal) all() []wire.Draft {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.drafts
}

const callT = `{"server":"x","tool":"t"}`

// A result is kept as it was sent: blocks of later versions of the protocol, every member, every
// digit.
func TestRun_KeepsContentAsItWasSent(t *testing.T) {
	t.Parallel()
	const blocks = `[{"type":"hologram","depth":9007199254740993,"text":{"of":"another kind"}},
		{"type":"text","text":"hi","later":{"n":[1]}},{"type":"image","data":"not base64!","mimeType":"image/png"}]`
	for _, stream := range []bool{false, true} {
		s := newRaw(t, `{"content":`+blocks+`,"later":1}`, definition("t", ""))
		s.stream = stream
		r := runner(t, s.URL)
		ports := want(t, call(t, r, callT))
		require.JSONEq(t, blocks, string(ports["content"]))
		require.Contains(t, string(ports["content"]), "9007199254740993")
		require.Equal(t, `"hi"`, string(ports["output"]))

		s.set(`{"content":[{"type":"hologram"}]}`, definition("t", ""))
		require.Equal(t, `[{"type":"hologram"}]`, string(want(t, call(t, r, callT))["output"]))
		s.set(`{"content":[],"structuredContent":{"n":9007199254740993}}`, definition("t", ""))
		require.Equal(t, `{"n":9007199254740993}`, string(want(t, call(t, r, callT))["output"]))
		for _, wrong := range []string{
			`{"content":{"type":"text","text":"a"}}`, `{"content":[{"text":"a"}]}`, `{"content":[null]}`, `{"content":[7]}`,
			`{"content":[{"type":"text","text":7}]}`,
		} {
			s.set(wrong, definition("t", ""))
			require.Contains(t, fails(t, call(t, r, callT), "tool_failed").Message, "no result of a tool", wrong)
		}
		require.Equal(t, "2025-06-18", s.versions["tools/call"], "the negotiated version")
		require.Equal(t, "2025-06-18", s.versions["notifications/initialized"])
	}
}

// A message that is not one of the protocol is no missing connection.
func TestRun_SaysThatAnAnswerIsMalformed(t *testing.T) {
	t.Parallel()
	for _, stream := range []bool{false, true} {
		for _, wrong := range []string{
			`7`, `"` + hush + `"`, `[]`, `{"content":[]`, `{"content":[],"isError":"` + hush + `"}`, `1}<html>`, `{"content":[]},"jsonrpc":"1.0"`,
		} {
			s := newRaw(t, wrong, definition("t", ""))
			s.stream = stream
			e := fails(t, call(t, runner(t, s.URL), callT), "service_unavailable")
			require.Equal(t, `MCP server "x" answered with a message that is not valid: it is cut off, no JSON-RPC, or no result of the method`, e.Message, "%v %s", stream, wrong)
			require.True(t, e.Retryable)
		}
	}
}

func TestRun_ChecksStructuredContentAgainstTheOutputSchema(t *testing.T) {
	t.Parallel()
	const schema = `{"type":"object","properties":{"n":{"type":"integer","maximum":5}},"required":["n"]}`
	for name, tc := range map[string]struct{ result, keyword string }{
		"a match":       {`{"content":[],"structuredContent":{"n":5}}`, ""},
		"a value":       {`{"content":[],"structuredContent":{"n":6}}`, "maximum"},
		"a type":        {`{"content":[],"structuredContent":{"n":"` + hush + `"}}`, "type"},
		"a member":      {`{"content":[],"structuredContent":{"` + hush + `":1}}`, "required"},
		"no object":     {`{"content":[],"structuredContent":[1]}`, "type"},
		"a text alone":  {`{"content":[{"type":"text","text":"{\"n\":1}"}]}`, "structuredContent is missing"},
		"null":          {`{"content":[],"structuredContent":null}`, "structuredContent is missing"},
		"its own error": {`{"content":[{"type":"text","text":"no"}],"isError":true}`, ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newRaw(t, tc.result, definition("other", ""), definition("t", schema))
			r := runner(t, s.URL)
			res := call(t, r, `{"server":"x","tool":"t","allowToolError":true}`)
			if tc.keyword == "" {
				want(t, res)
				return
			}
			e := fails(t, res, "tool_failed")
			require.Contains(t, e.Message, `MCP server "x" does not match the outputSchema that the server gives for it: `+tc.keyword)
			require.Equal(t, map[string]any{"server": "x", "tool": "t", "keyword": tc.keyword}, e.Details)
		})
	}
}

func TestRun_ReadsTheListOfToolsOnce(t *testing.T) {
	t.Parallel()
	s := newRaw(t, `{"content":[],"structuredContent":{"n":1}}`, definition("t", `{"type":"object"}`))
	r := runner(t, s.URL)
	for range 3 {
		want(t, call(t, r, callT))
	}
	require.Equal(t, 1, s.listed())

	// The server changes its tool: a result that does not match the old schema is checked by the new one.
	s.set(`{"content":[],"structuredContent":[1]}`, definition("t", `{"type":"array"}`))
	want(t, call(t, r, callT))
	require.Equal(t, 2, s.listed())
	want(t, call(t, r, callT))
	require.Equal(t, 2, s.listed())

	s.set(`{"content":[],"structuredContent":[1]}`, definition("t", `{"type":"array"}`), definition("later", `{"type":"object"}`))
	fails(t, call(t, r, `{"server":"x","tool":"later"}`), "tool_failed")
	require.Equal(t, 4, s.listed(), "a tool that the list lacked: its two pages are read")
}

// A list that cannot be read does not prevent calls.
func TestRun_CallsToolsThatAreNotListed(t *testing.T) {
	t.Parallel()
	big := definition("t", `{"description":"`+strings.Repeat("x", tool.MaxResultBytes)+`"}`)
	for name, list := range map[string][]string{"refused": nil, "too large": {big}, "without the tool": {definition("other", "")}} {
		s := newRaw(t, `{"content":[{"type":"text","text":"hi"}]}`, list...)
		r := runner(t, s.URL)
		for range 2 {
			require.Equal(t, `"hi"`, string(want(t, call(t, r, callT))["output"]), name)
			require.Equal(t, `"hi"`, string(want(t, call(t, r, `{"server":"x","tool":"u"}`))["output"]), name)
		}
		require.LessOrEqual(t, s.listed(), 2, name)
	}
}

// A schema that the host cannot apply is reported in the run, and its results are not checked.
func TestRun_ReportsASchemaThatIsNotApplied(t *testing.T) {
	t.Parallel()
	for _, schema := range []string{`{"$ref":"https://elsewhere.example/schema.json"}`, `{"type":"` + hush + `"}`, `7`} {
		s := newRaw(t, `{"content":[],"structuredContent":{"n":1}}`, definition("t", schema))
		j := newJournal()
		want(t, runner(t, s.URL).Run(t.Context(), task(callT), j))
		require.Len(t, j.all(), 1, schema)
		d := j.all()[0]
		require.Equal(t, wire.EventLogAppended, d.Type)
		require.Contains(t, string(d.Payload), `"level":"warn"`)
		require.Contains(t, string(d.Payload), `"reason":"output_schema_unusable"`)
		require.NotContains(t, string(d.Payload), "IGNORE")
	}
}

// Reports of progress reach the run, without words of the server.
func TestRun_RecordsProgress(t *testing.T) {
	t.Parallel()
	s := newRaw(t, `{"content":[{"type":"text","text":"hi"}]}`, definition("t", ""))
	s.stream, s.hold = true, make(chan struct{})
	s.progress = []string{
		`{"progressToken":"someone else's","progress":9}`,
		`{"progressToken":$TOKEN,"progress":2,"total":5,"message":"` + hush + `"}`,
		`{"progressToken":$TOKEN,"progress":3,"total":5}`,
	}
	recordsProgress(t, s)
}

// Some servers return the digits of a token as a number.
func TestRun_RecordsProgressOfATokenThatIsANumber(t *testing.T) {
	t.Parallel()
	s := newRaw(t, `{"content":[{"type":"text","text":"hi"}]}`, definition("t", ""))
	s.stream, s.hold = true, make(chan struct{})
	s.progress = []string{`{"progressToken":null,"progress":9}`, `{"progressToken":1.5,"progress":9}`, `{"progressToken":1,"progress":2,"total":5}`}
	recordsProgress(t, s)
}

func recordsProgress(t *testing.T, s *raw) {
	t.Helper()
	j := newJournal()
	done := make(chan model.Result, 1)
	r := runner(t, s.URL)
	go func() { done <- r.Run(context.Background(), task(callT), j) }()
	select {
	case <-j.heard:
	case <-time.After(20 * time.Second):
		require.Fail(t, "no progress was recorded")
	}
	close(s.hold)
	want(t, <-done)
	require.Len(t, j.all(), 1, "the next report is recorded after a while")
	d := j.all()[0]
	require.Equal(t, wire.EventLogAppended, d.Type)
	require.Equal(t, wire.Untrusted, d.Trust)
	require.Equal(t, "n", d.NodeID)
	require.Regexp(t, `^\{"level":"info","message":"the tool reports progress","nodeId":"n","fields":\{"reason":"tool_progress","progress":[23],"total":5\}\}$`, string(d.Payload))
}

func TestRun_CountsProgressNotAgainstTheAnswer(t *testing.T) {
	t.Parallel()
	s := newRaw(t, `{"content":[{"type":"text","text":"hi"}]}`, definition("t", ""))
	s.stream = true
	for i := range 30_000 {
		s.progress = append(s.progress, fmt.Sprintf(`{"progressToken":$TOKEN,"progress":%d}`, i))
	}
	require.Equal(t, `"hi"`, string(want(t, call(t, runner(t, s.URL), callT))["output"]))
	s.set(`{"content":[{"type":"text","text":"`+strings.Repeat("x", tool.MaxResultBytes)+`"}]}`, definition("t", ""))
	s.progress = nil
	fails(t, call(t, runner(t, s.URL), callT), "content_too_long")
}
