package project

import (
	"encoding/json"
	"time"

	"waybill.dev/waybill/protocol/interrupt"
	"waybill.dev/waybill/protocol/runstate"
	"waybill.dev/waybill/protocol/wire"
)

// What a run may wait for.
const (
	WaitsDispatcher   = "dispatcher"   // that takes it
	WaitsNode         = "node"         // that is at work
	WaitsTimer        = "timer"        // of a node
	WaitsApproval     = "approval"     // by somebody
	WaitsInput        = "input"        // of somebody
	WaitsForm         = "form"         // that somebody fills in
	WaitsExternal     = "external"     // something outside
	WaitsRun          = "run"          // that it has started
	WaitsResume       = "resume"       // by somebody who lets it go on
	WaitsCancellation = "cancellation" // that takes effect
)

// Waits is what a run waits for, so that a list says who has to act.
type Waits struct {
	For    string `json:"for"`
	NodeID string `json:"nodeId,omitempty"`
	// Attempt is the number of a node's attempt, from 1.
	Attempt int `json:"attempt,omitempty"`
	// Since is since when, DueAt until when; empty: not known, and for ever.
	Since string `json:"since,omitempty"`
	DueAt string `json:"dueAt,omitempty"`
	// Questions is how many wait for an answer.
	Questions int `json:"questions,omitempty"`
	// HeldBy is the process that has the run; empty: none, or it is not known.
	HeldBy string `json:"heldBy,omitempty"`
}

// Waits is what the run waits for; nil: nothing.
func (r *Run) Waits() *Waits {
	if r.Damage != "" {
		return nil
	}
	w := waitsOf(r.State, r.createdAt)
	if w != nil && (w.For == WaitsNode || w.For == WaitsCancellation) {
		w.HeldBy = r.owner.Process
	}
	return w
}

// LastEventAt is when the run was last heard of.
func (r *Run) LastEventAt() string { return max(r.createdAt, r.State.LastAt) }

func (w *Waits) text() string {
	if w == nil {
		return ""
	}
	b, err := json.Marshal(w)
	if err != nil {
		return "" // texts and numbers never fail
	}
	return string(b)
}

// ParseWaits reads what a row says that its run waits for; nil: nothing.
func ParseWaits(text string) *Waits {
	var w Waits
	if text == "" || json.Unmarshal([]byte(text), &w) != nil {
		return nil
	}
	return &w
}

// waitsOf says what a run waits for; nil: it has ended.
func waitsOf(s *runstate.State, createdAt string) *Waits {
	switch {
	case s.Status.Terminal():
		return nil
	case s.Status == wire.StatusPending:
		return &Waits{For: WaitsDispatcher, Since: createdAt}
	case s.Status == wire.StatusPaused:
		return &Waits{For: WaitsResume, Since: s.PausedAt}
	case s.Status == wire.StatusCancelling:
		return &Waits{For: WaitsCancellation, Since: s.LastAt}
	case s.Status.Suspended():
		return asked(s)
	default:
		return working(s)
	}
}

// askedFor is what a question asks for: what the status of its run says, but for a form,
// whose run waits for something outside by the protocol, and for a person in truth.
func askedFor(q *interrupt.Pending) string {
	switch {
	case q.IsForm():
		return WaitsForm
	case q.Kind.Status() == wire.StatusWaitingApproval:
		return WaitsApproval
	case q.Kind.Status() == wire.StatusWaitingInput:
		return WaitsInput
	default:
		return WaitsExternal
	}
}

// asked is the question that has been open longest, or the child that is waited for.
func asked(s *runstate.State) *Waits {
	first := s.Waits()
	if first == nil {
		return working(s)
	}
	w := &Waits{For: WaitsRun, NodeID: first.NodeID, Questions: len(s.Questions())}
	if n := s.Nodes[first.NodeID]; n != nil {
		w.Since = n.Since
	}
	if q := s.Find(first.InterruptID); q != nil {
		w.For = askedFor(q.Pending)
		w.Since = q.RequestedAt
		if due, ok := q.Deadline(); ok {
			w.DueAt = wire.FormatTime(due)
		}
	}
	return w
}

// working is the node that has been at work longest, or else the timer that fires next.
func working(s *runstate.State) *Waits {
	var (
		id   string
		node *runstate.Node
	)
	for at, n := range s.Nodes {
		if n.Status == runstate.NodeRunning && n.DelayMs == 0 && (node == nil || n.Since < node.Since || n.Since == node.Since && at < id) {
			id, node = at, n
		}
	}
	if node != nil && node.Child != nil {
		return &Waits{For: WaitsRun, NodeID: id, Since: node.Since}
	}
	if node != nil {
		return &Waits{For: WaitsNode, NodeID: id, Attempt: node.Attempt + 1, Since: node.Since}
	}
	if id, n, ok := s.Timer(); ok {
		return &Waits{For: WaitsTimer, NodeID: id, Attempt: n.Attempt + 1, Since: n.Since, DueAt: instant(n.Due())}
	}
	return &Waits{For: WaitsDispatcher, Since: s.LastAt}
}

func instant(t time.Time) string {
	if t.IsZero() {
		return ""
	}
	return wire.FormatTime(t)
}
