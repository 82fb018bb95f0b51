package anthropic

import (
	"github.com/anthropics/anthropic-sdk-go"
	"github.com/anthropics/anthropic-sdk-go/packages/respjson"
)

// startUsage reads the tokens of the message's start. All counts are the vendor's
// own, verbatim (OpenWOP envelope contract §19.1): the input's are those that the
// prompt cache had no part in, so that what was read from it, or written to it,
// comes on top; the output's include the thoughts.
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
	a.setTotal()
}

// endUsage reads the tokens of the message's end. They are those of the whole
// message, each where the vendor tells it.
func (a *answer) endUsage(u anthropic.MessageDeltaUsage) {
	if u.RawJSON() == "" || u.RawJSON() == "null" {
		return
	}
	a.usage.Known, a.usage.CacheApart = true, true
	setCount(&a.usage.InputTokens, u.InputTokens, u.JSON.InputTokens)
	setCount(&a.usage.OutputTokens, u.OutputTokens, u.JSON.OutputTokens)
	setCount(&a.usage.CacheReadTokens, u.CacheReadInputTokens, u.JSON.CacheReadInputTokens)
	setCount(&a.usage.CacheWriteTokens, u.CacheCreationInputTokens, u.JSON.CacheCreationInputTokens)
	a.setTotal()
}

// setTotal is the protocol's sum of the two counts that every vendor has.
func (a *answer) setTotal() { a.usage.TotalTokens = a.usage.InputTokens + a.usage.OutputTokens }

// setCount takes a count that was told.
func setCount(to *int, n int64, field respjson.Field) {
	if field.Valid() {
		*to = int(min(max(n, 0), maxTokenCount))
	}
}

// maxTokenCount bounds what is believed of a count, so that sums of them stay numbers.
const maxTokenCount = 1 << 40
