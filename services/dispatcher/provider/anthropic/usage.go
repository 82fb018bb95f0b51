package anthropic

import (
	"github.com/anthropics/anthropic-sdk-go"
	"github.com/anthropics/anthropic-sdk-go/packages/respjson"
)

// startUsage reads the usage in the message's start. All counts are the vendor's own (OpenWOP
// envelope contract §19.1). Input tokens exclude tokens read from or written to the prompt cache;
// output tokens include thoughts.
func (a *answer) startUsage(m anthropic.Message) {
	if !m.JSON.Usage.Valid() {
		return
	}
	a.usage.Known, a.usage.CacheApart = true, true
	u := m.Usage
	setCount(&a.usage.InputTokens, u.InputTokens, u.JSON.InputTokens)
	setCount(&a.usage.OutputTokens, u.OutputTokens, u.JSON.OutputTokens)
	setCount(&a.usage.CacheReadTokens, u.CacheReadInputTokens, u.JSON.CacheReadInputTokens)
	setCount(&a.usage.CacheWriteTokens, u.CacheCreationInputTokens, u.JSON.CacheCreationInputTokens)
	a.setThinking(u.OutputTokensDetails)
	a.setTotal()
}

// endUsage reads the usage in the message's end. Its counts are totals of the message, and each may
// be absent.
func (a *answer) endUsage(u anthropic.MessageDeltaUsage) {
	if u.RawJSON() == "" || u.RawJSON() == "null" {
		return
	}
	a.usage.Known, a.usage.CacheApart = true, true
	setCount(&a.usage.InputTokens, u.InputTokens, u.JSON.InputTokens)
	setCount(&a.usage.OutputTokens, u.OutputTokens, u.JSON.OutputTokens)
	setCount(&a.usage.CacheReadTokens, u.CacheReadInputTokens, u.JSON.CacheReadInputTokens)
	setCount(&a.usage.CacheWriteTokens, u.CacheCreationInputTokens, u.JSON.CacheCreationInputTokens)
	a.setThinking(u.OutputTokensDetails)
	a.setTotal()
}

// setTotal sets the protocol's sum of input and output tokens.
func (a *answer) setTotal() { a.usage.TotalTokens = a.usage.InputTokens + a.usage.OutputTokens }

// setThinking sets the part of the output that the model used to think.
func (a *answer) setThinking(d anthropic.OutputTokensDetails) {
	if d.JSON.ThinkingTokens.Valid() {
		n := 0
		setCount(&n, d.ThinkingTokens, d.JSON.ThinkingTokens)
		a.usage.ReasoningTokens = &n
	}
}

// setCount sets a reported count.
func setCount(to *int, n int64, field respjson.Field) {
	if field.Valid() {
		*to = int(min(max(n, 0), maxTokenCount))
	}
}

// maxTokenCount limits a reported count, so that sums do not overflow.
const maxTokenCount = 1 << 40
