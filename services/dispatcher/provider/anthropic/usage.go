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
	count(&a.usage.InputTokens, u.InputTokens, u.JSON.InputTokens)
	count(&a.usage.OutputTokens, u.OutputTokens, u.JSON.OutputTokens)
	count(&a.usage.CacheReadTokens, u.CacheReadInputTokens, u.JSON.CacheReadInputTokens)
	count(&a.usage.CacheWriteTokens, u.CacheCreationInputTokens, u.JSON.CacheCreationInputTokens)
	a.total()
}

// endUsage reads the tokens of the message's end. They are those of the whole
// message, each where the vendor tells it.
func (a *answer) endUsage(u anthropic.MessageDeltaUsage) {
	if u.RawJSON() == "" || u.RawJSON() == "null" {
		return
	}
	a.usage.Known, a.usage.CacheApart = true, true
	count(&a.usage.InputTokens, u.InputTokens, u.JSON.InputTokens)
	count(&a.usage.OutputTokens, u.OutputTokens, u.JSON.OutputTokens)
	count(&a.usage.CacheReadTokens, u.CacheReadInputTokens, u.JSON.CacheReadInputTokens)
	count(&a.usage.CacheWriteTokens, u.CacheCreationInputTokens, u.JSON.CacheCreationInputTokens)
	a.total()
}

// total is the protocol's sum of the two counts that every vendor has.
func (a *answer) total() { a.usage.TotalTokens = a.usage.InputTokens + a.usage.OutputTokens }

// count takes a count that was told.
func count(to *int, n int64, field respjson.Field) {
	if field.Valid() {
		*to = int(min(max(n, 0), maxTokenCount))
	}
}

// maxTokenCount bounds what is believed of a count, so that sums of them stay numbers.
const maxTokenCount = 1 << 40
