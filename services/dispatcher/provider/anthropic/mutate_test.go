package anthropic_test

import (
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
