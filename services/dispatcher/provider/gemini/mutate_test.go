package gemini_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"waybill.dev/waybill/services/dispatcher/provider"
	"waybill.dev/waybill/services/dispatcher/provider/providertest"
)

// An answer, streamed and not, in all mutations: the right answer or an error. Cut at any byte it is
// complete or an error; its text is never a part.
func TestMutations_GiveTheAnswerOrAnError(t *testing.T) {
	t.Parallel()
	const (
		first = `{"candidates":[{"content":{"role":"model","parts":[{"text":"one "}]},"index":0}]}`
		last  = `{"candidates":[{"content":{"role":"model","parts":[{"text":"two"}]},"finishReason":"STOP","index":0}],"usageMetadata":{"promptTokenCount":8}}`
	)
	streamed := "data: " + first + "\n\ndata: " + last + "\n\n"
	r := newRig(t, nil)
	answer := func(label, body string) (provider.Result, error) {
		r.server.Enqueue(served(label, body))
		return r.Call(t.Context(), ask(), nil)
	}
	for kind, mutated := range providertest.SameStreams(streamed) {
		res, err := answer(eventStream, mutated)
		require.NoError(t, err, kind)
		require.Equal(t, "one two", res.Text, kind)
		require.Equal(t, provider.StopClean, res.Stop, kind)
	}
	for label, body := range map[string]string{eventStream: streamed, "application/json": "[" + first + "," + last + "]"} {
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

// The same for the call of a function.
func TestMutations_OfACall(t *testing.T) {
	t.Parallel()
	const (
		want = `{"title":"a } b","urgent":true}`
		said = `{"candidates":[{"content":{"role":"model","parts":[{"thought":true,"text":"hm {"}]},"index":0}]}`
		call = `{"candidates":[{"content":{"role":"model","parts":[{"functionCall":{"name":"answer","args":` + want + `}}]},"index":0}]}`
		last = `{"candidates":[{"content":{"role":"model"},"finishReason":"STOP","index":0}],"usageMetadata":{"promptTokenCount":8}}`
	)
	streamed := "data: " + said + "\n\ndata: " + call + "\n\ndata: " + last + "\n\n"
	r := newRig(t, nil)
	answer := func(label, body string) (provider.Result, error) {
		r.server.Enqueue(served(label, body))
		return r.Call(t.Context(), askVia(provider.ViaTool), nil)
	}
	for kind, mutated := range providertest.SameStreams(streamed) {
		res, err := answer(eventStream, mutated)
		require.NoError(t, err, kind)
		require.JSONEq(t, want, res.Text, kind)
		require.Equal(t, provider.StopClean, res.Stop, kind)
	}
	for label, body := range map[string]string{eventStream: streamed, "application/json": "[" + said + "," + call + "," + last + "]"} {
		whole := 0
		for cut := 1; cut < len(body); cut++ {
			if res, err := answer(label, body[:cut]); err == nil {
				whole++
				require.JSONEq(t, want, res.Text, "%d of %q", cut, body)
			}
		}
		require.Less(t, whole, len(body)/2, "most cuts are errors")
	}
}
