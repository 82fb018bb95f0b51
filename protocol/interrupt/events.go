package interrupt

import (
	"encoding/json"
	"slices"
	"time"

	"waybill.dev/waybill/protocol/fault"
	"waybill.dev/waybill/protocol/strictjson"
	"waybill.dev/waybill/protocol/wire"
)

// Values shared by the events and errors of a timeout (OpenWOP host contract §6.5).
const (
	reasonTimeout   = "timeout"
	outcomeRejected = "rejected"
	outcomeTimedOut = "timed-out"
)

func (p *Pending) draft(t wire.EventType, trust wire.Trust, payload any) wire.Draft {
	return wire.Draft{Type: t, NodeID: p.NodeID, Trust: trust, Payload: strictjson.RenderPlain(payload)}
}

// requestedPayload is the payload of interrupt.requested: the protocol's, and which node asks
// (OpenWOP host contract §3.4, §12 no. 7).
type requestedPayload struct {
	RunID       string `json:"runId"`
	NodeID      string `json:"nodeId"`
	InterruptID string `json:"interruptId"`
	Request
	RequestedAt string `json:"requestedAt"`
}

// requested returns the events of an opening interrupt.
func (p *Pending) requested() []wire.Draft {
	out := []wire.Draft{
		p.draft(wire.EventNodeSuspended, p.Trust, p.suspension()),
		p.draft(wire.EventInterruptRequested, p.Trust, requestedPayload{p.RunID, p.NodeID, p.InterruptID, p.Request, p.RequestedAt}),
	}
	switch p.Kind {
	case Approval:
		out = append(out, p.draft(wire.EventApprovalRequested, p.Trust, p.approvalRequest()))
	case Clarification:
		var d clarificationData
		_ = strictjson.Read(p.Data, &d) // written by Open; unreadable only in a damaged log
		out = append(out, p.draft(wire.EventClarificationRequested, p.Trust, struct {
			NodeID      string     `json:"nodeId"`
			InterruptID string     `json:"interruptId"`
			Questions   []question `json:"questions"`
		}{p.NodeID, p.InterruptID, d.Questions}))
	}
	return out
}

func (p *Pending) suspension() any {
	reason := ""
	if p.Kind == LowConfidence {
		reason = string(LowConfidence)
	}
	return struct {
		NodeID      string `json:"nodeId"`
		InterruptID string `json:"interruptId"`
		Kind        Kind   `json:"kind"`
		Key         string `json:"key"`
		Reason      string `json:"reason,omitempty"`
	}{p.NodeID, p.InterruptID, p.Kind, p.Key, reason}
}

// approvalRequest returns the payload of the older event, the only one that uses edit for
// edit-accept (OpenWOP host contract §12 no. 10).
func (p *Pending) approvalRequest() any {
	var d approvalData
	_ = strictjson.Read(p.Data, &d) // written by Open; unreadable only in a damaged log
	actions := slices.Clone(d.Actions)
	for i := range actions {
		if actions[i] == EditAccept {
			actions[i] = "edit"
		}
	}
	return struct {
		NodeID       string   `json:"nodeId"`
		InterruptID  string   `json:"interruptId"`
		ArtifactID   string   `json:"artifactId"`
		ArtifactType string   `json:"artifactType"`
		Title        string   `json:"title,omitempty"`
		Actions      []Action `json:"actions"`
		approvers
		RequiredApprovals integer `json:"requiredApprovals,omitempty"`
	}{p.NodeID, p.InterruptID, d.ArtifactID, d.ArtifactType, d.Title, actions, d.approvers, d.RequiredApprovals}
}

// resolution is the payload of interrupt.resolved.
type resolution struct {
	RunID       string          `json:"runId"`
	NodeID      string          `json:"nodeId"`
	InterruptID string          `json:"interruptId"`
	Kind        Kind            `json:"kind"`
	ResumeValue json.RawMessage `json:"resumeValue,omitempty"`
	ResolvedAt  string          `json:"resolvedAt"`
	ResolvedBy  string          `json:"resolvedBy,omitempty"`
	// Standing is an extension: why the responder was eligible.
	Standing *Standing `json:"standing,omitempty"`
	Outcome  string    `json:"outcome,omitempty"`
	Reason   string    `json:"reason,omitempty"`
}

// resolved returns the events of a closing interrupt, in the contract's order. The run decides
// about the node (OpenWOP host contract §6.4).
func (p *Pending) resolved(d *Decision, now time.Time) []wire.Draft {
	out := []wire.Draft{p.draft(wire.EventInterruptResolved, d.Trust, resolution{
		RunID: p.RunID, NodeID: p.NodeID, InterruptID: p.InterruptID, Kind: p.Kind,
		ResumeValue: d.Resume, ResolvedAt: wire.FormatTime(now), ResolvedBy: d.DecidedBy, Standing: d.Standing,
		Outcome: d.declined(),
	})}
	switch p.Kind {
	case Approval:
		out = append(out, p.draft(wire.EventApprovalReceived, d.Trust, p.receivedPayload(d)))
	case Clarification:
		out = append(out, p.draft(wire.EventClarificationResolved, d.Trust, p.clarified(d)))
	}
	if d.Failure != nil {
		return out
	}
	return append(out, p.draft(wire.EventNodeResumed, d.Trust, struct {
		NodeID      string          `json:"nodeId"`
		InterruptID string          `json:"interruptId"`
		ResumeValue json.RawMessage `json:"resumeValue"`
	}{p.NodeID, p.InterruptID, d.Resume}))
}

// clarification is the payload of clarification.resolved.
type clarification struct {
	NodeID     string          `json:"nodeId"`
	Answers    json.RawMessage `json:"answers"`
	AnsweredBy string          `json:"answeredBy"`
	// Declined is an extension: the responder declined to answer.
	Declined bool `json:"declined,omitempty"`
}

// clarified returns the payload of clarification.resolved. It always has answers, none if declined.
func (p *Pending) clarified(d *Decision) clarification {
	out := clarification{NodeID: p.NodeID, Answers: strictjson.Object(d.Resume)["answers"], AnsweredBy: d.DecidedBy}
	if d.Outcome == Declined {
		out.Answers, out.Declined = json.RawMessage(`{}`), true
	}
	return out
}

// declined returns the outcome of a declined question; empty for others.
func (d *Decision) declined() string {
	if d.Outcome == Declined {
		return string(Declined)
	}
	return ""
}

// receivedPayload returns the payload of approval.received.
func (p *Pending) receivedPayload(d *Decision) map[string]json.RawMessage {
	resume := strictjson.Object(d.Resume)
	out := map[string]json.RawMessage{"nodeId": strictjson.RenderPlain(p.NodeID), "action": strictjson.RenderPlain(d.Action)}
	for _, name := range []string{"decidedBy", "decidedAt", "comment", "feedback", "refineFeedback", "editedArtifactData"} {
		if v, ok := resume[name]; ok {
			out[name] = v
		}
	}
	return out
}

// TimeOut resolves an interrupt without an answer in time: an approval counts as rejected, other
// kinds fail the node (OpenWOP host contract §6.5).
func (p *Pending) TimeOut(now time.Time) Decision {
	d := Decision{Outcome: Rejected, Action: TimedOut, Trust: p.Trust}
	r := resolution{
		RunID: p.RunID, NodeID: p.NodeID, InterruptID: p.InterruptID, Kind: p.Kind,
		ResolvedAt: wire.FormatTime(now), Outcome: outcomeRejected, Reason: reasonTimeout,
	}
	if p.Kind == Approval {
		d.Failure = rejectionError(p.InterruptID, reasonTimeout)
		d.Events = []wire.Draft{
			p.draft(wire.EventInterruptResolved, p.Trust, r),
			p.draft(wire.EventApprovalReceived, p.Trust, struct {
				NodeID    string `json:"nodeId"`
				Action    Action `json:"action"`
				DecidedAt string `json:"decidedAt"`
			}{p.NodeID, TimedOut, r.ResolvedAt}),
		}
		return d
	}
	d.Action, r.Outcome = "", outcomeTimedOut
	d.Failure = &wire.NodeError{
		Code: string(fault.InterruptTimeout), Message: "nobody answered in time",
		Details: map[string]any{"interruptId": p.InterruptID, "reason": reasonTimeout},
	}
	d.Events = []wire.Draft{p.draft(wire.EventInterruptResolved, p.Trust, r)}
	return d
}
