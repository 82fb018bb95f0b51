package interrupt

import (
	"slices"

	"waybill.dev/waybill/protocol/fault"
	"waybill.dev/waybill/protocol/strictjson"
)

// approvers lists who may answer an approval: the union of the three lists. If all are empty,
// any responder may answer (OpenWOP host contract §6.2; RFC 0104). The refs are opaque here:
// membership is resolved where the answer arrives.
type approvers struct {
	ApproversList     []string `json:"approversList,omitempty"`
	ApproverGroupRefs []string `json:"approverGroupRefs,omitempty"`
	ApproverRoleRefs  []string `json:"approverRoleRefs,omitempty"`
}

// open reports whether any responder may answer.
func (a *approvers) open() bool { return len(a.ApproversList) == 0 && !a.routed() }

// routed reports whether the gate names groups or roles.
func (a *approvers) routed() bool { return len(a.ApproverGroupRefs)+len(a.ApproverRoleRefs) > 0 }

// Standing records why a responder was eligible at the time of the answer. It is stored with the
// answer, so that reading the log needs no directory. Of the responder's groups and roles it holds
// only those the gate names.
type Standing struct {
	// Listed: as the credential's user, or as voter.
	Listed bool     `json:"listed,omitempty"`
	Groups []string `json:"groups,omitempty"`
	Roles  []string `json:"roles,omitempty"`
	// Override is the role that allowed an override.
	Override string `json:"override,omitempty"`
}

// admit returns why the responder is eligible; nil if the gate is open. The error does not reveal
// who is eligible.
func (a *approvers) admit(by Responder, voter string) (*Standing, error) {
	if a.open() {
		return nil, nil //nolint:nilnil // an open gate has no standing
	}
	s := &Standing{
		Listed: voter != "" && slices.Contains(a.ApproversList, voter),
		Groups: intersect(a.ApproverGroupRefs, by.Groups), Roles: intersect(a.ApproverRoleRefs, by.Roles),
	}
	if !s.Listed && len(s.Groups)+len(s.Roles) == 0 {
		return nil, fault.New(fault.Forbidden, "this gate accepts answers only from the approvers it names: the credential's user (or voter, for an unbound credential), or a credential of their groups and roles")
	}
	return s, nil
}

// Admits reports whether a responder could answer now without an override. An unbound credential
// may answer for any listed user.
func (p *Pending) Admits(by Responder) bool {
	var d approvalData
	if p.Kind != Approval {
		return true
	}
	if strictjson.Read(p.Data, &d) != nil {
		return false
	}
	now := d.eligible(p.Level())
	if by.User == "" && len(now.ApproversList) > 0 {
		return true
	}
	_, err := now.admit(by, by.User)
	return err == nil
}

// intersect returns the refs that are also in held, in the gate's order, without duplicates.
func intersect(refs, held []string) (out []string) {
	for _, ref := range refs {
		if slices.Contains(held, ref) && !slices.Contains(out, ref) {
			out = append(out, ref)
		}
	}
	return out
}
