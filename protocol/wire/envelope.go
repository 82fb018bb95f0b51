package wire

import "slices"

// EnvelopeStatus is the status of an envelope's outcome; a closed set.
type EnvelopeStatus string

// The statuses (OpenWOP envelope contract §2, EnvelopeOutcome).
const (
	EnvelopeAccepted EnvelopeStatus = "accepted"
	EnvelopeGated    EnvelopeStatus = "gated"
	EnvelopeInvalid  EnvelopeStatus = "invalid"
	EnvelopeBreached EnvelopeStatus = "breached"
)

// RefusalMode is what happens to the node of a refused envelope.
type RefusalMode string

// The two modes (OpenWOP envelope contract §7).
const (
	FailNode       RefusalMode = "fail-node"
	DiscardAndWarn RefusalMode = "discard-and-warn"
)

// Kinds that every host advertises and no contract refuses (OpenWOP envelope contract §3.1).
const (
	KindClarificationRequest = "clarification.request"
	KindSchemaRequest        = "schema.request"
	KindSchemaResponse       = "schema.response"
	KindError                = "error"
)

// Universals returns the kinds that every node accepts.
func Universals() []string {
	return []string{KindClarificationRequest, KindSchemaRequest, KindSchemaResponse, KindError}
}

// IsUniversal reports whether every node accepts a kind.
func IsUniversal(kind string) bool { return slices.Contains(Universals(), kind) }
