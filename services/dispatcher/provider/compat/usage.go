package compat

import (
	"encoding/json"

	"waybill.dev/waybill/protocol/strictjson"
	"waybill.dev/waybill/services/dispatcher/provider"
)

// usage is the token usage. Nil members are unknown.
type usage struct {
	prompt, completion, total, cacheRead, cacheWrite, reasoning *int64
}

// Names of counts, as servers and gateways write them.
//
//nolint:gochecknoglobals // constants
var (
	promptNames = []string{
		"prompt_tokens", "input_tokens", "promptTokens", "inputTokens", "promptTokenCount", "inputTokenCount", "prompt_eval_count",
		"prompt_token_count", "input_token_count", "tokens_in", "prompt", "input",
	}
	answerNames = []string{
		"completion_tokens", "output_tokens", "completionTokens", "outputTokens", "candidatesTokenCount", "outputTokenCount", "eval_count",
		"completion_token_count", "output_token_count", "generated_token_count", "generated_tokens", "tokens_out", "completion", "output",
	}
	totalNames = []string{"total_tokens", "totalTokens", "totalTokenCount", "total_token_count", "total"}
)

// usageIn reads the first usage that there is.
func usageIn(among ...json.RawMessage) *usage {
	for _, raw := range among {
		m := usageMembers(raw)
		in, out := m.inner("prompt_tokens_details", "input_tokens_details"), m.inner("completion_tokens_details", "output_tokens_details")
		u := usage{
			prompt:     m.count(promptNames...),
			completion: m.count(answerNames...),
			total:      m.count(totalNames...),
			cacheRead:  either(in.count("cached_tokens"), m.count("prompt_cache_hit_tokens", "cached_tokens")),
			cacheWrite: in.count("cache_write_tokens", "cache_creation_tokens"),
			reasoning:  either(out.count("reasoning_tokens"), m.count("reasoning_tokens")),
		}
		if m["prompt_tokens"] != nil { // of a gateway; otherwise they are not part of the prompt's tokens
			u.cacheRead = either(u.cacheRead, m.count("cache_read_input_tokens"))
			u.cacheWrite = either(u.cacheWrite, m.count("cache_creation_input_tokens"))
		}
		if u.prompt != nil || u.completion != nil || u.total != nil {
			return &u
		}
	}
	return nil
}

// usageMembers returns the members that have the counts: also those of the last of a list, of a document in a
// string, and of Cohere's billed units.
func usageMembers(raw json.RawMessage) members {
	if text, ok := strictjson.String(raw); ok {
		raw = json.RawMessage(text)
	}
	list := objects(raw)
	if len(list) == 0 {
		return nil
	}
	m := list[len(list)-1]
	if billed := membersOf(m["billed_units"]); billed != nil && m["prompt_tokens"] == nil {
		return billed
	}
	return m
}

// timingsOf reads the counts of llama.cpp, which leave out the cached part of the prompt.
func timingsOf(raw json.RawMessage) *usage {
	m := membersOf(raw)
	u := usage{prompt: m.count("prompt_n"), completion: m.count("predicted_n"), cacheRead: m.count("cache_n")}
	if u.prompt == nil || u.completion == nil {
		return nil
	}
	if u.cacheRead != nil {
		whole := *u.prompt + *u.cacheRead
		u.prompt = &whole
	}
	return &u
}

// inner returns the first of the members that is an object.
func (m members) inner(names ...string) members {
	for _, name := range names {
		if inner := membersOf(m[name]); inner != nil {
			return inner
		}
	}
	return nil
}

// count returns the first of the members that is a count; nil if none is.
func (m members) count(names ...string) *int64 {
	for _, name := range names {
		if n := number(m[name], -1); n >= 0 {
			return &n
		}
	}
	return nil
}

func either(one, other *int64) *int64 {
	if one != nil {
		return one
	}
	return other
}

// update adds a later usage of the same answer. What it leaves out stays, and a zero does not replace a count.
// A total without the count that a zero left out is not that of the answer.
func (u *usage) update(later usage) {
	if isZero(later.prompt) != isZero(later.completion) && (u.prompt != nil || u.completion != nil) {
		u.total, later.total = nil, nil
	}
	for _, pair := range u.pairs(&later) {
		own, next := *pair.own, *pair.later
		if own == nil || next != nil && *next > 0 {
			*pair.own = either(next, own)
		}
	}
}

func isZero(n *int64) bool { return n != nil && *n == 0 }

type countPair struct{ own, later **int64 }

func (u *usage) pairs(later *usage) []countPair {
	return []countPair{
		{&u.prompt, &later.prompt},
		{&u.completion, &later.completion},
		{&u.total, &later.total},
		{&u.cacheRead, &later.cacheRead},
		{&u.cacheWrite, &later.cacheWrite},
		{&u.reasoning, &later.reasoning},
	}
}

// complete derives a missing count of the prompt or the answer from the total.
func (u *usage) complete() {
	missing, other := &u.prompt, u.completion
	if u.completion == nil {
		missing, other = &u.completion, u.prompt
	}
	if *missing == nil && other != nil && u.total != nil && *u.total >= *other {
		rest := *u.total - *other
		*missing = &rest
	}
}

// known reports whether there are counts of the prompt or the answer.
func (u *usage) known() bool { return u.prompt != nil || u.completion != nil }

// usageOf converts the usage as billed: completion tokens include reasoning and sound, prompt
// tokens include cached ones. Servers that count reasoning apart are known by their total.
func usageOf(u usage) provider.Usage {
	u.complete()
	n := func(v *int64) int {
		if v == nil {
			return 0
		}
		return int(*v)
	}
	out := provider.Usage{
		InputTokens: n(u.prompt), OutputTokens: n(u.completion), TotalTokens: n(u.total),
		CacheReadTokens: n(u.cacheRead), CacheWriteTokens: n(u.cacheWrite), Known: u.known(),
	}
	if u.reasoning != nil {
		spent := n(u.reasoning)
		out.ReasoningTokens = &spent
		apart := u.total == nil && spent > out.OutputTokens || out.TotalTokens == out.InputTokens+out.OutputTokens+spent
		if apart {
			out.OutputTokens += spent
		}
	} else if rest := out.TotalTokens - out.InputTokens - out.OutputTokens; rest > 0 && rest != out.CacheReadTokens+out.CacheWriteTokens {
		out.OutputTokens += rest // Gemini leaves its thoughts out of all counts but the total
	}
	return out
}
