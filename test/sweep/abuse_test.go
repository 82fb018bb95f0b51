package sweep

import (
	"bytes"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/stretchr/testify/require"
)

// Caller input outside a run's data: definitions, idempotency keys, reasons, test seams. Also
// panics of handlers and nodes.

// definitions plants secrets in every place of a definition. Each definition must be rejected,
// because definitions are returned unchanged.
func (r *rig) definitions(b batch) {
	r.t.Helper()
	text := mustJSON(b.at("definition"))
	whole := workflow("planted", node("n", "core.ai.callPrompt", `{`+scripted+`,"prompt":"p"}`, `{"x":{"type":"static","value":"v"}}`))
	for _, change := range [][2]string{
		{`"prompt":"p"`, `"prompt":` + text},
		{`"prompt":"p"`, `"prompt":"p",` + text + `:1`},
		{`"value":"v"`, `"value":` + text},
		{`"name":"n"`, `"name":` + text},
		{`"metadata":{}`, `"metadata":{"description":` + text + `}`},
		{`"typeId":"core.ai.callPrompt"`, `"typeId":` + text},
		{`"id":"n"`, `"id":` + text},
		{`"id":"planted"`, `"id":` + text},
		{`"version":"1"`, `"version":` + text},
		{`"name":"text"`, `"name":"text","defaultValue":` + text},
	} {
		r.refuseDefinition(whole, change[0], change[1])
	}
	flow := graph("planted", []string{strings.Replace(follows("call", "gate"), `{`, `{"condition":{"type":"equals","left":"l","right":"r"},`, 1)},
		node("gate", "core.approvalGate", `{"title":"t","description":"d","actions":["accept"],"approversList":["who"]}`, "{}"),
		node("call", "core.subWorkflow", `{"workflowId":"nowhere","inputMapping":{"to":"from"}}`, "{}"),
		node("ask", "core.clarificationGate", `{"questions":[{"id":"q","question":"which?","schema":{"const":1}}]}`, "{}"),
		node("wait", "core.interrupt", `{"kind":"external-event","data":{"eventType":"paid","correlation":{"order":7}}}`, "{}"),
		node("say", "core.channelWrite", `{"channelName":"c","reducer":"append","value":"v"}`, "{}"),
		node("make", "core.noop", "{}", `{"x":{"type":"expression","expression":"variables.text"}}`))
	for _, name := range []string{"t", "d", "who", "nowhere", "to", "from", "q", "which?", "paid", "order", "c", "v", "l", "r", "variables.text"} {
		r.refuseDefinition(flow, mustJSON(name), text)
	}
	r.refuseDefinition(flow, "variables.text", "variables["+strings.Trim(mustJSON(mustJSON(b.at("expression"))), `"`)+"]")
}

// refuseDefinition plants in one place of a definition, which must then be rejected.
func (r *rig) refuseDefinition(whole, old, planted string) {
	r.t.Helper()
	doc := strings.Replace(whole, old, planted, 1)
	require.NotEqual(r.t, whole, doc, old)
	r.refuse(http.MethodPost, "/v1/workflows", doc)
}

// keyed plants in the Idempotency-Key and repeats the request: unchanged, with another body, and
// one that always fails.
func (r *rig) keyed(b batch) {
	r.t.Helper()
	for i := 0; i < len(b.items); i += 11 {
		key := strings.Map(func(c rune) rune {
			if c <= ' ' || c > '~' {
				return '.'
			}
			return c
		}, b.items[i].text)
		if len(key) > 255 {
			continue
		}
		request := map[string]any{"workflowId": "echo", "inputs": map[string]any{"text": b.items[i].text}}
		r.run(request, "Idempotency-Key", key)
		again := r.do(http.MethodPost, "/v1/runs", mustJSON(request), "Idempotency-Key", key)
		require.Equal(r.t, http.StatusCreated, again.Status, "%s", again.Body)
		request["metadata"] = map[string]any{b.items[i].text: b.items[i].text}
		r.refuse(http.MethodPost, "/v1/runs", mustJSON(request), "Idempotency-Key", key)
		for range 2 {
			r.refuse(http.MethodPost, "/v1/runs", `{"workflowId":"none","inputs":{`+mustJSON(b.items[i].text)+`:1}}`, "Idempotency-Key", "f"+key)
			r.refuse(http.MethodPost, "/v1/workflows", `{"id":`+mustJSON(b.items[i].text)+`}`, "Idempotency-Key", "w"+key)
			r.refuse(http.MethodPost, "/v1/runs/"+url.PathEscape(b.items[i].text)+"/cancel", `{"reason":`+mustJSON(b.items[i].text)+`}`, "Idempotency-Key", "c"+key)
		}
		r.refuse(http.MethodPost, "/v1/runs", mustJSON(request), "Idempotency-Key", key+" "+strings.Repeat("x", 255))
	}
}

// panics plants in the panic values of a node and two handlers.
func (r *rig) panics(b batch) {
	r.t.Helper()
	r.program(askNode, map[string]any{"panic": b.at("panic of a node")})
	shown := r.run(map[string]any{"workflowId": "ask", "inputs": map[string]any{"text": "x"}})
	require.Contains(r.t, shown, `"code":"internal_error"`)
	for _, where := range []string{"handler", "call"} {
		a := r.do(http.MethodPost, seams+"test/panic", mustJSON(map[string]any{"where": where, "text": b.at("panic of a " + where)}))
		require.Equal(r.t, http.StatusInternalServerError, a.Status, "%s", a.Body)
		r.refused++
	}
	r.panicked += 3
	require.Eventually(r.t, func() bool { return bytes.Count(r.out.bytes(), []byte(`msg="panic in `)) == r.panicked }, 30*time.Second, 5*time.Millisecond)
}

// strangers plants in invalid credentials.
func (r *rig) strangers(text string) {
	r.t.Helper()
	text = oneLine(text)
	stranger := *r.client
	stranger.Key = ""
	paths := []string{"/v1/runs", "/v1/nothing?q=" + url.QueryEscape(text), seams + "test/reset"}
	for i, header := range []string{text, "Basic " + text, "Bearer" + text, "Bearer  not " + text, "bearer not\t" + text, "Bearer not " + text + "," + text, "Digest username=\"" + text + "\""} {
		a := r.as(&stranger, http.MethodGet, paths[i%len(paths)], "", "Authorization", header)
		require.Equal(r.t, http.StatusUnauthorized, a.Status, "%s", header)
		r.refused++
	}
}
