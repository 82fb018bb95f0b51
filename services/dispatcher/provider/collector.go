package provider

import (
	"context"
	"strings"
	"time"
	"unicode/utf8"
)

// Collector assembles a streamed answer and emits each piece immediately. Which piece is the last,
// and the usage, are known only at the end of the stream, so an empty last piece carries them. It
// is used by one goroutine.
type Collector struct {
	emit   func(Delta) error
	model  string
	tokens bool
	text   strings.Builder
	calls  []ToolCall
	size   int
	held   *Delta // only with tokens
	// texts and thoughts read the pieces of servers that repeat them; not with tokens.
	texts, thoughts pieces
	corrected       corrected
}

// corrected is a whole text that a server sent after its pieces. The zero value is none.
type corrected struct {
	text  string
	final bool
}

// of returns the text that counts, and whether it differs from the pieces. Servers may also repeat the last
// piece as if it were the whole text.
func (c corrected) of(pieces string) (text string, differs bool) {
	if c.text == "" || c.text == pieces || !c.final && strings.HasSuffix(pieces, c.text) {
		return pieces, false
	}
	return c.text, true
}

// NewCollector returns a collector for an answer of the model; emit may be nil.
func NewCollector(model string, emit func(Delta) error) *Collector {
	return &Collector{emit: emit, model: model}
}

// NewTokenCollector is for providers that generate their answers themselves, so that pieces are
// tokens. It holds one token back to mark it as the last. The number of pieces then equals the
// number of tokens, without an empty one at the end (OpenWOP host contract §4.3, messages).
func NewTokenCollector(model string, emit func(Delta) error) *Collector {
	return &Collector{emit: emit, model: model, tokens: true}
}

// maxModelName limits the model name given by a server: every piece contains it and is recorded.
const maxModelName = 256

// Correct sets the whole text that the server sent after its pieces. If it differs from them, it is the
// Result's Text. final is false if it may also be the last piece again.
func (c *Collector) Correct(whole string, final bool) { c.corrected = corrected{whole, final} }

// AnsweredBy sets the model name given by the server for later pieces. Invalid names are ignored.
func (c *Collector) AnsweredBy(model string) {
	if model != "" && len(model) <= maxModelName && utf8.ValidString(model) {
		c.model = model
	}
}

// CheckSize returns an error if n more bytes make the answer too long. Adapters use it for parts
// they assemble themselves, such as a refusal or a tool call's arguments.
func (c *Collector) CheckSize(n int) error {
	if c.size+n > MaxAnswerBytes {
		return &Error{Code: CodeContentTooLong, Message: "the answer is longer than 9 MiB"}
	}
	return nil
}

// Size is the number of bytes added so far.
func (c *Collector) Size() int { return c.size }

// Add adds the next piece. An error ends the call: the answer is too long, the server contradicts itself,
// or emit failed.
func (c *Collector) Add(d Delta) error {
	if c.tokens {
		return c.addToken(d)
	}
	if err := c.CheckSize(len(d.Text) + len(d.Thought)); err != nil {
		return err
	}
	text, err := c.texts.add(d.Text)
	if err != nil {
		return err
	}
	thought, err := c.addThought(d.Thought)
	if err != nil {
		return err
	}
	if d.Text != "" || len(d.ToolCalls) > 0 { // thoughts precede it
		thought += c.thoughts.flush()
	}
	d.Text, d.Thought = text, thought
	return c.pass(d)
}

// addThought adds a piece of a thought. A server that repeats its thought and then sends another text has
// begun another thought.
func (c *Collector) addThought(piece string) (string, error) {
	text, err := c.thoughts.add(piece)
	if e, ok := As(err); ok && e.Code == CodeUnavailable {
		c.thoughts = pieces{received: c.thoughts.received}
		return c.thoughts.add(piece)
	}
	return text, err
}

func newChangedError() *Error {
	return &Error{
		Code:      CodeUnavailable,
		Message:   "the model's server repeats its text in each piece, and changed it",
		Retryable: true,
	}
}

// HeldText is text that is not passed on yet, in pieces. The zero HeldText is ready.
type HeldText struct {
	text      strings.Builder
	pieces    pieces
	corrected corrected
}

// Correct sets the whole text; see Collector.Correct.
func (h *HeldText) Correct(whole string, final bool) { h.corrected = corrected{whole, final} }

// Add adds a piece.
func (h *HeldText) Add(piece string) error {
	text, err := h.pieces.add(piece)
	h.text.WriteString(text)
	return err
}

// Size is the number of bytes added so far.
func (h *HeldText) Size() int { return h.text.Len() }

// Text is the whole text.
func (h *HeldText) Text() string {
	h.text.WriteString(h.pieces.flush())
	text, _ := h.corrected.of(h.text.String())
	return text
}

// pass counts a piece, keeps its text and calls, and emits it if there is anything in it.
func (c *Collector) pass(d Delta) error {
	if d.Text == "" && d.Thought == "" && len(d.ToolCalls) == 0 {
		return nil
	}
	if err := c.keep(&d); err != nil {
		return err
	}
	return c.send(d)
}

// keep counts a piece and keeps its text and calls.
func (c *Collector) keep(d *Delta) error {
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
	return nil
}

// addToken adds a token, and emits the one before.
func (c *Collector) addToken(d Delta) error {
	if err := c.keep(&d); err != nil {
		return err
	}
	d.Token = true
	if err := c.flush(); err != nil {
		return err
	}
	c.held = &d
	return nil
}

// AddAfter emits the held token, waits, and adds the next one. It returns the error of ctx when
// that ends.
func (c *Collector) AddAfter(ctx context.Context, wait time.Duration, d Delta) error {
	if err := c.flush(); err != nil {
		return err
	}
	if err := Pause(ctx, wait); err != nil {
		return err
	}
	return c.Add(d)
}

// flush emits the held token.
func (c *Collector) flush() error {
	if c.held == nil {
		return nil
	}
	d := *c.held
	c.held = nil
	return c.send(d)
}

// Finish emits the last piece and completes r, which describes the end of the answer, with the
// text, the tool calls and the model. reason is the piece's FinishReason.
func (c *Collector) Finish(r Result, reason string) (Result, error) {
	if err := c.pass(Delta{Text: c.texts.flush(), Thought: c.thoughts.flush()}); err != nil {
		return Result{}, err
	}
	r.Text, r.Corrected = c.corrected.of(c.text.String())
	r.ToolCalls, r.Model = c.calls, c.model
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

// FinishReason returns the normalized reason of a stop class, for Delta.FinishReason.
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
