package engine

import (
	"context"
	"time"

	"waybill.dev/waybill/protocol/frame"
	"waybill.dev/waybill/protocol/runspan"
	"waybill.dev/waybill/protocol/subject"
	"waybill.dev/waybill/protocol/wire"
)

// Spans takes the spans of runs.
type Spans interface {
	// Wants reports whether the spans of a run are to be exported.
	Wants(rec *wire.RunRecord) bool
	// Ended takes spans that are over. It does not block.
	Ended(spans []*runspan.Span)
}

// spans follows the events that one writer appends to a run, and hands out the
// spans that they end. Only the append that succeeds counts, so each span is
// exported by one process, whoever else worked on the run. The nil spans follows
// nothing.
type spans struct {
	fold  *runspan.Fold
	sink  Spans
	clock func() time.Time
}

// traceContext is what others need to join the trace of a run.
func (e *Executor) traceContext(rec *wire.RunRecord) runspan.Context {
	if e.deps.Spans == nil {
		return runspan.ContextOf(rec, runspan.Sampled(rec.Traceparent))
	}
	return runspan.ContextOf(rec, e.deps.Spans.Wants(rec))
}

// spans begins where the log of a run stands: what it tells so far was exported
// by whoever appended it.
func (e *Executor) spans(ctx context.Context, r subject.Run, rec *wire.RunRecord, head frame.Head) (*spans, error) {
	if e.deps.Spans == nil || !e.deps.Spans.Wants(rec) {
		return nil, nil
	}
	s := &spans{fold: runspan.New(rec), sink: e.deps.Spans, clock: e.deps.Clock}
	if head.Next == 0 {
		return s, nil
	}
	frames, err := e.deps.Log.Run(ctx, r)
	if err != nil {
		return nil, err
	}
	for _, f := range frames {
		if f.Pos > head.Pos {
			break
		}
		events, err := f.Events()
		if err != nil {
			return nil, err
		}
		for _, event := range events {
			s.fold.Apply(event)
		}
	}
	return s, nil
}

// exportAppend takes events that this writer has appended, which began at a time.
func (s *spans) exportAppend(events []wire.Event, start time.Time) {
	if s == nil || len(events) == 0 {
		return
	}
	s.sink.Ended([]*runspan.Span{s.fold.Append(events, start, s.clock())})
	s.apply(events)
}

// apply takes events that were appended.
func (s *spans) apply(events []wire.Event) {
	if s == nil {
		return
	}
	for _, e := range events {
		if ended := s.fold.Apply(e); len(ended) > 0 {
			s.sink.Ended(ended)
		}
	}
}
