package compat

import (
	"slices"

	"waybill.dev/waybill/services/dispatcher/provider"
)

// Finish reasons of the vendor.
const (
	contentFilter = "content_filter"
	toolCalls     = "tool_calls"
	functionCall  = "function_call"
)

// blocked reports whether a finish reason or error code means that a filter stopped the prompt or
// the answer.
func blocked(reason string) bool {
	return slices.Contains([]string{contentFilter, "content_policy_violation", "invalid_prompt"}, reason)
}

// stopOf classifies the vendor's finish reason (OpenWOP envelope contract §14.1). tool_calls is
// clean if the tool was forced: its arguments are the answer, and the vendor itself then sends
// stop. Otherwise it is unknown, because no tool was offered. function_call, its older form, is
// never requested.
func stopOf(finish string, forced bool) provider.StopClass {
	switch {
	case finish == "stop", finish == toolCalls && forced:
		return provider.StopClean
	case finish == "length":
		return provider.StopTruncated
	case blocked(finish):
		return provider.StopRefused
	default:
		return provider.StopUnknown
	}
}

func reasonOf(finish string, stop provider.StopClass) string {
	if stop == provider.StopUnknown && (finish == toolCalls || finish == functionCall) {
		return toolCalls
	}
	return provider.FinishReason(stop)
}

// usageOf converts the usage as billed: completion tokens include reasoning and sound, prompt
// tokens include cached ones.
func usageOf(u usage) provider.Usage {
	n := func(v int64) int { return int(max(v, 0)) }
	return provider.Usage{
		InputTokens:      n(u.PromptTokens),
		OutputTokens:     n(u.CompletionTokens),
		TotalTokens:      n(u.TotalTokens),
		CacheReadTokens:  n(u.PromptTokensDetails.CachedTokens),
		CacheWriteTokens: n(u.PromptTokensDetails.CacheWriteTokens),
		Known:            true,
	}
}
