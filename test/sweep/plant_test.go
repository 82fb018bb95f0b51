package sweep

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/stretchr/testify/require"

	"waybill.dev/waybill/test/double/openaicompat"
)

func workflow(id, nodes string) string {
	return `{"id":"` + id + `","name":"n","version":"1","nodes":[` + nodes + `],"edges":[],"triggers":[],"variables":[{"name":"text","type":"string"}],"metadata":{},"settings":{}}`
}

// graph returns a workflow of several nodes.
func graph(id string, edges []string, nodes ...string) string {
	return strings.Replace(workflow(id, strings.Join(nodes, ",")), `"edges":[]`, `"edges":[`+strings.Join(edges, ",")+`]`, 1)
}

// node returns a node that fails when its model has no capacity, because failing servers are part
// of the sweep.
func node(id, typ, config, inputs string) string {
	settings := ""
	if strings.HasPrefix(typ, "core.ai.") {
		settings = `,"settings":{"retry":{"onCapacity":"fail"}}`
	}
	return `{"id":"` + id + `","typeId":"` + typ + `","name":"n","position":{"x":0,"y":0},"config":` + config + `,"inputs":` + inputs + settings + `}`
}

// The scripted nodes.
const (
	askNode        = "sweep-ask"
	takeNode       = "sweep-take"
	structuredNode = "sweep-structured"
	strictNode     = "sweep-strict"
)

// kind is an envelope kind with any payload; closedKind has a schema that vendors can enforce.
const (
	kind       = "vendor.waybill.sweep.note"
	closedKind = "vendor.waybill.sweep.closed"
)

// kinds writes a folder with those kinds.
func kinds(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	for name, closed := range map[string]bool{kind: false, closedKind: true} {
		doc := fmt.Sprintf(`{"$schema":"https://json-schema.org/draft/2020-12/schema","title":"note","x-schemaVersion":1,"type":"object","additionalProperties":%t,`+
			`"required":["note"],"properties":{"note":{"type":"string"}}}`, !closed)
		require.NoError(t, os.WriteFile(filepath.Join(dir, name+".schema.json"), []byte(doc), 0o600))
	}
	return dir
}

// The models: a scripted one, and one at a vendor's address.
const (
	scripted = `"provider":"mock","model":"m"`
	distant  = `"provider":"vendor","model":"` + openaicompat.DefaultModel + `"`
)

func structured(id, model, schema string) string {
	return node(id, "core.ai.structuredOutput", `{`+model+`,"prompt":"sort {{text}}","outputSchema":`+schema+`}`, "{}")
}

func ask(id, model string) string {
	return node(id, "core.ai.callPrompt", `{`+model+`,"prompt":"sort {{text}}"}`, "{}")
}

func (r *rig) deploy() {
	r.t.Helper()
	r.listen()
	for _, doc := range append(familyFlows(), []string{
		workflow("echo", node("a", "core.identity", "{}", `{"text":{"type":"variable","variableName":"text"}}`)),
		workflow("ask", ask(askNode, scripted)),
		workflow("take", ask(takeNode, scripted+`,"envelopeType":"`+kind+`"`)),
		workflow("structured", structured(structuredNode, scripted, `{"type":"object"}`)),
		workflow("strict", structured(strictNode, scripted, `{"type":"object","additionalProperties":false,"required":["a"],"properties":{"a":{"enum":["x"]}}}`)),
		strings.Replace(workflow("tools", node(askNode, "core.ai.callPrompt", `{`+scripted+`}`, `{"messages":{"type":"variable","variableName":"text"}}`)),
			`"type":"string"}]`, `"type":"array"}]`, 1),
		strings.Replace(workflow("wait", node("n", "core.delay", `{"ms":3600000}`, "{}")), `"name":"text"`, `"name":"none"`, 1),
		workflow("vendor-ask", ask("n", distant+`,"thoughts":true`)),
		workflow("vendor-take", ask("n", distant+`,"envelopeType":"`+closedKind+`"`)),
		workflow("vendor-structured", structured("n", distant, `{"type":"object","additionalProperties":false,"required":["a"],"properties":{"a":{"type":"string"}}}`)),
		workflow("vendor-asks", ask("n", distant+`,"envelopeType":"`+kind+`"`)),
		talkFlow(), relayFlow(), failFlow(), waitsFlow(), channelsFlow(), expressionsFlow(),
	}...) {
		a := r.do(http.MethodPost, "/v1/workflows", doc)
		require.Equal(r.t, http.StatusCreated, a.Status, "%s", a.Body)
	}
}

func mustJSON(v any) string {
	b, _ := json.Marshal(v) // texts, maps and lists only
	return string(b)
}

// requests plants in a caller's run request. Tags, metadata and URLs are short: there the batch is
// split.
func (r *rig) requests(b batch) {
	r.t.Helper()
	shown := r.run(map[string]any{"workflowId": "echo", "inputs": map[string]any{
		"text": b.at("input"), "more": map[string]any{b.at("name of an input"): []any{b.at("input in a list")}},
	}})
	r.prove(b, shown, "input", "name of an input", "input in a list")
	const most = 3000 // of 8 KiB of metadata: planted text can be longer in JSON
	for _, part := range b.cut(most / 2) {
		shown := r.run(map[string]any{
			"workflowId": "echo", "inputs": map[string]any{"text": "x"}, "metadata": map[string]any{"m": part.at("metadata")},
			"configurable": map[string]any{"own": part.at("configurable"), part.at("name in configurable"): true},
		})
		r.prove(part, shown, "metadata", "configurable", "name in configurable")
		shown = r.run(map[string]any{"workflowId": "echo", "inputs": map[string]any{"text": "x"}, "metadata": map[string]any{part.at("name in metadata"): 1}})
		r.prove(part, shown, "name in metadata")
	}
	r.tags(b)
}

// toolResults plants in a tool's result to a model, which is part of the conversation.
func (r *rig) toolResults(b batch) {
	r.t.Helper()
	r.program(askNode, map[string]any{"content": "fine"})
	shown := r.run(map[string]any{"workflowId": "tools", "inputs": map[string]any{"text": []any{
		map[string]any{"role": "user", "content": "look it up"}, map[string]any{"role": "tool", "content": b.at("tool's result")},
	}}})
	r.prove(b, shown, "tool's result")
	require.Contains(r.t, shown, `"type":"run.completed"`)
}

// fits reports whether a text is a valid tag.
func fits(text string) bool {
	const most = 200 // of 256: the place is part of the text
	return utf8.RuneCountInString(text) <= most
}

// tags plants one secret in each tag. A tag that is too long is rejected.
func (r *rig) tags(b batch) {
	r.t.Helper()
	var (
		tags []string
		fit  []batch
	)
	for i, it := range b.items {
		one := batch{name: b.name, items: []item{it}}
		tag := one.at(fmt.Sprint("tag ", i))
		if !fits(it.text) {
			r.refuse(http.MethodPost, "/v1/runs", mustJSON(map[string]any{"workflowId": "echo", "tags": []string{tag + strings.Repeat("x", 100)}}))
			continue
		}
		tags, fit = append(tags, tag), append(fit, one)
	}
	if len(tags) == 0 {
		return
	}
	shown := r.run(map[string]any{"workflowId": "echo", "inputs": map[string]any{"text": "x"}, "tags": tags})
	for i, one := range fit {
		place, _, _ := strings.Cut(strings.TrimPrefix(tags[i], "(at "), ")")
		r.prove(one, shown, place)
	}
}

// program scripts the model.
func (r *rig) program(nodeID string, entries ...map[string]any) {
	r.t.Helper()
	a := r.do(http.MethodPost, seams+"test/mock-ai/program", mustJSON(map[string]any{"nodeId": nodeID, "program": entries}))
	require.Equal(r.t, http.StatusOK, a.Status, "%s", a.Body)
}

// envelope returns an envelope with a secret where the protocol allows only a short text.
func envelope(b batch, kind string, payload map[string]any) string {
	short := b.short()
	return mustJSON(map[string]any{
		"type": kind, "payload": payload, "correlationId": short, "envelopeId": short,
		"meta": map[string]any{
			"label": short, "rendering": map[string]any{"title": b.at("title")}, "source": "ai-generation", "ts": "2026-01-31T12:00:00Z",
		},
	})
}

// say scripts the model and runs it. Each entry must be used: a model call is recorded with its
// usage.
func (r *rig) say(b batch, workflowID, nodeID string, entries ...map[string]any) string {
	r.t.Helper()
	r.program(nodeID, entries...)
	shown := r.run(map[string]any{"workflowId": workflowID, "inputs": map[string]any{"text": b.at("prompt")}})
	const used = `"type":"provider.usage"`
	// The seam shows the events again.
	require.GreaterOrEqual(r.t, strings.Count(shown, used), 2*len(entries), "%s: an answer was never asked for", b.name)
	r.prove(b, shown, "prompt")
	return shown
}

// answers plants in a model's answers: payloads, names, labels, ids, prose and refusals; complete,
// invalid and truncated.
func (r *rig) answers(b batch) {
	r.t.Helper()
	note := map[string]any{"note": b.at("payload"), "details": map[string]any{b.at("name in a payload"): []any{b.at("bag")}}}
	shown := r.say(b, "take", takeNode, map[string]any{"content": "so be it: " + envelope(b, kind, note)})
	require.Contains(r.t, shown, `"type":"artifact.created"`)
	r.prove(b, shown, "payload", "name in a payload", "bag")
	shown = r.say(b, "ask", askNode, map[string]any{"content": b.at("prose")})
	r.prove(b, shown, "prose")
	shown = r.say(b, "ask", askNode, map[string]any{"content": b.at("refused prose"), "refusalText": b.at("declining")})
	r.prove(b, shown, "refused prose", "declining")
	r.say(b, "structured", structuredNode, map[string]any{"content": b.at("prose")})
	r.say(b, "structured", structuredNode, map[string]any{"content": "[" + b.at("broken JSON")})
	shown = r.say(b, "structured", structuredNode, map[string]any{"content": `{"a":` + mustJSON(b.at("answer")) + `,` + mustJSON(b.at("name in an answer")) + `:1}`})
	r.prove(b, shown, "answer", "name in an answer")
	cut := mustJSON(b.at("answer that is cut"))
	r.say(b, "structured", structuredNode, map[string]any{"content": `{"cut":` + cut[:len(cut)*2/3], "stopReason": "max_tokens"})
	wrong := map[string]any{"content": `{"a":` + mustJSON(b.at("value that is wrong")) + `,` + mustJSON(b.at("name that is wrong")) + `:1}`}
	r.say(b, "strict", strictNode, wrong, wrong, wrong)
}

// wrong plants one secret at a time in requests that are rejected.
func (r *rig) wrong(b batch) {
	r.t.Helper()
	for i := 0; i < len(b.items); i += 7 {
		text := b.items[i].text
		segment := url.PathEscape(text)
		for _, path := range []string{"/v1/runs/" + segment, "/v1/workflows/" + segment, "/v1/runs/" + segment + "/events", "/schemas/envelopes/" + segment, "/v1/nothing/" + segment, "/v1/runs?status=" + url.QueryEscape(text), "/v1/runs?cursor=" + url.QueryEscape(text)} {
			r.refuse(http.MethodGet, path, "")
		}
		quotedText := mustJSON(text)
		for _, body := range []string{
			`{"workflowId":` + quotedText + `}`, `{"workflowId":"echo",` + quotedText + `:1}`, `{"workflowId":"echo","inputs":` + quotedText + `}`, `{"workflowId":"echo"` + text,
			`{"workflowId":"echo","inputs":{"text":"x"},"configurable":{"ai.provider":` + quotedText + `}}`,
		} {
			r.refuse(http.MethodPost, "/v1/runs", body)
		}
		r.refuse(http.MethodPost, "/v1/workflows", strings.Replace(workflow("bad", node("n", "core.noop", "{}", "{}")), `"settings":{}`, `"settings":{`+quotedText+`:1},`+quotedText+`:1`, 1))
		r.headers(text)
		r.strangers(text)
	}
}

// headers plants in headers that can hold the text.
func (r *rig) headers(text string) {
	r.t.Helper()
	text = oneLine(text)
	r.refuse(http.MethodPost, "/v1/runs", `{"workflowId":"echo","inputs":{"text":"x"}}`, "X-Custom", text, "Traceparent", text, "X-Force-Engine-Version", text)
	wrongKey := *r.client
	wrongKey.Key = "not " + text // one of them is the key
	a := r.as(&wrongKey, http.MethodGet, "/v1/runs", "")
	require.Equal(r.t, http.StatusUnauthorized, a.Status)
	r.refused++
}

func oneLine(text string) string {
	return strings.Map(func(c rune) rune {
		if c < ' ' || c > '~' {
			return '.'
		}
		return c
	}, text)
}
