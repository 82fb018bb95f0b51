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

// level says who may answer, too, once an approval has waited that long; nobody else where
// it names nobody, and the question is only asked again. Levels are an extension of this
// host: the protocol knows none.
type level struct {
	AfterSec float64 `json:"afterSec"`
	approvers
}

func (l *level) afterMs() int64 { return millis(l.AfterSec) }

// RuleEscalation is the rule of a Problem with levels that could not come in their order.
const RuleEscalation = "escalation"

// checkLevels finds levels that would come too late, or out of order, and those that would
// keep out whom the gate lets in.
func (d *approvalData) checkLevels(below string, timeoutMs int64) (wrong []workflow.Problem) {
	last := int64(0)
	for i := range d.Escalation {
		l, path := &d.Escalation[i], below+"/escalation/"+strconv.Itoa(i)
		switch after := l.afterMs(); {
		case after <= last:
			wrong = append(wrong, workflow.Problem{Path: path + "/afterSec", Rule: RuleEscalation, Message: "want a time after that of the level before; levels are in the order in which they come"})
		case timeoutMs > 0 && after >= timeoutMs:
			wrong = append(wrong, workflow.Problem{Path: path + "/afterSec", Rule: RuleEscalation, Message: fmt.Sprintf("the question ends after %d ms, and this level would not come before; make it sooner", timeoutMs)})
		default:
			last = after
		}
		if d.open() && !l.open() {
			wrong = append(wrong, workflow.Problem{Path: path, Rule: RuleEscalation, Message: "anybody may answer already; name the gate's own approvers, or leave these out to have the question asked again"})
		}
	}
	return wrong
}

// eligible are those who may answer at a level: those of the gate and of each level that has
// come. Where the gate is open to anybody it stays so.
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

// Escalation is the level that an approval has come to, and when.
type Escalation struct {
	Level int    `json:"level"`
	At    string `json:"at"`
}

// escalated is the payload of an escalation: the level, counted from 1, and whom it adds.
type escalated struct {
	NodeID      string `json:"nodeId"`
	InterruptID string `json:"interruptId"`
	Level       int    `json:"level"`
	approvers
}

// next is the level that comes next; ok is false when none does.
func (p *Pending) next() (l level, ok bool) {
	var d approvalData
	if p.Kind != Approval || strictjson.Read(p.Data, &d) != nil || p.Level() >= len(d.Escalation) {
		return level{}, false
	}
	return d.Escalation[p.Level()], true
}

// Level is how many levels have come; 0: none has.
func (p *Pending) Level() int {
	if p.Escalated == nil {
		return 0
	}
	return p.Escalated.Level
}

// Escalate is the event of the next level, which is due; see DueMs. ok is false when there
// is none, and when the time for an answer is over: whom it would add could not answer.
func (p *Pending) Escalate(now time.Time) (e wire.Draft, ok bool) {
	l, ok := p.next()
	if !ok || p.Expired(now) {
		return wire.Draft{}, false
	}
	return p.draft(wire.EventApprovalEscalated, p.Trust, escalated{p.NodeID, p.InterruptID, p.Level() + 1, l.approvers}), true
}

// ReopenEscalated reads back of an escalation which question came to which level. What is
// asked it does not tell.
func ReopenEscalated(e wire.Event) (*Pending, error) {
	var said escalated
	if err := strictjson.Read(e.Payload, &said); err != nil {
		return nil, fmt.Errorf("read escalation: %w", err)
	}
	if said.InterruptID == "" || said.NodeID == "" || said.Level < 1 {
		return nil, fmt.Errorf("read escalation: members interruptId, nodeId and level are required")
	}
	return &Pending{
		Request: Request{Kind: Approval}, NodeID: said.NodeID, InterruptID: said.InterruptID,
		Trust: lowered(e.ContentTrust), Escalated: &Escalation{said.Level, e.Timestamp},
	}, nil
}

// Reach folds an escalation into the interrupt. A level that has come before changes
// nothing.
func (p *Pending) Reach(level int, at string) {
	if level > p.Level() {
		p.Escalated = &Escalation{level, at}
	}
}

// DueMs is how long after it was asked something becomes of the question by itself: its
// next level, or its end; 0: nothing does.
func (p *Pending) DueMs() int64 {
	if l, ok := p.next(); ok {
		return l.afterMs()
	}
	return p.TimeoutMs
}
