package runspan

import (
	"maps"
	"slices"
	"time"
)

// question is a suspension that nothing has resolved yet.
type question struct {
	node string
	span *Span
}

// ask begins the span of a suspension, below that of its node: it tells the wait from the
// work (OpenWOP host contract §10.1). What is asked is in no span.
func (f *Fold) ask(p event, at time.Time) {
	if _, known := f.asks[p.InterruptID]; known || p.InterruptID == "" {
		return
	}
	f.asked[p.NodeID]++
	parent := f.run.ID
	if n := f.nodes[p.NodeID]; n != nil {
		parent = n.span.ID
	}
	f.asks[p.InterruptID] = question{p.NodeID, &Span{
		Name: NameInterrupt, Trace: f.trace, ID: InterruptSpan(f.rec.RunID, p.InterruptID), Parent: parent,
		Kind: KindInternal, Code: Unset, Start: at,
		Attributes: map[string]any{
			"openwop.run_id": f.rec.RunID, "openwop.node_id": p.NodeID, "openwop.interrupt_id": cut(p.InterruptID),
			"openwop.interrupt_kind": cut(p.Kind), "openwop.interrupt_count": int64(f.asked[p.NodeID]),
		},
	}}
}

// reasonTimeout is why a question was resolved that nobody answered.
const reasonTimeout = "timeout"

// resolve ends the span of a suspension. Whatever was answered, an answer is no failure.
func (f *Fold) resolve(p event, at time.Time) {
	q, open := f.asks[p.InterruptID]
	if !open {
		return
	}
	delete(f.asks, p.InterruptID)
	if p.Reason == reasonTimeout {
		f.finish(q.span, at, Error, reasonTimeout)
		return
	}
	f.finish(q.span, at, OK, "")
}

// unasked ends the suspensions that a node, or the run, has ended without an answer to.
func (f *Fold) unasked(of func(nodeID string) bool, at time.Time, code Code, message string) {
	for _, id := range slices.Sorted(maps.Keys(f.asks)) {
		if q := f.asks[id]; of(q.node) {
			delete(f.asks, id)
			f.finish(q.span, at, code, message)
		}
	}
}
