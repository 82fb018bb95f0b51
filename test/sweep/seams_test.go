package sweep

import (
	"encoding/base64"
	"net/http"
	"net/url"

	"github.com/stretchr/testify/require"
)

// doors plants in the test seams, which lead to the same code.
func (r *rig) doors(b batch, runID string) {
	r.t.Helper()
	short := b.items[0].text
	payload := map[string]any{"note": b.at("wrapped"), b.at("name that is wrapped"): 1}
	for _, trust := range []string{"trusted", "untrusted"} {
		a := r.do(http.MethodPost, seams+"test/llm-prompt-wrap", mustJSON(map[string]any{
			"payload": payload, "contentTrust": trust, "source": short, "eventType": short, "attributes": map[string]string{"a": short},
		}))
		require.Equal(r.t, http.StatusOK, a.Status, "%s", a.Body)
		r.prove(b, string(a.Body), "wrapped", "name that is wrapped")
	}
	a := r.do(http.MethodPost, seams+"test/emit-provider-usage", mustJSON(map[string]any{
		"runId": runID, "payload": map[string]any{"provider": b.at("provider"), "model": b.at("model"), "inputTokens": 1, "outputTokens": 1},
	}))
	require.Equal(r.t, http.StatusOK, a.Status, "%s", a.Body)
	r.prove(b, string(a.Body), "provider", "model")
	a = r.do(http.MethodPost, seams+"test/emit-envelope-reliability", mustJSON(map[string]any{
		"runId": runID, "type": "envelope.refusal", "payload": map[string]any{"nodeId": "n", "provider": "p", "model": "m", "refusalText": b.at("refusal")},
	}))
	require.Equal(r.t, http.StatusOK, a.Status, "%s", a.Body)
	r.prove(b, string(a.Body), "refusal")
	a = r.do(http.MethodPost, seams+"test/emit-envelope", mustJSON(map[string]any{
		"runId": runID, "envelope": map[string]any{b.at("emitted envelope"): b.at("emitted envelope")},
	}))
	require.Equal(r.t, http.StatusOK, a.Status, "%s", a.Body)
	a = r.do(http.MethodPost, seams+"prompt/resolve", mustJSON(map[string]any{
		"kind": "system", "node": map[string]any{"nodeId": b.at("node of a prompt")},
	}))
	require.Equal(r.t, http.StatusOK, a.Status, "%s", a.Body)
	r.prove(b, string(a.Body), "node of a prompt")
	r.refuse(http.MethodPost, seams+"prompt/resolve", mustJSON(map[string]any{"kind": short, "node": map[string]any{"nodeId": short}}))
	r.refuse(http.MethodPost, seams+"test/synthesize-model-capability-event", mustJSON(map[string]any{"runId": short, "module": map[string]any{"requiredModelCapabilities": short}}))
	r.refuse(http.MethodPost, seams+"workflows", mustJSON(map[string]any{"workflowId": short, "nodes": []any{map[string]any{"nodeId": short, "typeId": short}}}))
	r.refuse(http.MethodPost, seams+"test/runs/"+url.PathEscape(short)+"/variables", mustJSON(map[string]any{"variables": map[string]any{b.at("variable"): b.at("variable")}}))
	r.refuse(http.MethodPost, seams+"test/emit-envelope-reliability", mustJSON(map[string]any{"runId": runID, "type": short, "payload": map[string]any{}}))
	r.refuse(http.MethodPost, seams+"a2ui/emit-surface", mustJSON(map[string]any{"runId": "s" + runID, "surface": map[string]any{b.at("surface"): b.at("surface")}}))
	for _, path := range []string{"test/runs/" + url.PathEscape(short) + "/events?type=" + url.QueryEscape(short), "test/otel/spans?runId=" + url.QueryEscape(short), url.PathEscape(short)} {
		r.do(http.MethodGet, seams+path, "")
	}
	r.refuse(http.MethodPost, seams+"test/debug-bundle/export", mustJSON(map[string]any{"runId": short}))
	r.refuse(http.MethodPost, seams+"test/capability-toggle", mustJSON(map[string]any{short: short}))
	r.refuse(http.MethodPost, seams+"media/put", mustJSON(map[string]any{
		"contentBase64": base64.StdEncoding.EncodeToString([]byte(b.at("asset"))), "contentType": "text/plain",
	}))
}
