package wire

// MayPrecede reports whether events of the type tell of a call of a model and may be
// recorded together with the envelope that came of it: they come before what the envelope
// causes (OpenWOP envelope contract §14.5). The list is closed: of all other types each
// service records its own.
func (t EventType) MayPrecede() bool {
	return t == EventProviderUsage || t == EventEnvelopeRecovery
}

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

// EnvelopeRecovery is the payload of envelope.recovery.applied: none of the text (OpenWOP
// envelope contract §14.6).
type EnvelopeRecovery struct {
	NodeID     string `json:"nodeId"`
	Path       string `json:"path"`
	ByteOffset int    `json:"byteOffset"`
}
