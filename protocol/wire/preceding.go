package wire

import (
	"fmt"

	"waybill.dev/waybill/protocol/strictjson"
)

// MayPrecede reports whether an event describes a model call and may be recorded together with the
// resulting envelope, before the events the envelope causes (OpenWOP envelope contract §14.5). The
// list is closed: each service records all other events itself.
func (d Draft) MayPrecede() bool {
	switch d.Type {
	case EventProviderUsage, EventEnvelopeRecovery:
		return true
	case EventLogAppended:
		_, ok := ParseUsageNote(d.Payload)
		return ok
	default:
		return false
	}
}

// ReasonSchemaForm is the reason in the fields of a log.appended event that says in which form a
// model got the schema of its answer. Its field schemaForm is the form.
const ReasonSchemaForm = "schema_form"

// ReasonTextChanged is the reason in the fields of a log.appended event that says that a model's server sent
// another whole text than its pieces, which is the answer.
const ReasonTextChanged = "text_changed"

// ReasonModelUsage is the reason in the fields of a log.appended event with token counts of the
// node's next provider.usage. The protocol closes the payload of that event.
const ReasonModelUsage = "model_usage"

// UsageNote is the payload of that log.appended event.
type UsageNote struct {
	Level   string      `json:"level"`
	Message string      `json:"message"`
	NodeID  string      `json:"nodeId"`
	Fields  UsageFields `json:"fields"`
}

// UsageFields are the fields of a UsageNote.
type UsageFields struct {
	Reason string `json:"reason"`
	// ReasoningTokens is the part of the output tokens that the model used to think.
	ReasoningTokens int `json:"reasoningTokens"`
}

// NewUsageNote returns the note about a call of a node.
func NewUsageNote(nodeID string, reasoningTokens int) UsageNote {
	return UsageNote{
		Level:   "debug",
		Message: fmt.Sprintf("the model used %d of its output tokens to think", reasoningTokens),
		NodeID:  nodeID,
		Fields:  UsageFields{Reason: ReasonModelUsage, ReasoningTokens: reasoningTokens},
	}
}

// maxNoteBytes and maxNoteDepth limit the payload of a UsageNote.
const (
	maxNoteBytes = 4096
	maxNoteDepth = 2
)

// ParseUsageNote reads the payload of a log.appended event; ok is false if it is no UsageNote.
func ParseUsageNote(payload []byte) (n UsageNote, ok bool) {
	if strictjson.Decode(payload, strictjson.Limits{MaxBytes: maxNoteBytes, MaxDepth: maxNoteDepth}, &n) != nil {
		return UsageNote{}, false
	}
	tokens := n.Fields.ReasoningTokens
	return n, tokens >= 0 && n == NewUsageNote(n.NodeID, tokens)
}

// Reasons in the fields of log.appended events about the call of a tool.
const (
	// ReasonToolProgress: the tool reports progress. The field progress is how far it is, total, if
	// there is one, what it goes up to.
	ReasonToolProgress = "tool_progress"
	// ReasonOutputUnchecked: the result is not checked, because the schema of the tool's output
	// cannot be applied.
	ReasonOutputUnchecked = "output_schema_unusable"
)

// ProviderUsage is the payload of provider.usage (OpenWOP envelope contract §19.1).
type ProviderUsage struct {
	Provider         string   `json:"provider"`
	Model            string   `json:"model"`
	InputTokens      int      `json:"inputTokens"`
	OutputTokens     int      `json:"outputTokens"`
	TotalTokens      int      `json:"totalTokens,omitempty"`
	CostUSD          *float64 `json:"costEstimateUsd,omitempty"`
	Currency         string   `json:"currency,omitempty"`
	CacheReadTokens  int      `json:"cacheReadTokens,omitempty"`
	CacheWriteTokens int      `json:"cacheWriteTokens,omitempty"`
	NodeID           string   `json:"nodeId"`
}

// EnvelopeRecovery is the payload of envelope.recovery.applied; it holds nothing of the text
// (OpenWOP envelope contract §14.6).
type EnvelopeRecovery struct {
	NodeID     string `json:"nodeId"`
	Path       string `json:"path"`
	ByteOffset int    `json:"byteOffset"`
}

// VersionDrift is the member schemaVersionDrift of an envelope's first event: the envelope's version is
// below the advertised one, against which it was validated (OpenWOP envelope contract §4.1).
type VersionDrift struct {
	Sent       int64 `json:"sent"`
	Advertised int64 `json:"advertised"`
}
