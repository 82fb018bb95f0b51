package interrupt

import (
	"slices"

	"waybill.dev/waybill/protocol/wire"
)

// Kind determines what is asked and the shape of the answer.
type Kind string

// The kinds of the protocol (OpenWOP host contract §6.1).
const (
	Approval             Kind = "approval"
	Clarification        Kind = "clarification"
	ExternalEvent        Kind = "external-event"
	Custom               Kind = "custom"
	ConversationStart    Kind = "conversation.start"
	ConversationExchange Kind = "conversation.exchange"
	ConversationClose    Kind = "conversation.close"
	LowConfidence        Kind = "low-confidence"
)

// Kinds lists the kinds that a node of this host can use. Conversations require a capability
// that it does not have.
func Kinds() []Kind { return []Kind{Approval, Clarification, ExternalEvent, Custom, LowConfidence} }

// Known reports whether the protocol defines the kind.
func (k Kind) Known() bool {
	return slices.Contains(Kinds(), k) || k == ConversationStart || k == ConversationExchange || k == ConversationClose
}

// Status returns the status of a run that only waits for an answer of this kind (OpenWOP host
// contract §3.1).
func (k Kind) Status() wire.Status {
	switch k {
	case Clarification:
		return wire.StatusWaitingInput
	case ExternalEvent, Custom:
		return wire.StatusWaitingExternal
	default:
		return wire.StatusWaitingApproval
	}
}

// ratifies reports whether an answer approves something that a person must have seen.
func (k Kind) ratifies() bool { return k == Approval || k == LowConfidence }
