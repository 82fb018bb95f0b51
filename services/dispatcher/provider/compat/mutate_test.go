package compat_test

import (
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

// An answer of each interface, streamed and not, in all mutations: the right answer or an error. Cut at any
// byte it is complete or an error; its text is never a part.
func TestMutations_GiveTheAnswerOrAnError(t *testing.T) {
	t.Parallel()
	function := `{"name":"answer","arguments":` + wholeText + `}`
	chat := delta(firstHalf, "") + delta(secondHalf, "") + stopChunk + `data: {"choices":[],"usage":{"prompt_tokens":1,"completion_tokens":2}}` + "\n\n" + doneEvent
	call := chunkOf(`{"index":0,"delta":{"tool_calls":[{"index":0,"id":"c","function":{"name":"answer","arguments":`+firstHalf+`}}]}}`) +
		chunkOf(`{"index":0,"delta":{"tool_calls":[{"index":0,"function":{"arguments":`+secondHalf+`}}]}}`) + stopChunk + doneEvent
	openEnd := delta(firstHalf, "") + delta(secondHalf, "") + doneEvent
	part := `{"type":"output_text","text":` + wholeText + `}`
	for name, tc := range map[string]struct {
		body      string
		document  bool
		via       provider.SchemaVia
		responses bool
	}{
		"chat":                  {body: chat},
		"chat, no reason":       {body: openEnd},
		"chat, a tool":          {body: call, via: provider.ViaTool},
		"chat, a document":      {body: `{"choices":[{"index":0,"message":{"content":` + wholeText + `},"finish_reason":"stop"}]}`, document: true},
		"chat, a tool, whole":   {body: `{"choices":[{"index":0,"message":{"tool_calls":[{"id":"c","function":` + function + `}]},"finish_reason":"stop"}]}`, document: true, via: provider.ViaTool},
		"responses":             {body: textDelta(0, firstHalf) + textDelta(0, secondHalf) + completed("[]"), responses: true},
		"responses, the end":    {body: completed("[" + message("["+part+"]") + "]"), responses: true},
		"responses, a tool":     {body: callStart(0, "answer") + callDelta(0, firstHalf) + callDelta(0, secondHalf) + completed("[]"), responses: true, via: provider.ViaTool},
		"responses, a document": {body: `{"object":"response","status":"completed","output":[` + message("["+part+"]") + `]}`, responses: true, document: true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var body string
			server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				_, _ = io.Copy(io.Discard, r.Body)
				w.Header().Set("Content-Type", "text/event-stream")
				if tc.document {
					w.Header().Set("Content-Type", "application/json")
				}
				_, _ = io.WriteString(w, body)
			}))
			t.Cleanup(server.Close)
			p, err := compat.New(compat.Config{BaseURL: server.URL, Responses: tc.responses})
			require.NoError(t, err)
			t.Cleanup(p.Close)
			answer := func(mutated string) (provider.Result, error) {
				body = mutated
				req := ask()
				req.Schema, req.SchemaName, req.Via = []byte(`{"type":"object"}`), "answer", tc.via
				return p.Call(t.Context(), req, nil)
			}
			if !tc.document {
				for kind, mutated := range providertest.SameStreams(tc.body) {
					res, err := answer(mutated)
					require.NoError(t, err, kind)
					require.JSONEq(t, wanted, res.Text, kind)
					require.Equal(t, provider.StopClean, res.Stop, kind)
				}
			}
			whole := 0
			for cut := range len(tc.body) {
				res, err := answer(tc.body[:cut])
				if err != nil {
					continue
				}
				whole++
				require.JSONEq(t, wanted, res.Text, "%d of %q", cut, strings.TrimRight(tc.body, "\n"))
			}
			require.Less(t, whole, len(tc.body)/2, "most cuts are errors")
		})
	}
}
