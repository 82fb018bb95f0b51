package sweep

import (
	"math/rand/v2"
	"net/http"
	"strconv"

	"github.com/stretchr/testify/require"

	"waybill.dev/waybill/test/double/openaicompat"
)

// A vendor's answers, cut into pieces as small as tokens, and all of its failures.

// pieces cuts a text at random positions, like tokens.
func pieces(text string) []string { return cutAnywhere(text, 60) }

func cutAnywhere(text string, most int) []string {
	r := rand.New(rand.NewPCG(3, uint64(len(text)))) //nolint:gosec // G404: reproducible on purpose
	var out []string
	for runes := []rune(text); len(runes) > 0; {
		n := min(1+r.IntN(most), len(runes))
		out, runes = append(out, string(runes[:n])), runes[n:]
	}
	return out
}

// asked scripts the vendor's answer to a run in a planted way.
func (r *rig) asked(b batch, workflowID string, reply openaicompat.Reply) string {
	r.t.Helper()
	r.vendor.Enqueue(reply)
	r.collect()
	shown := r.run(map[string]any{"workflowId": workflowID, "inputs": map[string]any{"text": b.at("prompt")}})
	requests := r.collect()["vendor"]
	require.NotEmpty(r.t, requests, "the vendor was not called")
	want := max(reply.Status, http.StatusOK)
	require.Equal(r.t, want, requests[0].Status, "the vendor gave another answer than the one that is planted: %.3000s", requests[0].Body)
	r.prove(b, string(requests[0].Body), "prompt")
	return shown
}

// statuses are the error statuses of vendors.
var statuses = []int{400, 401, 402, 403, 404, 408, 409, 413, 422, 429, 500, 502, 503}

// vendors plants in a vendor's answers; i selects the statuses of this batch.
func (r *rig) vendors(b batch, i int) {
	r.t.Helper()
	shown := r.asked(b, "vendor-ask", openaicompat.Reply{Thoughts: cutAnywhere(b.at("vendor's thought"), 400), Pieces: pieces(b.at("vendor's prose"))})
	r.prove(b, shown, "vendor's thought", "vendor's prose")
	r.thought(b, "n", "vendor's thought")
	note := envelope(b, closedKind, map[string]any{"note": b.at("vendor's payload")})
	shown = r.asked(b, "vendor-take", openaicompat.Reply{Pieces: pieces("so be it: " + note)})
	require.Contains(r.t, shown, `"type":"artifact.created"`, b.name)
	r.prove(b, shown, "vendor's payload")
	shown = r.asked(b, "vendor-structured", openaicompat.Reply{Pieces: cutAnywhere(`{"a":"`+eachUnit(b.at("escaped answer"), `\u%04x`)+`"}`, 400)})
	r.prove(b, shown, "escaped answer")
	shown = r.asked(b, "vendor-ask", openaicompat.Reply{Pieces: cutAnywhere(eachUnit(b.at("escaped prose"), `\u%04X`), 400)})
	require.Contains(r.t, shown, `"type":"run.completed"`)
	shown = r.asked(b, "vendor-ask", openaicompat.Reply{Refusal: b.at("declining elsewhere")})
	r.prove(b, shown, "declining elsewhere")
	one := oneLine(b.items[i%len(b.items)].text)
	r.asked(b, "vendor-ask", openaicompat.Reply{Pieces: pieces("fine"), FinishReason: one, Model: one, ToolCalls: []openaicompat.ToolCall{
		{ID: one, Name: one, Arguments: mustJSON(map[string]string{"a": b.at("argument")})},
	}})
	r.asked(b, "vendor-ask", openaicompat.Reply{Pieces: pieces("half of " + b.at("broken stream")), End: openaicompat.EndCut})
	r.asked(b, "vendor-ask", openaicompat.Reply{End: openaicompat.EndError, Code: one, Type: one, Message: b.at("error in a stream")})
	r.asked(b, "vendor-ask", openaicompat.Reply{ContentType: "text/event-stream", Raw: "data: {" + b.at("no JSON") + "\n\n"})
	r.asked(b, "vendor-ask", openaicompat.Reply{ContentType: "text/html", Raw: b.at("no stream")})
	some := statuses
	if i > 0 { // all of them once
		some = []int{statuses[i%len(statuses)], statuses[(i+5)%len(statuses)]}
	}
	few := batch{name: b.name, items: b.items[:1], sep: b.sep} // in the prompt, which is constant
	for _, status := range some {
		shown := r.asked(few, "vendor-ask", openaicompat.Reply{
			Status: status, Code: one, Type: one, Param: one, Message: b.at("error " + strconv.Itoa(status)), RetryAfter: one,
			Header: http.Header{"X-Request-Id": {one}, "Openai-Organization": {one}, "Www-Authenticate": {one}},
		})
		require.Contains(r.t, shown, `"type":"run.failed"`)
	}
}
