package runstate

import (
	"cmp"
	"encoding/json"
	"slices"
	"time"

	"waybill.dev/waybill/protocol/interrupt"
	"waybill.dev/waybill/protocol/wire"
)

// Interrupt is a question of a node to a person or an external system.
type Interrupt struct {
	*interrupt.Pending
	// Resolved: the question was answered or rejected, or it expired. ResumeValue is the answer; nil if
	// there is none.
	Resolved    bool
	ResumeValue json.RawMessage
}

// Asks reports whether a question is open: it has no answer and its node has not ended.
func (s *State) Asks(i *Interrupt) bool {
	n := s.Nodes[i.NodeID]
	return !i.Resolved && (n == nil || !n.Status.Terminal())
}

// Questions returns the open questions in the order they were asked; none once the run has ended or
// is cancelling (OpenWOP host contract §6.4).
func (s *State) Questions() []*Interrupt {
	if s.Status.Terminal() || s.Status == wire.StatusCancelling {
		return nil
	}
	var out []*Interrupt
	for _, i := range s.Interrupts {
		if s.Asks(i) {
			out = append(out, i)
		}
	}
	return out
}

// Open returns the first open question of a node; nil if none.
func (s *State) Open(nodeID string) *Interrupt {
	for _, i := range s.Interrupts {
		if i.NodeID == nodeID && s.Asks(i) {
			return i
		}
	}
	return nil
}

// OpenCount counts the open questions of a node.
func (s *State) OpenCount(nodeID string) int {
	n := 0
	for _, i := range s.Interrupts {
		if i.NodeID == nodeID && s.Asks(i) {
			n++
		}
	}
	return n
}

// AnsweredOf returns the answered questions of a node's model, in the order they were asked. It
// excludes the host's own question about a call with an unknown outcome.
func (s *State) AnsweredOf(nodeID string) []*Interrupt {
	var out []*Interrupt
	for _, i := range s.Interrupts {
		if i.NodeID == nodeID && i.Resolved && i.ResumeValue != nil && !i.IsUnknown() {
			out = append(out, i)
		}
	}
	return out
}

// SentWith returns the envelopes that a model sent in one answer with its question, in their order.
func (s *State) SentWith(interruptID string) []*Envelope {
	var out []*Envelope
	for _, q := range s.Envelopes {
		if q.InterruptID != interruptID || interruptID == "" {
			continue
		}
		for _, v := range s.Envelopes {
			if v.NodeID == q.NodeID && v.Payload != nil && v.Answer.Size == q.Answer.Size &&
				(slices.Contains(q.Answer.With, v.Sequence) || slices.Contains(v.Answer.With, q.Sequence)) {
				out = append(out, v)
			}
		}
	}
	slices.SortFunc(out, func(a, b *Envelope) int { return cmp.Compare(a.Answer.Index, b.Answer.Index) })
	return out
}

// Find returns a question by its id; nil if none.
func (s *State) Find(id string) *Interrupt {
	for _, i := range s.Interrupts {
		if i.InterruptID == id {
			return i
		}
	}
	return nil
}

// Latest returns a node's most recent question; nil if none.
func (s *State) Latest(nodeID string) *Interrupt {
	for i := len(s.Interrupts) - 1; i >= 0; i-- {
		if s.Interrupts[i].NodeID == nodeID {
			return s.Interrupts[i]
		}
	}
	return nil
}

// Asked counts the questions of a node.
func (s *State) Asked(nodeID string) int {
	n := 0
	for _, i := range s.Interrupts {
		if i.NodeID == nodeID {
			n++
		}
	}
	return n
}

// Answered returns the answered question that also answers r: a question is not asked twice
// (OpenWOP host contract §6.1).
func (s *State) Answered(r interrupt.Request) (*Interrupt, bool) {
	for _, i := range s.Interrupts {
		if i.Key == r.Key && i.Resolved && i.ResumeValue != nil && i.Settles(r) {
			return i, true
		}
	}
	return nil, false
}

func (s *State) applyInterrupt(e wire.Event) {
	switch e.Type {
	case wire.EventInterruptRequested:
		p, err := interrupt.Reopen(e.Payload, e.ContentTrust)
		if err != nil {
			return // it could not be answered
		}
		if s.Record.Fork != nil { // a fork asks its source's questions itself, from now on
			p.RunID, p.RequestedAt = s.Record.RunID, e.Timestamp
		}
		s.Interrupts = append(s.Interrupts, &Interrupt{Pending: p})
		if n := s.Nodes[p.NodeID]; n != nil && n.Status == NodeSuspended {
			n.DelayMs = p.DueMs()
		}
	case wire.EventApprovalEscalated:
		p, err := interrupt.ReopenEscalated(e)
		if err != nil {
			return // no level changes
		}
		if i := s.Find(p.InterruptID); i != nil && !i.Resolved {
			i.SetLevel(p.Level(), e.Timestamp)
			if n := s.Nodes[i.NodeID]; n != nil && n.Status == NodeSuspended {
				n.DelayMs = i.DueMs()
			}
		}
	case wire.EventInterruptResolved:
		var p struct {
			InterruptID string          `json:"interruptId"`
			ResumeValue json.RawMessage `json:"resumeValue"`
		}
		_ = json.Unmarshal(e.Payload, &p)
		if i := s.Find(p.InterruptID); i != nil {
			i.Resolved, i.ResumeValue = true, p.ResumeValue
			if n := s.Nodes[i.NodeID]; n != nil && n.Status == NodeSuspended && s.OpenCount(i.NodeID) > 0 {
				n.DelayMs = s.answerDueMs(i.NodeID, n.Since) // the node waits for further answers
			}
		}
	}
}

// answerDueMs returns the milliseconds from an instant to the first time limit of a node's open
// questions, at least 1; 0 means none.
func (s *State) answerDueMs(nodeID, since string) int64 {
	from, err := time.Parse(wire.TimeLayout, since)
	if err != nil {
		return 0
	}
	first := int64(0)
	for _, i := range s.Interrupts {
		if i.NodeID != nodeID || !s.Asks(i) {
			continue
		}
		if due, ok := i.Deadline(); ok {
			if ms := max(due.Sub(from).Milliseconds(), 1); first == 0 || ms < first {
				first = ms
			}
		}
	}
	return first
}

// Said returns the votes and questions at open interrupts, as notes.
func (s *State) Said() []interrupt.Note {
	var out []interrupt.Note
	for _, i := range s.Interrupts {
		if !s.Asks(i) {
			continue
		}
		for _, v := range i.Votes {
			out = append(out, interrupt.Note{InterruptID: i.InterruptID, Vote: &v})
		}
		for _, q := range i.Questions {
			out = append(out, interrupt.Note{InterruptID: i.InterruptID, Question: &q})
		}
	}
	return out
}

// Remember folds a note. A note about a resolved interrupt or an ended run changes nothing.
func (s *State) Remember(n wire.Note) {
	if s.Status.Terminal() {
		return
	}
	if n.Pause != nil && s.Status != wire.StatusPaused {
		s.Pausing = n.Pause
	}
	if n.Unpause {
		s.Pausing = nil
	}
	s.setHeld(n.Held, true)
	s.setHeld(n.Begun, false)
	if n.Cancel != nil {
		s.Status, s.Cancelling = wire.StatusCancelling, n.Cancel
	}
	var said interrupt.Note
	if len(n.Said) == 0 || json.Unmarshal(n.Said, &said) != nil {
		return
	}
	if i := s.Find(said.InterruptID); i != nil && !i.Resolved {
		i.AddNote(said)
	}
}
