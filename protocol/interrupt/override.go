package interrupt

import (
	"encoding/json"

	"waybill.dev/waybill/protocol/approval"
	"waybill.dev/waybill/protocol/fault"
	"waybill.dev/waybill/protocol/strictjson"
	"waybill.dev/waybill/protocol/wire"
	"waybill.dev/waybill/protocol/workflow"
)

// override is by what role somebody may pass a gate whom it does not name (OpenWOP host
// contract §6.3, override). Audited has no effect: each is.
type override struct {
	RequiredRole string `json:"requiredRole"`
	Audited      *bool  `json:"audited,omitempty"`
}

// RuleOverride is the rule of a Problem with an answer that overrides a gate.
const RuleOverride = "override"

// Overrides finds the reason of an answer that says that it overrides its gate. Whether it
// does is the gate's to say.
func Overrides(value json.RawMessage) (reason string, ok bool) {
	return overriding(strictjson.Object(value))
}

func overriding(members map[string]json.RawMessage) (reason string, ok bool) {
	return text(members["reason"]), string(members["override"]) == "true"
}

// override has a ballot of somebody who overrides the gate: one vote, which is the
// credential's whatever voter says. Nobody learns here which role it takes.
func (p *Pending) override(b *ballot, o *override, reason string) error {
	d, err := approval.Decide(approval.Gate{ID: p.NodeID, OverrideRole: o.RequiredRole}, approval.Person{ID: b.By.name(), Roles: b.By.Roles}, approval.Override, reason)
	switch fault.CodeOf(err) {
	case "":
		d.Event.NodeID = p.NodeID
		b.voter, b.standing, b.overridden = b.By.name(), &Standing{Override: o.RequiredRole}, &d.Event
		return nil
	case fault.ValidationError:
		return refuse([]workflow.Problem{{Path: answered + "/reason", Rule: RuleOverride, Message: "an override takes a reason, in words of some length"}})
	case fault.Forbidden:
		return fault.New(fault.Forbidden, "this gate is overridden by nobody but a credential of the role that it names")
	default:
		return err
	}
}

// misused finds what is wrong with an override that somebody may give.
func (b *ballot) misused(d *approvalData) []workflow.Problem {
	switch said := b.members["override"]; {
	case d.Override == nil || said == nil: // the author's own member, or none
	case string(said) != "true" && string(said) != "false":
		return []workflow.Problem{{Path: answered + "/override", Rule: "type", Message: "want true or false"}}
	case b.overridden != nil && b.action != Accept && b.action != EditAccept:
		return []workflow.Problem{{Path: answered + "/action", Rule: RuleOverride, Message: "an override lets the run go on; it takes accept or edit-accept"}}
	}
	return nil
}

// overrode is the event of an override, whether the gate stays open or not.
func (d *Decision) overrode() []wire.Draft {
	if d.Overridden == nil {
		return nil
	}
	e := *d.Overridden
	e.Trust = d.Trust
	return []wire.Draft{e}
}
