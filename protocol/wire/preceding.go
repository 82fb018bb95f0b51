package wire

// MayPrecede reports whether events of the type describe a model call and may be recorded together
// with the resulting envelope, before the events the envelope causes (OpenWOP envelope contract
// §14.5). The list is closed: each service records all other types itself.
func (t EventType) MayPrecede() bool {
	return t == EventProviderUsage || t == EventEnvelopeRecovery
}

// ReasonSchemaForm is the reason in the fields of a log.appended event that says in which form a
// model got the schema of its answer. Its field schemaForm is the form.
const ReasonSchemaForm = "schema_form"

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
