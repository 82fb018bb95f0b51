package compat

import (
	"strings"

	"github.com/openai/openai-go/v3"

	"waybill.dev/waybill/services/dispatcher/provider"
)

// answer puts an answer together while it streams in. The last piece is held
// back until the stream has told how it ended and what it cost.
type answer struct {
	emit    func(provider.Delta) error
	model   string
	text    strings.Builder
	refusal strings.Builder
	finish  string
	usage   provider.Usage
	held    *string
}

func (a *answer) take(c openai.ChatCompletionChunk) error {
	if c.Model != "" {
		a.model = c.Model
	}
	if c.JSON.Usage.Valid() {
		u := c.Usage
		a.usage = provider.Usage{
			InputTokens: int(u.PromptTokens), OutputTokens: int(u.CompletionTokens), TotalTokens: int(u.TotalTokens),
			CacheReadTokens: int(u.PromptTokensDetails.CachedTokens), Known: true,
		}
	}
	for _, choice := range c.Choices {
		if choice.Index != 0 {
			continue
		}
		if choice.FinishReason != "" {
			a.finish = choice.FinishReason
		}
		a.refusal.WriteString(choice.Delta.Refusal)
		if choice.Delta.Content == "" {
			continue
		}
		if a.text.Len()+len(choice.Delta.Content) > provider.MaxAnswerBytes {
			return &provider.Error{Code: "content_too_long", Message: "the answer is longer than this host takes"}
		}
		a.text.WriteString(choice.Delta.Content)
		if err := a.push(choice.Delta.Content); err != nil {
			return err
		}
	}
	return nil
}

func (a *answer) push(text string) error {
	previous := a.held
	a.held = &text
	if previous == nil || a.emit == nil {
		return nil
	}
	return a.emit(provider.Delta{Text: *previous, Model: a.model})
}

func (a *answer) end() (provider.Result, error) {
	res := provider.Result{
		Text: a.text.String(), RefusalText: a.refusal.String(), RawStop: a.finish, Stop: stopClass(a.finish), Usage: a.usage, Model: a.model,
	}
	if res.RefusalText != "" {
		res.Stop = provider.StopRefused
	}
	if res.Stop == provider.StopRefused && a.finish == "content_filter" {
		res.SafetyCategory = a.finish
	}
	if a.emit == nil {
		return res, nil
	}
	last := provider.Delta{Last: true, FinishReason: finishReason(a.finish), Model: a.model}
	if a.held != nil {
		last.Text = *a.held
	}
	if a.usage.Known {
		last.Usage = &a.usage
	}
	return res, a.emit(last)
}

func stopClass(finish string) provider.StopClass {
	switch finish {
	case "stop", "tool_calls":
		return provider.StopClean
	case "length":
		return provider.StopTruncated
	case "content_filter":
		return provider.StopRefused
	default:
		return provider.StopUnknown
	}
}

func finishReason(finish string) string {
	switch finish {
	case "length", "tool_calls", "content_filter":
		return finish
	default:
		return "stop"
	}
}
