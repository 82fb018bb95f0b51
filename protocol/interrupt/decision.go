package interrupt

import (
	"encoding/json"
	"time"

	"waybill.dev/waybill/protocol/strictjson"
	"waybill.dev/waybill/protocol/wire"
	"waybill.dev/waybill/protocol/workflow"
)

// Answer is a submitted answer.
type Answer struct {
	// Value is the resume value as submitted: any JSON.
	Value json.RawMessage
	By    Responder
	At    time.Time
	// Trust is the trust of the value's origin: untrusted if a model wrote it.
	Trust wire.Trust
	// OnDecline is what happens to the node if the responder declines to answer; empty means that the
	// question cannot be declined.
	OnDecline workflow.DeclinePolicy
}

// Responder identifies the sender of an answer.
type Responder struct {
	// Principal is the answering credential, or a stand-in for the holder of a token. It is opaque,
	// never personal data, never empty.
	Principal string
	// User is the person the credential is bound to. Empty means the credential is unbound, and the
	// answer names the voter (OpenWOP host contract §6.3).
	User string
	// Groups and Roles are the holder's current memberships; empty for the holder of a token.
	Groups, Roles []string
}

// Outcome is the result of an answer.
type Outcome string

// The outcomes.
const (
	// Advanced: the node completes with the resume value.
	Advanced Outcome = "advanced"
	// Refined: the node resumes with feedback and completes with it.
	Refined Outcome = "refined"
	// Rejected: the node fails, with Decision.Failure.
	Rejected Outcome = "rejected"
	// Declined: the questions of a model have no answer. The node resumes, or fails with
	// Decision.Failure.
	Declined Outcome = "declined"
	// Counted: one vote of several; the interrupt stays open.
	Counted Outcome = "counted"
	// Asked: a question; the interrupt stays open.
	Asked Outcome = "asked"
)

// Resolves reports whether the outcome closes the interrupt.
func (o Outcome) Resolves() bool {
	return o == Advanced || o == Refined || o == Rejected || o == Declined
}

// Decision is the result of an answer and everything a run records of it.
type Decision struct {
	Outcome Outcome
	// Action is the action of an approval; empty for other kinds.
	Action Action
	// Resume is the resume value in the normal form of its kind; nil while the interrupt stays
	// open. It holds people's own words, not yet redacted.
	Resume json.RawMessage
	// DecidedBy is the recorded identity.
	DecidedBy string
	// Standing is why the responder was eligible; nil means the gate was open to all.
	Standing *Standing
	// Note is what the run stores while the interrupt stays open, otherwise nil.
	Note *Note
	// Progress is the vote count; nil if one vote decides.
	Progress *Progress
	// Overridden is the event of an override; nil means no override.
	Overridden *wire.Draft
	// Events are, in order: approval.overridden if the gate was overridden, and once the interrupt
	// is closed interrupt.resolved, the older event of the kind, and node.resumed unless the node
	// fails.
	Events []wire.Draft
	// Failure is the node's error; nil unless the gate is rejected, or a declined answer fails the node.
	Failure *wire.NodeError
	// Trust applies to everything derived from the answer.
	Trust wire.Trust
}

// Outputs returns the ports of the completed node: the members of the resume value, or the port
// output if the value is not an object.
func (d *Decision) Outputs() map[string]json.RawMessage { return Outputs(d.Resume) }

// Outputs returns the ports for a resume value.
func Outputs(resume json.RawMessage) map[string]json.RawMessage {
	if members := strictjson.Object(resume); members != nil {
		return members
	}
	return map[string]json.RawMessage{"output": resume}
}
