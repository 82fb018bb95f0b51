package anthropic_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"waybill.dev/waybill/services/dispatcher/provider"
	double "waybill.dev/waybill/test/double/anthropic"
)

// raw is a response without status, byte for byte.
func raw(label, body string) double.Reply { return double.Reply{ContentType: label, Raw: body} }

const eventStream = "text/event-stream"

// The answers of servers that deviate from the vendor's API are the answers that they mean.
func TestCall_ReadsTheAnswersOfServers(t *testing.T) {
	t.Parallel()
	whole := stream(evStart, evText, evA, evShut, evEnd, evStop).Raw
	numbered := func(n string) string { return strings.ReplaceAll(whole, `"index":0`, `"index":`+n) }
	document := `{"id":"msg_1","type":"message","role":"assistant","model":"claude-x","content":[{"type":"thinking","thinking":"hm","signature":"s"},{"type":"text","text":"a"}],"stop_reason":"end_turn","stop_sequence":null,"usage":{"input_tokens":3,"cache_creation_input_tokens":1,"cache_read_input_tokens":2,"output_tokens":4}}`
	for name, reply := range map[string]double.Reply{
		"plain":                     raw(eventStream, whole),
		"no names of events":        raw(eventStream, strings.ReplaceAll(whole, "event: ", ": ")),
		"carriage returns":          raw(eventStream, strings.ReplaceAll(whole, "\n", "\r\n")),
		"a byte order mark":         raw(eventStream, "\ufeff"+whole),
		"comments":                  raw(eventStream, ": ping\n\n"+strings.ReplaceAll(whole, "\n\n", "\n\n: ping\n\n")),
		"empty data":                raw(eventStream, strings.ReplaceAll(whole, "\n\n", "\n\ndata:\n\n")),
		"pings":                     raw(eventStream, strings.ReplaceAll(whole, "\n\n", "\n\nevent: ping\ndata: {\"type\":\"ping\"}\n\n")),
		"no empty line at the end":  raw(eventStream, strings.TrimRight(whole, "\n")),
		"no last event":             stream(evStart, evText, evA, evShut, evEnd),
		"[DONE] at the end":         raw(eventStream, whole+"data: [DONE]\n\n"),
		"junk after the end":        raw(eventStream, whole+"data: {\"type\n\n"),
		"no label":                  raw("-", whole),
		"text/plain":                raw("text/plain; charset=utf-8", whole),
		"labelled as JSON":          raw("application/json", whole),
		"blocks from 1":             raw(eventStream, numbered("1")),
		"a block left out":          raw(eventStream, numbered("7")),
		"text in the block's start": stream(evStart, strings.Replace(evText, `"text":""`, `"text":"a"`, 1), evShut, evEnd, evStop),
		"an escaped letter":         stream(evStart, evText, strings.Replace(evA, `"a"`, `"\u0061"`, 1), evShut, evEnd, evStop),
		"unknown events and blocks": stream(evStart, `{"type":"news"}`, `{"type":"content_block_start","index":0,"content_block":{"type":"news","a":[1]}}`,
			`{"type":"content_block_delta","index":0,"delta":{"type":"news_delta","news":7}}`, evShut, evText, evA, evShut, evEnd, evStop),
		"no stop reason": stream(evStart, evText, evA, evShut, strings.Replace(evEnd, `"end_turn"`, "null", 1), evStop),
		"error null":     raw(eventStream, strings.ReplaceAll(whole, `{"type":`, `{"error":null,"type":`)),
		"a document":     raw("application/json", document),
		"on many lines":  raw("application/json", strings.ReplaceAll(document, ",", ",\n ")),
		"as a stream":    raw(eventStream, document),
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			res, _ := newRig(t, nil).call(t, ask(), reply)
			require.Equal(t, "a", res.Text)
			require.Equal(t, provider.StopClean, res.Stop)
			require.Equal(t, usage(3, 4, 2, 1), res.Usage)
		})
	}
	cut := strings.Replace(document, "end_turn", "max_tokens", 1)
	res, _ := newRig(t, nil).call(t, ask(), raw("application/json", cut))
	require.Equal(t, provider.StopTruncated, res.Stop)
	called := strings.Replace(strings.Replace(document, `{"type":"text","text":"a"}`, `{"type":"tool_use","id":"t","name":"answer","input":{"z":"a","a":1}}`, 1), "end_turn", "tool_use", 1)
	res, _ = newRig(t, nil).call(t, tool.ask(), raw("application/json", called))
	require.JSONEq(t, `{"z":"a","a":1}`, res.Text)
	require.Equal(t, provider.StopClean, res.Stop)
	half := stream(evStart, evText, `{"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":"\ud83d\ude00"}}`, evShut, evEnd, evStop)
	res, _ = newRig(t, nil).call(t, ask(), half)
	require.Equal(t, "😀", res.Text)
}

// Usage is what is reported, wherever; what is not reported is unknown, and not 0.
func TestCall_FindsTheUsage(t *testing.T) {
	t.Parallel()
	bare := strings.Replace(evStart, `,"usage":{"input_tokens":3,"cache_creation_input_tokens":1,"cache_read_input_tokens":2,"output_tokens":1}`, "", 1)
	nulls := strings.Replace(evStart, `{"input_tokens":3,"cache_creation_input_tokens":1,"cache_read_input_tokens":2,"output_tokens":1}`, "null", 1)
	mute := strings.Replace(evEnd, `,"usage":{"output_tokens":4}`, "", 1)
	full := strings.Replace(evEnd, `"output_tokens":4`, `"input_tokens":3,"output_tokens":4,"cache_read_input_tokens":2,"cache_creation_input_tokens":1`, 1)
	for name, tc := range map[string]struct {
		start, end string
		want       provider.Usage
	}{
		"in both":          {evStart, evEnd, usage(3, 4, 2, 1)},
		"at the end":       {bare, full, usage(3, 4, 2, 1)},
		"null, at the end": {nulls, full, usage(3, 4, 2, 1)},
		"again at the end": {evStart, full, usage(3, 4, 2, 1)},
		"at the start":     {evStart, mute, usage(3, 1, 2, 1)},
		"null at the end":  {evStart, strings.Replace(evEnd, `{"output_tokens":4}`, "null", 1), usage(3, 1, 2, 1)},
		"nowhere":          {bare, mute, provider.Usage{}},
		"null everywhere":  {nulls, strings.Replace(evEnd, `{"output_tokens":4}`, "null", 1), provider.Usage{}},
	} {
		res, _ := newRig(t, nil).call(t, ask(), stream(tc.start, evText, evA, evShut, tc.end, evStop))
		require.Equal(t, tc.want, res.Usage, name)
	}
}

// An error is what it says and its status together, whatever its form.
func TestCall_ClassifiesTheErrorsOfServers(t *testing.T) {
	t.Parallel()
	event := func(doc string) double.Reply {
		return raw(eventStream, stream(evStart, evText, evA).Raw+"event: error\ndata: "+doc+"\n\n")
	}
	status := func(code int, doc string) double.Reply {
		return double.Reply{Status: code, ContentType: "application/json", Raw: doc}
	}
	for name, tc := range map[string]struct {
		reply     double.Reply
		code      string
		retryable bool
		quote     string
	}{
		"the vendor's":           {status(400, `{"type":"error","error":{"type":"invalid_request_error","message":"odd"}}`), provider.CodeInvalidRequest, false, "odd"},
		"a string":               {status(400, `{"error":"odd"}`), provider.CodeInvalidRequest, false, "odd"},
		"a number":               {status(400, `{"error":7}`), provider.CodeInvalidRequest, false, ""},
		"a list":                 {status(400, `[{"error":{"message":"odd"}}]`), provider.CodeInvalidRequest, false, "odd"},
		"an empty list":          {status(400, `[]`), provider.CodeInvalidRequest, false, ""},
		"a detail":               {status(422, `{"detail":[{"loc":["body","x"],"msg":"field required"}]}`), provider.CodeInvalidRequest, false, "field required"},
		"a message":              {status(404, `{"message":"no route"}`), provider.CodeModelNotSupported, false, "no route"},
		"text":                   {status(500, "boom"), provider.CodeUnavailable, true, "boom"},
		"a page":                 {status(502, "<html></html>"), provider.CodeUnavailable, true, "<html></html>"},
		"null":                   {status(503, "null"), provider.CodeUnavailable, true, ""},
		"too long":               {status(400, `{"error":{"message":"prompt is too long: 210000 tokens > 200000 maximum"}}`), provider.CodeContentTooLong, false, "prompt is too long: 210000 tokens > 200000 maximum"},
		"too long, as a string":  {status(400, `{"error":"prompt is too long"}`), provider.CodeContentTooLong, false, "prompt is too long"},
		"overloaded":             {event(`{"type":"error","error":{"type":"overloaded_error","message":"busy"}}`), provider.CodeUnavailable, true, "busy"},
		"rate limit":             {event(`{"type":"error","error":{"type":"rate_limit_error","message":"slow"}}`), provider.CodeQuota, true, "slow"},
		"too long, in the event": {event(`{"type":"error","error":{"type":"invalid_request_error","message":"prompt is too long"}}`), provider.CodeContentTooLong, false, "prompt is too long"},
		"a string in the event":  {event(`{"type":"error","error":"boom"}`), provider.CodeUnavailable, true, "boom"},
		"a number in the event":  {event(`{"type":"error","error":7}`), provider.CodeUnavailable, true, ""},
		"a list in the event":    {event(`{"type":"error","error":[{"message":"boom"}]}`), provider.CodeUnavailable, true, "boom"},
		"a list as the event":    {event(`[{"type":"error","error":{"type":"overloaded_error","message":"busy"}}]`), provider.CodeUnavailable, true, "busy"},
		"text in the event":      {event(`boom`), provider.CodeUnavailable, true, "boom"},
		"an event without name":  {raw(eventStream, "data: {\"error\":{\"type\":\"overloaded_error\",\"message\":\"busy\"}}\n\n"), provider.CodeUnavailable, true, "busy"},
		"a document, 200":        {raw("application/json", `{"type":"error","error":{"type":"rate_limit_error","message":"slow"}}`), provider.CodeQuota, true, "slow"},
		"a string, 200":          {raw("application/json", `{"error":"boom"}`), provider.CodeUnavailable, true, "boom"},
		"another service":        {raw("application/json", `{"status":"ok"}`), provider.CodeUnavailable, false, ""},
		"a page, 200":            {raw("text/html", "<html></html>"), provider.CodeUnavailable, false, ""},
		"garbage":                {raw(eventStream, "data: {\"type\":\"message_start\",\n\n"), provider.CodeUnavailable, true, ""},
		"cut off":                {stream(evStart, evText, evA), provider.CodeUnavailable, true, ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			e := newRig(t, nil).fail(t, ask(), tc.reply)
			require.Equal(t, tc.code, e.Code, e.Message)
			require.Equal(t, tc.retryable, e.Retryable, e.Message)
			require.Equal(t, tc.quote, e.Quote)
			require.Equal(t, tc.reply.Status, e.Status)
			require.NotContains(t, e.Message, "could not be reached")
		})
	}
}
