// Package sse serves a run's events over HTTP: as server-sent events, or as one
// JSON document to callers that ask for JSON (OpenWOP host contract §4). What is
// shown is decided behind the gRPC stream it reads; here it is framed.
package sse

import (
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
	"waybill.dev/waybill/services/gateway/wirejson"
)

const (
	// keepAlive is half of what the protocol allows to be silent.
	keepAlive = 15 * time.Second
	// writeTimeout is how long a slow reader may block one frame; it resumes
	// with Last-Event-ID.
	writeTimeout = 10 * time.Second
)

// Handler serves the events of runs.
type Handler struct {
	Engine openwopv1.EngineClient
	Host   hostv1.HostClient
	// Fail writes an error answer.
	Fail   func(http.ResponseWriter, *slog.Logger, error)
	Logger *slog.Logger
	// Closing ends all streams when it is closed, so that a server can stop.
	Closing <-chan struct{}
}

// ServeHTTP answers GET /v1/runs/{runId}/events.
func (h *Handler) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	runID := strings.TrimSuffix(strings.TrimPrefix(r.URL.Path, "/v1/runs/"), "/events")
	ctx, cancel := context.WithCancel(metadata.AppendToOutgoingContext(r.Context(), "authorization", r.Header.Get("Authorization")))
	defer cancel()
	var err error
	if wantsJSON(r.Header.Get("Accept")) {
		err = h.document(ctx, w, r, runID)
	} else {
		err = h.stream(ctx, w, r, runID)
	}
	if err != nil {
		h.Fail(w, h.Logger, err)
	}
}

// wantsJSON reports that the caller asks for JSON and not for a stream.
func wantsJSON(accept string) bool {
	return strings.Contains(accept, "application/json") && !strings.Contains(accept, "text/event-stream")
}

// request reads the parameters. What cannot be read is passed on as a value
// that the engine refuses, in its order of checks.
func request(r *http.Request, runID string) *openwopv1.StreamRunEventsRequest {
	q := r.URL.Query()
	req := &openwopv1.StreamRunEventsRequest{RunId: runID, StreamModes: q["streamMode"]}
	if v, ok := q["bufferMs"]; ok {
		req.BufferMs = -1
		if n, err := strconv.ParseInt(v[0], 10, 32); err == nil {
			req.BufferMs = int32(n)
		}
	}
	if v := r.Header.Get("Last-Event-ID"); v != "" {
		req.LastSequence = proto.Int64(lastEventID(v))
	}
	return req
}

// malformed is a sequence that no cursor can be.
const malformed = -2

// lastEventID reads digits only; one too large to count is beyond every head.
func lastEventID(v string) int64 {
	for i := range len(v) {
		if v[i] < '0' || v[i] > '9' {
			return malformed
		}
	}
	n, err := strconv.ParseInt(v, 10, 64)
	if err != nil {
		return 1<<62 - 1
	}
	return n
}

// begun waits until a stream was accepted; the error says why it was not.
func begun[T any](in grpc.ServerStreamingClient[T]) error {
	// Headers say that the request was accepted; without them the error follows.
	md, err := in.Header()
	if err != nil {
		return err
	}
	if len(md.Get(engine.MetaStreaming)) != 0 {
		return nil
	}
	_, err = in.Recv()
	if err == nil || errors.Is(err, io.EOF) {
		return errors.New("stream ended before it began")
	}
	return err
}

// stream serves the events as they come.
func (h *Handler) stream(ctx context.Context, w http.ResponseWriter, r *http.Request, runID string) error {
	in, err := h.Engine.StreamRunEvents(ctx, request(r, runID))
	if err != nil {
		return err
	}
	if err := begun(in); err != nil {
		return err
	}
	f, ok := h.open(w, r, "no-cache")
	if !ok {
		return nil
	}
	h.pump(ctx, f, func() ([]byte, error) {
		it, err := in.Recv()
		if err != nil {
			return nil, err
		}
		return event(it), nil
	})
	return nil
}

// open sends the headers of a stream; ok is false when the client has gone.
func (h *Handler) open(w http.ResponseWriter, r *http.Request, cache string) (f framer, ok bool) {
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
	frame []byte
	err   error
}

// pump writes frames until the stream ends, the client goes, or the server stops.
// After the headers nothing can be told any more: the client resumes.
func (h *Handler) pump(ctx context.Context, f framer, next func() ([]byte, error)) {
	items := make(chan received)
	go func() { // ends with ctx, which ends next
		for {
			frame, err := next()
			select {
			case items <- received{frame, err}:
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
		case <-h.Closing:
			return
		case <-tick.C:
			err = f.comment()
		case r := <-items:
			if r.err != nil {
				if !errors.Is(r.err, io.EOF) && ctx.Err() == nil {
					h.Logger.Debug("event stream ended early", "error", r.err)
				}
				return
			}
			err = f.write(r.frame)
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

// event frames an event of a run.
func event(it *openwopv1.RunEventEnvelope) []byte {
	data := it.GetData().GetJson()
	b := make([]byte, 0, len(data)+64)
	if it.GetSequence() >= 0 { // what is no event is nothing to resume from
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

// appendLine appends JSON as one line: white space between its tokens may hold
// line breaks where a definition's author put them.
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

func (f framer) write(b []byte) error {
	// Not every writer has deadlines; those of net/http do.
	_ = f.ctl.SetWriteDeadline(time.Now().Add(writeTimeout))
	if _, err := f.w.Write(b); err != nil {
		return err
	}
	return f.flush()
}

func (f framer) flush() error { return f.ctl.Flush() }

// document answers with all events so far, in the shape of a poll. The rules of
// the parameters hold here, too.
func (h *Handler) document(ctx context.Context, w http.ResponseWriter, r *http.Request, runID string) error {
	if _, err := h.Engine.GetRun(ctx, &openwopv1.GetRunRequest{RunId: runID}); err != nil {
		return err
	}
	req := request(r, runID)
	if _, err := runview.ParseModes(req.GetStreamModes()); err != nil {
		return err
	}
	if err := runview.CheckBuffer(req.GetBufferMs()); err != nil {
		return err
	}
	all, err := h.collect(ctx, runID)
	if err != nil {
		return err
	}
	body, err := wirejson.Append(nil, all)
	if err != nil {
		return err
	}
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("Cache-Control", "no-store")
	_, _ = w.Write(body) // the client may have gone
	return nil
}

// page is the size of the reads that collect a whole log; wait is the shortest
// a poll can be told to wait, on a live run that has nothing newer.
const (
	page = 5000
	wait = 1
)

func (h *Handler) collect(ctx context.Context, runID string) (*hostv1.PollRunEventsResponse, error) {
	var all *hostv1.PollRunEventsResponse
	for cursor := int32(-1); ; {
		res, err := h.Host.PollRunEvents(ctx, &hostv1.PollRunEventsRequest{
			RunId: runID, LastSequence: proto.Int64(int64(cursor)), Limit: proto.Int32(page), Timeout: proto.Int32(wait),
		})
		if err != nil {
			return nil, err
		}
		if all != nil {
			res.Events = append(all.GetEvents(), res.GetEvents()...)
		}
		full := len(res.GetEvents())-lenOf(all) == page
		all, cursor = res, res.GetLastEventSeq()
		if !full {
			return all, nil
		}
	}
}

func lenOf(p *hostv1.PollRunEventsResponse) int { return len(p.GetEvents()) }
