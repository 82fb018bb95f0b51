package rest

import (
	"cmp"
	"context"
	"errors"
	"io"
	"log/slog"
	"net/http"
	"strconv"
	"strings"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/metadata"
	"google.golang.org/protobuf/proto"

	openwopv1 "waybill.dev/waybill/proto/gen/go/openwop/v1"
	hostv1 "waybill.dev/waybill/proto/gen/go/waybill/host/v1"
	"waybill.dev/waybill/services/gateway/engine"
	"waybill.dev/waybill/services/gateway/runview"
)

const (
	// keepAlive is half the silence that the protocol allows.
	keepAlive = 15 * time.Second
	// writeTimeout is how long a slow reader may block one frame. A reader that is cut
	// off resumes with Last-Event-ID.
	writeTimeout = 10 * time.Second
)

// EventStreams serves streams over HTTP: the events of a run and the changed rows of the
// run list. Events are sent as server-sent events, or as one JSON document to callers that
// accept JSON only (OpenWOP host contract §4). The gRPC stream behind it decides which
// events are shown.
type EventStreams struct {
	Engine openwopv1.EngineClient
	Host   hostv1.HostClient
	// Fail writes an error answer.
	Fail   func(http.ResponseWriter, *slog.Logger, error)
	Logger *slog.Logger
	// Closing ends all streams when it is closed, so that the server can stop.
	Closing <-chan struct{}
}

// ServeHTTP answers GET /v1/runs/{runId}/events.
func (s *EventStreams) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	runID := strings.TrimSuffix(strings.TrimPrefix(r.URL.Path, "/v1/runs/"), "/events")
	ctx, cancel := context.WithCancel(metadata.AppendToOutgoingContext(r.Context(), "authorization", r.Header.Get("Authorization")))
	defer cancel()
	var err error
	if wantsJSON(r.Header.Get("Accept")) {
		err = s.serveDocument(ctx, w, r, runID)
	} else {
		err = s.serveStream(ctx, w, r, runID)
	}
	if err != nil {
		s.Fail(w, s.Logger, err)
	}
}

// wantsJSON reports whether the caller accepts JSON and no event stream.
func wantsJSON(accept string) bool {
	return strings.Contains(accept, "application/json") && !strings.Contains(accept, "text/event-stream")
}

// streamRequest reads the parameters. An invalid parameter is passed on as a value that
// the engine rejects, which keeps the order of the engine's checks.
func streamRequest(r *http.Request, runID string) *openwopv1.StreamRunEventsRequest {
	q := r.URL.Query()
	req := &openwopv1.StreamRunEventsRequest{RunId: runID, StreamModes: q["streamMode"]}
	if v, ok := q["bufferMs"]; ok {
		req.BufferMs = -1
		if n, err := strconv.ParseInt(v[0], 10, 32); err == nil && integer.MatchString(v[0]) {
			req.BufferMs = int32(n)
		}
	}
	if v := cmp.Or(r.Header.Get("Last-Event-ID"), q.Get("lastEventId")); v != "" {
		req.LastSequence = proto.Int64(lastEventID(v))
	}
	return req
}

// malformedCursor is a sequence that the engine rejects.
const malformedCursor = -2

// lastEventID reads a Last-Event-ID, which must be digits only. A number too large to count
// becomes one that is larger than every sequence.
func lastEventID(v string) int64 {
	for i := range len(v) {
		if v[i] < '0' || v[i] > '9' {
			return malformedCursor
		}
	}
	n, err := strconv.ParseInt(v, 10, 64)
	if err != nil {
		return 1<<62 - 1
	}
	return n
}

// awaitAccepted waits until the server has accepted a stream, or returns why it did not. over: there
// is nothing left to send.
func awaitAccepted[T any](in grpc.ServerStreamingClient[T]) (over bool, err error) {
	// The server sends headers when it accepts; otherwise the next receive returns the error.
	md, err := in.Header()
	if err != nil {
		return false, err
	}
	if accepted := md.Get(engine.MetaStreaming); len(accepted) != 0 {
		return accepted[0] == engine.StreamOver, nil
	}
	_, err = in.Recv()
	if err == nil || errors.Is(err, io.EOF) {
		return false, errors.New("stream ended before it began")
	}
	return false, err
}

// serveStream serves events as server-sent events.
func (s *EventStreams) serveStream(ctx context.Context, w http.ResponseWriter, r *http.Request, runID string) error {
	in, err := s.Engine.StreamRunEvents(ctx, streamRequest(r, runID))
	if err != nil {
		return err
	}
	over, err := awaitAccepted(in)
	if err != nil {
		return err
	}
	if over { // a standard EventSource reconnects after every end but this one
		w.Header().Set("Cache-Control", "no-store")
		w.WriteHeader(http.StatusNoContent)
		return nil
	}
	f, ok := s.open(w, r, "no-cache")
	if !ok {
		return nil
	}
	s.pump(ctx, f, func() (frame, error) {
		it, err := in.Recv()
		return frame{size: len(it.GetData().GetJson()), render: func() []byte { return eventFrame(it) }}, err
	})
	return nil
}

// frame is an SSE frame that is rendered when there is room for it.
type frame struct {
	size   int // at least that of its data
	render func() []byte
}

// open sends the headers of a stream. ok is false if the client has gone.
func (s *EventStreams) open(w http.ResponseWriter, r *http.Request, cache string) (f framer, ok bool) {
	w = endless(w)
	f = framer{w: w, ctl: http.NewResponseController(w)}
	head := w.Header()
	head.Set("Content-Type", "text/event-stream")
	head.Set("Cache-Control", cache)
	head.Set("X-Accel-Buffering", "no")
	if r.ProtoMajor == 1 {
		head.Set("Connection", "keep-alive")
	}
	w.WriteHeader(http.StatusOK)
	return f, f.flush() == nil
}

type received struct {
	frame frame
	err   error
}

// pump writes frames until the stream ends, the client disconnects, or the server stops.
// Errors after the headers cannot be reported; the client resumes.
func (s *EventStreams) pump(ctx context.Context, f framer, next func() (frame, error)) {
	items := make(chan received)
	go func() { // ends with ctx, which ends next
		for {
			it, err := next()
			select {
			case items <- received{it, err}:
			case <-ctx.Done():
				return
			}
			if err != nil {
				return
			}
		}
	}()
	tick := time.NewTicker(keepAlive)
	defer tick.Stop()
	for {
		var err error
		select {
		case <-ctx.Done():
			return
		case <-s.Closing:
			return
		case <-tick.C:
			err = f.comment()
		case r := <-items:
			if r.err != nil {
				if !errors.Is(r.err, io.EOF) && ctx.Err() == nil {
					s.Logger.Debug("event stream ended early", "error", r.err)
				}
				return
			}
			err = f.writeHeld(ctx, r.frame)
		}
		if err != nil {
			return
		}
	}
}

// framer writes SSE frames, each within a time limit.
type framer struct {
	w   http.ResponseWriter
	ctl *http.ResponseController
}

// eventFrame renders an item of a run's stream.
func eventFrame(it *openwopv1.RunEventEnvelope) []byte {
	data := it.GetData().GetJson()
	b := make([]byte, 0, len(data)+64)
	if it.GetSequence() >= 0 { // other items are not recorded, so no reader can resume from them
		b = append(b, "id: "...)
		b = strconv.AppendInt(b, it.GetSequence(), 10)
		b = append(b, '\n')
	}
	b = append(b, "event: "...)
	b = append(b, it.GetEvent()...)
	b = append(b, "\ndata: "...)
	b = appendLine(b, data)
	return append(b, "\n\n"...)
}

// appendLine appends JSON as one line. A workflow definition may contain line breaks
// between tokens.
func appendLine(b, data []byte) []byte {
	for _, c := range data {
		if c == '\n' || c == '\r' {
			c = ' '
		}
		b = append(b, c)
	}
	return b
}

func (f framer) comment() error { return f.write([]byte(":keepalive\n\n")) }

// writeHeld writes a frame. A large one waits until there is room for its bytes. If too much waits
// already, the stream ends.
func (f framer) writeHeld(ctx context.Context, it frame) error {
	if it.size <= smallAnswer {
		return f.write(it.render())
	}
	held := accountOf(ctx)
	ctx, cancel := context.WithTimeout(ctx, writeTimeout)
	defer cancel()
	if err := held.Wait(ctx, int64(it.size)); err != nil {
		return err // the reader resumes
	}
	defer held.Close()
	return f.write(it.render())
}

func (f framer) write(b []byte) error {
	// Writers other than those of net/http may not support deadlines.
	_ = f.ctl.SetWriteDeadline(time.Now().Add(writeTimeout))
	if _, err := f.w.Write(b); err != nil {
		return err
	}
	return f.flush()
}

func (f framer) flush() error { return f.ctl.Flush() }

// serveDocument returns all events so far, in the shape of a poll. It checks the stream's
// parameters, too. The first page shows whether the run exists, and its last event.
func (s *EventStreams) serveDocument(ctx context.Context, w http.ResponseWriter, r *http.Request, runID string) error {
	var answered metadata.MD
	page, err := s.poll(ctx, runID, -1, grpc.Header(&answered))
	if err != nil {
		return err
	}
	req := streamRequest(r, runID)
	if _, err := runview.ParseModes(req.GetStreamModes()); err != nil {
		return err
	}
	if err := runview.CheckBuffer(req.GetBufferMs()); err != nil {
		return err
	}
	head, err := strconv.ParseInt(first(answered.Get(engine.MetaHead)), 10, 32)
	return s.writeDocument(ctx, w, page, func(page *hostv1.PollRunEventsResponse) bool {
		return err == nil && int64(page.GetLastEventSeq()) >= head
	})
}
