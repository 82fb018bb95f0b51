package compat

import (
	"bytes"
	"context"
	"net/http"

	"github.com/openai/openai-go/v3"
	"github.com/openai/openai-go/v3/option"
	"github.com/openai/openai-go/v3/packages/ssestream"
)

// pieces are those of an answer as they arrive: the SDK asks, and cuts the stream into events.
// Its own iterator reads each event three times more than that takes: for an error in it, for
// being JSON, and for where it ends.
type pieces struct {
	events ssestream.Decoder
	now    chunk
	err    error
}

// stream asks, and gives the pieces of the answer.
func (p *Provider) stream(ctx context.Context, params openai.ChatCompletionNewParams, opts []option.RequestOption) *pieces {
	var res *http.Response
	s := p.chat.NewStreaming(ctx, params, append(opts, option.WithResponseInto(&res))...)
	if err := s.Err(); err != nil {
		return &pieces{err: err}
	}
	return &pieces{events: ssestream.NewDecoder(res)}
}

// next reads a piece; false: the answer ended, or failed.
func (p *pieces) next() bool {
	if p.err != nil || p.events == nil || !p.events.Next() {
		return false
	}
	event := p.events.Event()
	if bytes.HasPrefix(event.Data, []byte("[DONE]")) {
		return false
	}
	p.now = chunk{}
	if p.err = p.now.read(event.Data); p.err == nil && p.now.failed() {
		p.err = &ssestream.StreamError{Message: "the server broke off with an error", Event: event}
	}
	return p.err == nil
}

// failure is why there is no further piece; nil: the answer ended.
func (p *pieces) failure() error {
	if p.err != nil || p.events == nil {
		return p.err
	}
	return p.events.Err()
}

func (p *pieces) close() {
	if p.events != nil {
		_ = p.events.Close() // nothing of it is used any more
	}
}
