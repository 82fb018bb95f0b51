package runspan

import (
	"maps"
	"slices"
	"time"
)

// question is an open suspension.
type question struct {
	node string
	span *Span
}

// ask opens the span of a suspension below that of its node: it separates waiting from work
// (OpenWOP host contract §10.1). The question's content is in no span.
func (f *Fold) ask(p event, at time.Time) {
	if _, known := f.open[p.InterruptID]; known || p.InterruptID == "" {
		return
	}
	f.asked[p.NodeID]++
	parent := f.run.ID
	if n := f.nodes[p.NodeID]; n != nil {
		parent = n.span.ID
	}
	f.open[p.InterruptID] = question{p.NodeID, &Span{
		Name: NameInterrupt, Trace: f.trace, ID: InterruptSpan(f.rec.RunID, p.InterruptID), Parent: parent,
		Kind: KindInternal, Code: Unset, Start: at,
		Attributes: map[string]any{
			"openwop.run_id": f.rec.RunID, "openwop.node_id": p.NodeID, "openwop.interrupt_id": cut(p.InterruptID),
			"openwop.interrupt_kind": cut(p.Kind), "openwop.interrupt_count": int64(f.asked[p.NodeID]),
		},
	}}
}

// reasonTimeout is the reason of an expired question.
const reasonTimeout = "timeout"

// resolve ends the span of a suspension. Any answer counts as success.
func (f *Fold) resolve(p event, at time.Time) {
	q, open := f.open[p.InterruptID]
	if !open {
		return
	}
	delete(f.open, p.InterruptID)
	if p.Reason == reasonTimeout {
		f.finish(q.span, at, Error, reasonTimeout)
		return
	}
	f.finish(q.span, at, OK, "")
}

// endOpen ends the spans of suspensions whose node or run ended without an answer.
func (f *Fold) endOpen(of func(nodeID string) bool, at time.Time, code Code, message string) {
	for _, id := range slices.Sorted(maps.Keys(f.open)) {
		if q := f.open[id]; of(q.node) {
			delete(f.open, id)
			f.finish(q.span, at, code, message)
		}
	}
}
