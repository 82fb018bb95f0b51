package interrupt

import (
	"encoding/json"

	"waybill.dev/waybill/protocol/approval"
	"waybill.dev/waybill/protocol/fault"
	"waybill.dev/waybill/protocol/strictjson"
	"waybill.dev/waybill/protocol/wire"
	"waybill.dev/waybill/protocol/workflow"
)

// override names the role that may pass a gate without being one of its approvers (OpenWOP host
// contract §6.3, override). Audited has no effect: every override is audited.
type override struct {
	RequiredRole string `json:"requiredRole"`
	Audited      *bool  `json:"audited,omitempty"`
}

// RuleOverride is the rule of a Problem with an override.
const RuleOverride = "override"

// Overrides returns the reason of an answer that requests an override. The gate decides whether
// it is allowed.
func Overrides(value json.RawMessage) (reason string, ok bool) {
	return readOverride(strictjson.Object(value))
}

func readOverride(members map[string]json.RawMessage) (reason string, ok bool) {
	return stringValue(members["reason"]), string(members["override"]) == "true"
}

// override applies an override: one vote, counted for the credential regardless of voter. The
// error does not reveal the required role.
func (p *Pending) override(b *ballot, o *override, reason string) error {
	d, err := approval.Decide(approval.Gate{ID: p.NodeID, OverrideRole: o.RequiredRole}, approval.Person{ID: b.By.name(), Roles: b.By.Roles}, approval.Override, reason)
	switch fault.CodeOf(err) {
	case "":
		d.Event.NodeID = p.NodeID
		b.voter, b.standing, b.overridden = b.By.name(), &Standing{Override: o.RequiredRole}, &d.Event
		return nil
	case fault.ValidationError:
		return invalid([]workflow.Problem{{Path: answerPath + "/reason", Rule: RuleOverride, Message: "an override requires a reason that is neither blank nor too long"}})
	case fault.Forbidden:
		return fault.New(fault.Forbidden, "overriding this gate requires the role it names")
	default:
		return err
	}
}

// checkOverride finds problems of a permitted override.
func (b *ballot) checkOverride(d *approvalData) []workflow.Problem {
	switch said := b.members["override"]; {
	case d.Override == nil || said == nil: // the author's own member, or none
	case string(said) != "true" && string(said) != "false":
		return []workflow.Problem{{Path: answerPath + "/override", Rule: "type", Message: "want true or false"}}
	case b.overridden != nil && b.action != Accept && b.action != EditAccept:
		return []workflow.Problem{{Path: answerPath + "/action", Rule: RuleOverride, Message: "an override continues the run; its action must be accept or edit-accept"}}
	}
	return nil
}

// overrideEvents returns the event of an override, whether or not the gate stays open.
func (d *Decision) overrideEvents() []wire.Draft {
	if d.Overridden == nil {
		return nil
	}
	e := *d.Overridden
	e.Trust = d.Trust
	return []wire.Draft{e}
}
