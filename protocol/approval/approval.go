// Package approval decides who may move a governance gate: a person who is
// authorised, and nobody and nothing else (OpenWOP envelope contract §12; host
// contract §6.5, governance gate). The approvals that runs wait for are package
// interrupt's.
//
// Who the person is, and what they may do, comes from the host's own reading of a
// credential, never from what was submitted.
package approval

import (
	"encoding/json"
	"slices"
	"strings"
	"unicode/utf8"

	"waybill.dev/waybill/protocol/fault"
	"waybill.dev/waybill/protocol/wire"
)

// Gate is an approval gate.
type Gate struct {
	ID string
	// Role is what somebody must hold to grant or reject; empty: nobody may.
	Role string
	// OverrideRole is what somebody must hold to override; empty: nobody may.
	OverrideRole string
}

// Person is an authenticated principal.
type Person struct {
	ID    string
	Roles []string
}

// Act is what a person does at a gate.
type Act string

// The three acts.
const (
	Grant    Act = "grant"
	Reject   Act = "reject"
	Override Act = "override"
)

// maxReason bounds a reason, in characters.
const maxReason = 4096

// Decision is what became of a gate.
type Decision struct {
	// Released says that what is behind the gate goes on.
	Released bool
	// Event is what the run records; its payload holds the person's own words, which
	// have not passed a redactor.
	Event wire.Draft
}

// Decide lets a person act at a gate. Errors: fault.Forbidden for somebody who may
// not, whatever the reason; fault.ValidationError for an override without a reason.
// The gate stays as it is then.
func Decide(g Gate, who Person, act Act, reason string) (Decision, error) {
	reason = strings.TrimSpace(reason)
	need := g.Role
	if act == Override {
		need = g.OverrideRole
	}
	switch {
	case act != Grant && act != Reject && act != Override:
		return Decision{}, fault.New(fault.ValidationError, "act: want grant, reject or override")
	case who.ID == "" || need == "" || !slices.Contains(who.Roles, need):
		return Decision{}, fault.New(fault.Forbidden, "the principal may not %s at this gate; it takes the role %q", act, need)
	case act == Override && reason == "":
		return Decision{}, fault.New(fault.ValidationError, "reason: an override needs one")
	case utf8.RuneCountInString(reason) > maxReason:
		return Decision{}, fault.New(fault.ValidationError, "reason: at most %d characters are taken", maxReason)
	}
	d := Decision{Released: act != Reject}
	payload := struct {
		GateID    string `json:"gateId"`
		Principal string `json:"principal"`
		Reason    string `json:"reason,omitempty"`
	}{g.ID, who.ID, reason}
	switch act {
	case Grant:
		d.Event.Type, payload.Reason = wire.EventApprovalGranted, "" // closed: it has none
	case Reject:
		d.Event.Type = wire.EventApprovalRejected
	case Override:
		d.Event.Type = wire.EventApprovalOverridden
	}
	b, err := json.Marshal(payload)
	d.Event.Payload = b
	return d, err
}

// OfEnvelope is what an envelope does at a gate it is bound to: nothing. One that is
// untrusted is refused as such; the words of a model never count as an approval,
// whatever vouches for them (OpenWOP envelope contract §12, §26 case 18).
func OfEnvelope(trust wire.Trust) error {
	if trust.Meet(wire.Trusted) == wire.Untrusted {
		return fault.New(fault.UntrustedBlocksApproval, "untrusted content never advances an approval; an authorised person may")
	}
	return fault.New(fault.Forbidden, "what a model writes is never an approval; an authorised person may give one")
}
