package bundle

import (
	"encoding/json"
	"fmt"

	"waybill.dev/waybill/protocol/runstate"
	"waybill.dev/waybill/protocol/view"
	"waybill.dev/waybill/protocol/wire"
	"waybill.dev/waybill/services/eventlog/fold"
)

// fitting shrinks a document to the size limit. Events, spans, the view and the snapshot all count.
type fitting struct {
	*document

	filter inputFilter
	rec    *wire.RunRecord
	kept   []wire.Event // the events in Events, without their content
	limit  int
}

func (f *fitting) take(events []wire.Event) {
	f.kept, f.Events = make([]wire.Event, len(events)), make([]json.RawMessage, len(events))
	for i, e := range events {
		f.kept[i] = f.filter.event(e)
		f.Events[i] = f.kept[i].AppendJSON(nil)
	}
}

// view folds the events of the bundle, from the start of the log to the first gap.
func (f *fitting) view() *view.Run {
	v := fold.New(f.rec.RunID, f.rec.CreatedAt)
	for _, e := range f.kept {
		if e.Sequence == v.Next() {
			v.Add(e)
		}
	}
	return v.View()
}

// shorten drops events from the end of the log but keeps the last, which records how the run ended.
func (f *fitting) shorten(n int, reason string) {
	last := len(f.Events) - 1
	f.Events = append(f.Events[:n-1:n-1], f.Events[last])
	f.kept = append(f.kept[:n-1:n-1], f.kept[last])
	f.Truncated, f.TruncatedReason = true, reason
}

// render returns the bundle within the limit. It drops events that do not fit, with their spans and
// what the view shows of them. If
// the rest without events takes most of the limit, it drops the states of the nodes first.
func (f *fitting) render() ([]byte, error) {
	b, err := f.marshal()
	if err != nil || len(b) <= f.limit {
		return b, err
	}
	f.Truncated, f.TruncatedReason = true, TruncatedToSize
	least, err := f.least()
	if err != nil {
		return nil, err
	}
	if least > f.limit/2 {
		f.Run = bare(f.Run)
		if least, err = f.least(); err != nil {
			return nil, err
		}
	}
	for {
		if b, err = f.marshal(); err != nil || len(b) <= f.limit {
			return b, err
		}
		n := len(f.Events)
		if n <= 1 {
			return nil, fmt.Errorf("debug bundle: %d bytes without any event but the last; at most %d are allowed", len(b), f.limit)
		}
		// As many as would fit if all had the same size, and fewer than now.
		room := int64(n) * int64(max(0, f.limit-least)) / int64(max(1, len(b)-least))
		f.shorten(max(1, min(n-1, int(room))), TruncatedToSize)
		f.Spans = f.filter.spans(f.rec, f.kept)
	}
}

// least returns the size with only the last event.
func (f *fitting) least() (int, error) {
	if len(f.Events) <= 1 {
		b, err := f.marshal()
		return len(b), err
	}
	d := *f.document
	alone := fitting{document: &d, filter: f.filter, rec: f.rec, kept: f.kept, limit: f.limit}
	alone.shorten(1, TruncatedToSize)
	alone.Spans = f.filter.spans(f.rec, alone.kept)
	b, err := alone.marshal()
	return len(b), err
}

func (f *fitting) marshal() ([]byte, error) {
	f.View, f.Assets = f.view(), f.assets()
	b, err := json.Marshal(f.document)
	if err != nil {
		return nil, fmt.Errorf("render debug bundle: %w", err)
	}
	return b, nil
}

// bare returns a snapshot without node states and tags.
func bare(v *runstate.Snapshot) *runstate.Snapshot {
	out := *v
	out.NodeStates, out.Tags = map[string]runstate.NodeState{}, nil
	return &out
}
