package model

import (
	"context"
	"fmt"
	"strings"
	"sync"

	"waybill.dev/waybill/internal/projection"
	"waybill.dev/waybill/protocol/fault"
	"waybill.dev/waybill/protocol/modelgate"
	"waybill.dev/waybill/protocol/wire"
	"waybill.dev/waybill/services/dispatcher/provider"
)

// openStream prepares recording the answer while it arrives, if the node requests that and it was
// not shown before.
func (e *emission) openStream(
	ctx context.Context, shown bool, projected *projection.Projection,
) (emit func(provider.Delta) error, wait func() error, closeStream func(), err error) {
	if !e.streams || shown {
		return nil, func() error { return nil }, func() {}, nil
	}
	scrubber := e.deps.Scrubber(e.task.Tenant, e.task.RunID, e.task.CredentialRef != "")
	s, err := scrubber.Open(ctx)
	if err != nil {
		return nil, nil, nil, err
	}
	th := e.newThoughtRecorder(scrubber)
	partials, err := e.newPartials(ctx, projected)
	if err != nil {
		return nil, nil, nil, err
	}
	st := &streamer{
		journal:  e.journal,
		partials: partials,
		assets:   e.newAnswerFilter(),
		thoughts: th,
		scrub:    s,
		nodeID:   e.task.Input.NodeID,
		runID:    e.task.RunID,
		trust:    e.task.Trust,
		withheld: e.task.withholdsModel(),
	}
	st.idle = sync.NewCond(&st.mu)
	closeAll := func() {
		s.Close()
		th.close()
	}
	return func(d provider.Delta) error { return st.emit(ctx, d) }, st.wait, closeAll, nil
}

// streamer records a model's text as output.chunk events while it arrives. The text released for a
// piece is one event; a token is always one event. Events that arrive during an append share the
// next frame. Secrets, also those split over pieces, and assets too large for the log are removed
// before recording.
type streamer struct {
	journal  Journal
	assets   *assetFilter     // nil if the text cannot contain assets
	thoughts *thoughtRecorder // nil if thoughts are not recorded
	partials *partials        // nil if the node does not request them
	scrub    Scrub
	nodeID   string
	runID    string
	trust    wire.Trust
	withheld bool // the model's name is not shown

	// held are tokens whose text is not fully released by the redactor; settled is the released
	// part. Only emit uses them.
	held    []provider.Delta
	settled string

	mu       sync.Mutex // guards all below
	pending  []wire.Draft
	err      error
	flushing bool
	idle     *sync.Cond // signals that flushing ended or pending shrank
}

// emit records one piece. An error, which may come from an earlier append, aborts the call.
func (s *streamer) emit(ctx context.Context, d provider.Delta) error {
	chunks, err := s.eventsOf(ctx, d)
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case s.err != nil:
		return s.err
	case fault.CodeOf(err) == fault.PayloadTooLarge: // a repeated call would fail too
		return err
	case err != nil:
		s.err = err // wait returns it: a lost redactor is not the node's failure
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
	// maxShared limits the events of a stream in one frame. The redactor accepts a thousand
	// documents per request, and frames have a size limit.
	maxShared = 512
	// maxPending limits the events that wait for a frame before the model is paused.
	maxPending = 4 * maxShared
)

// eventsOf returns the events of a piece.
func (s *streamer) eventsOf(ctx context.Context, d provider.Delta) ([]wire.Draft, error) {
	chunks, err := s.thoughts.thoughtEvents(ctx, d)
	if err != nil || d.Text == "" && !d.Last && len(d.ToolCalls) == 0 {
		return chunks, err
	}
	said, err := s.answerEvents(d)
	return append(chunks, said...), err
}

// answerEvents returns the events of a piece of the answer. It ends an open block of thoughts.
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
		return out, nil // the whole piece is held back
	}
	return append(out, s.chunkDraft(d, text)), nil
}

// settleTokens returns the events of released tokens. The redactor holds back text that may begin a
// secret. A token waits until all of its text is released, so that chunks equal the model's tokens.
// Where text was redacted, the released text is attached to the first waiting token.
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
			return out // the rest of the token is held back
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
	p := chunkPayload{NodeID: s.nodeID, RunID: s.runID, Chunk: text, IsLast: d.Last, growth: s.partials.add(text, d.Last)}
	if d.Model != "" || d.FinishReason != "" || d.Usage != nil || len(d.ToolCalls) > 0 {
		p.Meta = &chunkMeta{FinishReason: d.FinishReason, Model: d.Model}
		if s.withheld && d.Model != "" {
			p.Meta.Model = modelgate.Withheld
		}
		for _, c := range d.ToolCalls {
			p.Meta.ToolCalls = append(p.Meta.ToolCalls, chunkTool{ID: c.ID, Name: c.Name, Arguments: c.Arguments})
		}
		if u := d.Usage; u != nil {
			p.Meta.Usage = &chunkUsage{
				PromptTokens: u.InputTokens, CompletionTokens: u.OutputTokens, TotalTokens: u.TotalTokens,
				ReasoningTokens: u.ReasoningTokens,
			}
		}
	}
	return draft(wire.EventOutputChunk, s.nodeID, s.trust, p)
}

// flushPending records pending events until there are none; wait joins it.
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

// wait returns when all pieces are recorded, or with the first error.
func (s *streamer) wait() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	for s.flushing {
		s.idle.Wait()
	}
	return s.err
}

// maxRecorded limits the text of one answer as JSON, without large assets. A node's answer can
// occur three times in the frame that ends its run: as its output, in a variable, and as the run's
// output. A frame has 8 MiB. Without the limit, an answer too large for a frame would be requested
// again and again.
const maxRecorded = 2 << 20

// boundAnswer fails a call whose answer is too large to record. emit may be nil.
func (e *emission) boundAnswer(emit func(provider.Delta) error) func(provider.Delta) error {
	room, assets := maxRecorded, e.newAnswerFilter()
	var written []byte // buffer reused for each piece
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
				Code: provider.CodeContentTooLong,
				Message: fmt.Sprintf("the answer has more than %d bytes of text and thoughts, "+
					"which is all that can be recorded", maxRecorded),
			}
		}
		if emit == nil {
			return nil
		}
		return emit(d)
	}
}

// newAnswerFilter returns the filter of the streamed answer; nil if the text is the node's output
// and no envelope.
func (e *emission) newAnswerFilter() *assetFilter {
	if e.expected.kind == "" && e.contract == nil {
		return nil
	}
	return newAssetFilter(e.limits.MaxInlineBytes)
}

// assetFilter removes large assets from the streamed answer. They are validated and stored when the
// answer is complete.
type assetFilter struct {
	max  int
	text *MediaFilter
}

func newAssetFilter(maxBytes int) *assetFilter {
	return &assetFilter{max: maxBytes, text: NewMediaFilter(maxBytes)}
}

// filterDelta returns the part of a piece that can be shown; ok is false if there is none.
func (f *assetFilter) filterDelta(d provider.Delta) (shown provider.Delta, ok bool) {
	if f == nil {
		return d, true
	}
	had := d.Text != ""
	d.Text = f.text.Write(d.Text, d.Last)
	calls := make([]provider.ToolCall, 0, len(d.ToolCalls))
	for _, c := range d.ToolCalls { // arguments arrive complete
		c.Arguments = NewMediaFilter(f.max).Write(c.Arguments, true)
		calls = append(calls, c)
	}
	d.ToolCalls = calls
	return d, d.Text != "" || !had || d.Last || len(calls) > 0
}
