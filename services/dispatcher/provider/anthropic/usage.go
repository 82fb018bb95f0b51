package anthropic

import (
	"encoding/json"

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
	u := m.Usage
	a.knowUsage(u.JSON.InputTokens, u.JSON.OutputTokens)
	setCount(&a.usage.InputTokens, u.InputTokens, u.JSON.InputTokens)
	setCount(&a.usage.OutputTokens, u.OutputTokens, u.JSON.OutputTokens)
	setCount(&a.usage.CacheReadTokens, u.CacheReadInputTokens, u.JSON.CacheReadInputTokens)
	setCount(&a.usage.CacheWriteTokens, u.CacheCreationInputTokens, u.JSON.CacheCreationInputTokens)
	a.setThinking(u.OutputTokensDetails)
	a.otherNames(u.RawJSON())
	a.setTotal()
}

// endUsage reads the usage in the message's end. Its counts are totals of the message, and each may
// be absent.
func (a *answer) endUsage(u anthropic.MessageDeltaUsage) {
	if u.RawJSON() == "" || u.RawJSON() == "null" {
		return
	}
	a.knowUsage(u.JSON.InputTokens, u.JSON.OutputTokens)
	setCount(&a.usage.InputTokens, u.InputTokens, u.JSON.InputTokens)
	setCount(&a.usage.OutputTokens, u.OutputTokens, u.JSON.OutputTokens)
	setCount(&a.usage.CacheReadTokens, u.CacheReadInputTokens, u.JSON.CacheReadInputTokens)
	setCount(&a.usage.CacheWriteTokens, u.CacheCreationInputTokens, u.JSON.CacheCreationInputTokens)
	a.setThinking(u.OutputTokensDetails)
	a.otherNames(u.RawJSON())
	a.setTotal()
}

// knowUsage records that a count of the prompt or the answer came.
func (a *answer) knowUsage(input, output respjson.Field) {
	if input.Valid() || output.Valid() {
		a.usage.Known, a.usage.CacheApart = true, true
	}
}

// otherNames reads the counts of gateways that name them as other vendors do, for those that are missing.
func (a *answer) otherNames(doc string) {
	var u struct {
		Prompt     int64 `json:"prompt_tokens"`
		Completion int64 `json:"completion_tokens"`
	}
	if json.Unmarshal([]byte(doc), &u) == nil {
		a.setMissing(u.Prompt, u.Completion)
	}
}

// setMissing sets counts of which none came, or 0.
func (a *answer) setMissing(input, output int64) {
	for _, count := range []struct {
		own *int
		n   int64
	}{{&a.usage.InputTokens, input}, {&a.usage.OutputTokens, output}} {
		if *count.own == 0 && count.n > 0 {
			a.usage.Known, a.usage.CacheApart = true, true
			*count.own = int(min(count.n, maxTokenCount))
		}
	}
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

// setCount sets a reported count. A later zero does not replace a count: gateways leave out in the end what they
// said in the start.
func setCount(to *int, n int64, field respjson.Field) {
	if field.Valid() && n > 0 {
		*to = int(min(n, maxTokenCount))
	}
}

// platformUsage reads the counts that Amazon adds to the last event, for those that the vendor's events do not
// have.
func (a *answer) platformUsage(doc string) {
	var end struct {
		Metrics *struct {
			Input  int64 `json:"inputTokenCount"`
			Output int64 `json:"outputTokenCount"`
		} `json:"amazon-bedrock-invocationMetrics"`
	}
	if json.Unmarshal([]byte(doc), &end) != nil || end.Metrics == nil {
		return
	}
	a.setMissing(end.Metrics.Input, end.Metrics.Output)
}

// maxTokenCount limits a reported count, so that sums do not overflow.
const maxTokenCount = 1 << 40
