package runspan

import (
	"strings"
	"unicode/utf8"

	"waybill.dev/waybill/protocol/cost"
	"waybill.dev/waybill/protocol/wire"
)

// maxText bounds an attribute's text: they are words of the protocol, and a
// vendor's at the most.
const maxText = 128

// cut shortens a text to whole characters. Text that is no UTF-8 would cost the
// whole batch of spans it is sent in.
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

// reliability are the attributes of a reliability event; nil for any other. They
// hold no text of a model or of a prompt: refusalText is left out (OpenWOP
// envelope contract §14.8, §15.2).
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

// costOf are the cost attributes of one call.
func costOf(p event) map[string]any {
	total := p.TotalTokens
	if total == 0 {
		total = p.InputTokens + p.OutputTokens
	}
	a := map[string]any{cost.Input: p.InputTokens, cost.Output: p.OutputTokens, cost.Total: total, cost.Provider: p.Provider}
	if p.CostEstimateUSD != nil {
		a[cost.USD], a[cost.Estimated] = *p.CostEstimateUSD, true
	}
	if p.Currency != "" {
		a[cost.Currency] = p.Currency
	}
	return a
}

// addCost sums up what can be, and takes over the rest.
func addCost(to, told map[string]any) {
	for name, v := range told {
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
