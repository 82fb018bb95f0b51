package gemini

import (
	"google.golang.org/genai"

	"waybill.dev/waybill/services/dispatcher/provider"
)

// stops classifies the vendor's finish reasons (OpenWOP envelope contract §14.1). Others are
// unknown: among them LANGUAGE, OTHER, NO_IMAGE, IMAGE_OTHER, and the reasons for malformed,
// unexpected or too many calls.
var stops = map[genai.FinishReason]provider.StopClass{
	genai.FinishReasonStop:      provider.StopClean,
	genai.FinishReasonMaxTokens: provider.StopTruncated,
	// The limit of one request ended an answer that could be continued.
	genai.FinishReasonContinuation:           provider.StopTruncated,
	genai.FinishReasonSafety:                 provider.StopRefused,
	genai.FinishReasonRecitation:             provider.StopRefused,
	genai.FinishReasonBlocklist:              provider.StopRefused,
	genai.FinishReasonProhibitedContent:      provider.StopRefused,
	genai.FinishReasonSPII:                   provider.StopRefused,
	genai.FinishReasonImageSafety:            provider.StopRefused,
	genai.FinishReasonImageProhibitedContent: provider.StopRefused,
	genai.FinishReasonImageRecitation:        provider.StopRefused,
}

func stopOf(finish genai.FinishReason) provider.StopClass {
	if class, ok := stops[finish]; ok {
		return class
	}
	return provider.StopUnknown
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
func usageOf(u *genai.GenerateContentResponseUsageMetadata) provider.Usage {
	n := func(counts ...int32) (sum int) {
		for _, c := range counts {
			sum += int(max(c, 0))
		}
		return sum
	}
	out := provider.Usage{
		InputTokens:     n(u.PromptTokenCount, u.ToolUsePromptTokenCount),
		OutputTokens:    n(u.CandidatesTokenCount, u.ThoughtsTokenCount),
		TotalTokens:     n(u.TotalTokenCount),
		CacheReadTokens: n(u.CachedContentTokenCount),
		Known:           true,
	}
	if spent := n(u.ThoughtsTokenCount); spent > 0 { // the vendor leaves out 0
		out.ReasoningTokens = &spent
	}
	return out
}
