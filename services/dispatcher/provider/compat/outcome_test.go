package compat_test

import (
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/require"

	"waybill.dev/waybill/services/dispatcher/provider"
	"waybill.dev/waybill/services/dispatcher/provider/compat"
	"waybill.dev/waybill/test/double/openaicompat"
)

// outcome is a reply and what the call makes of it, whatever way the schema goes.
type outcome struct {
	reply openaicompat.Reply
	// Of an answer:
	text, raw, finish, refusal, category string
	stop                                 provider.StopClass
	// forced is the stop if the tool was forced, where that differs; with it the
	// reason is "stop".
	forced provider.StopClass
	// forcedText is the text if the tool was forced, where that differs.
	forcedText string
	usage      provider.Usage
	tools      int
	// Of a failure:
	code      string
	retryable bool
	// openai says that only OpenAI does it.
	openai bool
}

const half, other = `{"a":`, `"b"}`

var answer = []string{half, other}

// counted is the usage of so many tokens out.
func counted(out int) provider.Usage {
	return provider.Usage{InputTokens: 1, OutputTokens: out, TotalTokens: 1 + out, Known: true}
}

func answers() map[string]outcome {
	const whole = half + other
	clean := func(r openaicompat.Reply) outcome {
		r.Pieces = answer
		return outcome{reply: r, text: whole, raw: "stop", finish: "stop", stop: provider.StopClean, usage: counted(2)}
	}
	used := clean(openaicompat.Reply{Usage: &openaicompat.Usage{
		Prompt:     9,
		Completion: 7,
		Cached:     4,
		Written:    3,
		Reasoning:  5,
	}})
	used.usage = provider.Usage{
		InputTokens:      9,
		OutputTokens:     7,
		TotalTokens:      16,
		CacheReadTokens:  4,
		CacheWriteTokens: 3,
		ReasoningTokens:  new(5),
		Known:            true,
	}
	lies := clean(openaicompat.Reply{Usage: &openaicompat.Usage{Prompt: 9, Completion: 7, Total: 2}})
	lies.usage = provider.Usage{InputTokens: 9, OutputTokens: 7, TotalTokens: 2, Known: true}
	negative := clean(openaicompat.Reply{Usage: &openaicompat.Usage{Prompt: -9, Completion: 7}})
	negative.usage = provider.Usage{OutputTokens: 7, Known: true}
	return map[string]outcome{
		"clean":                  clean(openaicompat.Reply{}),
		"clean, another model":   clean(openaicompat.Reply{Model: "gpt-double-2026"}),
		"pings":                  clean(openaicompat.Reply{Noise: ": ping\n\n"}),
		"events of other types":  clean(openaicompat.Reply{Noise: "event: weather\nid: 7\nretry: 1\ndata: {\"sky\":\"blue\"}\n\n"}),
		"thoughts not requested": clean(openaicompat.Reply{Thoughts: []string{"hm", "so"}}),
		"usage in detail":        used,
		"usage that lies":        lies,
		"usage below zero":       negative,
		"empty":                  {raw: "stop", finish: "stop", stop: provider.StopClean, usage: counted(0), forcedText: "{}"},
		"truncated": {
			reply:  openaicompat.Reply{Pieces: answer[:1], FinishReason: "length"},
			text:   half,
			raw:    "length",
			finish: "length",
			stop:   provider.StopTruncated,
			usage:  counted(1),
		},
		"truncated but whole": {
			reply:  openaicompat.Reply{Pieces: answer, FinishReason: "length"},
			text:   whole,
			raw:    "length",
			finish: "length",
			stop:   provider.StopTruncated,
			usage:  counted(2),
		},
		"out of tokens": {
			reply:  openaicompat.Reply{Pieces: []string{`{"a":"a long`, ` one"}`}},
			text:   `{"a":"a `,
			raw:    "length",
			finish: "length",
			stop:   provider.StopTruncated,
			usage:  counted(2),
			openai: true,
		},
		"out of tokens in thought": {
			reply:  openaicompat.Reply{Pieces: answer, Usage: &openaicompat.Usage{Prompt: 1, Completion: 9, Reasoning: 2}},
			raw:    "length",
			finish: "length",
			stop:   provider.StopTruncated,
			usage:  provider.Usage{InputTokens: 1, OutputTokens: 2, TotalTokens: 3, ReasoningTokens: new(2), Known: true},
			openai: true,
		},
		"filtered": {
			reply:    openaicompat.Reply{Pieces: answer[:1], FinishReason: "content_filter"},
			text:     half,
			raw:      "content_filter",
			finish:   "content_filter",
			category: "content_filter",
			stop:     provider.StopRefused,
			usage:    counted(1),
		},
		"refused": {
			reply:   openaicompat.Reply{Refusal: "I will not"},
			raw:     "stop",
			finish:  "content_filter",
			refusal: "I will not",
			stop:    provider.StopRefused,
			usage:   counted(0),
		},
		"refused midway": {
			reply:   openaicompat.Reply{Pieces: answer[:1], Refusal: "no more"},
			text:    half,
			raw:     "stop",
			finish:  "content_filter",
			refusal: "no more",
			stop:    provider.StopRefused,
			usage:   counted(1),
		},
		"a blocked prompt": {
			reply:    openaicompat.Reply{Status: 400, Code: "content_filter"},
			raw:      "content_filter",
			finish:   "content_filter",
			category: "content_filter",
			stop:     provider.StopRefused,
		},
		"a flagged prompt": {
			reply:    openaicompat.Reply{Status: 400, Code: "invalid_prompt"},
			raw:      "invalid_prompt",
			finish:   "content_filter",
			category: "invalid_prompt",
			stop:     provider.StopRefused,
		},
		"a forbidden prompt": {
			reply:    openaicompat.Reply{Status: 400, Code: "content_policy_violation"},
			raw:      "content_policy_violation",
			finish:   "content_filter",
			category: "content_policy_violation",
			stop:     provider.StopRefused,
		},
		"blocked midway": {
			reply:    openaicompat.Reply{Pieces: answer[:1], End: openaicompat.EndError, Code: "content_filter"},
			text:     half,
			raw:      "content_filter",
			finish:   "content_filter",
			category: "content_filter",
			stop:     provider.StopRefused,
		},
		"tool_calls": {
			reply:  openaicompat.Reply{Pieces: answer, FinishReason: "tool_calls"},
			text:   whole,
			raw:    "tool_calls",
			finish: "tool_calls",
			stop:   provider.StopUnknown,
			forced: provider.StopClean,
			usage:  counted(2),
		},
		"function_call": {
			reply:  openaicompat.Reply{Pieces: answer, FinishReason: "function_call"},
			text:   whole,
			raw:    "function_call",
			finish: "tool_calls",
			stop:   provider.StopUnknown,
			forced: provider.StopClean,
			usage:  counted(2),
		},
		"unknown": {
			reply: openaicompat.Reply{Pieces: answer, FinishReason: "meteor"},
			text:  whole,
			raw:   "meteor",
			stop:  provider.StopUnknown,
			usage: counted(2),
		},
		"a tool not offered": {
			reply: openaicompat.Reply{
				Pieces:    answer,
				ToolCalls: []openaicompat.ToolCall{{Name: "x"}, {Name: "y", Arguments: "{}"}},
			},
			raw: "tool_calls", finish: "tool_calls", stop: provider.StopUnknown, usage: counted(2), tools: 2, text: whole,
		},
		"other types than the vendor's": {
			reply: openaicompat.Reply{
				ContentType: "text/event-stream",
				Raw: `data: {"model":7,"usage":null,"choices":[{"index":"0","delta":{"role":1,"content":7,"refusal":null,"tool_calls":null}}]}` +
					"\n\n" + `data: {"choices":[{"index":0,"delta":{"content":{"a":null},"audio":"x"},"finish_reason":"meteor"}],"x":[]}` + "\n\ndata: [DONE]\n\n",
			},
			text: `7{"a":null}`, raw: "meteor", stop: provider.StopUnknown,
		},
		"half-closed after the reason": {
			reply: openaicompat.Reply{
				ContentType: "text/event-stream",
				Raw:         `data: {"choices":[{"index":0,"delta":{"refusal":"no"},"finish_reason":"stop"}]}` + "\n\ndata: [DO",
				Cut:         &openaicompat.Cut{At: 90, Clean: true},
			},
			raw: "stop", finish: "content_filter", refusal: "no", stop: provider.StopRefused,
		},
	}
}

func failures() map[string]outcome {
	stream := func(raw string) openaicompat.Reply {
		return openaicompat.Reply{ContentType: "text/event-stream", Raw: raw}
	}
	midway := func(code string) openaicompat.Reply {
		return openaicompat.Reply{Pieces: answer[:1], End: openaicompat.EndError, Code: code}
	}
	return map[string]outcome{
		"no key": {
			reply: openaicompat.Reply{Status: 401, Code: "invalid_api_key"},
			code:  provider.CodeCredentialRequired,
		},
		"no right": {
			reply: openaicompat.Reply{Status: 403, Code: "unsupported_country_region_territory"},
			code:  provider.CodeUnavailable,
		},
		"no such model": {
			reply: openaicompat.Reply{Status: 404, Code: "model_not_found"},
			code:  provider.CodeModelNotSupported,
		},
		"a wrong model": {reply: openaicompat.Reply{Status: 400, Param: "model"}, code: provider.CodeModelNotSupported},
		"a bad format": {
			reply: openaicompat.Reply{Status: 400, Param: "response_format"},
			code:  provider.CodeSchemaInvalid,
		},
		"a bad schema": {
			reply: openaicompat.Reply{Status: 400, Code: "invalid_json_schema"},
			code:  provider.CodeSchemaInvalid,
		},
		"a bad function": {
			reply: openaicompat.Reply{Status: 400, Param: "tools[0].function.parameters", Code: "invalid_function_parameters"},
			code:  provider.CodeSchemaInvalid,
		},
		"a bad choice": {
			reply: openaicompat.Reply{Status: 400, Param: "tool_choice"},
			code:  provider.CodeSchemaInvalid,
		},
		"too much context": {
			reply: openaicompat.Reply{Status: 400, Code: "context_length_exceeded", Param: "messages"},
			code:  provider.CodeContentTooLong,
		},
		"too long a string": {
			reply: openaicompat.Reply{Status: 400, Code: "string_above_max_length"},
			code:  provider.CodeContentTooLong,
		},
		"too large a body": {reply: openaicompat.Reply{Status: 413}, code: provider.CodeContentTooLong},
		"a parameter": {
			reply: openaicompat.Reply{Status: 400, Code: "unsupported_parameter", Param: "top_p"},
			code:  provider.CodeInvalidRequest,
		},
		"unprocessable": {reply: openaicompat.Reply{Status: 422}, code: provider.CodeInvalidRequest},
		"rate": {
			reply:     openaicompat.Reply{Status: 429, Code: "rate_limit_exceeded", RetryAfter: "1"},
			code:      provider.CodeQuota,
			retryable: true,
		},
		"quota": {reply: openaicompat.Reply{Status: 429, Code: "insufficient_quota"}, code: provider.CodeQuota},
		"billing": {
			reply: openaicompat.Reply{Status: 429, Code: "billing_hard_limit_reached"},
			code:  provider.CodeQuota,
		},
		"payment": {reply: openaicompat.Reply{Status: 402}, code: provider.CodeQuota},
		"server":  {reply: openaicompat.Reply{Status: 500}, code: provider.CodeUnavailable, retryable: true},
		"overloaded": {
			reply:     openaicompat.Reply{Status: 503, Code: "slow_down"},
			code:      provider.CodeUnavailable,
			retryable: true,
		},
		"overloaded, too": {reply: openaicompat.Reply{Status: 529}, code: provider.CodeUnavailable, retryable: true},
		"gateway":         {reply: openaicompat.Reply{Status: 504}, code: provider.CodeUnavailable, retryable: true},
		"midway, server":  {reply: midway("server_error"), code: provider.CodeUnavailable, retryable: true},
		"midway, rate":    {reply: midway("rate_limit_exceeded"), code: provider.CodeQuota, retryable: true},
		"midway, quota":   {reply: midway("insufficient_quota"), code: provider.CodeQuota},
		"midway, context": {reply: midway("context_length_exceeded"), code: provider.CodeContentTooLong},
		"midway, a number": {
			reply:     stream(`data: {"error":{"code":429}}` + "\n\n"),
			code:      provider.CodeQuota,
			retryable: true,
		},
		"cut": {
			reply:     openaicompat.Reply{Pieces: answer, Cut: &openaicompat.Cut{At: 700}},
			code:      provider.CodeUnavailable,
			retryable: true,
		},
		"half-closed": {
			reply:     openaicompat.Reply{Pieces: answer, Cut: &openaicompat.Cut{At: 700, Clean: true}},
			code:      provider.CodeUnavailable,
			retryable: true,
		},
		"half-closed, whole": {
			reply:     openaicompat.Reply{Pieces: answer, End: openaicompat.EndSilent},
			code:      provider.CodeUnavailable,
			retryable: true,
		},
		"cut at the end": {
			reply:     openaicompat.Reply{Pieces: answer, End: openaicompat.EndCut},
			code:      provider.CodeUnavailable,
			retryable: true,
		},
		"garbage": {
			reply:     stream("data: {\"choices\":[{\"del\xff\n\n"),
			code:      provider.CodeUnavailable,
			retryable: true,
		},
		"another document": {reply: stream(`data: [1,2]` + "\n\n"), code: provider.CodeUnavailable, retryable: true},
		"nothing":          {reply: stream(""), code: provider.CodeUnavailable, retryable: true},
		"done at once":     {reply: stream("data: [DONE]\n\n"), code: provider.CodeUnavailable, retryable: true},
		"a page": {
			reply: openaicompat.Reply{ContentType: "text/html", Raw: "<html>"},
			code:  provider.CodeUnavailable,
		},
	}
}

const schema = `{"type":"object","properties":{"a":{"type":"string"}},"required":["a"],"additionalProperties":false}`

// ways are the ways a schema goes, and none.
var ways = map[string]func(*provider.Request){
	"none":   func(*provider.Request) {},
	"format": func(r *provider.Request) { r.Schema = json.RawMessage(schema) },
	"tool":   func(r *provider.Request) { r.Schema, r.Via = json.RawMessage(schema), provider.ViaTool },
}

// OpenWOP envelope contract §14.1, §14.8, §19.1 and §22, for either dialect and
// every way of a schema.
func TestCall_MakesOfEachReplyWhatItIs(t *testing.T) {
	t.Parallel()
	for _, dialect := range []compat.Dialect{compat.DialectCompatible, compat.DialectOpenAI} {
		for way, set := range ways {
			for name, want := range answers() {
				if want.openai && dialect != compat.DialectOpenAI {
					continue
				}
				t.Run("answer/"+string(dialect)+"/"+way+"/"+name, func(t *testing.T) {
					t.Parallel()
					want.checkAnswer(t, dialect, set)
				})
			}
			for name, want := range failures() {
				t.Run("failure/"+string(dialect)+"/"+way+"/"+name, func(t *testing.T) {
					t.Parallel()
					want.checkFailure(t, dialect, set)
				})
			}
		}
	}
}

// thinking is a model of OpenAI's that thinks.
const thinking = "gpt-5-double"

func dialectRig(t *testing.T, dialect compat.Dialect, edit func(*compat.Config)) rig {
	t.Helper()
	if dialect == compat.DialectCompatible {
		return newRig(t, edit)
	}
	return openAIRig(t, edit)
}

func (o outcome) request(dialect compat.Dialect, set func(*provider.Request)) provider.Request {
	req := ask()
	set(&req)
	if dialect == compat.DialectOpenAI {
		req.Model = thinking
	}
	if o.openai {
		req.MaxTokens = 2
	}
	return req
}

func (o outcome) checkAnswer(t *testing.T, dialect compat.Dialect, set func(*provider.Request)) {
	t.Helper()
	req := o.request(dialect, set)
	res, pieces := dialectRig(t, dialect, nil).call(t, req, o.reply)
	text, stop, finish, tools := o.text, o.stop, o.finish, o.tools
	if req.Via == provider.ViaTool {
		if o.forced != "" {
			stop, finish = o.forced, "stop"
		}
		if o.forcedText != "" {
			text = o.forcedText
		}
	}
	require.Equal(t, stop, res.Stop)
	require.Equal(t, text, res.Text)
	require.Equal(t, o.raw, res.RawStop)
	require.Equal(t, o.refusal, res.RefusalText)
	require.Equal(t, o.category, res.SafetyCategory)
	require.Equal(t, o.usage, res.Usage)
	require.Len(t, res.ToolCalls, tools)
	require.Equal(t, finish, pieces[len(pieces)-1].FinishReason)
}

func (o outcome) checkFailure(t *testing.T, dialect compat.Dialect, set func(*provider.Request)) {
	t.Helper()
	o.reply.Message = "vendor says: hush, private words"
	r := dialectRig(t, dialect, nil)
	r.server.Enqueue(o.reply)
	var streamed string
	_, err := r.Call(t.Context(), o.request(dialect, set), func(d provider.Delta) error {
		require.False(t, d.Last, "a call that fails has no last piece")
		streamed += d.Text
		return nil
	})
	e, ok := provider.As(err)
	require.True(t, ok, "got %v", err)
	require.Equal(t, o.code, e.Code)
	require.Equal(t, o.retryable, e.Retryable)
	require.Contains(t, half+other, streamed)
	require.NotContains(t, e.Error(), "vendor says")
	require.Len(t, r.server.Requests(), 1, "the SDK must not retry")
}
