package compat

import (
	"slices"
	"strings"

	"waybill.dev/waybill/services/dispatcher/provider"
)

// Finish reasons of the vendor.
const (
	contentFilter = "content_filter"
	toolCalls     = "tool_calls"
	functionCall  = "function_call"
	// completedResponse is the status of a response that ended by itself, with or without calls.
	completedResponse = "completed"
	// noResources is DeepSeek's reason for an answer that its servers had no room for.
	noResources = "insufficient_system_resource"
)

// blocked reports whether a finish reason or error code means that a filter stopped the prompt or
// the answer.
func blocked(reason string) bool {
	return slices.Contains(filtered, strings.ToLower(reason))
}

// Words by which servers say that an answer is complete, was cut at a token limit, was stopped by a
// filter, or was broken off by a failure.
var (
	filtered = []string{ //nolint:gochecknoglobals // a constant
		contentFilter, "content_policy_violation", "invalid_prompt", "sensitive", "safety", "blocklist",
		"prohibited_content", "recitation", "guardrail_intervened", "data_inspection_failed", "datainspectionfailed",
		"error_toxic",
	}
	brokenOff = []string{ //nolint:gochecknoglobals // a constant
		"error", "abort", "aborted", "cancelled", "canceled", "network_error", "server_error", "timeout", noResources,
	}
	complete  = []string{"", "stop", "end_turn", "stop_sequence", "eos", "eos_token", "complete", "completed", "finished", "done"}                         //nolint:gochecknoglobals // a constant
	truncated = []string{"length", "max_tokens", "max_output_tokens", "max_completion_tokens", "model_length", "max_length", "token_limit", "error_limit"} //nolint:gochecknoglobals // a constant
)

// stopOf classifies a finish reason (OpenWOP envelope contract §14.1), which is empty if the server
// ended its stream without one. tool_calls is clean if the tool was forced: its arguments are the
// answer, and OpenAI itself then sends stop. Otherwise it is unknown, because no tool was offered.
func stopOf(finish string, forced bool) provider.StopClass {
	word := strings.ToLower(finish)
	switch {
	case slices.Contains(complete, word), (word == toolCalls || word == functionCall) && forced:
		return provider.StopClean
	case slices.Contains(truncated, word):
		return provider.StopTruncated
	case blocked(word):
		return provider.StopRefused
	default:
		return provider.StopUnknown
	}
}

func reasonOf(finish string, stop provider.StopClass) string {
	if stop == provider.StopUnknown && slices.Contains([]string{toolCalls, functionCall, completedResponse}, finish) {
		return toolCalls
	}
	return provider.FinishReason(stop)
}

// usageOf converts the usage as billed: completion tokens include reasoning and sound, prompt
// tokens include cached ones. Servers that count reasoning apart are known by their total.
func usageOf(u usage) provider.Usage {
	n := func(v *int64) int {
		if v == nil {
			return 0
		}
		return int(*v)
	}
	out := provider.Usage{
		InputTokens: n(u.prompt), OutputTokens: n(u.completion), TotalTokens: n(u.total),
		CacheReadTokens: n(u.cacheRead), CacheWriteTokens: n(u.cacheWrite), Known: u.prompt != nil || u.completion != nil,
	}
	if u.reasoning != nil {
		spent := n(u.reasoning)
		out.ReasoningTokens = &spent
		apart := u.total == nil && spent > out.OutputTokens || out.TotalTokens == out.InputTokens+out.OutputTokens+spent
		if apart {
			out.OutputTokens += spent
		}
	}
	return out
}
