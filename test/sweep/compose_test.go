package sweep

import (
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
)

// Prompts from templates, and models that nodes may not use.

// canarySecret is the id of the secret that prompts may reference.
const canarySecret = "openwop-conformance-canary-secret"

// templates writes a folder of templates, one per batch, with the batch in its text.
func templates(t *testing.T, batches []batch) string {
	t.Helper()
	dir := t.TempDir()
	write := func(id, kind, text string, variables ...map[string]any) {
		doc := map[string]any{"templateId": id, "version": "1.0.0", "kind": kind, "text": text, "variables": variables}
		require.NoError(t, os.WriteFile(filepath.Join(dir, id+".json"), []byte(mustJSON(doc)), 0o600))
	}
	variable := func(name, source string, required bool) map[string]any {
		return map[string]any{"name": name, "type": "string", "source": source, "required": required}
	}
	write("sweep.sort", "user", "sort {{text}}", variable("text", "variable", true))
	write("sweep.key", "system", "log in with {{key}}", variable("key", "secret", true))
	for i, b := range batches {
		preset := variable("preset", "input", false)
		preset["defaultValue"] = b.at("preset")
		write(fmt.Sprint("sweep.words-", i), "user", b.at("template")+"{{preset}}{{text}}{{port}}", preset, variable("text", "variable", true), variable("port", "input", true))
	}
	return dir
}

// composeFlow has a prompt from a batch's template. Templates belong to the operator and reach the
// model unchanged. Two more nodes require features that their model lacks.
func composeFlow(i int) string {
	port := `{"port":{"type":"variable","variableName":"text"}}`
	return graph(fmt.Sprint("compose-", i), nil,
		node("composed", "core.ai.callPrompt", `{`+scripted+`,"systemPromptRef":{"templateId":"sweep.key","variableOverrides":{"key":"`+canarySecret+`"}},"userPromptRef":"prompt:sweep.words-`+fmt.Sprint(i)+`"}`, port),
		node("thinks", "vendor.waybill.sweep.thinks", `{"prompt":"go on"}`, "{}"),
		node("sees", "vendor.waybill.sweep.sees", `{"prompt":"go on"}`, "{}"))
}

// packs writes a folder with a pack whose nodes require model features. The scripted model can
// reason and cannot see.
func packs(t *testing.T) string {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "sweep")
	require.NoError(t, os.MkdirAll(dir, 0o700))
	typ := func(name, capability string) string {
		return `{"typeId":"vendor.waybill.sweep.` + name + `","version":"1.0.0","category":"chat","role":"side-effect","requiredModelCapabilities":["` + capability + `"],"fallbackModel":{` + scripted + `}}`
	}
	for name, doc := range map[string]string{
		"pack.json":    `{"name":"vendor.waybill.sweep","version":"1.0.0","engines":{"openwop":">=1.0"},"runtime":{"language":"remote","entry":"none"},"nodes":[` + typ("thinks", "reasoning") + `,` + typ("sees", "vision-input") + `]}`,
		"waybill.json": `{"nodes":{"vendor.waybill.sweep.thinks":{"base":"core.ai.callPrompt"},"vendor.waybill.sweep.sees":{"base":"core.ai.callPrompt"}}}`,
	} {
		require.NoError(t, os.WriteFile(filepath.Join(dir, name), []byte(doc), 0o600))
	}
	return filepath.Dir(dir)
}

// composes plants in templates, in their inputs, and in the model name that a run requests. i is
// the batch's template.
func (r *rig) composes(b batch, i int) {
	r.t.Helper()
	id := fmt.Sprint("compose-", i)
	a := r.do(http.MethodPost, "/v1/workflows", composeFlow(i))
	require.Equal(r.t, http.StatusCreated, a.Status, "%s", a.Body)
	shown := r.run(map[string]any{
		"workflowId": id, "inputs": map[string]any{"text": b.at("variable")},
		"configurable": map[string]any{"ai.provider": "vendor", "ai.model": b.at("model of a run")},
	})
	require.Contains(r.t, shown, `"type":"prompt.composed"`)
	if !r.blind {
		require.Contains(r.t, shown, "log in with [REDACTED:"+canarySecret+"]")
	}
	require.Contains(r.t, shown, `"type":"model.capability.substituted"`)
	require.Contains(r.t, shown, `"type":"model.capability.insufficient"`)
	r.prove(b, shown, "template", "preset", "variable", "model of a run")
	r.gated = append(r.gated, b)
}

// seamComposes plants in the bindings of the prompt seam.
func (r *rig) seamComposes(b batch) {
	r.t.Helper()
	one := b.items[0].text
	request := map[string]any{
		"templateId": "sweep.sort", "bindings": map[string]any{"text": b.at("binding"), one: one}, "bindingTrust": map[string]any{"text": "untrusted"}, "observability": "full",
	}
	a := r.do(http.MethodPost, seams+"prompt/compose", mustJSON(request))
	require.Equal(r.t, http.StatusOK, a.Status, "%s", a.Body)
	r.prove(b, string(a.Body), "binding")
	request["templateId"] = one
	r.refuse(http.MethodPost, seams+"prompt/compose", mustJSON(request))
}

// gates fails unless the log has the decisions about the requested models, without their names.
func (r *rig) gates(log []byte) {
	r.t.Helper()
	for _, b := range r.gated {
		r.prove(b, string(log), "model of a run")
	}
}
