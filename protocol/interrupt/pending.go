package interrupt

import (
	"encoding/json"
	"fmt"
	"time"

	"waybill.dev/waybill/protocol/strictjson"
	"waybill.dev/waybill/protocol/wire"
)

// Pending is an interrupt that waits for an answer. Its exported members are JSON, so
// that a fold can keep it.
type Pending struct {
	Request
	RunID       string `json:"runId"`
	NodeID      string `json:"nodeId"`
	InterruptID string `json:"interruptId"`
	// RequestedAt is when it was asked, as its event says.
	RequestedAt string `json:"requestedAt"`
	// Trust is that of what is asked; all that follows is of no more.
	Trust wire.Trust `json:"trust,omitempty"`
	// Votes are those of a quorum so far, Questions what was asked back.
	Votes     Votes      `json:"votes,omitempty"`
	Questions []Exchange `json:"questions,omitempty"`
	// Escalated is the level that it has come to; nil: none has.
	Escalated *Escalation `json:"escalated,omitempty"`
}

// Exchange is something that an approver wants to know before deciding.
type Exchange struct {
	Question string `json:"question"`
	By       string `json:"by"`
	At       string `json:"at"`
}

// Note is what a run keeps of an answer that resolves nothing: one vote of several, or
// a question. It is no event: the protocol has none for it (OpenWOP host contract §6.3).
type Note struct {
	InterruptID string    `json:"interruptId"`
	Vote        *Vote     `json:"vote,omitempty"`
	Question    *Exchange `json:"question,omitempty"`
}

// Open makes the interrupt of a request and the events that a run records of it:
// node.suspended, interrupt.requested, and the older event of its kind, if it has one.
func Open(at Place, r Request, now time.Time, trust wire.Trust) (*Pending, []wire.Draft) {
	p := &Pending{
		Request: r, RunID: at.RunID, NodeID: at.NodeID, InterruptID: at.InterruptID(),
		RequestedAt: wire.FormatTime(now), Trust: lowered(trust),
	}
	return p, p.requested()
}

// Reopen reads the interrupt back of the payload of its interrupt.requested event.
func Reopen(payload json.RawMessage, trust wire.Trust) (*Pending, error) {
	p := &Pending{}
	if err := strictjson.Read(payload, p); err != nil {
		return nil, fmt.Errorf("read interrupt: %w", err)
	}
	if !p.Kind.Known() || p.InterruptID == "" || p.NodeID == "" {
		return nil, fmt.Errorf("read interrupt: members kind, interruptId and nodeId are required")
	}
	p.Trust, p.Votes, p.Questions, p.Escalated = lowered(trust), nil, nil, nil
	return p, nil
}

// Inspection is what the holder of a token sees of an interrupt (OpenWOP host contract
// §6.5, §12 no. 8).
type Inspection struct {
	Request
	RequestedAt string `json:"requestedAt"`
	ExpiresAt   string `json:"expiresAt"`
	Resolved    bool   `json:"resolved"`
}

// Inspect shows the interrupt to the holder of a token that is good until then.
func (p *Pending) Inspect(until time.Time, resolved bool) Inspection {
	return Inspection{Request: p.Request, RequestedAt: p.RequestedAt, ExpiresAt: wire.FormatTime(until), Resolved: resolved}
}

// NeedsCredential reports whether only somebody with a credential of their own may
// answer: the holder of a token may not (OpenWOP host contract §6.5, last row). So it is,
// too, where a gate names who may (§6.3): a token belongs to nobody, and whoever created the
// run gets one, so it would make its holder anybody of the list.
func (p *Pending) NeedsCredential() bool {
	var d approvalData
	if p.Kind != Approval || strictjson.Read(p.Data, &d) != nil {
		return false
	}
	return d.Profile == ProfileAuthRequired || !d.open()
}

// NamesApprovers reports whether an approval names who may answer.
func (p *Pending) NamesApprovers() bool {
	var d approvalData
	return p.Kind == Approval && strictjson.Read(p.Data, &d) == nil && !d.open()
}

// Keep folds a note into the interrupt. A note of another interrupt changes nothing.
func (p *Pending) Keep(n Note) {
	if n.InterruptID != p.InterruptID {
		return
	}
	if n.Vote != nil {
		p.Votes = p.Votes.With(*n.Vote)
	}
	if n.Question != nil {
		p.Questions = append(p.Questions, *n.Question)
	}
}

// Deadline is when the time for an answer is over; ok is false when it never is.
func (p *Pending) Deadline() (deadline time.Time, ok bool) {
	asked, err := time.Parse(wire.TimeLayout, p.RequestedAt)
	if err != nil || p.TimeoutMs <= 0 {
		return time.Time{}, false
	}
	return asked.Add(time.Duration(p.TimeoutMs) * time.Millisecond), true
}

// Expired reports whether the time for an answer is over.
func (p *Pending) Expired(now time.Time) bool {
	deadline, ok := p.Deadline()
	return ok && !now.Before(deadline)
}

// lowered is a trust as events have it: written only where it is none.
func lowered(t wire.Trust) wire.Trust {
	if t == wire.Untrusted {
		return t
	}
	return ""
}
