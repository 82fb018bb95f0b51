package fold

import (
	"time"

	"waybill.dev/waybill/protocol/view"
	"waybill.dev/waybill/protocol/wire"
)

// The statuses of bars that the code compares.
const (
	running   = "running"
	completed = "completed"
	cancelled = "cancelled"
	suspended = "suspended"
	retried   = "retried"
	branched  = "branched"
)

// ends maps the events that end a node to its status.
var ends = map[wire.EventType]string{
	"node.completed":      completed,
	"node.failed":         "failed",
	"node.skipped":        "skipped",
	"node.cancelled":      cancelled,
	"node.suspend-failed": "failed",
}

// turns maps the events that start or end a wait of the run to its status.
var turns = map[wire.EventType]string{
	"interrupt.requested": suspended,
	"interrupt.resolved":  running,
	"run.paused":          "paused",
	"run.resumed":         running,
}

// runEnds maps the events that end a run to its status.
var runEnds = map[wire.EventType]string{
	wire.EventRunCompleted: completed, wire.EventRunFailed: "failed", wire.EventRunCancelled: cancelled,
}

// timeline folds the bars and marks of a run.
type timeline struct {
	out   view.Timeline
	lanes map[string]*view.Lane
	zero  time.Time
}

func newTimeline() timeline {
	return timeline{
		lanes: map[string]*view.Lane{},
		out: view.Timeline{
			Run:   &view.Bar{Status: "pending", Parts: []*view.Part{}},
			Marks: []*view.Mark{}, Lanes: []*view.Lane{},
		},
	}
}

func (t *timeline) view() view.Timeline { return t.out }

// add returns the time of the event.
func (t *timeline) add(e wire.Event, p *payload, id string) (at int64) {
	at = t.at(e)
	run := t.out.Run
	if e.Type == wire.EventRunStarted {
		if at > 0 {
			run.Parts = append(run.Parts, &view.Part{Kind: view.PartWait, To: &at})
		}
		run.Parts = append(run.Parts, &view.Part{Kind: view.PartWork, From: at})
		run.Status = running
	}
	if status, ok := runEnds[e.Type]; ok {
		t.endRun(at, status)
	}
	if status, ok := turns[e.Type]; ok && run.To == nil {
		t.endWait(at)
		closePart(run, at)
		run.Parts = append(run.Parts, &view.Part{Kind: kindOf(status), From: at})
		run.Status = status
	}
	marks := &t.out.Marks
	if id != "" {
		l := t.lane(id)
		readLane(l, e, p, at)
		marks = &l.Marks
	}
	if m := markOf(e, p); m != nil {
		m.Sequence, m.At = e.Sequence, at
		*marks = append(*marks, m)
	}
	if e.Type == wire.EventNodeRetried && !p.branched() || e.Type == wire.EventEnvelopeRetryAttempted {
		t.out.Retries++
	}
	return at
}

// called adds the usage of a call to the node's bar.
func (t *timeline) called(id string, call *view.CostCall) {
	l := t.lanes[id]
	if l == nil || len(l.Bars) == 0 {
		return
	}
	b := lastBar(l)
	if b.Usage == nil {
		b.Usage = &view.Sum{}
	}
	addTo(b.Usage, call)
}

// endWait counts the run's wait that ends now. The first part is the time before its start.
func (t *timeline) endWait(at int64) {
	parts := t.out.Run.Parts
	if n := len(parts); n > 1 && parts[n-1].Kind == view.PartWait && parts[n-1].To == nil {
		t.out.WaitedMs += at - parts[n-1].From
	}
}

// at returns the time of an event since the creation. An unreadable time counts as that of the
// event before.
func (t *timeline) at(e wire.Event) int64 {
	at, err := time.Parse(time.RFC3339, e.Timestamp)
	if err != nil {
		return t.out.Last
	}
	if t.zero.IsZero() {
		t.zero = at
	}
	since := max(0, at.Sub(t.zero).Milliseconds())
	t.out.Last = max(t.out.Last, since)
	return since
}

func (t *timeline) lane(id string) *view.Lane {
	l, ok := t.lanes[id]
	if !ok {
		l = &view.Lane{NodeID: id, Status: "pending", Bars: []*view.Bar{}, Marks: []*view.Mark{}}
		t.lanes[id] = l
		t.out.Lanes = append(t.out.Lanes, l)
	}
	return l
}

// endRun ends the run, and all open bars with it.
func (t *timeline) endRun(at int64, status string) {
	t.endWait(at)
	t.out.Run.To, t.out.Run.Status = &at, status
	closePart(t.out.Run, at)
	if status != completed {
		status = cancelled
	}
	for _, l := range t.out.Lanes {
		if b := lastBar(l); b != nil && b.To == nil {
			endBar(l, b, at, status)
		}
	}
}
