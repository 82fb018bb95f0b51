package compat_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"waybill.dev/waybill/services/dispatcher/provider"
	"waybill.dev/waybill/services/dispatcher/provider/compat"
)

// Streams of the Responses API of other servers and gateways, as they were reported.
func TestResponses_ReadsOddStreams(t *testing.T) {
	t.Parallel()
	text := `"{\"title\":\"Call 😀\",\"urgent\":true}"`
	first, second := `"{\"title\":\"Call"`, `" 😀\",\"urgent\":true}"`
	part := `{"type":"output_text","text":` + text + `}`
	pieces := textDelta(0, first) + textDelta(0, second)
	call := `{"type":"function_call","call_id":"c","name":"answer","arguments":` + text + `}`
	doc := func(output string) served {
		return served{label: "application/json", body: `{"object":"response","status":"completed","model":"m","output":` + output + `}`}
	}
	for name, tc := range map[string]struct {
		served
		via  provider.SchemaVia
		stop provider.StopClass
	}{
		"LiteLLM, no object around the end":   {served: served{body: ev("response.completed", `"output":[`+message("["+part+"]")+`]`)}},
		"LiteLLM, the same after pieces":      {served: served{body: pieces + ev("response.completed", `"output":[`+message("["+part+"]")+`]`) + doneEvent}},
		"only created, in progress, the end":  {served: served{body: ev("response.created", `"response":{}`) + ev("response.in_progress", `"response":{}`) + completed("["+message("["+part+"]")+"]")}},
		"error as an empty object":            {served: served{body: strings.ReplaceAll(pieces+completed("[]"), `,"output_index"`, `,"error":{},"output_index"`)}},
		"error false":                         {served: served{body: strings.ReplaceAll(pieces+completed("[]"), `,"output_index"`, `,"error":false,"output_index"`)}},
		"error empty in the response":         {served: served{body: pieces + ev("response.completed", `"response":{"status":"completed","error":{}}`)}},
		"error as empty text in the response": {served: served{body: pieces + ev("response.completed", `"response":{"status":"completed","error":""}`)}},
		"incomplete_details empty":            {served: served{body: pieces + ev("response.completed", `"response":{"status":"completed","incomplete_details":{}}`)}},
		"output null at the end":              {served: served{body: pieces + ev("response.completed", `"response":{"status":"completed","output":null}`)}},
		"output as an object":                 {served: served{body: pieces + ev("response.completed", `"response":{"status":"completed","output":{}}`)}},
		"usage in another place":              {served: served{body: pieces + ev("response.completed", `"response":{"status":"completed"},"usage":{"input_tokens":1}`)}},
		"a status in capitals":                {served: served{body: pieces + ev("response.completed", `"response":{"status":"COMPLETED"}`)}},
		"delta null first":                    {served: served{body: ev("response.output_text.delta", `"output_index":0,"delta":null`) + pieces + completed("[]")}},
		"delta as an object of text":          {served: served{body: ev("response.output_text.delta", `"output_index":0,"delta":{"text":`+text+`}`) + completed("[]")}},
		"an item as null":                     {served: served{body: ev("response.output_item.added", `"output_index":0,"item":null`) + pieces + completed("[]")}},
		"no type, names of events":            {served: served{body: "event: response.output_text.delta\ndata: {\"output_index\":0,\"delta\":" + text + "}\n\nevent: response.completed\ndata: {\"response\":{\"status\":\"completed\"}}\n\n"}},
		"one line feed each":                  {served: served{body: strings.ReplaceAll(pieces+completed("[]"), "\n\n", "\n")}},
		"a word to keep alive":                {served: served{body: strings.ReplaceAll(pieces, "\n\n", "\n\ndata: ping\n\n") + completed("[]")}},
		"a document, output_text alone":       {served: served{label: "application/json", body: `{"object":"response","status":"completed","output":[],"output_text":` + text + `}`}},
		"a document, content as text":         {served: doc(`[` + message(text) + `]`)},
		"a document, content of one part":     {served: doc(`[` + message(part) + `]`)},
		"a document, parts of type text":      {served: doc(`[` + message(`[{"type":"text","text":`+text+`}]`) + `]`)},
		"a document, one item":                {served: doc(message("[" + part + "]"))},
		"a document, null items":              {served: doc(`[null,` + message("["+part+"]") + `]`)},
		"a document, reasoning first":         {served: doc(`[{"type":"reasoning","summary":[],"content":[{"type":"reasoning_text","text":"hm {"}]},` + message("["+part+"]") + `]`)},
		"a document, reasoning as text":       {served: doc(`[{"type":"reasoning","content":"hm {"},` + message("["+part+"]") + `]`)},
		"a call, arguments as an object":      {served: doc(`[{"type":"function_call","name":"answer","arguments":{"title":"Call 😀","urgent":true}}]`), via: provider.ViaTool},
		"a call, a name with a namespace":     {served: doc(`[` + strings.Replace(call, `"answer"`, `"functions.answer"`, 1) + `]`), via: provider.ViaTool},
		"the text so far in each piece":       {served: served{body: textDelta(0, first) + textDelta(0, `"{\"title\":\"Call 😀\",\"urgent\""`) + textDelta(0, text) + completed("[]")}},
		"the arguments so far in each":        {served: served{body: callStart(0, "answer") + callDelta(0, first) + callDelta(0, `"{\"title\":\"Call 😀\",\"urgent\""`) + callDelta(0, text) + completed("[]")}, via: provider.ViaTool},
		"a call in the text":                  {served: served{body: textDelta(0, `"[TOOL_CALLS]answer[ARGS]"`) + textDelta(0, text) + completed("[]")}, via: provider.ViaTool},
		"completed, though in progress":       {served: served{body: pieces + ev("response.completed", `"response":{"status":"in_progress"}`)}},
		"cut at the context":                  {served: served{body: pieces + ev("response.incomplete", `"response":{"status":"incomplete","incomplete_details":{"reason":"max_tokens"}}`)}, stop: provider.StopTruncated},
		"cut, in capitals":                    {served: served{body: pieces + ev("response.incomplete", `"response":{"status":"incomplete","incomplete_details":{"reason":"MAX_OUTPUT_TOKENS"}}`)}, stop: provider.StopTruncated},
		"cut, a reason of text":               {served: served{body: pieces + ev("response.incomplete", `"response":{"status":"incomplete","incomplete_details":"max_output_tokens"}`)}, stop: provider.StopTruncated},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			req := ask()
			req.Schema, req.SchemaName, req.Via = []byte(`{"type":"object"}`), "answer", tc.via
			res, err := tc.call(t, compat.Config{Responses: true}, req, nil)
			require.NoError(t, err)
			require.JSONEq(t, wanted, res.Text)
			if tc.stop == "" {
				tc.stop = provider.StopClean
			}
			require.Equal(t, tc.stop, res.Stop)
		})
	}
}
