package anthropic_test

import (
	"encoding/json"
	"net/http"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"waybill.dev/waybill/services/dispatcher/provider"
	double "waybill.dev/waybill/test/double/anthropic"
)

// whole is an answer of the schema, in pieces.
var whole = []string{`{"z":"a`, ` b",`, `"a":1}`}

const wholeText = `{"z":"a b","a":1}`

func usage(in, out, read, write int) provider.Usage {
	return provider.Usage{
		InputTokens:      in,
		OutputTokens:     out,
		TotalTokens:      in + out,
		CacheReadTokens:  read,
		CacheWriteTokens: write,
		CacheApart:       true,
		Known:            true,
	}
}

// outcome is a reply of the vendor, and what a call makes of it in each way.
type outcome struct {
	name  string
	reply double.Reply
	edit  func(*provider.Request)

	// Of an answer. Stop is that of all ways, unless stopVia has another.
	stop              provider.StopClass
	stopVia           map[way]provider.StopClass
	raw, text         string
	rawVia, textVia   map[way]string
	refusal, category string
	finish            string
	calls             int
	usage             *provider.Usage

	// Of a failure.
	code      string
	retryable bool
}

func of[T any](via map[way]T, w way, all T) T {
	if v, ok := via[w]; ok {
		return v
	}
	return all
}

// outcomes are all that can become of a call (OpenWOP envelope contract §14.1, the
// rows of Anthropic).
func outcomes() []outcome {
	forced := map[way]string{tool: "tool_use"}
	known := usage(5, 5, 0, 0)
	cached := usage(9, 7, 100, 20)
	vendor := "vendor says: hush, private words"
	event := func(kind string) double.Reply {
		return double.Reply{Pieces: whole, End: double.EndError, Type: kind, Message: vendor}
	}
	status := func(status int, message string) double.Reply {
		return double.Reply{Status: status, Message: message + " " + vendor}
	}
	return []outcome{
		{
			name:   "clean",
			reply:  double.Reply{Pieces: whole},
			stop:   provider.StopClean,
			raw:    "end_turn",
			rawVia: forced,
			text:   wholeText,
			finish: "stop",
			usage:  &known,
		},
		{
			name:   "clean and cached",
			reply:  double.Reply{Pieces: whole, Usage: &double.Usage{Input: 9, Output: 7, CacheRead: 100, CacheWrite: 20}},
			stop:   provider.StopClean,
			raw:    "end_turn",
			rawVia: forced,
			text:   wholeText,
			finish: "stop",
			usage:  &cached,
		},
		{
			name:   "clean, no usage",
			reply:  double.Reply{Pieces: whole, NoUsage: true},
			stop:   provider.StopClean,
			raw:    "end_turn",
			rawVia: forced,
			text:   wholeText,
			finish: "stop",
			usage:  &provider.Usage{},
		},
		{
			name:   "clean amid noise",
			reply:  double.Reply{Pieces: whole, Noise: true, Blocks: []json.RawMessage{[]byte(`{"type":"hologram","depth":3}`)}},
			stop:   provider.StopClean,
			raw:    "end_turn",
			rawVia: forced,
			text:   wholeText,
			finish: "stop",
		},
		{
			name:   "clean, then never closed",
			reply:  double.Reply{Pieces: whole, End: double.EndOpen},
			stop:   provider.StopClean,
			raw:    "end_turn",
			rawVia: forced,
			text:   wholeText,
			finish: "stop",
			usage:  &known,
		},
		{
			name:   "clean after hidden thoughts",
			reply:  double.Reply{Blocks: []json.RawMessage{[]byte(`{"type":"redacted_thinking","data":"x"}`)}},
			stop:   provider.StopClean,
			raw:    "end_turn",
			finish: "stop",
		},
		{name: "empty", stop: provider.StopClean, raw: "end_turn", finish: "stop"},
		{
			name:   "truncated",
			reply:  double.Reply{Pieces: whole},
			edit:   func(r *provider.Request) { r.MaxTokens = 2 },
			stop:   provider.StopTruncated,
			raw:    "max_tokens",
			text:   `{"z":"a `,
			finish: "length",
		},
		{
			name:   "truncated though whole",
			reply:  double.Reply{Pieces: whole, StopReason: "max_tokens"},
			stop:   provider.StopTruncated,
			raw:    "max_tokens",
			text:   wholeText,
			finish: "length",
			usage:  &known,
		},
		{
			name:   "window full",
			reply:  double.Reply{Pieces: whole[:1], StopReason: "model_context_window_exceeded"},
			stop:   provider.StopTruncated,
			raw:    "model_context_window_exceeded",
			text:   whole[0],
			finish: "length",
		},
		{
			name:   "stop sequence",
			reply:  double.Reply{Pieces: whole, StopSequence: "END"},
			stop:   provider.StopSequence,
			raw:    "stop_sequence",
			text:   wholeText,
			finish: "stop",
		},
		{
			name:     "refused",
			reply:    double.Reply{Refusal: &double.Refusal{Category: "cyber", Explanation: "I will not"}},
			stop:     provider.StopRefused,
			raw:      "refusal",
			refusal:  "I will not",
			category: "cyber",
			finish:   "content_filter",
		},
		{
			name:   "refused midway",
			reply:  double.Reply{Pieces: whole, Refusal: &double.Refusal{}},
			stop:   provider.StopRefused,
			raw:    "refusal",
			text:   wholeText,
			finish: "content_filter",
		},
		{
			name:     "blocked prompt",
			reply:    status(400, "Output blocked by content filtering policy"),
			stop:     provider.StopRefused,
			raw:      "content_filter",
			category: "content_filter",
			finish:   "content_filter",
			usage:    &provider.Usage{},
		},
		{
			name: "blocked midway",
			reply: double.Reply{
				Pieces:  whole,
				End:     double.EndError,
				Type:    "invalid_request_error",
				Message: "Output blocked by content filtering policy",
			},
			stop:     provider.StopRefused,
			raw:      "content_filter",
			category: "content_filter",
			text:     wholeText,
			finish:   "content_filter",
		},
		{
			name:  "paused",
			reply: double.Reply{Pieces: whole, StopReason: "pause_turn"},
			stop:  provider.StopUnknown,
			raw:   "pause_turn",
			text:  wholeText,
		},
		{
			name:  "unknown",
			reply: double.Reply{Pieces: whole, StopReason: "meteor"},
			stop:  provider.StopUnknown,
			raw:   "meteor",
			text:  wholeText,
		},
		{
			name: "uncalled-for tools",
			reply: double.Reply{ToolCalls: []double.ToolCall{
				{Name: "f", Input: "{}"},
				{ID: "c2", Name: "g", Input: `{"a":1}`},
			}},
			stop:   provider.StopUnknown,
			raw:    "tool_use",
			finish: "tool_calls",
			calls:  2,
		},
		{
			name:    "a tool without input",
			reply:   double.Reply{ToolCalls: []double.ToolCall{{Name: "answer"}}},
			stop:    provider.StopUnknown,
			stopVia: map[way]provider.StopClass{tool: provider.StopClean},
			raw:     "tool_use",
			textVia: map[way]string{tool: "{}"},
			calls:   1,
		},
		{
			name:    "text before the tool call",
			reply:   double.Reply{Pieces: []string{"let me"}, ToolCalls: []double.ToolCall{{Name: "answer", Input: wholeText}}},
			stop:    provider.StopUnknown,
			stopVia: map[way]provider.StopClass{tool: provider.StopClean},
			raw:     "tool_use",
			text:    "let me",
			textVia: map[way]string{tool: wholeText},
			calls:   1,
		},

		{name: "key refused", reply: status(401, "invalid x-api-key"), code: provider.CodeCredentialRequired},
		{name: "not permitted", reply: status(403, "no access"), code: provider.CodeCredentialRequired},
		{name: "no such model", reply: status(404, "model: x"), code: provider.CodeModelNotSupported},
		{name: "too large", reply: status(413, "Request exceeds"), code: provider.CodeContentTooLong},
		{
			name:      "rate limit",
			reply:     status(429, "would exceed your organization's rate limit"),
			code:      provider.CodeQuota,
			retryable: true,
		},
		{name: "usage limit", reply: status(429, "You have reached your usage limit"), code: provider.CodeQuota},
		{
			name:  "no credit",
			reply: status(400, "Your credit balance is too low to access the Anthropic API."),
			code:  provider.CodeQuota,
		},
		{
			name:  "spend limit",
			reply: status(400, "You have reached your specified API usage limits."),
			code:  provider.CodeQuota,
		},
		{name: "billing", reply: status(402, ""), code: provider.CodeQuota},
		{
			name:  "prompt too long",
			reply: status(400, "prompt is too long: 9 tokens > 8 maximum"),
			code:  provider.CodeContentTooLong,
		},
		{
			name:  "prompt and answer too long",
			reply: status(400, "input length and `max_tokens` exceed context limit: 9"),
			code:  provider.CodeContentTooLong,
		},
		{
			name:  "budget too large",
			reply: status(400, "max_tokens: 9 > 8, which is the maximum allowed number of output tokens"),
			code:  provider.CodeInvalidRequest,
		},
		{name: "bad request", reply: status(400, "odd"), code: provider.CodeInvalidRequest},
		{name: "bad entity", reply: status(422, "odd"), code: provider.CodeInvalidRequest},
		{name: "timeout", reply: status(408, ""), code: provider.CodeUnavailable, retryable: true},
		{name: "conflict", reply: status(409, ""), code: provider.CodeUnavailable, retryable: true},
		{name: "server error", reply: status(500, ""), code: provider.CodeUnavailable, retryable: true},
		{name: "gateway timeout", reply: status(504, ""), code: provider.CodeUnavailable, retryable: true},
		{name: "overloaded", reply: status(529, "Overloaded"), code: provider.CodeUnavailable, retryable: true},

		{name: "overloaded midway", reply: event("overloaded_error"), code: provider.CodeUnavailable, retryable: true},
		{name: "error midway", reply: event("api_error"), code: provider.CodeUnavailable, retryable: true},
		{name: "unknown error midway", reply: event("meteor_error"), code: provider.CodeUnavailable, retryable: true},
		{name: "rate limit midway", reply: event("rate_limit_error"), code: provider.CodeQuota, retryable: true},
		{name: "billing midway", reply: event("billing_error"), code: provider.CodeQuota},
		{name: "key refused midway", reply: event("authentication_error"), code: provider.CodeCredentialRequired},
		{name: "bad request midway", reply: event("invalid_request_error"), code: provider.CodeInvalidRequest},
		{
			name:      "cut",
			reply:     double.Reply{Pieces: whole, End: double.EndCut},
			code:      provider.CodeUnavailable,
			retryable: true,
		},
		{name: "cut at once", reply: double.Reply{End: double.EndCut}, code: provider.CodeUnavailable, retryable: true},
		{
			name:      "half closed",
			reply:     double.Reply{Pieces: whole, End: double.EndSilent},
			code:      provider.CodeUnavailable,
			retryable: true,
		},
		{
			name:      "nothing",
			reply:     double.Reply{ContentType: "text/event-stream"},
			code:      provider.CodeUnavailable,
			retryable: true,
		},
		{
			name:      "garbage",
			reply:     double.Reply{ContentType: "text/event-stream", Raw: "event: message_start\ndata: {private words\n\n"},
			code:      provider.CodeUnavailable,
			retryable: true,
		},
		{
			name:      "not even events",
			reply:     double.Reply{ContentType: "text/event-stream", Raw: "\x00\xff\n\n\n"},
			code:      provider.CodeUnavailable,
			retryable: true,
		},
		{
			name:  "a page",
			reply: double.Reply{ContentType: "text/html", Raw: "<html>vendor says</html>"},
			code:  provider.CodeUnavailable,
		},
		{
			name:  "a document",
			reply: double.Reply{ContentType: "application/json", Raw: `{"content":[]}`},
			code:  provider.CodeUnavailable,
		},
		{name: "no content", reply: double.Reply{Status: http.StatusNoContent}, code: provider.CodeUnavailable},
		{
			name:  "a redirect",
			reply: double.Reply{Status: http.StatusFound, Header: http.Header{"Location": {"http://127.0.0.1:1/"}}},
			code:  provider.CodeUnavailable,
		},
	}
}

func TestCall_ClassifiesEveryOutcomeInEveryWay(t *testing.T) {
	t.Parallel()
	for _, o := range outcomes() {
		for _, w := range []way{free, format, tool} {
			t.Run(o.name+"/"+string(w), func(t *testing.T) {
				t.Parallel()
				req := w.ask()
				if o.edit != nil {
					o.edit(&req)
				}
				r := newRig(t, nil)
				if o.code != "" {
					e := r.fail(t, req, o.reply)
					require.Equal(t, o.code, e.Code)
					require.Equal(t, o.retryable, e.Retryable)
					if o.reply.Status >= http.StatusBadRequest {
						require.Equal(t, o.reply.Status, e.Status)
					}
				} else {
					o.answers(t, r, w, req)
				}
				require.Len(t, r.server.Requests(), 1, "the SDK must not retry")
			})
		}
	}
}

func (o outcome) answers(t *testing.T, r rig, w way, req provider.Request) {
	t.Helper()
	res, pieces := r.call(t, req, o.reply)
	require.Equal(t, of(o.stopVia, w, o.stop), res.Stop)
	require.Equal(t, of(o.rawVia, w, o.raw), res.RawStop)
	require.Equal(t, of(o.textVia, w, o.text), res.Text)
	require.Equal(t, o.refusal, res.RefusalText)
	require.Equal(t, o.category, res.SafetyCategory)
	calls := o.calls
	if w == tool && o.textVia[tool] != "" && calls > 0 { // the first one is the answer
		calls--
	}
	require.Len(t, res.ToolCalls, calls)
	if o.finish != "" {
		require.Equal(t, o.finish, pieces[len(pieces)-1].FinishReason)
	}
	if o.usage != nil {
		want := *o.usage
		if want == usage(5, 5, 0, 0) { // what this server counts of the prompt
			want = usage(res.Usage.InputTokens, 5, 0, 0)
			require.Positive(t, res.Usage.InputTokens)
		}
		if want.Known { // this server counts thoughts, too
			want.ReasoningTokens = new(0)
		}
		require.Equal(t, want, res.Usage)
	}
}

// Whatever the vendor says of a schema it does not take, the code is its own.
func TestCall_TellsABadSchemaFromABadRequest(t *testing.T) {
	t.Parallel()
	for _, message := range []string{
		"output_config.format.schema: For 'object' type, 'additionalProperties' must be explicitly set to false",
		"tools.0.custom: For 'integer' type, property 'minimum' is not supported", "Schema is too complex.",
		"The compiled grammar is too large", "'claude-x' does not support output_config.format",
	} {
		for w, code := range map[way]string{
			free:   provider.CodeInvalidRequest,
			format: provider.CodeSchemaInvalid,
			tool:   provider.CodeSchemaInvalid,
		} {
			e := newRig(t, nil).fail(t, w.ask(), double.Reply{Status: 400, Message: message})
			require.Equal(t, code, e.Code, "%s: %s", w, message)
		}
	}
	req := format.ask()
	req.Schema = json.RawMessage(strings.Replace(answerSchema, `"type":"integer"`, `"type":"integer","minimum":1`, 1))
	require.Equal(t, provider.CodeSchemaInvalid, newRig(t, nil).fail(t, req).Code, "as the server itself finds")
	req.Via = provider.ViaTool
	require.Equal(t, provider.CodeSchemaInvalid, newRig(t, nil).fail(t, req).Code)
}

// The bytes of one answer, cut anywhere, are a failure or the whole answer, and
// never a part of it that passes for the whole.
func TestCall_NeverTakesAPartForTheWhole(t *testing.T) {
	t.Parallel()
	for w, clean := range map[way]bool{format: false, tool: true} {
		t.Run(string(w), func(t *testing.T) {
			t.Parallel()
			r := newRig(t, nil)
			whole, failed := 0, 0
			for at := 0; whole < 3; at++ {
				r.server.Enqueue(double.Reply{Pieces: []string{`{"z":"a`, ` b","a":1}`}, Cut: &double.Cut{At: at, Clean: clean}})
				res, err := r.Call(t.Context(), w.ask(), nil)
				if err == nil {
					require.Equal(t, wholeText, res.Text, "cut at %d", at)
					require.Equal(t, provider.StopClean, res.Stop)
					whole++
					continue
				}
				e, ok := provider.As(err)
				require.True(t, ok, "cut at %d: %v", at, err)
				require.Equal(t, provider.CodeUnavailable, e.Code, "cut at %d", at)
				require.True(t, e.Retryable)
				require.Zero(t, whole, "cut at %d: failed after it was whole", at)
				failed++
			}
			require.Greater(t, failed, 1000, "the cuts reach through the whole stream")
		})
	}
}
