package e2e

import (
	"encoding/json"
	"net/http"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"waybill.dev/waybill/test/harness"
)

// packFiles are two packs: one brings a kind, the other a node that takes it.
var packFiles = map[string]string{
	"packs/notes/pack.json": `{"name":"vendor.acme.notes","version":"1.0.0","engines":{"openwop":">=1.0 <2.0.0"},
		"peerDependencies":{"host.aiEnvelope":"supported","aiProviders":"supported","providerUsage":"supported","idempotency":"supported","debugBundle":"supported"},
		"x-host-waybill-envelope-kinds":[{"kind":"vendor.acme.note","version":2,"schemaRef":"schemas/note.json"}]}`,
	"packs/notes/schemas/note.json": `{"type":"object","additionalProperties":false,"required":["text"],"properties":{"text":{"type":"string"}}}`,
	"packs/tools/pack.json": `{"name":"vendor.acme.tools","version":"1.0.0","engines":{"openwop":">=1.0"},"dependencies":{"vendor.acme.notes":"^1.0.0"},
		"runtime":{"language":"remote","entry":"https://tools.acme.example"},
		"nodes":[{"typeId":"vendor.acme.write","version":"1.0.0","category":"data","role":"side-effect","envelopeContractRef":"contracts/write.json"}]}`,
	"packs/tools/contracts/write.json": `{"accepts":["vendor.acme.note"]}`,
	"workflows/note.json": `{"id":"note","name":"Note","version":"1.0.0",
		"nodes":[` + noteNode("first") + `,
			{"id":"pause","typeId":"core.delay","name":"Pause","position":{"x":1,"y":0},"config":{"ms":3000},"inputs":{}},` + noteNode("second") + `],
		"edges":[{"id":"a","sourceNodeId":"first","targetNodeId":"pause"},{"id":"b","sourceNodeId":"pause","targetNodeId":"second"}],
		"triggers":[],"variables":[],"metadata":{},"settings":{}}`,
}

func noteNode(id string) string {
	return `{"id":"` + id + `","typeId":"core.ai.callPrompt","name":"Note","position":{"x":0,"y":0},"inputs":{},
		"config":{"envelopeType":"vendor.acme.note","prompt":"Write a note."},"envelopeContract":{"accepts":["vendor.acme.note"]}}`
}

// packFolder writes packFiles and gives the folder.
func packFolder(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	for name, text := range packFiles {
		path := filepath.Join(dir, filepath.FromSlash(name))
		require.NoError(t, os.MkdirAll(filepath.Dir(path), 0o700))
		require.NoError(t, os.WriteFile(path, []byte(text), 0o600))
	}
	return dir
}

func get(t *testing.T, c *harness.Client, path string) *harness.Answer {
	t.Helper()
	a, err := c.Do(t.Context(), http.MethodGet, path, "")
	require.NoError(t, err)
	return a
}

// What a host says about a vendor's kind.
type discovered struct {
	SupportedEnvelopes []string
	SchemaVersions     map[string]int
}

func discover(t *testing.T, c *harness.Client) (d discovered) {
	t.Helper()
	a := get(t, c, "/.well-known/openwop")
	require.Equal(t, http.StatusOK, a.Status)
	require.NoError(t, a.JSON(&d))
	return d
}

// OpenWOP envelope contract §4: discovery, serving and validation read one
// registry, wherever a kind came from; ADR 0014 for the nodes.
func TestPacks_BringKindsAndNoNodes(t *testing.T) {
	needsHost(t)
	dir := packFolder(t)
	h := harness.Start(t, "--packs", filepath.Join(dir, "packs"), "--workflows", filepath.Join(dir, "workflows"), "--kind-lint", "strict")
	c := h.Client("dev-key")

	d := discover(t, c)
	require.Contains(t, d.SupportedEnvelopes, "vendor.acme.note")
	require.Equal(t, 2, d.SchemaVersions["vendor.acme.note"])
	require.NotContains(t, string(get(t, c, "/.well-known/openwop").Body), "vendor.acme.write")
	var families map[string]json.RawMessage
	require.NoError(t, get(t, c, "/.well-known/openwop").JSON(&families))
	for _, f := range []string{"aiProviders", "providerUsage", "idempotency", "debugBundle"} { // what the pack was promised
		require.Contains(t, families, f)
	}

	a := get(t, c, "/schemas/envelopes/vendor.acme.note.schema.json")
	require.Equal(t, http.StatusOK, a.Status)
	require.Equal(t, "application/schema+json", a.Header.Get("Content-Type"))
	require.Equal(t, packFiles["packs/notes/schemas/note.json"], string(a.Body))

	noted := start(t, c, `{"workflowId":"note"}`)
	events, snap := finish(t, c, harness.LoadSchemas(t), noted)
	require.Equal(t, "completed", snap.Status, "%s", h.Log())
	require.Len(t, artifacts(events), 2)

	a, err := c.Do(t.Context(), http.MethodPost, "/v1/workflows", `{"id":"writes","name":"W","version":"1.0.0",
		"nodes":[{"id":"w","typeId":"vendor.acme.write","name":"W","position":{"x":0,"y":0},"config":{},"inputs":{}}],
		"edges":[],"triggers":[],"variables":[],"metadata":{},"settings":{}}`)
	require.NoError(t, err)
	require.Less(t, a.Status, 300, "%s", a.Body)
	a, err = c.Do(t.Context(), http.MethodPost, "/v1/runs", `{"workflowId":"writes"}`)
	require.NoError(t, err)
	require.Equal(t, http.StatusBadRequest, a.Status)
	require.Contains(t, string(a.Body), "capability_required")
	require.Contains(t, h.Log(), "does not execute nodes of packs")
}

// artifacts are the events of accepted envelopes, as they were sent.
func artifacts(events []harness.Event) []string {
	var out []string
	for _, e := range events {
		if e.Type == "artifact.created" {
			out = append(out, string(e.Raw))
		}
	}
	return out
}

// OpenWOP envelope contract §26 case 23: the pack is taken away while a run of
// its kind waits.
func TestPacks_AKindTakenAwayIsRefusedAndItsEventsStay(t *testing.T) {
	needsHost(t)
	dir, data := packFolder(t), t.TempDir()
	workflows := filepath.Join(dir, "workflows")
	h := harness.StartIn(t, data, "--packs", filepath.Join(dir, "packs"), "--workflows", workflows, "--lease", "1s")
	c := h.Client("dev-key")
	id := start(t, c, `{"workflowId":"note"}`)
	var before []string
	require.Eventually(t, func() bool {
		a := get(t, c, "/v1/runs/"+id+"/events/poll")
		var p harness.Page
		require.NoError(t, a.JSON(&p))
		events, err := harness.ParseEvents(p.Events)
		require.NoError(t, err)
		before = artifacts(events)
		return len(before) == 1
	}, 10*time.Second, 20*time.Millisecond)
	h.Kill()

	h = harness.StartIn(t, data, "--workflows", workflows, "--lease", "1s")
	c = h.Client("dev-key")
	require.NotContains(t, discover(t, c).SupportedEnvelopes, "vendor.acme.note")
	require.Equal(t, http.StatusNotFound, get(t, c, "/schemas/envelopes/vendor.acme.note.schema.json").Status)
	events, snap := finish(t, c, harness.LoadSchemas(t), id)
	require.Equal(t, "failed", snap.Status)
	require.Equal(t, before, artifacts(events), "what was recorded stays, byte for byte; nothing came after")
	var failed struct {
		Error struct{ Code string } `json:"error"`
	}
	for _, e := range events {
		if e.Type == "node.failed" {
			require.NoError(t, json.Unmarshal(e.Payload, &failed))
		}
	}
	require.Equal(t, "unknown_envelope_kind", failed.Error.Code)
}
