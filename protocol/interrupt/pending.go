package interrupt

import (
	"encoding/json"
	"fmt"
	"time"

	"waybill.dev/waybill/protocol/strictjson"
	"waybill.dev/waybill/protocol/wire"
)

// Pending is an interrupt that waits for an answer. It can be stored as JSON in a run's state.
type Pending struct {
	Request
	RunID       string `json:"runId"`
	NodeID      string `json:"nodeId"`
	InterruptID string `json:"interruptId"`
	// RequestedAt is the timestamp of its interrupt.requested event.
	RequestedAt string `json:"requestedAt"`
	// Trust is the trust of the question, and an upper limit for everything derived from it.
	Trust wire.Trust `json:"trust,omitempty"`
	// Votes are the votes so far, Questions the questions asked by approvers.
	Votes     Votes      `json:"votes,omitempty"`
	Questions []Exchange `json:"questions,omitempty"`
	// Escalated is the level reached; nil if none.
	Escalated *Escalation `json:"escalated,omitempty"`
}

// Exchange is a question from an approver before deciding.
type Exchange struct {
	Question string `json:"question"`
	By       string `json:"by"`
	At       string `json:"at"`
}

// Note is what a run stores of an answer that does not resolve the interrupt: one vote of several,
// or a question. It is not an event: the protocol has none for it (OpenWOP host contract §6.3).
type Note struct {
	InterruptID string    `json:"interruptId"`
	Vote        *Vote     `json:"vote,omitempty"`
	Question    *Exchange `json:"question,omitempty"`
}

// Open creates the interrupt of a request and the events that a run records: node.suspended,
// interrupt.requested, and the older event of its kind, if any.
func Open(at Origin, r Request, now time.Time, trust wire.Trust) (*Pending, []wire.Draft) {
	p := &Pending{
		Request: r, RunID: at.RunID, NodeID: at.NodeID, InterruptID: at.InterruptID(),
		RequestedAt: wire.FormatTime(now), Trust: lowered(trust),
	}
	return p, p.requested()
}

// Reopen reads the interrupt from the payload of its interrupt.requested event.
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

// Inspection is the view of an interrupt for the holder of a token (OpenWOP host contract §6.5,
// §12 no. 8).
type Inspection struct {
	Request
	RequestedAt string `json:"requestedAt"`
	ExpiresAt   string `json:"expiresAt"`
	Resolved    bool   `json:"resolved"`
}

// Inspect returns the view for the holder of a token that is valid until then.
func (p *Pending) Inspect(until time.Time, resolved bool) Inspection {
	return Inspection{Request: p.Request, RequestedAt: p.RequestedAt, ExpiresAt: wire.FormatTime(until), Resolved: resolved}
}

// NeedsCredential reports whether the holder of a token may not answer (OpenWOP host contract §6.5,
// last row). This also applies if a gate names its approvers (§6.3): a token identifies no person,
// and the creator of the run receives one, so it could stand in for any approver.
func (p *Pending) NeedsCredential() bool {
	var d approvalData
	if p.Kind != Approval || strictjson.Read(p.Data, &d) != nil {
		return false
	}
	return d.Profile == ProfileAuthRequired || !d.open()
}

// NamesApprovers reports whether an approval names its approvers.
func (p *Pending) NamesApprovers() bool {
	var d approvalData
	return p.Kind == Approval && strictjson.Read(p.Data, &d) == nil && !d.open()
}

// AddNote folds a note into the interrupt. A note of another interrupt changes nothing.
func (p *Pending) AddNote(n Note) {
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

// Deadline returns when the time limit ends; ok is false if there is none.
func (p *Pending) Deadline() (deadline time.Time, ok bool) {
	requestedPayload, err := time.Parse(wire.TimeLayout, p.RequestedAt)
	if err != nil || p.TimeoutMs <= 0 {
		return time.Time{}, false
	}
	return requestedPayload.Add(time.Duration(p.TimeoutMs) * time.Millisecond), true
}

// Expired reports whether the time limit has passed.
func (p *Pending) Expired(now time.Time) bool {
	deadline, ok := p.Deadline()
	return ok && !now.Before(deadline)
}

// lowered returns the trust as events write it: empty unless untrusted.
func lowered(t wire.Trust) wire.Trust {
	if t == wire.Untrusted {
		return t
	}
	return ""
}
