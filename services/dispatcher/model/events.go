package model

import (
	"encoding/json"

	"waybill.dev/waybill/protocol/modelgate"
	"waybill.dev/waybill/protocol/wire"
	"waybill.dev/waybill/services/dispatcher/provider"
)

// Reasons of a retry (envelope.retry.attempted and .exhausted).
const (
	reasonSchema     = "schema-violation"
	reasonTypeDrift  = "type-drift"
	reasonParse      = "parse-error"
	reasonTruncation = "truncation"
	reasonUnknown    = "unknown"
)

func draft(t wire.EventType, nodeID string, trust wire.Trust, payload any) wire.Draft {
	b, err := json.Marshal(payload)
	if err != nil {
		panic("completion: payload is not JSON: " + err.Error()) // payloads are types of this package
	}
	d := wire.Draft{Type: t, NodeID: nodeID, Payload: b}
	if trust == wire.Untrusted {
		d.Trust = trust
	}
	return d
}

// addUsage adds the usage of a call. Tokens of thoughts have an event of their own before it, because
// the payload of provider.usage is closed (OpenWOP envelope contract §19.1). Most models report 0 of
// them in each call, which is not recorded.
func (e *emission) addUsage(a answer, out *outbox) {
	if n := a.Usage.ReasoningTokens; n != nil && *n > 0 {
		out.addDraft(draft(wire.EventLogAppended, a.req.NodeID, wire.Trusted, wire.NewUsageNote(a.req.NodeID, *n)))
	}
	out.addDraft(e.usageDraft(a.req, a.Result))
}

// usageDraft builds the usage event of a call. It has a cost only if every rate is known (OpenWOP
// envelope contract §19.1).
func (e *emission) usageDraft(req provider.Request, res provider.Result) wire.Draft {
	u, shown := res.Usage, e.task.shownModel(req, res)
	p := wire.ProviderUsage{
		Provider:         shown.Provider,
		Model:            shown.Model,
		InputTokens:      u.InputTokens,
		OutputTokens:     u.OutputTokens,
		TotalTokens:      u.TotalTokens,
		CacheReadTokens:  u.CacheReadTokens,
		CacheWriteTokens: u.CacheWriteTokens,
		NodeID:           req.NodeID,
	}
	if usd, known := e.costOf(req, res); known {
		p.CostUSD, p.Currency = &usd, "USD"
	}
	return draft(wire.EventProviderUsage, req.NodeID, wire.Trusted, p)
}

// withholdsModel reports whether readers of the run must not see which model replaces the node's own.
func (t *Task) withholdsModel() bool {
	n := t.Input.Next
	return t.Fallback != nil && t.Fallback.Provider == modelgate.Withheld || n != nil && n.Provider == modelgate.Withheld
}

// shownModel is the model that answered, as events name it.
func (t *Task) shownModel(req provider.Request, res provider.Result) modelgate.Model {
	if t.withholdsModel() {
		return modelgate.Model{Provider: modelgate.Withheld, Model: modelgate.Withheld}
	}
	return modelgate.Model{Provider: req.Provider, Model: firstNonEmpty(res.Model, req.Model)}
}

// costOf uses the prices of the model that answered, else of the requested one.
func (l *Loop) costOf(req provider.Request, res provider.Result) (usd float64, known bool) {
	e, ok := l.deps.Catalogue.Lookup(req.Provider, firstNonEmpty(res.Model, req.Model))
	if !ok || e.Prices == nil {
		e, ok = l.deps.Catalogue.Lookup(req.Provider, req.Model)
	}
	if !ok {
		return 0, false
	}
	return e.At(l.deps.Clock()).Cost(res.Usage)
}

func optional(s string) *string {
	if s == "" {
		return nil
	}
	return &s
}

func (t *Task) truncatedDraft(req provider.Request, res provider.Result, partial bool) wire.Draft {
	shown := t.shownModel(req, res)
	return draft(wire.EventEnvelopeTruncated, req.NodeID, wire.Trusted, struct {
		NodeID           string `json:"nodeId"`
		Provider         string `json:"provider"`
		Model            string `json:"model"`
		StopReason       string `json:"stopReason"`
		Partial          bool   `json:"partialPayloadAvailable"`
		OutputTokenCount *int   `json:"outputTokenCount,omitempty"`
	}{req.NodeID, shown.Provider, shown.Model, stopReason(res), partial, tokenCount(res)})
}

func tokenCount(res provider.Result) *int {
	if !res.Usage.Known {
		return nil
	}
	n := res.Usage.OutputTokens
	return &n
}

// stopReason returns the protocol's name for the reason of a truncation.
func stopReason(res provider.Result) string {
	switch res.Stop {
	case provider.StopTruncated:
		return "max_tokens"
	case provider.StopSequence:
		return "stop_sequence"
	default:
		return "unknown"
	}
}

type retryPayload struct {
	NodeID        string  `json:"nodeId"`
	Attempt       int     `json:"attempt"`
	Reason        string  `json:"reason"`
	PreviousError *string `json:"previousError,omitempty"`
}

type exhaustedPayload struct {
	NodeID        string  `json:"nodeId"`
	TotalAttempts int     `json:"totalAttempts"`
	FinalReason   string  `json:"finalReason"`
	FinalError    *string `json:"finalError,omitempty"`
}

type prosePayload struct {
	NodeID               string `json:"nodeId"`
	OriginalEnvelopeType string `json:"originalEnvelopeType"`
	FallbackCalls        int    `json:"fallbackCalls"`
}

type capPayload struct {
	Kind     string `json:"kind"`
	Limit    int    `json:"limit"`
	Observed int    `json:"observed"`
	NodeID   string `json:"nodeId"`
}

type chunkPayload struct {
	NodeID string     `json:"nodeId"`
	RunID  string     `json:"runId"`
	Chunk  string     `json:"chunk"`
	IsLast bool       `json:"isLast"`
	Meta   *chunkMeta `json:"meta,omitempty"`
	growth
}

type chunkMeta struct {
	FinishReason string      `json:"finishReason,omitempty"`
	Model        string      `json:"model,omitempty"`
	Usage        *chunkUsage `json:"usage,omitempty"`
	ToolCalls    []chunkTool `json:"toolCalls,omitempty"`
	Provider     string      `json:"provider,omitempty"`
}

// chunkTool is a tool call requested by the model. Arguments is JSON in a string.
type chunkTool struct {
	ID        string `json:"id"`
	Name      string `json:"name"`
	Arguments string `json:"arguments"`
}

type chunkUsage struct {
	PromptTokens     int `json:"promptTokens"`
	CompletionTokens int `json:"completionTokens"`
	TotalTokens      int `json:"totalTokens"`
	// ReasoningTokens is the part of the completion that the model used to think; nil if unknown.
	ReasoningTokens *int `json:"reasoningTokens,omitempty"`
}
