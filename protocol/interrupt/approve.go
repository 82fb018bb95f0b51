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

// maxQuestions bounds what an approval is asked, and with it what a run keeps.
const maxQuestions = 256

// judgeApproval takes one vote, or a question (OpenWOP host contract §6.2, §6.3).
func (p *Pending) judgeApproval(a Answer) (Decision, error) {
	var d approvalData
	if err := strictjson.Read(p.Data, &d); err != nil {
		return Decision{}, fault.New(fault.InternalError, "the interrupt's data cannot be read").Wrap(err)
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

// Progress is how far an approval is that takes more than one; nil for any other question.
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

// admit finds out whether somebody may cast a ballot, and by what.
func (p *Pending) admit(b *ballot, d *approvalData) error {
	if reason, ok := overriding(b.members); ok && d.Override != nil {
		return p.override(b, d.Override, reason)
	}
	eligible := d.eligible(p.Level())
	standing, err := eligible.admit(b.By, b.voter)
	if err == nil {
		b.stand(standing)
	}
	return err
}

// ballot is an answer to an approval in its one form.
type ballot struct {
	Answer
	members map[string]json.RawMessage // nil: it is no object
	action  Action
	// voter is who votes; empty: nobody says.
	voter string
	// standing is by what they may; nil: anybody may.
	standing *Standing
	// overridden is the event of a ballot that overrides the gate; nil: it does not.
	overridden *wire.Draft
}

func newBallot(a Answer, offered []Action) *ballot {
	b := &ballot{Answer: a, members: strictjson.Object(a.Value), voter: a.By.User}
	b.modernise(offered)
	b.action = Action(text(b.members["action"]))
	if b.voter == "" {
		b.voter = text(b.members["voter"])
	}
	return b
}

// stand has a ballot of somebody who may cast it. Who votes for what the credential belongs
// to is its holder, whatever voter says: nobody has looked whether that one belongs to it,
// and a credential of a group must not be a quorum of the group.
func (b *ballot) stand(s *Standing) {
	if b.standing = s; s != nil && !s.Listed {
		b.voter = b.By.name()
	}
}

// decisions are the words of the older body.
var decisions = map[string]Action{
	"approved": Accept, "rejected": Reject,
	"accept": Accept, "reject": Reject, "refine": Refine, "edit-accept": EditAccept, "ask": Ask,
}

// modernise writes the older body {decision, feedback?} as it is written now: to reject
// with feedback is to ask for something better, where the gate takes that (OpenWOP host
// contract §6.2).
func (b *ballot) modernise(offered []Action) {
	action, known := decisions[text(b.members["decision"])]
	if !known || b.members["action"] != nil {
		return
	}
	delete(b.members, "decision")
	feedback := text(b.members["feedback"])
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

// check holds a ballot against the author's schema, the protocol's shape, and what the
// gate offers. A question is no resume value: the author's schema is not asked.
func (p *Pending) check(b *ballot, d *approvalData) error {
	value := b.Value
	if b.members != nil {
		value = strictjson.RenderPlain(b.members)
	}
	if b.action != Ask {
		if err := p.fits(b, value); err != nil {
			return err
		}
	}
	if wrong := misfits("approval-resume", answered, value); len(wrong) > 0 {
		return refuse(wrong)
	}
	if wrong := b.misused(d); len(wrong) > 0 {
		return refuse(wrong)
	}
	if slices.Contains(d.Actions, b.action) {
		return nil
	}
	offered := make([]string, len(d.Actions))
	for i, action := range d.Actions {
		offered[i] = string(action)
	}
	return refuse([]workflow.Problem{{
		Path: answered + "/action", Rule: "enum", Message: "the gate does not offer this; it offers " + strings.Join(offered, ", "),
	}})
}

// fits holds a ballot against the author's schema. What makes an override is the host's: a
// schema that is closed knows nothing of it, and one that has a reason of its own is asked
// about the whole.
func (p *Pending) fits(b *ballot, value json.RawMessage) error {
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

// decidedBy is who is recorded: the credential's user before all, and whoever the
// answer names before a credential that is nobody's (OpenWOP host contract §6.2).
func (b *ballot) decidedBy() string {
	return cmp.Or(b.By.User, b.voter, text(b.members["decidedBy"]), b.By.Principal)
}

// ask keeps a question; the gate stays as it is.
func (p *Pending) ask(b *ballot) (Decision, error) {
	if len(p.Questions) >= maxQuestions {
		return Decision{}, refuse([]workflow.Problem{{Path: answered + "/action", Rule: "maxItems", Message: "enough was asked of this gate; decide"}}).Unprocessable()
	}
	by := b.decidedBy()
	return Decision{Outcome: Asked, Action: Ask, DecidedBy: by, Note: &Note{
		InterruptID: p.InterruptID,
		Question:    &Exchange{Question: text(b.members["question"]), By: by, At: wire.FormatTime(b.At)},
	}}, nil
}

// vote counts a vote. The vote that decides is the one whose words the run resumes with.
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
		d.Action = Reject // somebody's, if not the last one's
		d.Failure = rejection(p.InterruptID, "rejected")
	}
	d.Resume = b.resume(d.Action, d.DecidedBy, b.At)
	return d
}

// resume is the resume value: what was sent, and what only the host can say.
func (b *ballot) resume(action Action, by string, at time.Time) json.RawMessage {
	out := maps.Clone(b.members)
	out["action"], out["decidedBy"], out["decidedAt"] = strictjson.RenderPlain(action), strictjson.RenderPlain(by), strictjson.RenderPlain(wire.FormatTime(at))
	if b.voter != "" && out["voter"] != nil {
		out["voter"] = strictjson.RenderPlain(b.voter)
	}
	return strictjson.RenderPlain(out)
}

// rejection is why the node of a rejected gate fails (OpenWOP host contract §6.4).
func rejection(interruptID, reason string) *wire.NodeError {
	message := "the approval was rejected"
	if reason == reasonTimeout {
		message = "nobody approved in time"
	}
	return &wire.NodeError{
		Code: string(fault.InterruptRejected), Message: message,
		Details: map[string]any{"interruptId": interruptID, "reason": reason},
	}
}
