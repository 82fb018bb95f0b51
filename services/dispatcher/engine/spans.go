package engine

import (
	"context"
	"time"

	"waybill.dev/waybill/internal/obs/runspan"
	"waybill.dev/waybill/protocol/frame"
	"waybill.dev/waybill/protocol/subject"
	"waybill.dev/waybill/protocol/wire"
	"waybill.dev/waybill/protocol/workflow"
)

// Spans exports the spans of runs.
type Spans interface {
	// Wants reports whether the spans of a run are to be exported.
	Wants(rec *wire.RunRecord) bool
	// Ended exports completed spans. It does not block.
	Ended(spans []*runspan.Span)
	// Content reports whether spans have the texts of model calls.
	Content() bool
}

// spans folds the events that one writer appends to a run, and exports the spans that they end.
// Only the successful append counts, so one process exports each span. The nil spans does nothing.
type spans struct {
	fold  *runspan.Fold
	sink  Spans
	clock func() time.Time
}

// traceContext is the context by which other services join the trace of a run.
func (e *Executor) traceContext(rec *wire.RunRecord) runspan.Context {
	if e.deps.Spans == nil {
		return runspan.ContextOf(rec, runspan.Sampled(rec.Traceparent))
	}
	return runspan.ContextOf(rec, e.deps.Spans.Wants(rec))
}

// spans starts at the head of the run's log. The spans before it were exported by the writers of
// those events.
func (e *Executor) spans(
	ctx context.Context, r subject.Run, rec *wire.RunRecord, head frame.Head, def *workflow.Definition,
) (*spans, error) {
	if e.deps.Spans == nil || !e.deps.Spans.Wants(rec) {
		return nil, nil
	}
	s := &spans{fold: runspan.New(rec, runspan.Options{
		Definition: &nodeFacts{rec, def, e.deps.Requested},
		APIs:       e.deps.APIs,
		Content:    e.deps.Spans.Content(),
	}), sink: e.deps.Spans, clock: e.deps.Clock}
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

// exportAppend exports the span of an append that began at start, and the spans that its events
// end.
func (s *spans) exportAppend(events []wire.Event, start time.Time) {
	if s == nil || len(events) == 0 {
		return
	}
	s.sink.Ended([]*runspan.Span{s.fold.Append(events, start, s.clock())})
	s.apply(events)
}

// apply folds events, and exports the spans that they end.
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
