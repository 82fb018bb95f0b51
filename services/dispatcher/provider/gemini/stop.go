package gemini

import (
	"google.golang.org/genai"

	"waybill.dev/waybill/services/dispatcher/provider"
	"waybill.dev/waybill/services/dispatcher/provider/outbound"
)

// stopOf classifies a finish reason. Others are unknown: among them LANGUAGE, OTHER, NO_IMAGE, IMAGE_OTHER,
// and the reasons for malformed, unexpected or too many calls.
func stopOf(finish genai.FinishReason) provider.StopClass {
	word := outbound.Word(string(finish))
	switch {
	case outbound.IsFilter(word):
		return provider.StopRefused
	case word == "continuation": // the limit of one request ended an answer that could be continued
		return provider.StopTruncated
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
	switch total := out.TotalTokens; { // proxies leave out counts
	case !answer && prompt:
		out.OutputTokens = max(out.OutputTokens, total-out.InputTokens)
	case !prompt && answer:
		out.InputTokens = max(out.InputTokens, total-out.OutputTokens)
	}
	if spent := sum("thoughtsTokenCount"); spent > 0 { // the vendor leaves out 0
		out.ReasoningTokens = &spent
	}
	return out
}
