package compat_test

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"waybill.dev/waybill/services/dispatcher/provider"
	"waybill.dev/waybill/services/dispatcher/provider/compat"
)

// callIn is a piece with a call of a tool.
func callIn(index, name, arguments string) string {
	return chunkOf(`{"index":0,"delta":{"tool_calls":[{"index":` + index + `,"id":"c` + index + `","type":"function","function":{"name":"` + name + `","arguments":` + arguments + `}}]},"finish_reason":null}`)
}

// A call of the forced tool with arguments is the answer, wherever it is among other calls. Without arguments, the
// text is, if it can have the answer. A call of another tool is none.
func TestForcedTool_WhatIsTheAnswer(t *testing.T) {
	t.Parallel()
	text := delta(wholeText, "")
	const draft = `"{\"title\":\"draft\"}"`
	called := chunkOf(`{"index":0,"delta":{},"finish_reason":"tool_calls"}`)
	for name, tc := range map[string]struct {
		body, want string // wanted is ""
		stop       provider.StopClass
		interim    bool
	}{
		"no arguments after the text":    {body: text + callIn("0", "answer", `""`)},
		"null arguments after the text":  {body: text + callIn("0", "answer", "null")},
		"no arguments before the text":   {body: callIn("0", "answer", `""`) + text},
		"an empty object after the text": {body: text + callIn("0", "answer", `"{}"`), want: "{}"},
		"no arguments, prose":            {body: delta(`"I look it up."`, "") + callIn("0", "answer", `""`), want: "{}"},
		"no arguments alone":             {body: callIn("0", "answer", `""`), want: "{}"},
		"an empty call, then a full one": {body: callIn("0", "answer", `""`) + callIn("1", "answer", wholeText), stop: provider.StopUnknown},
		"another tool":                   {body: callIn("0", "search", draft), want: "-", stop: provider.StopUnknown, interim: true},
		"another tool, then the right":   {body: callIn("0", "search", draft) + callIn("1", "answer", wholeText), stop: provider.StopUnknown},
		"the right tool, then another":   {body: callIn("0", "answer", wholeText) + callIn("1", "search", draft), stop: provider.StopUnknown},
		"another tool and the text":      {body: text + callIn("0", "search", draft), stop: provider.StopUnknown, interim: true},
		"another tool and a call in it":  {body: delta(`"<tool_call>{\"name\":\"answer\",\"arguments\":`+wholeText[1:len(wholeText)-1]+`}</tool_call>"`, "") + callIn("0", "search", draft), stop: provider.StopUnknown},
		"a tool that the server ran":     {body: callIn("0", "search", draft) + chunkOf(`{"index":0,"delta":{"role":"tool","content":"found"},"finish_reason":null}`) + chunkOf(`{"index":0,"delta":{"role":"assistant","content":`+wholeText+`},"finish_reason":null}`), stop: provider.StopUnknown},
		"the name in other letters":      {body: callIn("0", "Answer", wholeText)},
		"the name with a namespace":      {body: callIn("0", "default_api.answer", wholeText)},
		"the name after the arguments":   {body: callIn("0", "", firstHalf) + callIn("0", "answer", secondHalf)},
		"no name at all":                 {body: callIn("0", "", wholeText)},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			res, err := callServed(t, served{body: tc.body + called + doneEvent}, provider.ViaTool)
			require.NoError(t, err)
			switch tc.want {
			case "":
				require.JSONEq(t, wanted, res.Text)
			case "-":
				require.Empty(t, res.Text)
			default:
				require.Equal(t, tc.want, res.Text)
			}
			if tc.stop == "" {
				tc.stop = provider.StopClean
			}
			require.Equal(t, tc.stop, res.Stop)
			require.Equal(t, tc.interim, res.Interim)
		})
	}
}

// Messages of other roles are not the answer.
func TestRoles_OnlyTheModelsMessagesCount(t *testing.T) {
	t.Parallel()
	piece := func(role, text string) string {
		return chunkOf(`{"index":0,"delta":{"role":"` + role + `","content":"` + text + `"},"finish_reason":null}`)
	}
	more := func(text string) string { return delta(`"`+text+`"`, "") }
	for name, body := range map[string]string{
		"a tool's result":           piece("tool", "found") + piece("assistant", "Answer"),
		"a tool's result in pieces": piece("tool", "fo") + more("und") + piece("assistant", "An") + more("swer"),
		"an echo":                   piece("user", "Say it") + piece("assistant", "Answer"),
		"a result in the middle":    piece("assistant", "An") + piece("function", "found") + piece("assistant", "swer"),
		"another name of the model": piece("model", "Answer"),
		"no role":                   more("Answer"),
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			res, err := callServed(t, served{body: body + stopChunk + doneEvent}, provider.ViaWords)
			require.NoError(t, err)
			require.Equal(t, "Answer", res.Text)
		})
	}
	result := `{"choices":[{"index":0,"message":{"role":"tool","content":"found"},"finish_reason":"stop"}]}`
	res, err := callServed(t, served{body: result, label: "application/json"}, provider.ViaWords)
	require.NoError(t, err)
	require.Empty(t, res.Text)
}

// respond returns a stream of the Responses API.
func respond(events ...string) string {
	var b strings.Builder
	for _, e := range events {
		b.WriteString("data: " + e + "\n\n")
	}
	return b.String()
}

// A response that ends with a call which waits for the client has no answer. Calls that the server ran do not count.
func TestResponses_ACallOfAnotherToolIsNoAnswer(t *testing.T) {
	t.Parallel()
	piece := `{"type":"response.output_text.delta","output_index":0,"content_index":0,"delta":"draft"}`
	for kind, waits := range map[string]bool{
		"function_call": true, "custom_tool_call": true, "computer_call": true, "local_shell_call": true, "mcp_approval_request": true,
		"web_search_call": false, "file_search_call": false, "code_interpreter_call": false, "mcp_call": false,
	} {
		item := `{"type":"` + kind + `","call_id":"c"}`
		end := `{"type":"response.completed","response":{"status":"completed","output":[{"type":"message","role":"assistant","content":[{"type":"output_text","text":"draft"}]},` + item + `]}}`
		for _, events := range [][]string{
			{piece, `{"type":"response.output_item.added","output_index":1,"item":` + item + `}`, `{"type":"response.output_item.done","output_index":1,"item":` + item + `}`, end},
			{end},
		} {
			res, err := served{body: respond(events...)}.call(t, compat.Config{Responses: true}, ask(), nil)
			require.NoError(t, err)
			require.Equal(t, "draft", res.Text)
			require.Equal(t, waits, res.Interim, kind)
		}
	}
}

// The whole text that a server sends at the end counts, and events that it repeats count once.
func TestResponses_TheWholeTextCounts(t *testing.T) {
	t.Parallel()
	piece := func(n, text string) string {
		return `{"type":"response.output_text.delta","sequence_number":` + n + `,"output_index":0,"content_index":0,"delta":"` + text + `"}`
	}
	end := func(output string) string {
		return `{"type":"response.completed","response":{"status":"completed","output":[` + output + `],"usage":{"input_tokens":10,"output_tokens":5,"total_tokens":15}}}`
	}
	message := func(role, text string) string {
		return `{"type":"message","role":"` + role + `","content":[{"type":"output_text","text":"` + text + `"}]}`
	}
	done := func(text string) string {
		return `{"type":"response.output_text.done","output_index":0,"content_index":0,"text":"` + text + `"}`
	}
	added := `{"type":"response.output_item.added","output_index":0,"item":{"type":"message","role":"tool","content":[]}}`
	for name, tc := range map[string]struct {
		events    []string
		text      string
		corrected bool
	}{
		"a piece is lost":           {[]string{piece("1", "Hello "), piece("2", "world"), end(message("assistant", "Hello big world"))}, "Hello big world", true},
		"the end is lost":           {[]string{piece("1", "Hello "), end(message("assistant", "Hello world"))}, "Hello world", true},
		"the part differs":          {[]string{piece("1", "Hello"), done("Hello world"), end("")}, "Hello world", true},
		"all equal":                 {[]string{piece("1", "Hello"), done("Hello"), end(message("assistant", "Hello"))}, "Hello", false},
		"a message without text":    {[]string{piece("1", "Hello"), end(`{"type":"message","role":"assistant","content":[]}`)}, "Hello", false},
		"a part without text":       {[]string{piece("1", "Hello"), `{"type":"response.output_text.done","output_index":0,"content_index":0}`, end("")}, "Hello", false},
		"a repeated event":          {[]string{piece("1", "ha"), piece("2", "ha"), piece("2", "ha"), end("")}, "haha", false},
		"one number for all":        {[]string{`{"type":"response.created","sequence_number":0,"response":{}}`, piece("0", "ha"), piece("0", "ha"), end("")}, "haha", false},
		"a message of a tool":       {[]string{added, piece("1", "found"), strings.ReplaceAll(piece("2", "Answer"), `"output_index":0`, `"output_index":1`), end(message("tool", "found") + "," + message("assistant", "Answer"))}, "Answer", false},
		"a message of a tool alone": {[]string{end(message("tool", "found"))}, "", false},
		"two messages":              {[]string{piece("1", "One."), strings.ReplaceAll(piece("2", "Two."), `"output_index":0`, `"output_index":1`), end(message("assistant", "One.") + "," + message("assistant", "Two."))}, "One.\n\nTwo.", false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var streamed string
			req := ask()
			res, err := served{body: respond(tc.events...)}.call(t, compat.Config{Responses: true}, req, func(d provider.Delta) error {
				streamed += d.Text
				return nil
			})
			require.NoError(t, err)
			require.Equal(t, tc.text, res.Text)
			require.Equal(t, tc.corrected, res.Corrected)
			require.Equal(t, tc.corrected, streamed != res.Text)
		})
	}
	item := `{"type":"response.output_item.added","output_index":0,"item":{"type":"function_call","name":"answer","call_id":"c"}}`
	args := `{"type":"response.function_call_arguments.delta","output_index":0,"delta":"{\"a\":\"x\"}"}`
	whole := `{"type":"response.function_call_arguments.done","output_index":0,"arguments":"{\"a\":\"b\"}"}`
	req := ask()
	req.Schema, req.SchemaName, req.Via = []byte(`{"type":"object"}`), "answer", provider.ViaTool
	res, err := served{body: respond(item, args, whole, end(""))}.call(t, compat.Config{Responses: true}, req, nil)
	require.NoError(t, err)
	require.Equal(t, `{"a":"b"}`, res.Text)
}

// What says how far a call is, is no error.
func TestProgress_IsNoError(t *testing.T) {
	t.Parallel()
	for name, event := range map[string]string{
		"queued":        `data: {"status":"queued","message":"Waiting for a free slot"}`,
		"loading":       "event: status\ndata: {\"message\":\"Loading model\",\"status\":\"loading\",\"progress\":0.3}",
		"a code":        `data: {"object":"chat.completion.status","code":"pending","message":"warming up"}`,
		"202":           `data: {"status":202,"message":"accepted"}`,
		"a message":     `data: {"message":"Thinking about it"}`,
		"a named event": "event: progress\ndata: {\"percent\":10}",
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			res, err := callServed(t, served{body: event + "\n\n" + delta(wholeText, "") + stopChunk + doneEvent}, provider.ViaWords)
			require.NoError(t, err)
			require.JSONEq(t, wanted, res.Text)
		})
	}
	_, err := callServed(t, served{body: "event: error\ndata: {\"message\":\"out of memory\"}\n\n"}, provider.ViaWords)
	e, ok := provider.As(err)
	require.True(t, ok)
	require.Equal(t, "out of memory", e.Quote)
}

// A later zero erases no count, and totals fill gaps.
func TestUsage_KeepsWhatIsKnown(t *testing.T) {
	t.Parallel()
	with := func(doc string) string { return "data: " + doc + "\n\n" }
	counts := func(in, out string) string {
		return with(`{"choices":[],"usage":{"prompt_tokens":` + in + `,"completion_tokens":` + out + `}}`)
	}
	for name, tc := range map[string]struct {
		body    string
		in, out int
	}{
		"a later prompt of 0":  {counts("10", "1") + counts("0", "5"), 10, 5},
		"a later answer of 0":  {counts("10", "5") + counts("10", "0"), 10, 5},
		"Gemini's total":       {with(`{"choices":[],"usage":{"prompt_tokens":10,"completion_tokens":5,"total_tokens":40}}`), 10, 30},
		"cache apart":          {with(`{"choices":[],"usage":{"prompt_tokens":2,"completion_tokens":5,"total_tokens":15,"cache_read_input_tokens":8}}`), 2, 5},
		"Ollama's own counts":  {with(`{"choices":[],"prompt_eval_count":10,"eval_count":5}`), 10, 5},
		"Amazon's metrics":     {with(`{"choices":[],"amazon-bedrock-invocationMetrics":{"inputTokenCount":10,"outputTokenCount":5}}`), 10, 5},
		"Cohere's billed ones": {with(`{"choices":[],"usage":{"billed_units":{"input_tokens":10,"output_tokens":5},"tokens":{"input_tokens":70,"output_tokens":5}}}`), 10, 5},
		"a list":               {with(`{"choices":[],"usage":[{"prompt_tokens":10,"completion_tokens":5}]}`), 10, 5},
		"a string":             {with(`{"choices":[],"usage":"{\"prompt_tokens\":10,\"completion_tokens\":5}"}`), 10, 5},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			res, err := callServed(t, served{body: delta(wholeText, "") + stopChunk + tc.body + doneEvent}, provider.ViaWords)
			require.NoError(t, err)
			require.True(t, res.Usage.Known)
			require.Equal(t, []int{tc.in, tc.out}, []int{res.Usage.InputTokens, res.Usage.OutputTokens})
		})
	}
}

// Errors are what they say, whatever their status.
func TestErrors_AreWhatTheySay(t *testing.T) {
	t.Parallel()
	status := func(code int, body string) served { return served{status: code, body: body, label: "application/json"} }
	for name, tc := range map[string]struct {
		served
		code, says string
		retryable  bool
		after      time.Duration
	}{
		"TGI, generation":      {served: status(424, `{"error":"Request failed during generation: CUDA out of memory","error_type":"generation"}`), code: provider.CodeUnavailable, retryable: true},
		"424":                  {served: status(424, `{"error":"a dependency failed"}`), code: provider.CodeUnavailable, retryable: true},
		"no model, 200":        {served: served{body: `{"error":"model 'x' not found, try pulling it first"}`, label: "application/json"}, code: provider.CodeModelNotSupported},
		"a region":             {served: status(403, `{"error":{"message":"Country, region, or territory not supported"}}`), code: provider.CodeUnavailable, says: "country or region"},
		"a network":            {served: status(403, `{"error":{"message":"Access denied due to Virtual Network/Firewall rules."}}`), code: provider.CodeUnavailable, says: "network rule"},
		"xAI, credits":         {served: status(403, `{"error":"Your newly created team doesn't have any credits yet. You can purchase credits on https://console.x.ai"}`), code: provider.CodeQuota, says: "used up"},
		"a proxy":              {served: status(407, "<html>proxy auth</html>"), code: provider.CodeUnavailable, says: "proxy"},
		"OpenRouter, too long": {served: status(502, `{"error":{"message":"Provider returned error","code":502,"metadata":{"raw":"{\"error\":{\"message\":\"Input is too long for requested model.\"}}"}}}`), code: provider.CodeContentTooLong},
		"Baidu, too long":      {served: served{body: `{"error_code":336007,"error_msg":"the max input characters is 20000"}`, label: "application/json"}, code: provider.CodeContentTooLong},
		"an hour's limit":      {served: served{status: 429, body: `{"error":"you've reached your hourly usage limit"}`, label: "application/json", header: map[string]string{"Retry-After": "1"}}, code: provider.CodeQuota, retryable: true, after: time.Second},
		"a soon ending limit":  {served: served{status: 429, body: `{"error":"you have reached your usage limit"}`, label: "application/json", header: map[string]string{"Retry-After": "60"}}, code: provider.CodeQuota, retryable: true, after: time.Minute},
		"a usage limit":        {served: status(429, `{"error":"you have reached your usage limit"}`), code: provider.CodeQuota},
		"an account":           {served: served{status: 429, body: `{"error":{"code":"insufficient_quota"}}`, label: "application/json", header: map[string]string{"Retry-After": "1"}}, code: provider.CodeQuota},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, err := tc.call(t, compat.Config{}, ask(), nil)
			e, ok := provider.As(err)
			require.True(t, ok, err)
			require.Equal(t, tc.code, e.Code, e.Message)
			require.Equal(t, tc.retryable, e.Retryable, e.Message)
			require.Equal(t, tc.after, e.RetryAfter)
			require.Contains(t, e.Message, tc.says)
		})
	}
	_, err := served{body: respond(`{"type":"error","error":{"code":"model_not_found","message":"The model does not exist"}}`)}.call(t, compat.Config{Responses: true}, ask(), nil)
	e, ok := provider.As(err)
	require.True(t, ok)
	require.Equal(t, provider.CodeModelNotSupported, e.Code)
}
