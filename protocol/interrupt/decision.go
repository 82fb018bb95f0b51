package interrupt

import (
	"encoding/json"
	"time"

	"waybill.dev/waybill/protocol/strictjson"
	"waybill.dev/waybill/protocol/wire"
)

// Answer is what somebody answers.
type Answer struct {
	// Value is the resume value as it was sent: any JSON.
	Value json.RawMessage
	By    Responder
	At    time.Time
	// Trust is that of where the value is from: untrusted for what a model wrote.
	Trust wire.Trust
}

// Responder is who answers.
type Responder struct {
	// Principal is the credential that answers, or what stands for the holder of a
	// token; opaque, never personal data, never empty.
	Principal string
	// User is the person whom the credential is bound to. Empty: it is bound to nobody,
	// and who votes is what the answer says (OpenWOP host contract §6.3).
	User string
	// Groups and Roles are what the credential's holder belongs to now; none for the
	// holder of a token.
	Groups, Roles []string
}

// Outcome is what an answer leads to.
type Outcome string

// The outcomes.
const (
	// Advanced: the node completes with the resume value.
	Advanced Outcome = "advanced"
	// Refined: the node resumes with feedback and completes with it.
	Refined Outcome = "refined"
	// Rejected: the node fails, with Decision.Failure.
	Rejected Outcome = "rejected"
	// Counted: one vote of several; the interrupt stays open.
	Counted Outcome = "counted"
	// Asked: a question; the interrupt stays open.
	Asked Outcome = "asked"
)

// Resolves reports whether the interrupt is closed by it.
func (o Outcome) Resolves() bool { return o == Advanced || o == Refined || o == Rejected }

// Decision is what an answer leads to, and all that a run records of it.
type Decision struct {
	Outcome Outcome
	// Action is what was done at an approval; empty for other kinds.
	Action Action
	// Resume is what the interrupt resolves with, in the one form of its kind; nil while
	// it stays open. It holds people's own words, which have not passed a redactor.
	Resume json.RawMessage
	// DecidedBy is who is recorded for it.
	DecidedBy string
	// Standing is by what they could decide it; nil: anybody could.
	Standing *Standing
	// Note is what the run keeps of it while it stays open; nil when it does not.
	Note *Note
	// Progress is how far the votes are; nil for what takes one.
	Progress *Progress
	// Overridden is the event of an override; nil: there was none.
	Overridden *wire.Draft
	// Events are, in order: approval.overridden, where somebody did, and once it is closed
	// interrupt.resolved, the older event of the kind, and node.resumed, unless the node fails.
	Events []wire.Draft
	// Failure is why the node fails; nil unless it is rejected.
	Failure *wire.NodeError
	// Trust is that of everything which follows.
	Trust wire.Trust
}

// Outputs are the ports a node completes with: the members of the resume value, or
// the port output for a value that is no object.
func (d *Decision) Outputs() map[string]json.RawMessage { return Outputs(d.Resume) }

// Outputs are the ports that a resume value makes.
func Outputs(resume json.RawMessage) map[string]json.RawMessage {
	if members := strictjson.Object(resume); members != nil {
		return members
	}
	return map[string]json.RawMessage{"output": resume}
}
