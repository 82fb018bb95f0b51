package gemini_test

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"google.golang.org/genai"

	"waybill.dev/waybill/services/dispatcher/provider"
	double "waybill.dev/waybill/test/double/gemini"
)

// vias are the ways a request holds an answer to a schema; none is its own.
const none provider.SchemaVia = "none"

var vias = []provider.SchemaVia{none, provider.ViaFormat, provider.ViaTool}

func askAs(via provider.SchemaVia) provider.Request {
	if via == none {
		return ask()
	}
	return askVia(via)
}

// document is an answer; its number is more than a float holds.
const document = `{"z":9007199254740993,"a":"ü \" } \\n"}`

// say is a reply that answers with a text, as the way has it.
func say(via provider.SchemaVia, text string, r double.Reply) double.Reply {
	switch {
	case via == provider.ViaTool:
		r.Calls = append(r.Calls, double.Call{ID: "c1", Name: "answer", Args: text})
	case text != "":
		half := len(text) / 2
		for half > 0 && text[half]&0xC0 == 0x80 {
			half--
		}
		r.Pieces = append(r.Pieces, text[:half], text[half:])
	}
	return r
}

// outcome is a reply that comes to the same whichever way the schema goes.
type outcome struct {
	name  string
	says  string // through text or tool, as the way has it
	reply double.Reply
	ask   func(*provider.Request)

	stop                   provider.StopClass
	raw, category, refusal string
	reason                 string
	usage                  *provider.Usage
	code                   string
	retryable              bool
	status                 int
	wait                   time.Duration
	message                string
}

var known = &double.Usage{Prompt: 11, Candidates: 5, Thoughts: 3, Cached: 8, ToolUse: 2, Total: 21}

var counted = &provider.Usage{
	InputTokens: 13, OutputTokens: 8, TotalTokens: 21, CacheReadTokens: 8, ReasoningTokens: new(3), Known: true,
}

func sse(events ...string) double.Reply {
	return double.Reply{ContentType: "text/event-stream", Raw: strings.Join(events, "\r\n\r\n") + "\r\n\r\n"}
}

func fails(status int, r double.Reply) double.Reply {
	r.Status, r.Message = status, "vendor says: hush, private words "+r.Message
	return r
}

func midway(r double.Reply) double.Reply {
	r.End = double.EndError
	return r
}

var answered = []outcome{
	{
		name:   "clean",
		says:   document,
		reply:  double.Reply{Usage: known},
		stop:   "clean",
		raw:    "STOP",
		reason: "stop",
		usage:  counted,
	},
	{name: "clean, empty", stop: "clean", raw: "STOP", reason: "stop"},
	{
		name:   "clean, kept alive",
		says:   document,
		reply:  double.Reply{Noise: ": ping\r\n\r\n:\r\n\r\n"},
		stop:   "clean",
		raw:    "STOP",
		reason: "stop",
	},
	{
		name:   "clean, events of other types",
		says:   document,
		reply:  double.Reply{Noise: "event: gossip\r\nid: 7\r\nretry: 5\r\n\r\nnonsense\r\n\r\n"},
		stop:   "clean",
		raw:    "STOP",
		reason: "stop",
	},
	{
		name:   "clean, responses that say nothing",
		says:   document,
		reply:  double.Reply{Noise: "data: {}\r\n\r\ndata: null\r\n\r\n" + `data: {"candidates":null}` + "\r\n\r\n"},
		stop:   "clean",
		raw:    "STOP",
		reason: "stop",
	},
	{
		name:   "clean, another candidate",
		says:   document,
		reply:  double.Reply{Noise: `data: {"candidates":[{"index":1,"content":{"parts":[{"text":"other"},{"functionCall":{"name":"answer","args":{}}}]},"finishReason":"SAFETY"}]}` + "\r\n\r\n"},
		stop:   "clean",
		raw:    "STOP",
		reason: "stop",
	},
	{
		name:   "clean, done as others say it",
		says:   document,
		reply:  double.Reply{Noise: "data: [DONE]\r\n\r\n"},
		stop:   "clean",
		raw:    "STOP",
		reason: "stop",
	},
	{
		name:   "clean, no usage",
		says:   document,
		reply:  double.Reply{NoUsage: true},
		stop:   "clean",
		raw:    "STOP",
		reason: "stop",
		usage:  &provider.Usage{},
	},
	{
		name:   "clean, usage below nothing",
		says:   document,
		reply:  double.Reply{Usage: &double.Usage{Prompt: -1, Candidates: -2, Total: -3, Cached: -4}},
		stop:   "clean",
		raw:    "STOP",
		reason: "stop",
		usage:  &provider.Usage{Known: true},
	},
	{
		name:   "clean, thoughts",
		says:   document,
		reply:  double.Reply{Thoughts: []string{"hm", "so"}, Usage: known},
		ask:    func(r *provider.Request) { r.Thoughts = true },
		stop:   "clean",
		raw:    "STOP",
		reason: "stop",
		usage:  counted,
	},
	{
		name:   "truncated though whole",
		says:   document,
		reply:  double.Reply{FinishReason: "MAX_TOKENS", Usage: known},
		stop:   "truncated",
		raw:    "MAX_TOKENS",
		reason: "length",
		usage:  counted,
	},
	{
		name:   "truncated before a word",
		reply:  double.Reply{FinishReason: "MAX_TOKENS"},
		stop:   "truncated",
		raw:    "MAX_TOKENS",
		reason: "length",
	},
	{
		name:   "truncated, to be continued",
		says:   document,
		reply:  double.Reply{FinishReason: "CONTINUATION"},
		stop:   "truncated",
		raw:    "CONTINUATION",
		reason: "length",
	},
	{
		name:     "refused for a harm",
		reply:    double.Reply{FinishReason: "SAFETY", Harm: "HARM_CATEGORY_HATE_SPEECH", Usage: known},
		stop:     "refused",
		raw:      "SAFETY",
		category: "HARM_CATEGORY_HATE_SPEECH",
		reason:   "content_filter",
		usage:    counted,
	},
	{
		name:     "refused though whole",
		says:     document,
		reply:    double.Reply{FinishReason: "SAFETY"},
		stop:     "refused",
		raw:      "SAFETY",
		category: "SAFETY",
		reason:   "content_filter",
	},
	{
		name:     "refused with words",
		reply:    double.Reply{FinishReason: "PROHIBITED_CONTENT", FinishMessage: "not this"},
		stop:     "refused",
		raw:      "PROHIBITED_CONTENT",
		category: "PROHIBITED_CONTENT",
		reason:   "content_filter",
	},
	{
		name:     "blocked with words",
		reply:    sse(`data: {"promptFeedback":{"blockReason":"OTHER","blockReasonMessage":"not this"},"usageMetadata":{"promptTokenCount":4,"totalTokenCount":4}}`),
		stop:     "refused",
		raw:      "OTHER",
		category: "OTHER",
		refusal:  "not this",
		reason:   "content_filter",
		usage:    &provider.Usage{InputTokens: 4, TotalTokens: 4, Known: true},
	},
	{
		name:  "unknown, but whole",
		says:  document,
		reply: double.Reply{FinishReason: "OTHER", FinishMessage: "who knows"},
		stop:  "unknown",
		raw:   "OTHER",
	},
	{
		name:  "an unknown reason",
		says:  document,
		reply: double.Reply{FinishReason: "METEOR"},
		stop:  "unknown",
		raw:   "METEOR",
	},
}

// refusals and prompts that are blocked, and reasons that say nothing.
func reasons() []outcome {
	var out []outcome
	for _, r := range []string{
		"SAFETY", "RECITATION", "BLOCKLIST", "PROHIBITED_CONTENT", "SPII", "IMAGE_SAFETY",
		"IMAGE_PROHIBITED_CONTENT", "IMAGE_RECITATION",
	} {
		out = append(out, outcome{
			name:     "refused for " + r,
			reply:    double.Reply{FinishReason: r},
			stop:     "refused",
			raw:      r,
			category: r,
			reason:   "content_filter",
		})
	}
	for _, r := range []string{
		"BLOCKED_REASON_UNSPECIFIED", "SAFETY", "OTHER", "BLOCKLIST", "PROHIBITED_CONTENT",
		"IMAGE_SAFETY", "MODEL_ARMOR", "JAILBREAK", "METEOR",
	} {
		out = append(out, outcome{
			name:     "blocked for " + r,
			reply:    double.Reply{Blocked: r},
			stop:     "refused",
			raw:      r,
			category: r,
			reason:   "content_filter",
		})
	}
	for _, r := range []string{
		"FINISH_REASON_UNSPECIFIED", "LANGUAGE", "OTHER", "MALFORMED_FUNCTION_CALL",
		"UNEXPECTED_TOOL_CALL", "TOO_MANY_TOOL_CALLS", "NO_IMAGE", "IMAGE_OTHER",
		"MISSING_THOUGHT_SIGNATURE",
	} {
		out = append(out, outcome{name: "unknown for " + r, reply: double.Reply{FinishReason: r}, stop: "unknown", raw: r})
	}
	return out
}

// Every reply, whichever way the request holds it to its schema.
func TestCall_UnderstandsWhatTheVendorSends(t *testing.T) {
	t.Parallel()
	all := append(append(append([]outcome{}, answered...), reasons()...), failed...)
	require.GreaterOrEqual(t, len(all)*len(vias), 85)
	for _, via := range vias {
		for _, o := range all {
			t.Run(string(via)+"/"+o.name, func(t *testing.T) {
				t.Parallel()
				o.check(t, via)
			})
		}
	}
}

func (o outcome) check(t *testing.T, via provider.SchemaVia) {
	t.Helper()
	r, req, reply := newRig(t, nil), askAs(via), o.reply
	if o.ask != nil {
		o.ask(&req)
	}
	if o.says != "" {
		reply = say(via, o.says, reply)
	}
	if o.code != "" {
		e := r.fail(t, req, reply)
		require.Equal(t, o.code, e.Code)
		require.Equal(t, o.retryable, e.Retryable)
		require.Equal(t, o.status, e.Status)
		require.Equal(t, o.wait, e.RetryAfter)
		require.Contains(t, e.Message, o.message)
		require.Len(t, r.server.Requests(), 1, "the SDK must not ask again")
		return
	}
	res, pieces := r.call(t, req, reply)
	require.Equal(t, o.stop, res.Stop)
	require.Equal(t, o.raw, res.RawStop)
	require.Equal(t, o.says, res.Text)
	require.Equal(t, o.category, res.SafetyCategory)
	require.Equal(t, o.refusal, res.RefusalText)
	require.Equal(t, o.reason, pieces[len(pieces)-1].FinishReason)
	require.Equal(t, strings.Join(o.reply.Thoughts, ""), thoughtsOf(pieces))
	require.Empty(t, res.ToolCalls)
	if o.usage != nil {
		require.Equal(t, *o.usage, res.Usage)
	}
	require.Len(t, r.server.Requests(), 1, "the SDK must not ask again")
}

func thoughtsOf(pieces []provider.Delta) (all string) {
	for _, d := range pieces {
		all += d.Thought
	}
	return all
}

// OpenWOP envelope contract §14.1: each reason the SDK knows, in one place.
func TestStop_ClassifiesEveryReasonOfTheSDK(t *testing.T) {
	t.Parallel()
	for reason, want := range map[genai.FinishReason]provider.StopClass{
		genai.FinishReasonUnspecified:            "unknown",
		genai.FinishReasonStop:                   "clean",
		genai.FinishReasonMaxTokens:              "truncated",
		genai.FinishReasonSafety:                 "refused",
		genai.FinishReasonRecitation:             "refused",
		genai.FinishReasonLanguage:               "unknown",
		genai.FinishReasonOther:                  "unknown",
		genai.FinishReasonBlocklist:              "refused",
		genai.FinishReasonProhibitedContent:      "refused",
		genai.FinishReasonSPII:                   "refused",
		genai.FinishReasonMalformedFunctionCall:  "unknown",
		genai.FinishReasonImageSafety:            "refused",
		genai.FinishReasonUnexpectedToolCall:     "unknown",
		genai.FinishReasonTooManyToolCalls:       "unknown",
		genai.FinishReasonImageProhibitedContent: "refused",
		genai.FinishReasonNoImage:                "unknown",
		genai.FinishReasonImageRecitation:        "refused",
		genai.FinishReasonImageOther:             "unknown",
		genai.FinishReasonContinuation:           "truncated",
	} {
		res, _ := newRig(t, nil).call(t, ask(), double.Reply{FinishReason: string(reason)})
		require.Equal(t, want, res.Stop, reason)
	}
}
