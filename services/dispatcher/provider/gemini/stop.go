package gemini

import (
	"google.golang.org/genai"

	"waybill.dev/waybill/services/dispatcher/provider"
	"waybill.dev/waybill/services/dispatcher/provider/outbound"
)

// stops are the vendor's finish reasons that end an answer for a filter (OpenWOP envelope contract §14.1),
// and those of other vendors behind gateways, each an outbound.Word.
var stops = map[string]provider.StopClass{
	// The limit of one request ended an answer that could be continued.
	"continuation":           provider.StopTruncated,
	"safety":                 provider.StopRefused,
	"recitation":             provider.StopRefused,
	"blocklist":              provider.StopRefused,
	"prohibitedcontent":      provider.StopRefused,
	"spii":                   provider.StopRefused,
	"modelarmor":             provider.StopRefused,
	"imagesafety":            provider.StopRefused,
	"imageprohibitedcontent": provider.StopRefused,
	"imagerecitation":        provider.StopRefused,
	"contentfilter":          provider.StopRefused,
	"refusal":                provider.StopRefused,
}

// stopOf classifies a finish reason. Others are unknown: among them LANGUAGE, OTHER, NO_IMAGE, IMAGE_OTHER,
// and the reasons for malformed, unexpected or too many calls.
func stopOf(finish genai.FinishReason) provider.StopClass {
	word := outbound.Word(string(finish))
	if class, ok := stops[word]; ok {
		return class
	}
	switch {
	case word != "" && outbound.IsComplete(word):
		return provider.StopClean
	case outbound.IsTruncated(word):
		return provider.StopTruncated
	default:
		return provider.StopUnknown
	}
}

// categoryOf returns the vendor's category of a refusal: the blocking harm category, else the
// reason itself.
func categoryOf(finish genai.FinishReason, ratings []*genai.SafetyRating) string {
	for _, r := range ratings {
		if r != nil && r.Blocked {
			return string(r.Category)
		}
	}
	return string(finish)
}

// usageOf converts the usage as billed: thinking is output, prompt tokens of the vendor's tools are
// input and include the cached part.
func usageOf(counts map[string]int64) provider.Usage {
	sum := func(names ...string) (n int) {
		for _, name := range names {
			n += int(counts[name])
		}
		return n
	}
	_, prompt := counts["promptTokenCount"]
	_, answer := counts["candidatesTokenCount"]
	out := provider.Usage{
		InputTokens:     sum("promptTokenCount", "toolUsePromptTokenCount"),
		OutputTokens:    sum("candidatesTokenCount", "thoughtsTokenCount"),
		TotalTokens:     sum("totalTokenCount"),
		CacheReadTokens: sum("cachedContentTokenCount"),
		Known:           prompt || answer || sum("totalTokenCount") > 0,
	}
	if spent := sum("thoughtsTokenCount"); spent > 0 { // the vendor leaves out 0
		out.ReasoningTokens = &spent
	}
	return out
}
