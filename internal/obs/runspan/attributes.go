package runspan

import (
	"strings"
	"unicode/utf8"

	"waybill.dev/waybill/protocol/cost"
	"waybill.dev/waybill/protocol/wire"
)

// SchemaForm is this host's attribute of a model call whose schema was not sent in the model's own
// form, because its server refused that.
const SchemaForm = "waybill.schema_form"

// maxText limits an attribute's text, in bytes: it holds identifiers of the protocol or of vendors.
const maxText = 128

// cut shortens a text at a character boundary. Invalid UTF-8 would make the exporter drop the whole
// batch of spans.
func cut(s string) string {
	s = strings.ToValidUTF8(s, "\uFFFD")
	if len(s) <= maxText {
		return s
	}
	n := maxText
	for !utf8.RuneStart(s[n]) {
		n--
	}
	return s[:n]
}

// reliability returns the attributes of a reliability event; nil for other events. They hold no
// text of a model or prompt: refusalText is omitted (OpenWOP envelope contract §14.8, §15.2).
func reliability(t wire.EventType, p event) map[string]any {
	const prefix = "openwop.envelope."
	a := map[string]any{}
	text := func(name, v string) {
		if v != "" {
			a[prefix+name] = cut(v)
		}
	}
	switch t {
	case wire.EventEnvelopeRetryAttempted:
		a[prefix+"retry.attempt"] = int64(p.Attempt)
		text("retry.reason", p.Reason)
	case wire.EventEnvelopeRetryExhausted:
		a[prefix+"retry.total_attempts"] = p.TotalAttempts
		text("retry.final_reason", p.FinalReason)
	case wire.EventEnvelopeRefusal:
		text("refusal.safety_category", p.SafetyCategory)
	case wire.EventEnvelopeTruncated:
		text("truncated.stop_reason", p.StopReason)
		if p.OutputTokenCount != nil {
			a[prefix+"truncated.output_token_count"] = *p.OutputTokenCount
		}
	case wire.EventEnvelopeNLToFormat:
		a[prefix+"nl_to_format.fallback_calls"] = p.FallbackCalls
	case wire.EventEnvelopeRecovery:
		text("recovery.path", p.Path)
		if p.ByteOffset != nil {
			a[prefix+"recovery.byte_offset"] = *p.ByteOffset
		}
	default:
		return nil
	}
	return a
}

// costOf returns the cost attributes of one call.
func costOf(p event) map[string]any {
	total := p.TotalTokens
	if total == 0 {
		total = p.InputTokens + p.OutputTokens
	}
	a := map[string]any{
		cost.Input:    p.InputTokens,
		cost.Output:   p.OutputTokens,
		cost.Total:    total,
		cost.Provider: p.Provider,
	}
	if p.CostEstimateUSD != nil {
		a[cost.USD], a[cost.Estimated] = *p.CostEstimateUSD, true
	}
	if p.Currency != "" {
		a[cost.Currency] = p.Currency
	}
	return a
}

// addCost sums numbers and copies all other values.
func addCost(to, callCost map[string]any) {
	for name, v := range callCost {
		switch v := v.(type) {
		case int64:
			sum, _ := to[name].(int64)
			to[name] = sum + v
		case float64:
			sum, _ := to[name].(float64)
			to[name] = sum + v
		default:
			to[name] = v
		}
	}
}
