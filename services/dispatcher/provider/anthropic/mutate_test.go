package anthropic_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"waybill.dev/waybill/services/dispatcher/provider"
	"waybill.dev/waybill/services/dispatcher/provider/providertest"
	double "waybill.dev/waybill/test/double/anthropic"
)

// An answer, streamed and not, in all mutations: the right answer or an error. Cut at any byte it is
// complete or an error; its text is never a part.
func TestMutations_GiveTheAnswerOrAnError(t *testing.T) {
	t.Parallel()
	text := func(piece string) string {
		return `{"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":"` + piece + `"}}`
	}
	streamed := stream(evStart, evText, text("one "), text("two"), evShut, evEnd, evStop).Raw
	document := `{"type":"message","role":"assistant","model":"m","content":[{"type":"text","text":"one two"}],"stop_reason":"end_turn","usage":{"input_tokens":3,"output_tokens":4}}`
	r := newRig(t, nil)
	answer := func(label, body string) (provider.Result, error) {
		r.server.Enqueue(double.Reply{ContentType: label, Raw: body})
		return r.Call(t.Context(), ask(), nil)
	}
	for kind, mutated := range providertest.SameStreams(streamed) {
		res, err := answer(eventStream, mutated)
		require.NoError(t, err, kind)
		require.Equal(t, "one two", res.Text, kind)
		require.Equal(t, provider.StopClean, res.Stop, kind)
	}
	for label, body := range map[string]string{eventStream: streamed, "application/json": document} {
		whole := 0
		for cut := 1; cut < len(body); cut++ {
			res, err := answer(label, body[:cut])
			if err != nil {
				continue
			}
			whole++
			require.Equal(t, "one two", res.Text, "%d of %q", cut, body)
		}
		require.Less(t, whole, len(body)/2, "most cuts are errors")
	}
}

// The same for the call of a tool, in each form in which servers send its input.
func TestMutations_OfACall(t *testing.T) {
	t.Parallel()
	const want = `{"title":"a } b","urgent":true}`
	begin := func(input string) string {
		return `{"type":"content_block_start","index":0,"content_block":{"type":"tool_use","id":"t","name":"answer","input":` + input + `}}`
	}
	piece := func(json string) string {
		return `{"type":"content_block_delta","index":0,"delta":{"type":"input_json_delta","partial_json":"` + strings.ReplaceAll(json, `"`, `\"`) + `"}}`
	}
	used := strings.Replace(evEnd, "end_turn", "tool_use", 1)
	r := newRig(t, nil)
	answer := func(label, body string) (provider.Result, error) {
		r.server.Enqueue(double.Reply{ContentType: label, Raw: body})
		return r.Call(t.Context(), tool.ask(), nil)
	}
	for form, tc := range map[string]struct{ label, body string }{
		"in pieces":   {eventStream, stream(evStart, begin("{}"), piece(want[:12]), piece(want[12:]), evShut, used, evStop).Raw},
		"in one":      {eventStream, stream(evStart, begin(want), evShut, used, evStop).Raw},
		"after prose": {eventStream, stream(evStart, evText, evA, evShut, strings.Replace(begin("{}"), `"index":0`, `"index":1`, 1), strings.Replace(piece(want), `"index":0`, `"index":1`, 1), strings.Replace(evShut, `"index":0`, `"index":1`, 1), used, evStop).Raw},
		"a document":  {"application/json", `{"type":"message","role":"assistant","model":"m","content":[{"type":"tool_use","id":"t","name":"answer","input":` + want + `}],"stop_reason":"tool_use","usage":{"input_tokens":3,"output_tokens":4}}`},
	} {
		if tc.label == eventStream {
			for kind, mutated := range providertest.SameStreams(tc.body) {
				res, err := answer(tc.label, mutated)
				require.NoError(t, err, "%s, %s", form, kind)
				require.JSONEq(t, want, res.Text, "%s, %s", form, kind)
				require.Equal(t, provider.StopClean, res.Stop, "%s, %s", form, kind)
			}
		}
		whole := 0
		for cut := 1; cut < len(tc.body); cut++ {
			if res, err := answer(tc.label, tc.body[:cut]); err == nil {
				whole++
				require.JSONEq(t, want, res.Text, "%s, %d of %q", form, cut, tc.body)
			}
		}
		require.Less(t, whole, len(tc.body)/2, "most cuts are errors")
	}
}
