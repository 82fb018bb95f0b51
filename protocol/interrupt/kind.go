package interrupt

import (
	"slices"

	"waybill.dev/waybill/protocol/wire"
)

// Kind says what is asked, and with it what an answer looks like.
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

// Kinds lists those that a node of this host can ask with: conversations need a
// capability it does not have.
func Kinds() []Kind { return []Kind{Approval, Clarification, ExternalEvent, Custom, LowConfidence} }

// Known reports whether the protocol has the kind.
func (k Kind) Known() bool {
	return slices.Contains(Kinds(), k) || k == ConversationStart || k == ConversationExchange || k == ConversationClose
}

// Status is that of a run which waits for an answer and has nothing else to do
// (OpenWOP host contract §3.1).
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

// ratifies reports whether an answer lets something pass that a person must have seen.
func (k Kind) ratifies() bool { return k == Approval || k == LowConfidence }
