package compat_test

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"waybill.dev/waybill/services/dispatcher/provider"
	"waybill.dev/waybill/services/dispatcher/provider/compat"
	"waybill.dev/waybill/services/dispatcher/provider/providertest"
)

// ev is an event of the Responses API.
func ev(kind, members string) string {
	if members != "" {
		members = "," + members
	}
	return fmt.Sprintf("event: %s\ndata: {\"type\":%q%s}\n\n", kind, kind, members)
}

// textDelta and callDelta are pieces of an answer.
func textDelta(item int, text string) string {
	return ev("response.output_text.delta", fmt.Sprintf(`"item_id":"m%d","output_index":%d,"content_index":0,"delta":%s`, item, item, text))
}

func callDelta(item int, text string) string {
	return ev("response.function_call_arguments.delta", fmt.Sprintf(`"item_id":"f%d","output_index":%d,"delta":%s`, item, item, text))
}

func callStart(item int, name string) string {
	return ev("response.output_item.added", fmt.Sprintf(`"output_index":%d,"item":{"type":"function_call","id":"f%d","call_id":"c%d","name":%q,"arguments":""}`, item, item, item, name))
}

const (
	created       = "event: response.created\ndata: {\"type\":\"response.created\",\"response\":{\"model\":\"m-1\",\"status\":\"in_progress\"}}\n\n"
	responseUsage = `"usage":{"input_tokens":10,"input_tokens_details":{"cached_tokens":4},"output_tokens":5,"output_tokens_details":{"reasoning_tokens":3},"total_tokens":15}`
)

// completed is the last event of an answer that ended by itself.
func completed(output string) string {
	return ev("response.completed", `"response":{"object":"response","model":"m-1","status":"completed","error":null,"incomplete_details":null,"output":`+output+`,`+responseUsage+`}`)
}

// message is an item of the output, as JSON.
func message(parts string) string {
	return `{"type":"message","id":"m0","role":"assistant","status":"completed","content":` + parts + `}`
}

const wanted = `{"title":"Call 😀","urgent":true}`

// The answers of OpenAI and of servers that have its Responses API.
func TestResponses_ReadsTheAnswersOfServers(t *testing.T) {
	t.Parallel()
	text := `"{\"title\":\"Call 😀\",\"urgent\":true}"`
	first, second := `"{\"title\":\"Call"`, `" 😀\",\"urgent\":true}"`
	part := `{"type":"output_text","text":` + text + `,"annotations":[]}`
	whole := message("[" + part + "]")
	textDone := ev("response.output_text.done", `"output_index":0,"content_index":0,"text":`+text)
	partDone := ev("response.content_part.done", `"output_index":0,"content_index":0,"part":`+part)
	itemDone := ev("response.output_item.done", `"output_index":0,"item":`+whole)
	call := `{"type":"function_call","id":"f0","call_id":"c0","name":"answer","arguments":` + text + `}`
	callDone := ev("response.output_item.done", `"output_index":0,"item":`+call)
	argsDone := ev("response.function_call_arguments.done", `"output_index":0,"name":"answer","arguments":`+text)
	reasoning := `{"type":"reasoning","id":"r0","summary":[{"type":"summary_text","text":"hm"}]}`
	document := `{"id":"r","object":"response","model":"m-1","status":"completed","output":[` + reasoning + `,` + whole + `],` + responseUsage + `}`
	stream := func(events ...string) served { return served{body: created + strings.Join(events, "")} }
	for name, tc := range map[string]struct {
		served
		via  provider.SchemaVia
		stop provider.StopClass
		raw  string
		text string
	}{
		"as OpenAI sends it": {served: stream(
			ev("response.in_progress", `"response":{"model":"m-1"}`),
			ev("response.output_item.added", `"output_index":0,"item":{"type":"message","content":[]}`),
			ev("response.content_part.added", `"output_index":0,"content_index":0,"part":{"type":"output_text","text":""}`),
			textDelta(0, first), textDelta(0, second), textDone, partDone, itemDone, completed("["+whole+"]"))},
		"pieces only":                    {served: stream(textDelta(0, first), textDelta(0, second), completed("[]"))},
		"no pieces, parts only":          {served: stream(textDone, partDone, itemDone, completed("["+whole+"]"))},
		"no pieces, items only":          {served: stream(itemDone, completed("[]"))},
		"the last event only":            {served: served{body: completed("[" + whole + "]")}},
		"the last event only, no output": {served: stream(itemDone, ev("response.completed", `"response":{"status":"completed"}`))},
		"a last event without response":  {served: stream(textDelta(0, text), ev("response.completed", ""))},
		"a last event with null":         {served: stream(textDelta(0, text), ev("response.completed", `"response":null`))},
		"a last event of another name":   {served: stream(textDelta(0, text), ev("response.done", `"response":{}`))},
		"ids that change":                {served: stream(strings.ReplaceAll(textDelta(0, first), "m0", "x"), strings.ReplaceAll(textDelta(0, second), "m0", "y"), itemDone, completed("["+whole+"]"))},
		"no indexes":                     {served: stream(ev("response.output_text.delta", `"delta":`+first), ev("response.output_text.delta", `"delta":`+second), textDone, completed("["+whole+"]"))},
		"indexes as strings":             {served: stream(strings.ReplaceAll(textDelta(1, text), `"output_index":1`, `"output_index":"1"`), completed("[]"))},
		"another index":                  {served: stream(textDelta(7, first), textDelta(7, second), completed("[]"))},
		"two parts of one message":       {served: stream(textDelta(0, first), ev("response.output_text.delta", `"output_index":0,"content_index":1,"delta":`+second), completed("[]"))},
		"no names of events":             {served: served{body: strings.ReplaceAll(strings.ReplaceAll(created+textDelta(0, text)+completed("[]"), "event: response.", ": "), "event: ", ": ")}},
		"a split character":              {served: stream(textDelta(0, `"{\"title\":\"Call \ud83d"`), textDelta(0, `"\ude00\",\"urgent\":true}"`), completed("[]"))},
		"delta as a part":                {served: stream(textDelta(0, part), completed("[]"))},
		"keep-alives":                    {served: stream(": ping\n\n", textDelta(0, first), "data:\n\n", ev("keepalive", `"sequence_number":3`), ev("ping", ""), textDelta(0, second), completed("[]"))},
		"unknown events":                 {served: stream(ev("response.new_thing.delta", `"delta":{"a":[1]}`), textDelta(0, text), ev("response.output_text.annotation.added", `"annotation":{}`), completed("[]"))},
		"unknown items":                  {served: served{body: completed(`[{"type":"web_search_call"},{"type":"image_generation_call","result":"AAAA"},` + whole + `]`)}},
		"carriage returns":               {served: served{body: strings.ReplaceAll(created+textDelta(0, text)+completed("[]"), "\n", "\r\n")}},
		"a byte order mark":              {served: served{body: "\ufeff" + created + textDelta(0, text) + completed("[]")}},
		"no empty line at the end":       {served: served{body: strings.TrimRight(created+textDelta(0, text)+completed("[]"), "\n")}},
		"[DONE] at the end":              {served: stream(textDelta(0, text), completed("[]"), doneEvent)},
		"[DONE] instead of the end":      {served: stream(textDelta(0, text), doneEvent), raw: "-"},
		"junk after the end":             {served: stream(textDelta(0, text), completed("[]"), "data: {\"typ")},
		"no Content-Type":                {served: served{label: "-", body: created + textDelta(0, text) + completed("[]")}},
		"text/plain":                     {served: served{label: "text/plain", body: created + textDelta(0, text) + completed("[]")}},
		"error null in each event":       {served: served{body: strings.ReplaceAll(created+textDelta(0, text)+completed("[]"), `,"output_index"`, `,"error":null,"output_index"`)}},
		"a document":                     {served: served{label: "application/json", body: document}},
		"a document on many lines":       {served: served{label: "application/json", body: strings.ReplaceAll(document, `,"output"`, ",\n \"output\"")}},
		"a document labelled as stream":  {served: served{body: document}},
		"a document without object":      {served: served{label: "application/json", body: strings.Replace(document, `"object":"response",`, `"type":"response.completed","response":{`, 1) + "}"}},
		"events that are bare responses": {served: served{body: "event: response.created\ndata: {\"object\":\"response\",\"status\":\"in_progress\",\"output\":[]}\n\n" + textDelta(0, first) + textDelta(0, second) + "event: response.completed\ndata: " + document + "\n\n"}},
		"one index for all items":        {served: served{body: created + ev("response.output_item.added", `"output_index":0,"item":`+reasoning) + ev("response.reasoning_summary_text.delta", `"output_index":0,"delta":"hm"`) + ev("response.output_item.done", `"output_index":0,"item":`+reasoning) + textDelta(0, text) + itemDone + completed("["+whole+"]")}},
		"three events only":              {served: stream(textDone, completed("["+whole+"]"))},
		"content as a string":            {served: served{label: "application/json", body: strings.Replace(document, "["+part+"]", text, 1)}},
		"after commentary": {served: stream(
			ev("response.output_item.added", `"output_index":0,"item":{"type":"message","phase":"commentary"}`), textDelta(0, `"Let me see {}"`),
			ev("response.output_item.added", `"output_index":1,"item":{"type":"message","phase":"final_answer"}`), textDelta(1, text), completed("[]"))},
		"two messages": {
			served: stream(textDelta(0, `"Here:"`), textDelta(1, text), completed("[]")),
			text:   "Here:\n\n" + wanted,
		},
		"an escaped beginning of a second message": {
			served: stream(textDelta(0, `"a"`), textDelta(1, `"\ud83d"`), textDelta(1, `"\ude00"`), completed("[]")),
			text:   "a\n\n😀",
		},
		"cut at the limit": {
			served: stream(textDelta(0, text), ev("response.incomplete", `"response":{"status":"incomplete","incomplete_details":{"reason":"max_output_tokens"},`+responseUsage+`}`)),
			stop:   provider.StopTruncated, raw: "max_output_tokens",
		},
		"cut, in a document": {
			served: served{label: "application/json", body: strings.Replace(document, `"completed","output"`, `"incomplete","incomplete_details":{"reason":"max_output_tokens"},"output"`, 1)},
			stop:   provider.StopTruncated, raw: "max_output_tokens",
		},
		"incomplete for another reason": {
			served: stream(textDelta(0, text), ev("response.incomplete", `"response":{"status":"incomplete","incomplete_details":{"reason":"bored"}}`)),
			stop:   provider.StopUnknown, raw: "bored",
		},
		"incomplete without a reason": {
			served: stream(textDelta(0, text), ev("response.incomplete", `"response":{"status":"incomplete","incomplete_details":null}`)),
			stop:   provider.StopUnknown, raw: "incomplete",
		},
		"a filter": {
			served: stream(textDelta(0, text), ev("response.incomplete", `"response":{"status":"incomplete","incomplete_details":{"reason":"content_filter"}}`)),
			stop:   provider.StopRefused, raw: "content_filter",
		},
		"a forced tool":                     {served: stream(callStart(0, "answer"), callDelta(0, first), callDelta(0, second), argsDone, callDone, completed("["+call+"]")), via: provider.ViaTool},
		"a tool in pieces only":             {served: stream(callStart(0, "answer"), callDelta(0, first), callDelta(0, second), completed("[]")), via: provider.ViaTool},
		"a tool of index 3":                 {served: stream(callStart(3, "answer"), callDelta(3, first), callDelta(3, second), completed("[]")), via: provider.ViaTool},
		"a tool without pieces":             {served: stream(callStart(0, "answer"), argsDone, callDone, completed("["+call+"]")), via: provider.ViaTool},
		"a tool as an item":                 {served: stream(callDone, completed("["+call+"]")), via: provider.ViaTool},
		"a tool at the end":                 {served: served{body: completed("[" + reasoning + "," + call + "]")}, via: provider.ViaTool},
		"a tool's split character":          {served: stream(callStart(0, "answer"), callDelta(0, `"{\"title\":\"Call \ud83d"`), callDelta(0, `"\ude00\",\"urgent\":true}"`), completed("[]")), via: provider.ViaTool},
		"arguments as an object":            {served: stream(strings.Replace(callDone, text, `{"title":"Call 😀","urgent":true}`, 1), completed("[]")), via: provider.ViaTool},
		"text instead of the tool":          {served: stream(textDelta(0, text), completed("[]")), via: provider.ViaTool},
		"text before the tool":              {served: stream(textDelta(0, `"Sure"`), callStart(1, "answer"), callDelta(1, text), completed("[]")), via: provider.ViaTool},
		"a tool that is named at its end":   {served: stream(callDelta(0, text), callDone, completed("[]")), via: provider.ViaTool},
		"another tool, with the forced one": {served: stream(callStart(0, "answer"), callDelta(0, text), callStart(1, "other"), callDelta(1, `"{}"`), completed("[]")), via: provider.ViaTool, stop: provider.StopUnknown},
		"a tool that was not offered":       {served: stream(textDelta(0, text), callStart(1, "other"), callDelta(1, `"{}"`), completed("[]")), stop: provider.StopUnknown},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			req := ask()
			req.Schema, req.SchemaName, req.Via = []byte(`{"type":"object"}`), "answer", tc.via
			var pieces []provider.Delta
			res, err := tc.call(t, compat.Config{Responses: true}, req, func(d provider.Delta) error {
				pieces = append(pieces, d)
				return nil
			})
			require.NoError(t, err)
			want := wanted
			if tc.text != "" {
				want = tc.text
			}
			require.Equal(t, want, res.Text)
			if tc.stop == "" {
				tc.stop = provider.StopClean
			}
			require.Equal(t, tc.stop, res.Stop)
			switch tc.raw {
			case "-":
				require.Empty(t, res.RawStop)
				return
			case "":
				tc.raw = "completed"
			}
			require.Equal(t, tc.raw, res.RawStop)
			providertest.Check(t, res, pieces)
		})
	}
}

// Refusals are parts of the answer, or the whole of it.
func TestResponses_ReadsRefusals(t *testing.T) {
	t.Parallel()
	refusal := `{"type":"refusal","refusal":"I can't."}`
	for name, body := range map[string]string{
		"in pieces": ev("response.refusal.delta", `"delta":"I "`) + ev("response.refusal.delta", `"delta":"can't."`) +
			ev("response.refusal.done", `"refusal":"I can't."`) + completed("["+message("["+refusal+"]")+"]"),
		"as a part":  ev("response.refusal.done", `"refusal":"I can't."`) + completed("[]"),
		"at the end": completed("[" + message("["+refusal+"]") + "]"),
		"as an item": ev("response.output_item.done", `"item":`+message("["+refusal+"]")) + completed("[]"),
		"a document": `{"object":"response","status":"completed","output":[` + message("["+refusal+"]") + `]}`,
	} {
		res, err := served{body: body}.call(t, compat.Config{Responses: true}, ask(), nil)
		require.NoError(t, err, name)
		require.Equal(t, provider.StopRefused, res.Stop, name)
		require.Equal(t, "I can't.", res.RefusalText, name)
		require.Empty(t, res.Text, name)
	}
	res, err := served{status: 400, label: "application/json", body: `{"error":{"code":"invalid_prompt","message":"flagged"}}`}.
		call(t, compat.Config{Responses: true}, ask(), nil)
	require.NoError(t, err)
	require.Equal(t, provider.StopRefused, res.Stop)
	require.Equal(t, "invalid_prompt", res.SafetyCategory)
}

func TestResponses_FindsTheUsage(t *testing.T) {
	t.Parallel()
	full := provider.Usage{InputTokens: 10, OutputTokens: 5, TotalTokens: 15, CacheReadTokens: 4, ReasoningTokens: new(3), Known: true}
	plain := provider.Usage{InputTokens: 10, OutputTokens: 5, Known: true}
	for name, tc := range map[string]struct {
		end  string
		want provider.Usage
	}{
		"in the response":     {completed("[]"), full},
		"in the event":        {ev("response.completed", `"response":{"status":"completed"},`+responseUsage), full},
		"without details":     {ev("response.completed", `"response":{"usage":{"input_tokens":10,"output_tokens":5}}`), plain},
		"in other words":      {ev("response.completed", `"response":{"usage":{"prompt_tokens":10,"completion_tokens":5}}`), plain},
		"as strings":          {ev("response.completed", `"response":{"usage":{"input_tokens":"10","output_tokens":"5"}}`), plain},
		"of a cut answer":     {ev("response.incomplete", `"response":{"status":"incomplete",`+responseUsage+`}`), full},
		"nowhere":             {ev("response.completed", `"response":{"status":"completed"}`), provider.Usage{}},
		"null":                {ev("response.completed", `"response":{"usage":null}`), provider.Usage{}},
		"of no numbers":       {ev("response.completed", `"response":{"usage":{"input_tokens":"many"}}`), provider.Usage{}},
		"negative":            {ev("response.completed", `"response":{"usage":{"input_tokens":-1,"output_tokens":-5}}`), provider.Usage{}},
		"a list":              {ev("response.completed", `"response":{"usage":[1,2]}`), provider.Usage{}},
		"larger than a count": {ev("response.completed", `"response":{"usage":{"input_tokens":1e300,"output_tokens":1e300}}`), provider.Usage{}},
	} {
		res, err := served{body: textDelta(0, `"a"`) + tc.end}.call(t, compat.Config{Responses: true}, ask(), nil)
		require.NoError(t, err, name)
		require.Equal(t, tc.want, res.Usage, name)
	}
}

// Summaries of thoughts, and thoughts of open models, are shown if they are wanted.
func TestResponses_ShowsThoughts(t *testing.T) {
	t.Parallel()
	summary := func(index int, text string) string {
		return ev("response.reasoning_summary_text.delta", fmt.Sprintf(`"output_index":0,"summary_index":%d,"delta":%q`, index, text))
	}
	item := `{"type":"reasoning","summary":[{"type":"summary_text","text":"one"},{"type":"summary_text","text":"two"}],"encrypted_content":"x"}`
	for name, tc := range map[string]struct{ body, want string }{
		"in pieces": {
			summary(0, "on") + summary(0, "e") + ev("response.reasoning_summary_text.done", `"output_index":0,"summary_index":0,"text":"one"`) +
				summary(1, "two") + ev("response.reasoning_summary_part.done", `"part":{"text":"two"}`) +
				ev("response.output_item.done", `"output_index":0,"item":`+item) + completed("["+item+"]"),
			"one\n\ntwo",
		},
		"whole":       {ev("response.reasoning_summary_text.done", `"text":"one"`) + completed("[]"), "one"},
		"at the end":  {completed("[" + item + "]"), "one\n\ntwo"},
		"open models": {ev("response.reasoning_text.delta", `"delta":"hm"`) + ev("response.reasoning_text.done", `"text":"hm"`) + completed("[]"), "hm"},
		"open models, at the end": {
			completed(`[{"type":"reasoning","summary":[],"content":[{"type":"reasoning_text","text":"hm"}]}]`), "hm",
		},
		"commentary": {
			ev("response.output_item.added", `"output_index":0,"item":{"type":"message","phase":"commentary"}`) + textDelta(0, `"look"`) + completed("[]"),
			"look",
		},
		"none": {completed("[]"), ""},
	} {
		for _, wants := range []bool{true, false} {
			req := ask()
			req.Thoughts = wants
			thoughts := ""
			body := strings.Replace(tc.body, "event: response.completed", textDelta(5, `"a"`)+"event: response.completed", 1)
			if strings.Contains(name, "at the end") { // what comes whole is read if nothing else came
				body = strings.Replace(tc.body, `"output":[`, `"output":[`+message(`"a"`)+",", 1)
			}
			res, err := served{body: body}.call(t, compat.Config{Responses: true}, req, func(d provider.Delta) error {
				thoughts += d.Thought
				return nil
			})
			require.NoError(t, err, name)
			require.Equal(t, "a", res.Text, name)
			want := tc.want
			if !wants {
				want = ""
			}
			require.Equal(t, want, thoughts, name)
		}
	}
}

// An error in a stream, in a document or by its status is what it says.
func TestResponses_ClassifiesErrors(t *testing.T) {
	t.Parallel()
	failed := func(doc string) served {
		return served{body: created + textDelta(0, `"a"`) + ev("response.failed", `"response":{"status":"failed","error":`+doc+`}`)}
	}
	event := func(members string) served { return served{body: created + ev("error", members)} }
	status := func(code int, doc string) served { return served{status: code, label: "application/json", body: doc} }
	for name, tc := range map[string]struct {
		served
		code                string
		retryable, capacity bool
		quote               string
	}{
		"failed":                 {failed(`{"code":"server_error","message":"boom"}`), provider.CodeUnavailable, true, false, "boom"},
		"failed, a rate limit":   {failed(`{"code":"rate_limit_exceeded","message":"slow"}`), provider.CodeQuota, true, true, "slow"},
		"failed, no reason":      {failed(`null`), provider.CodeUnavailable, true, false, ""},
		"failed, a string":       {failed(`"boom"`), provider.CodeUnavailable, true, false, "boom"},
		"failed, too long":       {failed(`{"code":"context_length_exceeded","message":"long"}`), provider.CodeContentTooLong, false, false, "long"},
		"failed, used up":        {failed(`{"code":"insufficient_quota","message":"pay"}`), provider.CodeQuota, false, false, "pay"},
		"failed, overloaded":     {failed(`{"code":"server_error","message":"The model is overloaded"}`), provider.CodeUnavailable, true, true, "The model is overloaded"},
		"failed without status":  {served{body: ev("response.failed", `"response":{"error":{"message":"boom"}}`)}, provider.CodeUnavailable, true, false, "boom"},
		"failed without all":     {served{body: ev("response.failed", "")}, provider.CodeUnavailable, true, false, ""},
		"cancelled":              {served{body: ev("response.cancelled", `"response":{"status":"cancelled"}`)}, provider.CodeUnavailable, true, false, ""},
		"an error event":         {event(`"code":"server_error","message":"boom","param":null`), provider.CodeUnavailable, true, false, "boom"},
		"an error event, nested": {event(`"error":{"type":"too_many_requests","code":"too_many_requests","message":"Too Many Requests"}`), provider.CodeQuota, true, true, "Too Many Requests"},
		"an error event, text":   {event(`"error":"boom"`), provider.CodeUnavailable, true, false, "boom"},
		"an error event, number": {event(`"error":7`), provider.CodeUnavailable, true, false, ""},
		"an error event, list":   {event(`"error":[{"message":"boom"}]`), provider.CodeUnavailable, true, false, "boom"},
		"an event without type":  {served{body: "data: {\"error\":{\"message\":\"boom\"}}\n\n"}, provider.CodeUnavailable, true, false, "boom"},
		"a document, 200":        {served{label: "application/json", body: `{"error":{"message":"boom"}}`}, provider.CodeUnavailable, true, false, "boom"},
		"a response, 200":        {served{label: "application/json", body: `{"object":"response","status":"failed","error":{"code":"server_error","message":"boom"}}`}, provider.CodeUnavailable, true, false, "boom"},
		"the schema": {
			status(400, `{"error":{"message":"Invalid schema for response_format 'answer'","type":"invalid_request_error","param":"text.format.schema","code":"invalid_json_schema"}}`),
			provider.CodeSchemaInvalid, false, false, "Invalid schema for response_format 'answer'",
		},
		"no such form": {
			status(400, `{"error":{"message":"text.format is not supported","param":"text.format"}}`),
			provider.CodeSchemaInvalid, false, false, "text.format is not supported",
		},
		"no summaries": {
			status(400, `{"error":{"message":"Your organization must be verified to generate reasoning summaries","param":"reasoning.summary","code":"unsupported_value"}}`),
			provider.CodeInvalidRequest, false, false, "Your organization must be verified to generate reasoning summaries",
		},
		"no interface": {status(404, `{"detail":"Not Found"}`), provider.CodeModelNotSupported, false, false, "Not Found"},
		"429":          {status(429, `{"error":{"message":"slow"}}`), provider.CodeQuota, true, true, "slow"},
		"503":          {status(503, `busy`), provider.CodeUnavailable, true, true, "busy"},
		"cut off":      {served{body: created + textDelta(0, `"a"`)}, provider.CodeUnavailable, true, false, ""},
		"nothing":      {served{}, provider.CodeUnavailable, true, false, ""},
		"garbage":      {served{body: "data: {\"type\":\n\n"}, provider.CodeUnavailable, true, false, ""},
		"a page":       {served{label: "text/html", body: "<html>"}, provider.CodeUnavailable, false, false, ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			req := ask()
			req.Schema, req.SchemaName = []byte(`{"type":"object"}`), "answer"
			_, err := tc.call(t, compat.Config{Responses: true}, req, nil)
			e, ok := provider.As(err)
			require.True(t, ok, err)
			require.Equal(t, tc.code, e.Code, e.Message)
			require.Equal(t, tc.retryable, e.Retryable, e.Message)
			require.Equal(t, tc.capacity, e.Capacity, e.Message)
			require.Equal(t, tc.quote, e.Quote)
			require.Equal(t, tc.status, e.Status)
			require.NotContains(t, e.Message, "could not be reached")
		})
	}
}

// Cut at any byte, an answer is complete or an error; its text is never another.
func TestResponses_NeverTakesAPartForTheWhole(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("SKIPPED, large, and the code under test starts no goroutine: run without -short")
	}
	part := `{"type":"output_text","text":"one two"}`
	body := created + textDelta(0, `"one "`) + textDelta(0, `"two"`) +
		ev("response.output_text.done", `"text":"one two"`) + completed("["+message("["+part+"]")+"]")
	// A server ends a body early as often as it closes the connection. The last event needs no empty line.
	whole := strings.TrimRight(body, "\n")
	for cut := range len(body) {
		res, err := served{body: body[:cut]}.call(t, compat.Config{Responses: true}, ask(), nil)
		if cut < len(whole) {
			require.Error(t, err, cut)
			continue
		}
		require.NoError(t, err, cut)
		require.Equal(t, "one two", res.Text)
	}
}

func TestResponses_PassesTheSuite(t *testing.T) { //nolint:paralleltest // the suite counts goroutines
	open := func(stall bool) func(t *testing.T) provider.Provider {
		return func(t *testing.T) provider.Provider {
			t.Helper()
			server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				_, _ = io.Copy(io.Discard, r.Body)
				w.Header().Set("Content-Type", "text/event-stream")
				_, _ = w.Write([]byte(created + textDelta(0, `"one "`)))
				_ = http.NewResponseController(w).Flush()
				if stall {
					<-r.Context().Done()
					return
				}
				_, _ = w.Write([]byte(textDelta(0, `"two"`) + completed("[]")))
			}))
			t.Cleanup(server.Close)
			p, err := compat.New(compat.Config{BaseURL: server.URL, Responses: true})
			require.NoError(t, err)
			t.Cleanup(p.Close)
			return p
		}
	}
	providertest.Run(t, open(false), providertest.Options{Request: providertest.Ask("m", "x"), Stalls: open(true)})
}

func TestResponses_ReusesItsConnection(t *testing.T) {
	t.Parallel()
	for _, early := range []bool{false, true} {
		answer := created + textDelta(0, `"a"`) + completed("[]")
		providertest.ReusesItsConnection(t, providertest.Streaming{Answer: answer, Early: early}, ask(), func(url string) (provider.Provider, error) {
			return compat.New(compat.Config{BaseURL: url, Responses: true})
		})
	}
}

func FuzzResponses(f *testing.F) {
	for _, seed := range []string{
		created + textDelta(0, `"a"`) + completed("[]"), completed("[" + message(`"a"`) + "]"), `{"object":"response"}`,
		ev("response.failed", ""), ev("error", `"error":[7]`), callStart(0, "answer") + callDelta(0, `"{"`),
	} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, body string) {
		res, err := served{body: body}.call(t, compat.Config{Responses: true}, ask(), nil)
		if err != nil {
			_, ok := provider.As(err)
			require.True(t, ok, err)
			return
		}
		require.Contains(t, []provider.StopClass{
			provider.StopClean, provider.StopTruncated, provider.StopRefused, provider.StopUnknown,
		}, res.Stop)
	})
}
