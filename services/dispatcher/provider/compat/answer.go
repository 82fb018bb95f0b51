package compat

import (
	"strings"

	"github.com/openai/openai-go/v3"

	"waybill.dev/waybill/services/dispatcher/provider"
	"waybill.dev/waybill/services/dispatcher/provider/outbound"
)

// answer puts an answer together out of chunks.
type answer struct {
	collector *provider.Collector
	refusal   strings.Builder
	calls     []provider.ToolCall
	aside     int // bytes of refusal and tool calls
	finish    string
	usage     provider.Usage
}

func newAnswer(model string, emit func(provider.Delta) error) *answer {
	return &answer{collector: provider.NewCollector(model, emit)}
}

// take adds a chunk. Its error ends the call.
func (a *answer) take(c openai.ChatCompletionChunk) error {
	a.collector.AnsweredBy(c.Model)
	if c.JSON.Usage.Valid() { // null in all chunks but one
		a.usage = usageOf(c.Usage)
	}
	for _, choice := range c.Choices {
		if choice.Index != 0 { // one was asked for
			continue
		}
		if choice.FinishReason != "" {
			a.finish = choice.FinishReason
		}
		if err := a.piece(choice.Delta); err != nil {
			return err
		}
	}
	return nil
}

func (a *answer) piece(d openai.ChatCompletionChunkChoiceDelta) error {
	if d.Refusal != "" {
		a.refusal.WriteString(d.Refusal)
		if err := a.fits(len(d.Refusal)); err != nil {
			return err
		}
	}
	for _, t := range d.ToolCalls {
		if err := a.toolCall(t); err != nil {
			return err
		}
	}
	if d.Content == "" { // the first chunk names the role and says nothing
		return nil
	}
	return a.collector.Add(provider.Delta{Text: d.Content})
}

// maxToolCalls bounds the index a server may give.
const maxToolCalls = 128

// toolCall adds a fragment of a call; id and name come in the first one.
func (a *answer) toolCall(t openai.ChatCompletionChunkChoiceDeltaToolCall) error {
	i := int(t.Index)
	if i < 0 || i >= maxToolCalls {
		return &provider.Error{Code: provider.CodeUnavailable, Message: "the model's server sent a tool call out of any order"}
	}
	for len(a.calls) <= i {
		a.calls = append(a.calls, provider.ToolCall{})
	}
	call := &a.calls[i]
	call.ID += t.ID
	call.Name += t.Function.Name
	call.Arguments += t.Function.Arguments
	return a.fits(len(t.ID) + len(t.Function.Name) + len(t.Function.Arguments))
}

// fits counts bytes that are not text and checks that they are not too many.
func (a *answer) fits(n int) error {
	a.aside += n
	return a.collector.Fits(a.aside)
}

// end completes the answer.
func (a *answer) end() (provider.Result, error) {
	if a.finish == "" {
		return provider.Result{}, outbound.Broken(nil) // the stream ended and the server did not say why
	}
	if len(a.calls) > 0 {
		if err := a.collector.Add(provider.Delta{ToolCalls: a.calls}); err != nil {
			return provider.Result{}, err
		}
	}
	r := provider.Result{RawStop: a.finish, Stop: stopOf(a.finish), RefusalText: a.refusal.String(), Usage: a.usage}
	if r.RefusalText != "" { // the reason is "stop" then
		r.Stop = provider.StopRefused
	}
	if a.finish == contentFilter {
		r.SafetyCategory = contentFilter
	}
	return a.collector.Finish(r, reasonOf(a.finish, r.Stop))
}

// The vendor's finish reasons.
const (
	contentFilter = "content_filter"
	toolCalls     = "tool_calls"
)

// stopOf classifies the vendor's finish reason (OpenWOP envelope contract §14.1).
// tool_calls is unknown, not clean: no tool was offered, let alone forced.
func stopOf(finish string) provider.StopClass {
	switch finish {
	case "stop":
		return provider.StopClean
	case "length":
		return provider.StopTruncated
	case contentFilter:
		return provider.StopRefused
	default:
		return provider.StopUnknown
	}
}

func reasonOf(finish string, stop provider.StopClass) string {
	if finish == toolCalls {
		return toolCalls
	}
	return provider.FinishReason(stop)
}

func usageOf(u openai.CompletionUsage) provider.Usage {
	n := func(v int64) int { return int(max(v, 0)) }
	return provider.Usage{
		InputTokens: n(u.PromptTokens), OutputTokens: n(u.CompletionTokens), TotalTokens: n(u.TotalTokens),
		CacheReadTokens: n(u.PromptTokensDetails.CachedTokens), Known: true,
	}
}
