package rest_test

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"strconv"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	"google.golang.org/grpc"
	"google.golang.org/grpc/metadata"
	"google.golang.org/protobuf/proto"

	openwopv1 "waybill.dev/waybill/proto/gen/go/openwop/v1"
	hostv1 "waybill.dev/waybill/proto/gen/go/waybill/host/v1"
	"waybill.dev/waybill/protocol/fault"
	"waybill.dev/waybill/services/gateway/engine"
	"waybill.dev/waybill/services/gateway/rest"
)

// source is a fake engine.
type source struct {
	head int // the sequence of the last event
	openwopv1.EngineClient
	hostv1.HostClient
	grpc.ClientStream
	ctx      context.Context //nolint:containedctx // what a client stream is
	asked    *openwopv1.StreamRunEventsRequest
	outgoing metadata.MD
	items    chan *openwopv1.RunEventEnvelope
	refusal  error
	polls    []*hostv1.PollRunEventsRequest
	pages    []*hostv1.PollRunEventsResponse
}

func (s *source) StreamRunEvents(ctx context.Context, r *openwopv1.StreamRunEventsRequest, _ ...grpc.CallOption) (grpc.ServerStreamingClient[openwopv1.RunEventEnvelope], error) {
	s.ctx, s.asked = ctx, r
	s.outgoing, _ = metadata.FromOutgoingContext(ctx)
	return s, nil
}

func (s *source) Header() (metadata.MD, error) {
	if s.refusal != nil {
		return nil, nil
	}
	return metadata.Pairs(engine.MetaStreaming, "1"), nil
}

func (s *source) Recv() (*openwopv1.RunEventEnvelope, error) {
	if s.refusal != nil {
		return nil, s.refusal
	}
	select {
	case it, ok := <-s.items:
		if !ok {
			return nil, io.EOF
		}
		return it, nil
	case <-s.ctx.Done():
		return nil, s.ctx.Err()
	}
}

func (s *source) PollRunEvents(_ context.Context, r *hostv1.PollRunEventsRequest, opts ...grpc.CallOption) (*hostv1.PollRunEventsResponse, error) {
	for _, o := range opts {
		if h, ok := o.(grpc.HeaderCallOption); ok {
			*h.HeaderAddr = metadata.Pairs(engine.MetaHead, strconv.Itoa(s.head))
		}
	}
	if s.refusal != nil {
		return nil, s.refusal
	}
	s.polls = append(s.polls, r)
	if len(s.pages) == 0 {
		return &hostv1.PollRunEventsResponse{}, nil
	}
	return s.pages[len(s.polls)-1], nil
}

func item(n int64, name, data string) *openwopv1.RunEventEnvelope {
	return &openwopv1.RunEventEnvelope{Sequence: n, Event: name, Data: &openwopv1.JsonDocument{Json: []byte(data)}}
}

func feeding(list ...*openwopv1.RunEventEnvelope) *source {
	s := &source{items: make(chan *openwopv1.RunEventEnvelope, 8)}
	for _, it := range list {
		s.items <- it
	}
	return s
}

// answer is a response that may be read while it is written.
type answer struct {
	mu      sync.Mutex // guards the rest
	header  http.Header
	status  int
	body    strings.Builder
	flushes int
	refuses error
	// allowed is how long each write had, in order.
	allowed []time.Duration
}

// SetWriteDeadline makes it a writer as net/http's are.
func (a *answer) SetWriteDeadline(at time.Time) error {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.allowed = append(a.allowed, time.Until(at))
	return nil
}

func (a *answer) Header() http.Header { return a.header }
func (a *answer) WriteHeader(n int)   { a.mu.Lock(); defer a.mu.Unlock(); a.status = n }
func (a *answer) Flush()              { a.mu.Lock(); defer a.mu.Unlock(); a.flushes++ }
func (a *answer) Write(b []byte) (int, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.refuses != nil {
		return 0, a.refuses
	}
	return a.body.Write(b)
}

func (a *answer) written() string { a.mu.Lock(); defer a.mu.Unlock(); return a.body.String() }

func (a *answer) flushed() int { a.mu.Lock(); defer a.mu.Unlock(); return a.flushes }

// handler writes refusals as their code.
func handler(s *source, closing chan struct{}) *rest.EventStreams {
	return &rest.EventStreams{
		Engine: s, Host: s, Logger: slog.New(slog.DiscardHandler), Closing: closing,
		Fail: func(w http.ResponseWriter, _ *slog.Logger, err error) {
			w.WriteHeader(fault.Lookup(fault.CodeOf(err)).HTTP)
			_, _ = io.WriteString(w, string(fault.CodeOf(err)))
		},
	}
}

func request(t testing.TB, query string, headers ...string) *http.Request {
	t.Helper()
	r := httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/v1/runs/run_1/events"+query, nil)
	r.Header.Set("Authorization", "Bearer k")
	for i := 0; i < len(headers); i += 2 {
		r.Header.Set(headers[i], headers[i+1])
	}
	return r
}

func TestStream_FramesEventsAndEndsWithItsSource(t *testing.T) {
	t.Parallel()
	s := feeding(item(0, "run.started", `{"a":1}`), item(-1, "run.annotated", `{"n":1}`), item(7, "batch", "[{\n\"b\":\r\n2}]"), item(8, "run.completed", `{}`))
	close(s.items)
	w := &answer{header: http.Header{}}
	handler(s, nil).ServeHTTP(w, request(t, ""))
	require.Equal(t, http.StatusOK, w.status)
	require.Equal(t, "text/event-stream", w.header.Get("Content-Type"))
	require.Equal(t, "no-cache", w.header.Get("Cache-Control"))
	require.Equal(t, "no", w.header.Get("X-Accel-Buffering"))
	require.Equal(t, "keep-alive", w.header.Get("Connection"))
	require.Equal(t, "id: 0\nevent: run.started\ndata: {\"a\":1}\n\n"+
		"event: run.annotated\ndata: {\"n\":1}\n\n"+ // not an event: no id to resume from
		"id: 7\nevent: batch\ndata: [{ \"b\":  2}]\n\n"+
		"id: 8\nevent: run.completed\ndata: {}\n\n", w.written(), "data is one line")
	require.Equal(t, 5, w.flushed(), "the headers, and each frame at once")
	require.Equal(t, []string{"Bearer k"}, s.outgoing.Get("authorization"))
	require.Equal(t, "run_1", s.asked.GetRunId())
}

func TestStream_AnswersARefusalAsAnError(t *testing.T) {
	t.Parallel()
	for _, err := range []error{
		fault.New(fault.RunNotFound, "no"), fault.New(fault.UnsupportedStreamMode, "no"), io.EOF,
		errors.New("x"),
	} {
		s := feeding()
		s.refusal = err
		w := &answer{header: http.Header{}}
		handler(s, nil).ServeHTTP(w, request(t, ""))
		require.GreaterOrEqual(t, w.status, 400)
		require.NotEqual(t, "text/event-stream", w.header.Get("Content-Type"))
		require.Error(t, s.ctx.Err(), "nothing is left open")
	}
}

func TestRequest_ReadsItsParameters(t *testing.T) {
	t.Parallel()
	seq := proto.Int64
	cases := []struct {
		name, query, last string
		want              *openwopv1.StreamRunEventsRequest
	}{
		{"nothing", "", "", &openwopv1.StreamRunEventsRequest{}},
		{
			"modes", "?streamMode=updates,debug&streamMode=messages", "",
			&openwopv1.StreamRunEventsRequest{StreamModes: []string{"updates,debug", "messages"}},
		},
		{"empty mode", "?streamMode=", "", &openwopv1.StreamRunEventsRequest{StreamModes: []string{""}}},
		{"buffer", "?bufferMs=250", "", &openwopv1.StreamRunEventsRequest{BufferMs: 250}},
		{"buffer of letters", "?bufferMs=x", "", &openwopv1.StreamRunEventsRequest{BufferMs: -1}},
		{"buffer without a value", "?bufferMs=", "", &openwopv1.StreamRunEventsRequest{BufferMs: -1}},
		{"buffer with a fraction", "?bufferMs=1.5", "", &openwopv1.StreamRunEventsRequest{BufferMs: -1}},
		{"buffer too large for a number", "?bufferMs=99999999999", "", &openwopv1.StreamRunEventsRequest{BufferMs: -1}},
		{"zero", "", "0", &openwopv1.StreamRunEventsRequest{LastSequence: seq(0)}},
		{"cursor", "", "0012", &openwopv1.StreamRunEventsRequest{LastSequence: seq(12)}},
		{"negative", "", "-1", &openwopv1.StreamRunEventsRequest{LastSequence: seq(-2)}},
		{"sign", "", "+1", &openwopv1.StreamRunEventsRequest{LastSequence: seq(-2)}},
		{"letters", "", "1a", &openwopv1.StreamRunEventsRequest{LastSequence: seq(-2)}},
		{"white space", "", "1 2", &openwopv1.StreamRunEventsRequest{LastSequence: seq(-2)}},
		{"beyond counting", "", strings.Repeat("9", 40), &openwopv1.StreamRunEventsRequest{LastSequence: seq(1<<62 - 1)}},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			s := feeding()
			close(s.items)
			r := request(t, c.query)
			if c.last != "" {
				r.Header.Set("Last-Event-ID", c.last)
			}
			handler(s, nil).ServeHTTP(&answer{header: http.Header{}}, r)
			c.want.RunId = "run_1"
			require.True(t, proto.Equal(c.want, s.asked), "%v", s.asked)
		})
	}
}

func FuzzLastEventID(f *testing.F) {
	for _, seed := range []string{"0", "12", "-1", "x", "9999999999999999999999", " ", "٣"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, v string) {
		if v == "" {
			return
		}
		s := feeding()
		close(s.items)
		r := request(t, "")
		r.Header["Last-Event-Id"] = []string{v}
		handler(s, nil).ServeHTTP(&answer{header: http.Header{}}, r)
		digits := strings.Trim(v, "0123456789") == ""
		require.Equal(t, digits, s.asked.GetLastSequence() >= 0, "%q", v)
	})
}

func TestStream_KeepsAQuietConnectionAlive(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s, w, done := feeding(), &answer{header: http.Header{}}, make(chan struct{})
		ctx, cancel := context.WithCancel(t.Context())
		go func() {
			defer close(done)
			handler(s, nil).ServeHTTP(w, request(t, "").WithContext(ctx))
		}()
		synctest.Wait()
		require.Equal(t, 1, w.flushed(), "headers go out before the first event")
		require.Empty(t, w.written())
		time.Sleep(31 * time.Second) // synthetic
		synctest.Wait()
		require.Equal(t, ":keepalive\n\n:keepalive\n\n", w.written(), "never silent for 30 seconds")
		s.items <- item(0, "run.started", `{}`)
		synctest.Wait()
		require.True(t, strings.HasSuffix(w.written(), "id: 0\nevent: run.started\ndata: {}\n\n"))
		cancel()
		<-done
		require.Error(t, s.ctx.Err(), "the source is let go with its reader")
	})
}

// A slow reader is disconnected and resumes; it delays nothing else (OpenWOP host contract §4.6). The
// limit applies to each write, so a quiet run is not affected.
func TestStream_LimitsHowLongAReaderBlocksAWrite(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s, w, done := feeding(item(0, "run.started", `{}`)), &answer{header: http.Header{}}, make(chan struct{})
		go func() {
			defer close(done)
			handler(s, nil).ServeHTTP(w, request(t, ""))
		}()
		time.Sleep(16 * time.Second) // synthetic
		w.mu.Lock()
		w.refuses = os.ErrDeadlineExceeded
		w.mu.Unlock()
		s.items <- item(1, "run.completed", `{}`)
		<-done
		require.Equal(t, []time.Duration{
			10 * time.Second,
			10 * time.Second,
			10 * time.Second,
		}, w.allowed, "frame, comment, frame")
		require.NotContains(t, w.written(), "run.completed")
		require.Error(t, s.ctx.Err(), "its source is let go")
	})
}

func TestStream_EndsWhenTheServerStopsOrTheReaderIsGone(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		closing, done := make(chan struct{}), make(chan struct{})
		go func() {
			defer close(done)
			handler(feeding(), closing).ServeHTTP(&answer{header: http.Header{}}, request(t, ""))
		}()
		synctest.Wait()
		close(closing)
		<-done
		s := feeding(item(0, "run.started", `{}`))
		handler(s, nil).ServeHTTP(&answer{header: http.Header{}, refuses: errors.New("gone")}, request(t, ""))
		require.Error(t, s.ctx.Err())
	})
}

func TestAccept_ChoosesBetweenStreamAndDocument(t *testing.T) {
	t.Parallel()
	for accept, document := range map[string]bool{
		"": false, "*/*": false, "text/event-stream": false, "application/json": true, "application/json, */*": true,
		"application/json, text/event-stream": false, "text/event-stream;q=0.1,application/json": false, "text/html": false,
	} {
		s := feeding()
		close(s.items)
		s.pages = []*hostv1.PollRunEventsResponse{{
			RunId:      "run_1",
			IsComplete: true,
			IsTerminal: true,
			RunStatus:  "completed",
		}}
		w := &answer{header: http.Header{}}
		handler(s, nil).ServeHTTP(w, request(t, "", "Accept", accept))
		require.Equal(t, document, w.header.Get("Content-Type") == "application/json", accept)
		if document {
			require.JSONEq(t, `{"runId":"run_1","events":[],"isComplete":true,"isTerminal":true,"lastEventSeq":0,"runStatus":"completed"}`, w.written())
		}
	}
}

func TestDocument_HasTheWholeLogFromTheStart(t *testing.T) {
	t.Parallel()
	s, page := feeding(), &hostv1.PollRunEventsResponse{LastEventSeq: 4999}
	for range 5000 {
		page.Events = append(page.Events, &openwopv1.JsonDocument{Json: []byte(`{}`)})
	}
	s.head = 5000
	s.pages = []*hostv1.PollRunEventsResponse{
		page,
		{RunId: "run_1", LastEventSeq: 5000, Events: []*openwopv1.JsonDocument{{Json: []byte(`{"last":1}`)}}},
	}
	w := &answer{header: http.Header{}}
	handler(s, nil).ServeHTTP(w, request(t, "", "Accept", "application/json", "Last-Event-ID", "7"))
	require.Len(t, s.polls, 2)
	require.Equal(t, int64(-1), s.polls[0].GetLastSequence())
	require.Equal(t, int64(4999), s.polls[1].GetLastSequence())
	require.Equal(t, 5000, strings.Count(w.written(), `{},`))
	require.Contains(t, w.written(), `{"last":1}],`)
}

// Events are written in pieces, whatever their sizes.
func TestDocument_IsWrittenInPieces(t *testing.T) {
	t.Parallel()
	s, page := feeding(), &hostv1.PollRunEventsResponse{RunId: "run_1", IsComplete: true, RunStatus: "completed"}
	want := `{"runId":"run_1","events":[`
	for i, size := range []int{1, 60 << 10, 10 << 10, 200 << 10, 1, 64 << 10, 64<<10 - 2, 5, 5} {
		event := `"` + strings.Repeat("x", size) + `"`
		page.Events = append(page.Events, &openwopv1.JsonDocument{Json: []byte(event)})
		if i > 0 {
			want += ","
		}
		want += event
	}
	s.pages = []*hostv1.PollRunEventsResponse{page}
	w := &answer{header: http.Header{}}
	handler(s, nil).ServeHTTP(w, request(t, "", "Accept", "application/json"))
	require.Equal(t, want+`],"isComplete":true,"isTerminal":false,"lastEventSeq":0,"runStatus":"completed"}`, w.written())
}

func TestDocument_FollowsTheRulesOfTheStream(t *testing.T) {
	t.Parallel()
	for query, code := range map[string]fault.Code{
		"?streamMode=bogus":            fault.UnsupportedStreamMode,
		"?streamMode=values,debug":     fault.UnsupportedStreamMode,
		"?bufferMs=5001":               fault.ValidationError,
		"?bufferMs=x":                  fault.ValidationError,
		"?streamMode=bogus&bufferMs=x": fault.UnsupportedStreamMode,
	} {
		w := &answer{header: http.Header{}}
		handler(feeding(), nil).ServeHTTP(w, request(t, query, "Accept", "application/json"))
		require.Equal(t, string(code), w.written(), query)
	}
	s := feeding()
	s.refusal = fault.New(fault.RunNotFound, "no")
	w := &answer{header: http.Header{}}
	handler(s, nil).ServeHTTP(w, request(t, "?streamMode=bogus", "Accept", "application/json"))
	require.Equal(t, string(fault.RunNotFound), w.written(), "the run comes first")
}
