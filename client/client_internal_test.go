package client

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"waybill.dev/waybill/protocol/fault"
	"waybill.dev/waybill/protocol/wire"
)

// serve starts a host with a handler, and returns a client of it that does not wait between retries.
func serve(t *testing.T, h http.HandlerFunc, options ...Option) *Client {
	t.Helper()
	s := httptest.NewServer(h)
	t.Cleanup(s.Close)
	c, err := New(s.URL+"/", options...)
	require.NoError(t, err)
	c.wait = func(ctx context.Context, _ time.Duration) error { return ctx.Err() }
	return c
}

func TestNew_RejectsInvalidURLs(t *testing.T) {
	t.Parallel()
	for _, bad := range []string{"", "localhost:8080", "ftp://x", "http://", "http://u:p@x", "http://x?y=1"} {
		_, err := New(bad)
		require.Error(t, err, bad)
	}
	c, err := New("https://x.example/a/b/")
	require.NoError(t, err)
	require.Equal(t, "https://x.example/a/b", c.Base())
}

func TestError_HasTheCodeAndTheStatusOfTheHost(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		name   string
		status int
		body   string
		code   fault.Code
	}{
		{"known", 404, `{"error":"run_not_found","message":"no run of this id","details":{"runId":"x"}}`, fault.RunNotFound},
		{"another host's code", 418, `{"error":"teapot","message":"short and stout"}`, "teapot"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			c := serve(t, func(w http.ResponseWriter, _ *http.Request) {
				w.WriteHeader(tc.status)
				_, _ = io.WriteString(w, tc.body)
			})
			_, err := c.Run(t.Context(), "x")
			var e *Error
			require.ErrorAs(t, err, &e)
			require.Equal(t, tc.status, e.Status)
			require.ErrorIs(t, err, fault.New(tc.code, ""))
		})
	}
}

func TestError_DistinguishesAForeignServerFromAHost(t *testing.T) {
	t.Parallel()
	c := serve(t, func(w http.ResponseWriter, r *http.Request) {
		switch r.URL.Path {
		case "/v1/runs/moved":
			http.Redirect(w, r, "https://elsewhere.example/", http.StatusFound)
		case "/v1/runs/proxied":
			http.Error(w, "<h1>Bad Gateway</h1>", http.StatusBadGateway)
		default:
			_, _ = io.WriteString(w, "<html>hello</html>")
		}
	})
	var foreign *ForeignError
	_, err := c.Run(t.Context(), "moved")
	require.ErrorAs(t, err, &foreign)
	require.Contains(t, err.Error(), "https://elsewhere.example/")
	_, err = c.Run(t.Context(), "proxied")
	require.ErrorIs(t, err, ErrUnreachable)
	_, err = c.Run(t.Context(), "page")
	require.ErrorAs(t, err, &foreign)
	_, err = c.Capabilities(t.Context())
	require.ErrorAs(t, err, &foreign)
}

func TestUnreachable_IsNotACancelledContext(t *testing.T) {
	t.Parallel()
	c := serve(t, func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() }, WithTimeout(20*time.Millisecond))
	_, err := c.Run(t.Context(), "x")
	require.ErrorIs(t, err, ErrUnreachable)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, err = c.Run(ctx, "x")
	require.ErrorIs(t, err, context.Canceled)
	require.NotErrorIs(t, err, ErrUnreachable)
	gone, err := New("http://127.0.0.1:1")
	require.NoError(t, err)
	_, err = gone.Run(t.Context(), "x")
	require.ErrorIs(t, err, ErrUnreachable)
}

func TestWrite_IsRetriedWithTheSameKey(t *testing.T) {
	t.Parallel()
	var keys []string
	c := serve(t, func(w http.ResponseWriter, r *http.Request) {
		keys = append(keys, r.Header.Get("Idempotency-Key"))
		require.Equal(t, "Bearer secret", r.Header.Get("Authorization"))
		switch len(keys) {
		case 1: // the answer is lost
			conn, _, err := w.(http.Hijacker).Hijack()
			require.NoError(t, err)
			_ = conn.Close()
		case 2:
			w.Header().Set("Retry-After", "1")
			w.WriteHeader(http.StatusServiceUnavailable)
			_, _ = io.WriteString(w, `{"error":"service_unavailable","message":"soon"}`)
		default:
			w.Header().Set("openwop-Idempotent-Replay", "true")
			w.WriteHeader(http.StatusCreated)
			_, _ = io.WriteString(w, `{"runId":"r1","status":"pending","eventsUrl":"u"}`)
		}
	}, WithToken("secret"))
	run, err := c.Start(t.Context(), StartRun{WorkflowID: "w"})
	require.NoError(t, err)
	require.Equal(t, "r1", run.RunID)
	require.True(t, run.Replayed)
	require.Len(t, keys, 3)
	require.NotEmpty(t, keys[0])
	require.Equal(t, []string{keys[0], keys[0], keys[0]}, keys)
}

func TestWrite_IsNotRetriedAfterARejection(t *testing.T) {
	t.Parallel()
	for _, body := range []string{
		`{"error":"conflict","message":"no"}`,
		`{"error":"rate_limited","message":"much later"}`,
	} {
		var requests atomic.Int32
		c := serve(t, func(w http.ResponseWriter, _ *http.Request) {
			requests.Add(1)
			w.Header().Set("Retry-After", "3600")
			w.WriteHeader(http.StatusConflict)
			_, _ = io.WriteString(w, body)
		})
		_, err := c.Cancel(t.Context(), "r", "why")
		require.Error(t, err)
		require.EqualValues(t, 1, requests.Load(), body)
	}
}

// log is a host with one run, whose stream breaks as configured.
type log struct {
	types []string
	// breaks are the numbers of frames of the first connections; later ones send all.
	breaks []int
	skip   int // event that the stream leaves out; 0 means none
	twice  bool
	silent bool // the stream sends no event
	seen   []string
	polls  int
}

func (l *log) event(seq int) string {
	return fmt.Sprintf(`{"eventId":"e%d","runId":"r","sequence":%d,"type":%q,"payload":{},"timestamp":"t","x":1}`, seq, seq, l.types[seq])
}

func (l *log) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if strings.HasSuffix(r.URL.Path, "/poll") {
		l.polls++
		from, _ := strconv.Atoi(r.URL.Query().Get("lastSequence"))
		var docs []string
		for seq := from + 1; seq < len(l.types); seq++ {
			docs = append(docs, l.event(seq))
		}
		fmt.Fprintf(w, `{"runId":"r","events":[%s],"isComplete":true,"isTerminal":true,"lastEventSeq":%d,"runStatus":"completed"}`, strings.Join(docs, ","), len(l.types)-1)
		return
	}
	l.seen = append(l.seen, r.Header.Get("Last-Event-ID"))
	w.Header().Set("Content-Type", "text/event-stream")
	left := len(l.types)
	if len(l.breaks) > 0 {
		left, l.breaks = l.breaks[0], l.breaks[1:]
	}
	if l.silent {
		left = 0
	}
	_, _ = io.WriteString(w, ":keepalive\n\nevent: run.annotated\ndata: {\"runId\":\"r\"}\n\n")
	first := 0
	if id := r.Header.Get("Last-Event-ID"); id != "" {
		n, _ := strconv.Atoi(id)
		first = n + 1
	}
	for seq := first; seq < len(l.types) && left > 0; seq, left = seq+1, left-1 {
		if seq == l.skip && seq > 0 {
			continue
		}
		times := 1
		if l.twice {
			times = 2
		}
		for range times {
			fmt.Fprintf(w, "id: %d\nevent: %s\ndata: %s\n\n", seq, l.types[seq], l.event(seq))
		}
	}
}

func TestFollow_YieldsEachEventOnceOverBrokenConnections(t *testing.T) {
	t.Parallel()
	types := []string{"run.started", "node.started", "acme.invoice.paid", "node.completed", "run.completed"}
	for _, tc := range []struct {
		name  string
		log   *log
		from  int
		seen  []string
		polls int
		want  State
	}{
		{"one connection", &log{}, 0, []string{""}, 0, Live},
		{"two breaks", &log{breaks: []int{2, 1}}, 0, []string{"", "1", "2"}, 0, Live},
		{"a break before the first event", &log{breaks: []int{0}}, 0, []string{"", ""}, 0, Live},
		{"every frame twice", &log{twice: true}, 0, []string{""}, 0, Live},
		{"a frame is missing", &log{skip: 2}, 0, []string{""}, 1, Live},
		{"from the middle", &log{}, 3, []string{"2"}, 0, Live},
		{"a stream without events", &log{silent: true}, 0, []string{"", "", "", ""}, 1, Polling},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			tc.log.types = types
			c := serve(t, tc.log.ServeHTTP)
			var got []string
			var state State
			for e, err := range c.Follow(t.Context(), "r", FollowOptions{From: tc.from, OnState: func(s State, _ error) { state = s }}) {
				require.NoError(t, err)
				require.Equal(t, tc.from+len(got), e.Sequence)
				require.Contains(t, string(e.Doc), `"x":1`, "the document is the original")
				got = append(got, string(e.Type))
			}
			require.Equal(t, types[tc.from:], got)
			require.Equal(t, tc.seen, tc.log.seen)
			require.Equal(t, tc.polls, tc.log.polls)
			require.Equal(t, tc.want, state)
		})
	}
}

func TestFollow_EndsWithARejection(t *testing.T) {
	t.Parallel()
	c := serve(t, func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(http.StatusNotFound)
		_, _ = io.WriteString(w, `{"error":"run_not_found","message":"none"}`)
	})
	var errs []error
	for _, err := range c.Follow(t.Context(), "r", FollowOptions{}) {
		errs = append(errs, err)
	}
	require.Len(t, errs, 1)
	require.ErrorIs(t, errs[0], fault.New(fault.RunNotFound, ""))
}

func TestFollow_EndsWithItsReaderAndItsContext(t *testing.T) {
	t.Parallel()
	l := &log{types: []string{"run.started", "node.started", "run.completed"}}
	c := serve(t, l.ServeHTTP)
	for e, err := range c.Follow(t.Context(), "r", FollowOptions{}) {
		require.NoError(t, err)
		require.Equal(t, wire.EventRunStarted, e.Type)
		break
	}
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	var last error
	for _, err := range c.Follow(ctx, "r", FollowOptions{}) {
		cancel()
		last = err
	}
	require.ErrorIs(t, last, context.Canceled)
}

func TestEvent_KeepsItsDocument(t *testing.T) {
	t.Parallel()
	const doc = `{"eventId":"e","sequence":7,"type":"run.started","payload":{"big":9007199254740993},"later":true}`
	var e Event
	require.NoError(t, json.Unmarshal([]byte(doc), &e))
	require.Equal(t, 7, e.Sequence)
	require.Equal(t, doc, string(e.Doc))
}

// Exchange returns error responses, does not retry, and generates no key.
func TestExchange_ReturnsEveryResponseUnchanged(t *testing.T) {
	t.Parallel()
	var requests atomic.Int32
	c := serve(t, func(w http.ResponseWriter, r *http.Request) {
		requests.Add(1)
		require.Empty(t, r.Header.Get("Idempotency-Key"))
		require.Equal(t, "4", r.Header.Get("Last-Event-ID"))
		w.Header().Set("Retry-After", "1")
		w.WriteHeader(http.StatusServiceUnavailable)
		_, _ = io.Copy(w, r.Body)
	})
	a, err := c.Exchange(t.Context(), Exchange{Method: http.MethodPost, Path: "/x", Header: http.Header{"Last-Event-Id": {"4"}}, Body: map[string]int{"a": 1}})
	require.NoError(t, err)
	require.Equal(t, http.StatusServiceUnavailable, a.Status)
	require.JSONEq(t, `{"a":1}`, string(a.Body))
	require.EqualValues(t, 1, requests.Load())
}

// A document keeps its bytes: a definition comes back as its author wrote it, and two ways to register
// it are the same definition.
func TestEncode_SendsADocumentAsItIsWritten(t *testing.T) {
	t.Parallel()
	doc := "{\n  \"id\": \"a\"\n}\n"
	b, err := encode(json.RawMessage(doc))
	require.NoError(t, err)
	require.Equal(t, doc, string(b))
}
