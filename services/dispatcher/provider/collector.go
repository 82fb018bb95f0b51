package provider

import (
	"context"
	"strings"
	"time"
	"unicode/utf8"
)

// Collector puts an answer together while it arrives and hands the pieces on, each
// as soon as it is there. Only when the stream ends is it known that a piece was the
// last, and what the answer cost: an empty piece says so. It is used by one goroutine.
type Collector struct {
	emit   func(Delta) error
	model  string
	tokens bool
	text   strings.Builder
	calls  []ToolCall
	size   int
	held   *Delta // of tokens alone
}

// NewCollector collects an answer of the model; emit may be nil.
func NewCollector(model string, emit func(Delta) error) *Collector {
	return &Collector{emit: emit, model: model}
}

// NewTokenCollector is for providers that make their answers themselves, so that their
// pieces are tokens. It holds one back, which is then marked as the last: those who
// count the pieces count the tokens, with no empty one at the end (OpenWOP host
// contract §4.3, messages).
func NewTokenCollector(model string, emit func(Delta) error) *Collector {
	return &Collector{emit: emit, model: model, tokens: true}
}

// maxModelName bounds the name that a server gives its model: it stands in every
// piece, and every piece is recorded.
const maxModelName = 256

// AnsweredBy notes the model as the server names it, for the pieces to come. A name
// that can be none is passed over.
func (c *Collector) AnsweredBy(model string) {
	if model != "" && len(model) <= maxModelName && utf8.ValidString(model) {
		c.model = model
	}
}

// CheckSize is an error if n more bytes make the answer too long. Adapters ask for
// what they put together themselves: a refusal, a tool call's arguments.
func (c *Collector) CheckSize(n int) error {
	if c.size+n > MaxAnswerBytes {
		return &Error{Code: CodeContentTooLong, Message: "the answer is longer than 9 MiB"}
	}
	return nil
}

// Add takes the next piece. Its error ends the call: the answer is too long, or
// emit failed.
func (c *Collector) Add(d Delta) error {
	n := len(d.Text) + len(d.Thought)
	for _, t := range d.ToolCalls {
		n += len(t.ID) + len(t.Name) + len(t.Arguments)
	}
	if err := c.CheckSize(n); err != nil {
		return err
	}
	c.size += n
	c.text.WriteString(d.Text)
	c.calls = append(c.calls, d.ToolCalls...)
	d.Model = c.model
	if !c.tokens {
		return c.send(d)
	}
	d.Token = true
	if err := c.flush(); err != nil {
		return err
	}
	c.held = &d
	return nil
}

// AddAfter takes a token that is said a while after the one before it, which is
// emitted first. When ctx ends the error is ctx's.
func (c *Collector) AddAfter(ctx context.Context, wait time.Duration, d Delta) error {
	if err := c.flush(); err != nil {
		return err
	}
	if err := Pause(ctx, wait); err != nil {
		return err
	}
	return c.Add(d)
}

// flush emits the token that is held back.
func (c *Collector) flush() error {
	if c.held == nil {
		return nil
	}
	d := *c.held
	c.held = nil
	return c.send(d)
}

// Finish emits the last piece and completes r, which tells how the answer ended,
// with the text, the tool calls and the model. reason is the piece's FinishReason.
func (c *Collector) Finish(r Result, reason string) (Result, error) {
	r.Text, r.ToolCalls, r.Model = c.text.String(), c.calls, c.model
	r.Usage = r.Usage.clamped()
	last := Delta{Model: c.model}
	if c.held != nil {
		last = *c.held
	}
	last.Last, last.FinishReason = true, reason
	if r.Usage.Known {
		u := r.Usage
		last.Usage = &u
	}
	if err := c.send(last); err != nil {
		return Result{}, err
	}
	return r, nil
}

func (c *Collector) send(d Delta) error {
	if c.emit == nil {
		return nil
	}
	return c.emit(d)
}

// FinishReason is the normalized reason of a stop class, for Delta.FinishReason.
func FinishReason(s StopClass) string {
	switch s {
	case StopClean, StopSequence:
		return "stop"
	case StopTruncated:
		return "length"
	case StopRefused:
		return "content_filter"
	default:
		return ""
	}
}
