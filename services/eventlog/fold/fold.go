// Package fold folds the events of a run into its view: model answers with the gates they passed,
// timeline, tokens and cost. It is pure: the same events yield the same view.
package fold

import (
	"cmp"
	"time"

	"waybill.dev/waybill/protocol/view"
	"waybill.dev/waybill/protocol/wire"
)

// Fold is the view of a run while its events are added in order. It is not safe for concurrent use.
type Fold struct {
	run      view.Run
	answers  answers
	timeline timeline
	cost     costs
}

// New returns the fold of a run without events. createdAt is RFC 3339; if it is not, times count
// from the first event.
func New(runID, createdAt string) *Fold {
	f := &Fold{
		run:      view.Run{RunID: runID, CreatedAt: createdAt, Sequence: -1},
		answers:  answers{nodes: map[string]*node{}},
		timeline: newTimeline(),
		cost:     costs{nodes: map[string]*costNode{}},
	}
	f.timeline.zero, _ = time.Parse(time.RFC3339, createdAt)
	return f
}

// Of returns the view of a run as of the last of its events.
func Of(runID, createdAt string, events []wire.Event) *view.Run {
	f := New(runID, createdAt)
	for _, e := range events {
		f.Add(e)
	}
	return f.View()
}

// Next is the sequence of the next event to add.
func (f *Fold) Next() int { return f.run.Sequence + 1 }

// Add adds an event. Events that were added before are ignored.
func (f *Fold) Add(e wire.Event) {
	if e.Sequence <= f.run.Sequence {
		return
	}
	p := parse(e.Payload)
	id := cmp.Or(e.NodeID, p.NodeID)
	at := f.timeline.add(e, p, id)
	if call := f.cost.add(e, p, id); call != nil {
		f.timeline.called(id, call)
	}
	if id != "" {
		f.answers.add(e, p, id, at)
	}
	f.run.Sequence = e.Sequence
}

// Ended adds an event, and returns the model calls and the execution of a node that it ended; nil if it
// ended none. An attempt that was retried ends once, also if its node ends before the next attempt.
func (f *Fold) Ended(e wire.Event) ([]*view.CostCall, *view.Execution) {
	before, over := len(f.cost.calls), f.answers.over(e.NodeID)
	f.Add(e)
	calls := f.cost.calls[before:]
	switch e.Type {
	case wire.EventNodeCompleted, wire.EventNodeFailed, wire.EventNodeRetried, wire.EventNodeCancelled:
		if n := f.answers.nodes[e.NodeID]; n != nil && n.current != over {
			return calls, n.current
		}
	default:
	}
	return calls, nil
}

// View returns the view as of the last event. It is valid until the next call of Add.
func (f *Fold) View() *view.Run {
	out := f.run
	out.Answers = f.answers.view()
	out.Timeline = f.timeline.view()
	out.Cost = f.cost.view()
	return &out
}
