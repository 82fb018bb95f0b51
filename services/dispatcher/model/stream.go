package model

import (
	"context"
	"fmt"
	"strings"
	"sync"

	"waybill.dev/waybill/protocol/fault"
	"waybill.dev/waybill/protocol/wire"
	"waybill.dev/waybill/services/dispatcher/node"
	"waybill.dev/waybill/services/dispatcher/provider"
)

// openStream prepares recording the answer as it arrives, when the node wants that.
func (c *call) openStream(ctx context.Context) (emit func(provider.Delta) error, wait func() error, closeStream func(), err error) {
	if !c.streamsAnswer() || c.answerShown {
		return nil, func() error { return nil }, func() {}, nil
	}
	scrubber := c.deps.Scrubber(c.task.Tenant, c.task.RunID, c.task.CredentialRef != "")
	s, err := scrubber.Open(ctx)
	if err != nil {
		return nil, nil, nil, err
	}
	th := c.newThoughtRecorder(scrubber)
	st := newStreamer(c.journal, s, c.newAnswerFilter(), th, c.task.RunID, c.task.Input.NodeID, c.task.Trust)
	closeAll := func() {
		s.Close()
		th.close()
	}
	return func(d provider.Delta) error { return st.emit(ctx, d) }, st.wait, closeAll, nil
}

// streamsAnswer reports whether the node shows its answer while it arrives: a prompt
// does unless told not to, a structured value only if told to.
func (c *call) streamsAnswer() bool {
	if c.cfg.ExpectsStreaming != nil {
		return *c.cfg.ExpectsStreaming
	}
	return c.task.TypeID == node.TypeCallPrompt
}

// streamer records a model's text as output.chunk events while it arrives.
// What is let go of a piece is one event, a token is always one; those that come while
// an append is on its way share the next frame. Secrets are taken out before anything is recorded, also
// those cut over pieces, and so are assets that are too large for the log.
type streamer struct {
	journal  Journal
	assets   *assetFilter     // nil: what is streamed can hold no asset
	thoughts *thoughtRecorder // nil: thoughts are not shown
	scrub    Scrub
	nodeID   string
	runID    string
	trust    wire.Trust

	// held are tokens whose text is not settled yet, and settled what the
	// redactor has let go of theirs. Only emit touches them.
	held    []provider.Delta
	settled string

	mu       sync.Mutex // guards all below
	pending  []wire.Draft
	err      error
	flushing bool
	idle     *sync.Cond // signals that busy fell, or that less is pending
}

func newStreamer(j Journal, s Scrub, f *assetFilter, th *thoughtRecorder, runID, nodeID string, trust wire.Trust) *streamer {
	st := &streamer{journal: j, assets: f, thoughts: th, scrub: s, nodeID: nodeID, runID: runID, trust: trust}
	st.idle = sync.NewCond(&st.mu)
	return st
}

// emit takes one piece. An error, which may be that of an earlier append,
// aborts the call.
func (s *streamer) emit(ctx context.Context, d provider.Delta) error {
	chunks, err := s.eventsOf(ctx, d)
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case s.err != nil:
		return s.err
	case fault.CodeOf(err) == fault.PayloadTooLarge: // and will be whenever it is asked for
		return err
	case err != nil:
		s.err = err // wait tells it: it is no failure of the node's that the redactor is lost
		return err
	}
	s.pending = append(s.pending, chunks...)
	if !s.flushing && len(s.pending) > 0 {
		s.flushing = true
		go s.flushPending(ctx)
	}
	for len(s.pending) > maxPending && s.err == nil { // the model is faster than the log
		s.idle.Wait()
	}
	return s.err
}

const (
	// maxShared is how many events of a stream share a frame: the redactor takes a
	// thousand at a time, and a frame has a size.
	maxShared = 512
	// maxPending is how many wait for a frame before the model has to.
	maxPending = 4 * maxShared
)

// eventsOf gives what can be shown of a piece.
func (s *streamer) eventsOf(ctx context.Context, d provider.Delta) ([]wire.Draft, error) {
	chunks, err := s.thoughts.thoughtEvents(ctx, d)
	if err != nil || d.Text == "" && !d.Last && len(d.ToolCalls) == 0 {
		return chunks, err
	}
	said, err := s.answerEvents(d)
	return append(chunks, said...), err
}

// answerEvents takes a piece of the answer, which ends the thoughts before it.
func (s *streamer) answerEvents(d provider.Delta) ([]wire.Draft, error) {
	out, err := s.thoughts.endBlock()
	if err != nil {
		return nil, err
	}
	d, ok := s.assets.filterDelta(d)
	if !ok {
		return out, nil
	}
	text, err := s.scrub.Push(d.Text, d.Last)
	if err != nil {
		return nil, fmt.Errorf("redact stream: %w", err)
	}
	switch {
	case d.Token:
		return append(out, s.settleTokens(d, text)...), nil
	case text == "" && !d.Last && len(d.ToolCalls) == 0:
		return out, nil // all of the piece is held back
	}
	return append(out, s.chunkDraft(d, text)), nil
}

// settleTokens gives the tokens that can be shown. The redactor holds back what may
// begin a secret; a token waits until all of it was let go, so that chunks are
// the model's tokens, text for text. Where something was redacted the tokens are
// gone: what was let go is shown with the first token that waits for it.
func (s *streamer) settleTokens(d provider.Delta, released string) []wire.Draft {
	s.held = append(s.held, d)
	s.settled += released
	var out []wire.Draft
	for len(s.held) > 0 {
		p, final := s.held[0], d.Last && len(s.held) == 1
		text := p.Text
		switch {
		case final:
			text = s.settled
		case strings.HasPrefix(s.settled, p.Text):
		case strings.HasPrefix(p.Text, s.settled) && !d.Last:
			return out // the rest of the piece is still held back
		default:
			text = s.settled
		}
		out = append(out, s.chunkDraft(p, text))
		s.settled = s.settled[len(text):]
		s.held = s.held[1:]
	}
	return out
}

func (s *streamer) chunkDraft(d provider.Delta, text string) wire.Draft {
	p := chunkPayload{NodeID: s.nodeID, RunID: s.runID, Chunk: text, IsLast: d.Last}
	if d.Model != "" || d.FinishReason != "" || d.Usage != nil || len(d.ToolCalls) > 0 {
		p.Meta = &chunkMeta{FinishReason: d.FinishReason, Model: d.Model}
		for _, c := range d.ToolCalls {
			p.Meta.ToolCalls = append(p.Meta.ToolCalls, chunkTool{ID: c.ID, Name: c.Name, Arguments: c.Arguments})
		}
		if u := d.Usage; u != nil {
			p.Meta.Usage = &chunkUsage{PromptTokens: u.InputTokens, CompletionTokens: u.OutputTokens, TotalTokens: u.TotalTokens}
		}
	}
	return draft(wire.EventOutputChunk, s.nodeID, s.trust, p)
}

// flushPending records what is pending until nothing is; wait joins it.
func (s *streamer) flushPending(ctx context.Context) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for len(s.pending) > 0 && s.err == nil {
		batch := s.pending[:min(len(s.pending), maxShared)]
		s.pending = s.pending[len(batch):]
		s.mu.Unlock()
		err := s.journal.Record(ctx, batch...)
		s.mu.Lock()
		if err != nil {
			s.err = err
		}
		s.idle.Broadcast()
	}
	s.flushing = false
	s.idle.Broadcast()
}

// wait returns when every piece is recorded, or one could not be shown or recorded.
func (s *streamer) wait() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	for s.flushing {
		s.idle.Wait()
	}
	return s.err
}

// maxRecorded bounds the text of one answer as JSON writes it, large assets left
// out. What a node says can stand three times in the frame that ends its run: as
// its output, in a variable, and as the run's output; and a frame has 8 MiB. An
// answer that no frame holds would be asked for again and again.
const maxRecorded = 2 << 20

// boundAnswer ends a call whose answer could not be recorded. emit may be nil.
func (c *call) boundAnswer(emit func(provider.Delta) error) func(provider.Delta) error {
	room, assets := maxRecorded, c.newAnswerFilter()
	var written []byte // room for one piece, used again for the next
	take := func(text string) {
		written = wire.AppendString(written[:0], text)
		room -= len(written)
	}
	return func(d provider.Delta) error {
		shown, _ := assets.filterDelta(d)
		take(shown.Text)
		take(shown.Thought)
		for _, t := range shown.ToolCalls {
			take(t.Arguments)
		}
		if room < 0 {
			return &provider.Error{
				Code: provider.CodeContentTooLong, Message: fmt.Sprintf("the answer has more than %d bytes of text and thoughts, which is all that can be recorded", maxRecorded),
			}
		}
		if emit == nil {
			return nil
		}
		return emit(d)
	}
}

// newAnswerFilter is the filter of what the node shows: nil where the text is the node's
// output as it is, and no envelope.
func (c *call) newAnswerFilter() *assetFilter {
	if c.expected.kind == "" && c.contract() == nil {
		return nil
	}
	return newAssetFilter(c.limits.MaxInlineBytes)
}

// assetFilter takes large assets out of what is shown of an answer. They are
// judged, and stored, when all of it is there.
type assetFilter struct {
	max  int
	text *MediaFilter
}

func newAssetFilter(maxBytes int) *assetFilter {
	return &assetFilter{max: maxBytes, text: NewMediaFilter(maxBytes)}
}

// filterDelta gives the piece as it may be shown; ok is false when nothing of it is.
func (f *assetFilter) filterDelta(d provider.Delta) (shown provider.Delta, ok bool) {
	if f == nil {
		return d, true
	}
	had := d.Text != ""
	d.Text = f.text.Write(d.Text, d.Last)
	calls := make([]provider.ToolCall, 0, len(d.ToolCalls))
	for _, c := range d.ToolCalls { // arguments are whole
		c.Arguments = NewMediaFilter(f.max).Write(c.Arguments, true)
		calls = append(calls, c)
	}
	d.ToolCalls = calls
	return d, d.Text != "" || !had || d.Last || len(calls) > 0
}
