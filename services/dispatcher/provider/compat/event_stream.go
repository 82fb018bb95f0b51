package compat

import (
	"bytes"
	"context"
	"io"
	"net/http"
	"time"

	"github.com/openai/openai-go/v3"
	"github.com/openai/openai-go/v3/option"
	"github.com/openai/openai-go/v3/packages/ssestream"

	"waybill.dev/waybill/services/dispatcher/provider/outbound"
)

// eventStream reads the chunks of an answer. The SDK makes the request and splits the stream into
// events. Its iterator is not used, because it parses each event three more times: for an error,
// for JSON validity, and for the end.
type eventStream struct {
	events  ssestream.Decoder
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
}

// openStream makes the request. The caller releases the stream. The request's context has no
// deadline of its own; only the call's context says why the call ended.
func (p *Provider) openStream(ctx context.Context, params openai.ChatCompletionNewParams, opts []option.RequestOption) *eventStream {
	own, cut := context.WithCancel(context.WithoutCancel(ctx))
	out := &eventStream{detach: context.AfterFunc(ctx, cut), cancel: cut}
	var res *http.Response
	s := p.chat.NewStreaming(own, params, append(opts, option.WithResponseInto(&res))...)
	if out.err = s.Err(); out.err == nil && res != nil {
		out.foreign = !outbound.IsEventStream(res)
		res.Header.Set("Content-Type", "text/event-stream") // what the client makes of any answer
		out.events, out.body = ssestream.NewDecoder(res), res.Body
	}
	return out
}

// next reads a chunk; false at the end or after an error.
func (s *eventStream) next() bool {
	if s.err != nil || s.events == nil || !s.events.Next() {
		return false
	}
	event := s.events.Event()
	if s.done = bytes.HasPrefix(bytes.TrimSpace(event.Data), []byte("[DONE]")); s.done {
		return false
	}
	s.current = chunk{}
	if s.err = s.current.read(event.Data); s.err == nil && s.current.failed() {
		s.err = &serverError{body: parseError(event.Data)}
	}
	return s.err == nil
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

// release ends a stream. A complete answer's stream is drained in the background.
func (s *eventStream) release() {
	if !s.done || !s.detach() {
		s.close()
		return
	}
	go func() {
		defer s.close()
		defer time.AfterFunc(drainTime, s.cancel).Stop()
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
