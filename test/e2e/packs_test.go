package e2e

import (
	"encoding/json"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"waybill.dev/waybill/test/harness"
)

// packFiles are two packs: one has a kind, the other a node that accepts it.
var packFiles = map[string]string{
	"packs/notes/pack.json": `{"name":"vendor.acme.notes","version":"1.0.0","engines":{"openwop":">=1.0 <2.0.0"},
		"peerDependencies":{"host.aiEnvelope":"supported","aiProviders":"supported","providerUsage":"supported","idempotency":"supported","debugBundle":"supported"}}`,
	"packs/notes/waybill.json":      `{"envelopeKinds":[{"kind":"vendor.acme.note","version":2,"schemaRef":"schemas/note.json"}]}`,
	"packs/notes/schemas/note.json": `{"type":"object","additionalProperties":false,"required":["text"],"properties":{"text":{"type":"string"}}}`,
	"packs/tools/pack.json": `{"name":"vendor.acme.tools","version":"1.0.0","engines":{"openwop":">=1.0"},"dependencies":{"vendor.acme.notes":"^1.0.0"},
		"runtime":{"language":"remote","entry":"https://tools.acme.example"},
		"nodes":[{"typeId":"vendor.acme.write","version":"1.0.0","category":"data","role":"side-effect","envelopeContractRef":"contracts/write.json"}]}`,
	"packs/tools/contracts/write.json": `{"accepts":["vendor.acme.note"]}`,
	"workflows/note.json": `{"id":"note","name":"Note","version":"1.0.0",
		"nodes":[` + noteNode("first") + `,
			{"id":"pause","typeId":"core.approvalGate","name":"Pause","position":{"x":1,"y":0},"config":{"title":"Go on?","actions":["accept"]},"inputs":{}},` + noteNode("second") + `],
		"edges":[{"id":"a","sourceNodeId":"first","targetNodeId":"pause"},{"id":"b","sourceNodeId":"pause","targetNodeId":"second"}],
		"triggers":[],"variables":[],"metadata":{},"settings":{}}`,
}

func noteNode(id string) string {
	return `{"id":"` + id + `","typeId":"core.ai.callPrompt","name":"Note","position":{"x":0,"y":0},"inputs":{},
		"config":{"envelopeType":"vendor.acme.note","prompt":"Write a note."},"envelopeContract":{"accepts":["vendor.acme.note"]}}`
}

// awaitPause waits until a run of the workflow "note" is between its two notes.
func awaitPause(t *testing.T, c *harness.Client, id string) {
	t.Helper()
	require.Eventually(t, func() bool {
		var r struct{ Status string }
		return get(t, c, "/v1/runs/"+id).JSON(&r) == nil && r.Status == "waiting-approval"
	}, time.Minute, 20*time.Millisecond)
}

func endPause(t *testing.T, c *harness.Client, id string) {
	t.Helper()
	awaitPause(t, c, id)
	a, err := c.Do(t.Context(), http.MethodPost, "/v1/runs/"+id+"/interrupts/pause", `{"resumeValue":{"action":"accept"}}`)
	require.NoError(t, err)
	require.Equal(t, http.StatusOK, a.Status, "%s", a.Body)
}

// packFolder writes packFiles and returns the folder.
func packFolder(t *testing.T) string {
	t.Helper()
	return writeFiles(t, packFiles)
}

func writeFiles(t *testing.T, files map[string]string) string {
	t.Helper()
	dir := t.TempDir()
	for name, text := range files {
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

// Discovery's description of a vendor's kind.
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

// OpenWOP envelope contract §4: discovery, serving and validation use one registry for kinds of
// every source. ADR 0014 for the nodes.
func TestPacks_AddKindsButNoNodesThatNeedARuntime(t *testing.T) {
	t.Parallel()
	harness.InOneProcess(t, "the launcher gives --packs to all services, and an acceptor offers none of what these packs need")
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
	for _, f := range []string{"aiProviders", "providerUsage", "idempotency", "debugBundle"} { // the features that the pack requires
		require.Contains(t, families, f)
	}

	a := get(t, c, "/schemas/envelopes/vendor.acme.note.schema.json")
	require.Equal(t, http.StatusOK, a.Status)
	require.Equal(t, "application/schema+json", a.Header.Get("Content-Type"))
	require.Equal(t, packFiles["packs/notes/schemas/note.json"], string(a.Body))

	noted := start(t, c, `{"workflowId":"note"}`)
	endPause(t, c, noted)
	events, snap := finish(t, c, harness.LoadSchemas(t), noted)
	require.Equal(t, "completed", snap.Status, "%s", h.Log())
	require.Len(t, artifacts(events), 2)

	a, err := c.Do(t.Context(), http.MethodPost, "/v1/workflows", `{"id":"writes","name":"W","version":"1.0.0",
		"nodes":[{"id":"w","typeId":"vendor.acme.write","name":"W","position":{"x":0,"y":0},"config":{},"inputs":{}}],
		"edges":[],"triggers":[],"variables":[],"metadata":{},"settings":{}}`)
	require.NoError(t, err)
	require.Equal(t, http.StatusBadRequest, a.Status, "%s", a.Body)
	require.Contains(t, string(a.Body), "this host has no such node type")
	h.AwaitLog("has no runtime for nodes of packs")
}

// artifacts returns the raw events of accepted envelopes.
func artifacts(events []harness.Event) []string {
	var out []string
	for _, e := range events {
		if e.Type == "artifact.created" {
			out = append(out, string(e.Raw))
		}
	}
	return out
}

// recorded returns the raw events of accepted envelopes that a run has until now.
func recorded(t *testing.T, c *harness.Client, id string) []string {
	t.Helper()
	var p harness.Page
	require.NoError(t, get(t, c, "/v1/runs/"+id+"/events/poll").JSON(&p))
	events, err := harness.ParseEvents(p.Events)
	require.NoError(t, err)
	return artifacts(events)
}

// OpenWOP envelope contract §26 case 23: the pack is removed while a run with its kind waits.
func TestPacks_ARemovedKindIsRejectedAndItsEventsStay(t *testing.T) {
	t.Parallel()
	harness.InOneProcess(t, "the launcher gives --packs to all services, and an acceptor offers none of what these packs need")
	needsHost(t)
	dir, data := packFolder(t), t.TempDir()
	workflows := filepath.Join(dir, "workflows")
	h := harness.StartIn(t, data, "--packs", filepath.Join(dir, "packs"), "--workflows", workflows, "--lease", "1s")
	c := h.Client("dev-key")
	id := start(t, c, `{"workflowId":"note"}`)
	awaitPause(t, c, id)
	before := recorded(t, c, id)
	require.Len(t, before, 1)
	h.Kill()

	h = harness.StartIn(t, data, "--workflows", workflows, "--lease", "1s")
	c = h.Client("dev-key")
	require.NotContains(t, discover(t, c).SupportedEnvelopes, "vendor.acme.note")
	require.Equal(t, http.StatusNotFound, get(t, c, "/schemas/envelopes/vendor.acme.note.schema.json").Status)
	endPause(t, c, id)
	events, snap := finish(t, c, harness.LoadSchemas(t), id)
	require.Equal(t, "failed", snap.Status)
	require.Equal(t, before, artifacts(events), "recorded events do not change, and no new ones follow")
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

// deskFiles are a pack whose nodes extend the host's, and a workflow of each.
var deskFiles = map[string]string{
	"packs/desk/pack.json": `{"name":"vendor.acme.desk","version":"1.2.0","engines":{"openwop":">=1.0"},"runtime":{"language":"remote","entry":"none"},"nodes":[
		{"typeId":"vendor.acme.desk.triage","version":"1.0.0","category":"chat","role":"side-effect","configSchemaRef":"config.json",
			"requiredModelCapabilities":["reasoning"],"fallbackModel":{"provider":"mock","model":"mock-large"}},
		{"typeId":"vendor.acme.desk.look","version":"1.0.0","category":"chat","role":"side-effect","requiredModelCapabilities":["vision-input"]}]}`,
	"packs/desk/waybill.json": `{"nodes":{
		"vendor.acme.desk.triage":{"base":"core.ai.structuredOutput","config":{"provider":"sample","model":"sample-1"},"configRefs":{"outputSchema":"ticket.json"}},
		"vendor.acme.desk.look":{"base":"core.ai.callPrompt"}}}`,
	"packs/desk/ticket.json": `{"type":"object","additionalProperties":false,"required":["team"],"properties":{"team":{"type":"string"}}}`,
	"packs/desk/config.json": `{"type":"object","additionalProperties":false,"properties":{"prompt":{"type":"string"}}}`,
	"workflows/triage.json":  deskWorkflow("triage"),
	"workflows/look.json":    deskWorkflow("look"),
}

func deskWorkflow(id string) string {
	return `{"id":"` + id + `","name":"W","version":"1.0.0","nodes":[{"id":"n","typeId":"vendor.acme.desk.` + id + `","name":"N",
		"position":{"x":0,"y":0},"config":{"prompt":"Hello."},"inputs":{}}],"edges":[],"triggers":[],"variables":[],"metadata":{},"settings":{}}`
}

// OpenWOP envelope contract §16.3, rows 3 and 4, with a real host; §16.4 for its discovery
// document.
func TestPacks_NodesExtendTheHostsAndPassTheGate(t *testing.T) {
	t.Parallel()
	harness.InOneProcess(t, "the launcher gives --packs to all services, and an acceptor offers none of what these packs need")
	needsHost(t)
	dir := writeFiles(t, deskFiles)
	h := harness.Start(t, "--packs", filepath.Join(dir, "packs"), "--workflows", filepath.Join(dir, "workflows"), "--test-seams")
	c := h.Client("dev-key")
	schemas := harness.LoadSchemas(t)

	a, err := c.Do(t.Context(), http.MethodPost, "/v1/host/sample/test/mock-ai/program", `{"nodeId":"n","program":[{"content":"{\"team\":\"billing\"}"}]}`)
	require.NoError(t, err)
	require.Equal(t, http.StatusOK, a.Status)
	events, snap := finish(t, c, schemas, start(t, c, `{"workflowId":"triage"}`))
	require.Equal(t, "completed", snap.Status, "%s", h.Log())
	require.Equal(t, []string{"run.started", "model.capability.substituted", "node.started", "provider.usage", "node.completed", "run.completed"}, typesOf(events))
	require.JSONEq(t, `{"nodeId":"n","originalProvider":"sample","originalModel":"sample-1","fallbackProvider":"mock","fallbackModel":"mock-large","missingCapabilities":["reasoning"]}`, string(events[1].Payload))
	require.Contains(t, string(events[2].Payload), "vendor.acme.desk.triage")
	require.Contains(t, string(events[3].Payload), "mock-large")
	require.Contains(t, string(events[4].Payload), "billing")

	events, snap = finish(t, c, schemas, start(t, c, `{"workflowId":"look"}`))
	require.Equal(t, "failed", snap.Status)
	require.Equal(t, []string{"run.started", "model.capability.insufficient", "node.failed", "run.failed"}, typesOf(events))
	require.Contains(t, string(events[2].Payload), "capability_not_provided")

	var d struct {
		ModelCapabilities struct {
			Advertised   []string
			Substitution bool `json:"substitutionSupported"`
		}
	}
	require.NoError(t, get(t, c, "/.well-known/openwop").JSON(&d))
	require.Empty(t, d.ModelCapabilities.Advertised, "the default model lacks what is required")
	require.True(t, d.ModelCapabilities.Substitution)

	a, err = c.Do(t.Context(), http.MethodPost, "/v1/workflows", strings.NewReplacer(`"id":"triage"`, `"id":"odd"`, `"prompt":"Hello."`, `"prompt":7`).Replace(deskFiles["workflows/triage.json"]))
	require.NoError(t, err)
	if a.Status < 300 {
		a, err = c.Do(t.Context(), http.MethodPost, "/v1/runs", `{"workflowId":"odd"}`)
		require.NoError(t, err)
	}
	require.Equal(t, http.StatusBadRequest, a.Status)
	require.Contains(t, string(a.Body), "/nodes/0/config/prompt")
}

func typesOf(events []harness.Event) []string {
	var out []string
	for _, e := range events {
		out = append(out, e.Type)
	}
	return out
}
