package compat

import (
	"slices"

	"waybill.dev/waybill/services/dispatcher/provider"
	"waybill.dev/waybill/services/dispatcher/provider/outbound"
)

// Finish reasons of the vendor.
const (
	contentFilter = "content_filter"
	toolCalls     = "tool_calls"
	// completedResponse is the status of a response that ended by itself, with or without calls.
	completedResponse = "completed"
)

// blocked reports whether a finish reason or error code means that a filter stopped the prompt or
// the answer.
func blocked(reason string) bool { return outbound.IsFilter(outbound.Word(reason)) }

// called are the words by which servers say that an answer is a call of a tool.
var called = []string{"toolcalls", "toolcall", "tooluse", "functioncall"} //nolint:gochecknoglobals // a constant

// stopOf classifies a finish reason (OpenWOP envelope contract §14.1), which is empty if the server
// ended its stream without one. tool_calls is clean if the tool was forced: its arguments are the
// answer, and OpenAI itself then sends stop. Otherwise it is unknown, because no tool was offered.
func stopOf(finish string, forced bool) provider.StopClass {
	word := outbound.Word(finish)
	switch {
	case outbound.IsComplete(word), slices.Contains(called, word) && forced:
		return provider.StopClean
	case outbound.IsTruncated(word):
		return provider.StopTruncated
	case blocked(word):
		return provider.StopRefused
	default:
		return provider.StopUnknown
	}
}

func reasonOf(finish string, stop provider.StopClass) string {
	if word := outbound.Word(finish); stop == provider.StopUnknown && (slices.Contains(called, word) || word == completedResponse) {
		return toolCalls
	}
	return provider.FinishReason(stop)
}
