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
)

// eventStream are those of an answer as they arrive: the SDK asks, and cuts the stream into events.
// Its own iterator reads each event three times more than that takes: for an error in it, for
// being JSON, and for where it ends.
type eventStream struct {
	events  ssestream.Decoder
	current chunk
	// done says that the server has said all, though its stream may not have ended yet.
	done bool
	err  error
	body io.ReadCloser
	// detach lets the stream outlive its call, false if that was given up; cut ends it.
	detach func() bool
	cancel context.CancelFunc
}

// openStream asks, and gives the pieces of the answer; leave it when done. The request knows nothing of the
// call's deadline but that it was cut: why the call ended only the call's context says.
func (p *Provider) openStream(ctx context.Context, params openai.ChatCompletionNewParams, opts []option.RequestOption) *eventStream {
	own, cut := context.WithCancel(context.WithoutCancel(ctx))
	out := &eventStream{detach: context.AfterFunc(ctx, cut), cancel: cut}
	var res *http.Response
	s := p.chat.NewStreaming(own, params, append(opts, option.WithResponseInto(&res))...)
	if out.err = s.Err(); out.err == nil && res != nil {
		out.events, out.body = ssestream.NewDecoder(res), res.Body
	}
	return out
}

// next reads a piece; false: the answer ended, or failed.
func (s *eventStream) next() bool {
	if s.err != nil || s.events == nil || !s.events.Next() {
		return false
	}
	event := s.events.Event()
	if s.done = bytes.HasPrefix(event.Data, []byte("[DONE]")); s.done {
		return false
	}
	s.current = chunk{}
	if s.err = s.current.read(event.Data); s.err == nil && s.current.failed() {
		s.err = &ssestream.StreamError{Message: "the server broke off with an error", Event: event}
	}
	return s.err == nil
}

// failure is why there is no further piece; nil: the answer ended.
func (s *eventStream) failure() error {
	if s.err != nil || s.events == nil {
		return s.err
	}
	return s.events.Err()
}

// A stream whose answer is read may go on for so long, and so far, for its connection to be used
// again: over HTTP/1.1 one that is left before its end is lost, and the end comes in a packet of
// its own. A server that never ends one holds as many more connections as it answers calls a second.
const (
	drainTime  = time.Second
	drainBytes = 4 << 10
)

// release ends a stream. Nobody waits for the end of one whose answer is read.
func (s *eventStream) release() {
	if !s.done || !s.detach() {
		s.close()
		return
	}
	go func() {
		defer s.close()
		defer time.AfterFunc(drainTime, s.cancel).Stop()
		_, _ = io.CopyN(io.Discard, s.body, drainBytes) // what is said after the end does not count
	}()
}

// close ends the connection as well, unless its stream has ended.
func (s *eventStream) close() {
	s.detach()
	s.cancel()
	if s.body != nil {
		_ = s.body.Close() // nothing of it is used any more
	}
}
