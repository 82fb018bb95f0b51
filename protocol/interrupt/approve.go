package interrupt

import (
	"cmp"
	"encoding/json"
	"maps"
	"slices"
	"strings"
	"time"

	"waybill.dev/waybill/protocol/fault"
	"waybill.dev/waybill/protocol/strictjson"
	"waybill.dev/waybill/protocol/wire"
	"waybill.dev/waybill/protocol/workflow"
)

// maxQuestions limits the questions to one approval, and so the size of the run's state.
const maxQuestions = 256

// judgeApproval evaluates one vote or question (OpenWOP host contract §6.2, §6.3).
func (p *Pending) judgeApproval(a Answer) (Decision, error) {
	var d approvalData
	if err := p.readData(&d); err != nil {
		return Decision{}, err
	}
	b := newBallot(a, d.Actions)
	if err := p.admit(b, &d); err != nil {
		return Decision{}, err
	}
	if err := p.check(b, &d); err != nil {
		return Decision{}, err
	}
	if b.action == Ask {
		return p.ask(b)
	}
	return p.vote(b, d.quorum()), nil
}

// Progress returns the vote count of an approval that needs several votes, otherwise nil.
func (p *Pending) Progress() *Progress {
	var d approvalData
	if p.Kind != Approval || strictjson.Read(p.Data, &d) != nil {
		return nil
	}
	q := d.quorum()
	if q.Required < 2 {
		return nil
	}
	progress := q.Count(p.Votes)
	return &progress
}

// admit checks whether the responder may cast the ballot and sets its standing.
func (p *Pending) admit(b *ballot, d *approvalData) error {
	if reason, ok := readOverride(b.members); ok && d.Override != nil {
		return p.override(b, d.Override, reason)
	}
	eligible := d.eligible(p.Level())
	standing, err := eligible.admit(b.By, b.voter)
	if err == nil {
		b.setStanding(standing)
	}
	return err
}

// ballot is an answer to an approval in normalized form.
type ballot struct {
	Answer
	members map[string]json.RawMessage // nil means not an object
	action  Action
	// voter identifies who votes; empty if unknown.
	voter string
	// standing is why the voter may vote; nil means the gate is open to all.
	standing *Standing
	// overridden is the override event; nil means the ballot does not override the gate.
	overridden *wire.Draft
}

func newBallot(a Answer, offered []Action) *ballot {
	b := &ballot{Answer: a, members: strictjson.Object(a.Value), voter: a.By.User}
	b.upgradeBody(offered)
	b.action = Action(stringValue(b.members["action"]))
	if b.voter == "" {
		b.voter = stringValue(b.members["voter"])
	}
	return b
}

// setStanding records why the ballot is admitted. A voter admitted by group or role is the
// credential's holder, regardless of the member voter: the host has not verified that voter belongs
// to the group, and one group credential must not make up a quorum.
func (b *ballot) setStanding(s *Standing) {
	if b.standing = s; s != nil && !s.Listed {
		b.voter = b.By.name()
	}
}

// decisions maps the values of the older body to actions.
var decisions = map[string]Action{
	"approved": Accept, "rejected": Reject,
	"accept": Accept, "reject": Reject, "refine": Refine, "edit-accept": EditAccept, "ask": Ask,
}

// upgradeBody rewrites the older body {decision, feedback?} to the current form. A rejection
// with feedback becomes refine if the gate offers it (OpenWOP host contract §6.2).
func (b *ballot) upgradeBody(offered []Action) {
	action, known := decisions[stringValue(b.members["decision"])]
	if !known || b.members["action"] != nil {
		return
	}
	delete(b.members, "decision")
	feedback := stringValue(b.members["feedback"])
	if action == Reject && strings.TrimSpace(feedback) != "" && slices.Contains(offered, Refine) {
		action = Refine
	}
	if action == Refine && b.members["refineFeedback"] == nil {
		b.members["refineFeedback"] = strictjson.RenderPlain(struct {
			Scope string `json:"scope"`
			Text  string `json:"text,omitempty"`
		}{"whole", feedback})
	}
	b.members["action"] = strictjson.RenderPlain(action)
}

// check validates a ballot against the author's schema, the protocol's shape and the offered
// actions. A question is not a resume value, so the author's schema does not apply to it.
func (p *Pending) check(b *ballot, d *approvalData) error {
	value := b.Value
	if b.members != nil {
		value = strictjson.RenderPlain(b.members)
	}
	if b.action != Ask {
		if err := p.checkSchema(b, value); err != nil {
			return err
		}
	}
	if wrong := checkShape("approval-resume", answerPath, value); len(wrong) > 0 {
		return invalid(wrong)
	}
	if wrong := b.checkOverride(d); len(wrong) > 0 {
		return invalid(wrong)
	}
	if slices.Contains(d.Actions, b.action) {
		return nil
	}
	offered := make([]string, len(d.Actions))
	for i, action := range d.Actions {
		offered[i] = string(action)
	}
	return invalid([]workflow.Problem{{
		Path: answerPath + "/action", Rule: "enum", Message: "this gate does not offer the action; it offers " + strings.Join(offered, ", "),
	}})
}

// checkSchema validates a ballot against the author's schema. The members of an override belong
// to the host: a closed schema does not define them. If the schema has its own member reason, the
// whole value is validated.
func (p *Pending) checkSchema(b *ballot, value json.RawMessage) error {
	whole := p.satisfies(value)
	if whole == nil || b.overridden == nil {
		return whole
	}
	own := maps.Clone(b.members)
	delete(own, "override")
	if p.satisfies(strictjson.RenderPlain(own)) == nil {
		return nil
	}
	delete(own, "reason")
	return p.satisfies(strictjson.RenderPlain(own))
}

// decidedBy returns the recorded identity: the credential's user first, then the identity named
// in the answer, then the unbound credential (OpenWOP host contract §6.2).
func (b *ballot) decidedBy() string {
	return cmp.Or(b.By.User, b.voter, stringValue(b.members["decidedBy"]), b.By.Principal)
}

// ask records a question; the gate stays open.
func (p *Pending) ask(b *ballot) (Decision, error) {
	if len(p.Questions) >= maxQuestions {
		return Decision{}, invalid([]workflow.Problem{{Path: answerPath + "/action", Rule: "maxItems", Message: "this gate has reached its limit of questions; decide"}}).Unprocessable()
	}
	by := b.decidedBy()
	return Decision{Outcome: Asked, Action: Ask, DecidedBy: by, Note: &Note{
		InterruptID: p.InterruptID,
		Question:    &Exchange{Question: stringValue(b.members["question"]), By: by, At: wire.FormatTime(b.At)},
	}}, nil
}

// vote counts a vote. The run resumes with the value of the deciding vote.
func (p *Pending) vote(b *ballot, q Quorum) Decision {
	v := Vote{Voter: b.voter, Action: b.action, By: b.By.Principal, At: wire.FormatTime(b.At), Standing: b.standing}
	votes := p.Votes.With(v)
	d := Decision{Outcome: q.Settle(votes), Action: b.action, DecidedBy: b.decidedBy(), Standing: b.standing, Overridden: b.overridden}
	if b.overridden != nil && q.Bypassed {
		d.Outcome = Advanced
	}
	if q.Required > 1 {
		progress := q.Count(votes)
		d.Progress = &progress
	}
	switch d.Outcome {
	case Counted:
		d.Note = &Note{InterruptID: p.InterruptID, Vote: &v}
		return d
	case Rejected:
		d.Action = Reject // by any voter, not necessarily the last one
		d.Failure = rejectionError(p.InterruptID, "rejected")
	}
	d.Resume = b.resume(d.Action, d.DecidedBy, b.At)
	return d
}

// resume returns the resume value: the answer with the members that only the host can set.
func (b *ballot) resume(action Action, by string, at time.Time) json.RawMessage {
	out := maps.Clone(b.members)
	out["action"], out["decidedBy"], out["decidedAt"] = strictjson.RenderPlain(action), strictjson.RenderPlain(by), strictjson.RenderPlain(wire.FormatTime(at))
	if b.voter != "" && out["voter"] != nil {
		out["voter"] = strictjson.RenderPlain(b.voter)
	}
	return strictjson.RenderPlain(out)
}

// rejectionError returns the error of a rejected gate's node (OpenWOP host contract §6.4).
func rejectionError(interruptID, reason string) *wire.NodeError {
	message := "the approval was rejected"
	if reason == reasonTimeout {
		message = "nobody approved in time"
	}
	return &wire.NodeError{
		Code: string(fault.InterruptRejected), Message: message,
		Details: map[string]any{"interruptId": interruptID, "reason": reason},
	}
}
