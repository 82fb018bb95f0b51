package interrupt

import (
	"fmt"
	"slices"
	"strconv"
	"time"

	"waybill.dev/waybill/protocol/strictjson"
	"waybill.dev/waybill/protocol/wire"
	"waybill.dev/waybill/protocol/workflow"
)

// level adds approvers once an approval has waited that long. A level without approvers only
// repeats the notification. Levels are an extension of this host; the protocol has none.
type level struct {
	AfterSec float64 `json:"afterSec"`
	approvers
}

func (l *level) afterMs() int64 { return millis(l.AfterSec) }

// RuleEscalation is the rule of a Problem with levels that are out of order.
const RuleEscalation = "escalation"

// checkLevels finds levels that are out of order or come too late, and levels that would restrict
// an open gate.
func (d *approvalData) checkLevels(below string, timeoutMs int64) (wrong []workflow.Problem) {
	last := int64(0)
	for i := range d.Escalation {
		l, path := &d.Escalation[i], below+"/escalation/"+strconv.Itoa(i)
		switch after := l.afterMs(); {
		case after <= last:
			wrong = append(wrong, workflow.Problem{Path: path + "/afterSec", Rule: RuleEscalation, Message: "want a time after that of the previous level; list levels in the order of their times"})
		case timeoutMs > 0 && after >= timeoutMs:
			wrong = append(wrong, workflow.Problem{Path: path + "/afterSec", Rule: RuleEscalation, Message: fmt.Sprintf("the question expires after %d ms; the level must come earlier", timeoutMs)})
		default:
			last = after
		}
		if d.open() && !l.open() {
			wrong = append(wrong, workflow.Problem{Path: path, Rule: RuleEscalation, Message: "the gate is already open to all; name the gate's own approvers, or remove these to only repeat the notification"})
		}
	}
	return wrong
}

// eligible returns who may answer at a level: the gate's approvers and those of each level
// reached. An open gate stays open.
func (d *approvalData) eligible(level int) approvers {
	a := d.approvers
	if a.open() {
		return a
	}
	for _, l := range d.Escalation[:min(level, len(d.Escalation))] {
		a.ApproversList = slices.Concat(a.ApproversList, l.ApproversList)
		a.ApproverGroupRefs = slices.Concat(a.ApproverGroupRefs, l.ApproverGroupRefs)
		a.ApproverRoleRefs = slices.Concat(a.ApproverRoleRefs, l.ApproverRoleRefs)
	}
	return a
}

// Escalation is the level an approval has reached, and when.
type Escalation struct {
	Level int    `json:"level"`
	At    string `json:"at"`
}

// escalatedPayload is the payload of an escalation: the level, counted from 1, and the approvers
// it adds.
type escalatedPayload struct {
	NodeID      string `json:"nodeId"`
	InterruptID string `json:"interruptId"`
	Level       int    `json:"level"`
	approvers
}

// nextLevel returns the next level; ok is false if there is none.
func (p *Pending) nextLevel() (l level, ok bool) {
	var d approvalData
	if p.Kind != Approval || strictjson.Read(p.Data, &d) != nil || p.Level() >= len(d.Escalation) {
		return level{}, false
	}
	return d.Escalation[p.Level()], true
}

// Level returns the number of levels reached.
func (p *Pending) Level() int {
	if p.Escalated == nil {
		return 0
	}
	return p.Escalated.Level
}

// Escalate returns the event of the next level, which is due; see DueMs. ok is false if there is no
// further level or the time limit has passed: the added approvers could no longer answer.
func (p *Pending) Escalate(now time.Time) (e wire.Draft, ok bool) {
	l, ok := p.nextLevel()
	if !ok || p.Expired(now) {
		return wire.Draft{}, false
	}
	return p.draft(wire.EventApprovalEscalated, p.Trust, escalatedPayload{p.NodeID, p.InterruptID, p.Level() + 1, l.approvers}), true
}

// ReopenEscalated reads the interrupt and its level from an escalation event. The event does not
// hold the question.
func ReopenEscalated(e wire.Event) (*Pending, error) {
	var payload escalatedPayload
	if err := strictjson.Read(e.Payload, &payload); err != nil {
		return nil, fmt.Errorf("read escalation: %w", err)
	}
	if payload.InterruptID == "" || payload.NodeID == "" || payload.Level < 1 {
		return nil, fmt.Errorf("read escalation: members interruptId, nodeId and level are required")
	}
	return &Pending{
		Request: Request{Kind: Approval}, NodeID: payload.NodeID, InterruptID: payload.InterruptID,
		Trust: lowered(e.ContentTrust), Escalated: &Escalation{payload.Level, e.Timestamp},
	}, nil
}

// SetLevel folds an escalation into the interrupt. A level already reached changes nothing.
func (p *Pending) SetLevel(level int, at string) {
	if level > p.Level() {
		p.Escalated = &Escalation{level, at}
	}
}

// DueMs returns the milliseconds from the request to the next automatic change: the next level or
// the timeout; 0 means none.
func (p *Pending) DueMs() int64 {
	if l, ok := p.nextLevel(); ok {
		return l.afterMs()
	}
	return p.TimeoutMs
}
