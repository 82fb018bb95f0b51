package interrupt

import (
	"slices"

	"waybill.dev/waybill/protocol/fault"
	"waybill.dev/waybill/protocol/strictjson"
)

// approvers are those who may answer an approval: the union of the three, and anybody
// who may answer at all where they are empty (OpenWOP host contract §6.2; RFC 0104). The
// refs are opaque here: who belongs to what is known where the answer comes in.
type approvers struct {
	ApproversList     []string `json:"approversList,omitempty"`
	ApproverGroupRefs []string `json:"approverGroupRefs,omitempty"`
	ApproverRoleRefs  []string `json:"approverRoleRefs,omitempty"`
}

// open reports whether anybody may answer.
func (a *approvers) open() bool { return len(a.ApproversList) == 0 && !a.routed() }

// routed reports whether somebody may answer for what they belong to.
func (a *approvers) routed() bool { return len(a.ApproverGroupRefs)+len(a.ApproverRoleRefs) > 0 }

// Standing is by what somebody was among those who may answer, as it was when they did.
// It is kept with the answer, so that whoever reads the log again asks no directory: of
// what the answerer belongs to, it has only what the gate names.
type Standing struct {
	// Listed: as the user of the credential, or as voter.
	Listed bool     `json:"listed,omitempty"`
	Groups []string `json:"groups,omitempty"`
	Roles  []string `json:"roles,omitempty"`
	// Override is the role that an override was given by.
	Override string `json:"override,omitempty"`
}

// admit finds by what somebody may answer; nil: anybody may. Who may not learns nothing
// of who may.
func (a *approvers) admit(by Responder, voter string) (*Standing, error) {
	if a.open() {
		return nil, nil //nolint:nilnil // a gate that is open to all has no standing
	}
	s := &Standing{
		Listed: voter != "" && slices.Contains(a.ApproversList, voter),
		Groups: common(a.ApproverGroupRefs, by.Groups), Roles: common(a.ApproverRoleRefs, by.Roles),
	}
	if !s.Listed && len(s.Groups)+len(s.Roles) == 0 {
		return nil, fault.New(fault.Forbidden, "this gate takes answers only of those it names: of the user of the credential or, without one, of voter, or of a credential of their groups and roles")
	}
	return s, nil
}

// Admits reports whether somebody could answer now, without overriding the gate. A
// credential that is bound to nobody may do so for whom a list names.
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

// common are the refs that somebody holds, in the gate's order, each once.
func common(refs, held []string) (out []string) {
	for _, ref := range refs {
		if slices.Contains(held, ref) && !slices.Contains(out, ref) {
			out = append(out, ref)
		}
	}
	return out
}
