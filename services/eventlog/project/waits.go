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
	WaitsDispatcher   = "dispatcher"   // to take the run
	WaitsNode         = "node"         // that is running
	WaitsTimer        = "timer"        // of a node
	WaitsApproval     = "approval"     // by a person
	WaitsInput        = "input"        // from a person
	WaitsForm         = "form"         // filled in by a person
	WaitsExternal     = "external"     // an external event
	WaitsRun          = "run"          // a child run
	WaitsResume       = "resume"       // by a caller
	WaitsCancellation = "cancellation" // to take effect
)

// Waits describes what a run waits for, so that a list shows who has to act.
type Waits struct {
	For    string `json:"for"`
	NodeID string `json:"nodeId,omitempty"`
	// Attempt is the 1-based number of a node's attempt.
	Attempt int `json:"attempt,omitempty"`
	// Since is the start of the wait, DueAt its end; empty if unknown, or no limit.
	Since string `json:"since,omitempty"`
	DueAt string `json:"dueAt,omitempty"`
	// Questions is the number of open questions.
	Questions int `json:"questions,omitempty"`
	// HeldBy is the process that owns the run; empty if none, or unknown.
	HeldBy string `json:"heldBy,omitempty"`
}

// Waits returns what the run waits for; nil if nothing.
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

// LastEventAt returns the time of the run's last event.
func (r *Run) LastEventAt() string { return max(r.createdAt, r.State.LastAt) }

func (w *Waits) text() string {
	if w == nil {
		return ""
	}
	b, err := json.Marshal(w)
	if err != nil {
		return "" // strings and numbers always marshal
	}
	return string(b)
}

// ParseWaits parses the Waits of a row; nil if none.
func ParseWaits(text string) *Waits {
	var w Waits
	if text == "" || json.Unmarshal([]byte(text), &w) != nil {
		return nil
	}
	return &w
}

// waitsOf returns what a run waits for; nil if it has ended.
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

// askedFor returns what a question waits for. It follows the status of its run, except for forms:
// their run has an external status in the protocol but waits for a person.
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

// asked returns the oldest open question, or the awaited child.
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

// working returns the node that has been running longest, or else the next timer.
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
