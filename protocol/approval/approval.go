// Package approval decides whether a person may act at a governance gate. Only an authorized person
// may (OpenWOP envelope contract §12; host contract §6.5, governance gate). Approvals that runs
// wait for are in package interrupt.
//
// The person's identity and roles come from the credential the host has verified, never from the
// submitted value.
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
	// Role is the role required to grant or reject; empty means no person may.
	Role string
	// OverrideRole is the role required to override; empty means no person may.
	OverrideRole string
}

// Person is an authenticated principal.
type Person struct {
	ID    string
	Roles []string
}

// Act is a person's action at a gate.
type Act string

// The three acts.
const (
	Grant    Act = "grant"
	Reject   Act = "reject"
	Override Act = "override"
)

// maxReason limits a reason, in characters.
const maxReason = 4096

// Decision is the result of an act.
type Decision struct {
	// Released: the step behind the gate continues.
	Released bool
	// Event is recorded in the run; its payload holds the person's own words, not yet redacted.
	Event wire.Draft
}

// Decide evaluates an act at a gate. Errors: fault.Forbidden if the person lacks the role, whatever
// the reason; fault.ValidationError for an override without a reason. After an error the gate is
// unchanged.
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
		return Decision{}, fault.New(fault.Forbidden, "the principal may not %s at this gate; the role %q is required", act, need)
	case act == Override && reason == "":
		return Decision{}, fault.New(fault.ValidationError, "reason: required for an override")
	case utf8.RuneCountInString(reason) > maxReason:
		return Decision{}, fault.New(fault.ValidationError, "reason: limit is %d characters", maxReason)
	}
	d := Decision{Released: act != Reject}
	payload := struct {
		GateID    string `json:"gateId"`
		Principal string `json:"principal"`
		Reason    string `json:"reason,omitempty"`
	}{g.ID, who.ID, reason}
	switch act {
	case Grant:
		d.Event.Type, payload.Reason = wire.EventApprovalGranted, "" // its payload has no reason
	case Reject:
		d.Event.Type = wire.EventApprovalRejected
	case Override:
		d.Event.Type = wire.EventApprovalOverridden
	}
	b, err := json.Marshal(payload)
	d.Event.Payload = b
	return d, err
}

// OfEnvelope returns the error for an envelope bound to a gate: envelopes never act at gates.
// Untrusted envelopes get their own code. A model's output never counts as an approval, whatever
// its trust (OpenWOP envelope contract §12, §26 case 18).
func OfEnvelope(trust wire.Trust) error {
	if trust.Meet(wire.Trusted) == wire.Untrusted {
		return fault.New(fault.UntrustedBlocksApproval, "untrusted content never approves; an authorized person must")
	}
	return fault.New(fault.Forbidden, "a model's output is never an approval; an authorized person must approve")
}
