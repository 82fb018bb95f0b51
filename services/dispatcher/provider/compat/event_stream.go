package compat

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"time"

	"github.com/openai/openai-go/v3/option"
	"github.com/openai/openai-go/v3/packages/ssestream"

	"waybill.dev/waybill/protocol/strictjson"
	"waybill.dev/waybill/services/dispatcher/provider/outbound"
)

// eventStream reads the chunks of an answer. The SDK makes the request and splits the stream into
// events. Its iterator is not used, because it parses each event three more times: for an error,
// for JSON validity, and for the end.
type eventStream struct {
	events ssestream.Decoder
	// read reads an event and its name; done means that it completes the answer.
	read    func(name string, data []byte, into *chunk) (done bool, err error)
	current chunk
	// done means that the answer is complete; the stream may still be open.
	done bool
	// foreign means that the server did not label its answer as a stream.
	foreign bool
	err     error
	body    io.ReadCloser
	// detach lets the stream outlive its call; false if the call was cancelled. cancel ends the
	// stream.
	detach func() bool
	cancel context.CancelFunc
	// drained means that the stream is read on in the background.
	drained bool
}

// request makes the request of one of the interfaces.
type request func(ctx context.Context, opts ...option.RequestOption) error

// openStream makes the request. The caller releases the stream. The request's context has no
// deadline of its own; only the call's context says why the call ended.
func (p *Provider) openStream(ctx context.Context, send request, opts []option.RequestOption) *eventStream {
	own, cut := context.WithCancel(context.WithoutCancel(ctx))
	out := &eventStream{read: readChunk, detach: context.AfterFunc(ctx, cut), cancel: cut}
	if p.cfg.Responses {
		out.read = new(responseReader).read
	}
	var res *http.Response
	if out.err = send(own, append(opts, option.WithResponseInto(&res))...); out.err == nil && res != nil {
		out.foreign = !outbound.IsEventStream(res)
		res.Header.Set("Content-Type", "text/event-stream") // what the client makes of any answer
		out.events, out.body = ssestream.NewDecoder(res), res.Body
	}
	return out
}

// next reads a chunk; false at the end or after an error.
func (s *eventStream) next() bool {
	if s.done || s.err != nil || s.events == nil || !s.events.Next() {
		return false
	}
	event := s.events.Event()
	if s.done = isDone(event.Data) || isLast(event) && !hasJSON(event.Data); s.done {
		return false
	}
	s.current = chunk{}
	s.done, s.err = s.read(event.Type, event.Data, &s.current)
	s.done = s.done || isLast(event)
	if s.err == nil && event.Type == "error" && !s.current.isAnswer() {
		s.err = &outbound.ServerError{Body: outbound.ParseError(event.Data)}
	}
	if _, reported := errors.AsType[*outbound.ServerError](s.err); s.err != nil && !reported {
		if event.Type == "error" || strictjson.KindOf(event.Data) == "an array" { // errors in another form
			s.err = &outbound.ServerError{Body: outbound.ParseError(event.Data)}
		}
	}
	return s.err == nil
}

// isDone reports whether an event says that the answer is complete: [DONE], also without its brackets.
func isDone(data []byte) bool {
	word := bytes.Trim(data, " \t\r\n\"[]")
	return bytes.EqualFold(word, []byte("done")) || bytes.HasPrefix(word, []byte("DONE]"))
}

// hasJSON reports whether the data of an event is an object, which may have the usage or an error.
func hasJSON(data []byte) bool {
	return strictjson.KindOf(data) == "an object" && len(membersOf(data)) > 0
}

// isLast reports whether an event without a part of the answer is named after the end of its stream.
func isLast(event ssestream.Event) bool {
	switch event.Type {
	case "done", "end", "stream_end", "complete", "completed":
		return membersOf(event.Data)["choices"] == nil
	}
	return false
}

// readChunk reads an event of Chat Completions.
func readChunk(_ string, data []byte, into *chunk) (done bool, err error) {
	if err = into.read(data); err == nil && into.failed() {
		body := outbound.ParseError(data)
		if body == (outbound.ErrorBody{}) { // the error is not at the top
			body = outbound.ParseError(strictjson.Render(map[string]json.RawMessage{"error": into.Error}))
		}
		err = &outbound.ServerError{Body: body}
	}
	return false, err
}

// failure returns the error that ended the stream; nil at its end.
func (s *eventStream) failure() error {
	if s.err != nil || s.events == nil {
		return s.err
	}
	return s.events.Err()
}

// A stream with a complete answer is read on for drainTime and drainBytes, so that its connection
// can be reused. Over HTTP/1.1 a connection closed before the end of the body is lost, and the end
// arrives in its own packet. A server that never ends its streams holds as many additional
// connections as it answers calls per second.
const (
	drainTime  = time.Second
	drainBytes = 4 << 10
)

// lateTime is how long the usage is waited for after the end of an answer.
const lateTime = 100 * time.Millisecond

// lateUsage reads a complete answer's stream on, for the usage that some servers send after its end. It
// returns nil if none comes in time.
func (s *eventStream) lateUsage(ctx context.Context) *usage {
	found := make(chan *usage, 1)
	s.drain(func() { found <- s.readUsage() })
	late := time.NewTimer(lateTime)
	defer late.Stop()
	select {
	case u := <-found:
		return u
	case <-late.C:
	case <-ctx.Done():
	}
	return nil
}

// readUsage reads up to the next usage; nil at the end of the stream.
func (s *eventStream) readUsage() *usage {
	const most = 8 // events
	for range most {
		var c chunk
		if !s.events.Next() || c.read(s.events.Event().Data) != nil {
			return nil
		}
		if c.Usage != nil {
			return c.Usage
		}
	}
	return nil
}

// release ends a stream. A complete answer's stream is drained in the background.
func (s *eventStream) release() {
	switch {
	case s.drained:
	case s.done:
		s.drain(func() {})
	default:
		s.close()
	}
}

// drain reads the stream to its end in the background, after first.
func (s *eventStream) drain(first func()) {
	s.drained = true
	go func() {
		defer s.close()
		if s.detach() { // else the call was cancelled
			defer time.AfterFunc(drainTime, s.cancel).Stop()
		}
		first()
		_, _ = io.CopyN(io.Discard, s.body, drainBytes) // text after the end is ignored
	}()
}

// close also closes the connection unless its stream has ended.
func (s *eventStream) close() {
	s.detach()
	s.cancel()
	if s.body != nil {
		_ = s.body.Close() // not used any more
	}
}
