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

// save writes a file in place.
func save(t *testing.T, path, text string) {
	t.Helper()
	require.NoError(t, os.MkdirAll(filepath.Dir(path), 0o700))
	require.NoError(t, os.WriteFile(path, []byte(text), 0o600))
}

// rename writes a file as editors do: a temporary file that replaces the old one.
func rename(t *testing.T, path, text string) {
	t.Helper()
	temporary := filepath.Join(filepath.Dir(path), ".saving.json.swp")
	save(t, temporary, text)
	require.NoError(t, os.Rename(temporary, path))
}

// eventually polls until a condition is met.
func eventually(t *testing.T, what string, holds func() bool) {
	t.Helper()
	require.Eventually(t, holds, 30*time.Second, 20*time.Millisecond, what)
}

func kindDoc(required string) string {
	return `{"type":"object","additionalProperties":false,"required":["` + required + `"],"properties":{"` + required + `":{"type":"string"}}}`
}

func askFor(id, version, kind string) string {
	return `{"id":"` + id + `","name":"` + id + `","version":"` + version + `","nodes":[{"id":"ask","typeId":"core.ai.callPrompt",
		"config":{"prompt":"Hello","envelopeType":"` + kind + `"}}]}`
}

// Kinds, packs, prompts and workflows are read again while the host runs.
func TestDev_ReadsChangedFilesAgain(t *testing.T) {
	t.Parallel()
	needsHost(t)
	dir := t.TempDir()
	at := func(parts ...string) string { return filepath.Join(append([]string{dir}, parts...)...) }
	for _, folder := range []string{"workflows", "kinds", "packs", "prompts"} {
		require.NoError(t, os.Mkdir(at(folder), 0o700))
	}
	h := harness.Start(t, "--workflows", at("workflows"), "--kinds", at("kinds"), "--packs", at("packs"), "--prompts", at("prompts"))
	c := h.Client("dev-key")
	get := func(path string) (int, string) {
		a, err := c.Do(t.Context(), http.MethodGet, path, "")
		require.NoError(t, err)
		return a.Status, string(a.Body)
	}
	registered := func(id string) bool { status, _ := get("/v1/workflows/" + id); return status == http.StatusOK }

	// A definition that lacks its kind is registered once the kind is there.
	save(t, at("workflows", "note.json"), askFor("note", "1", "vendor.acme.note"))
	eventually(t, "the reason is logged", func() bool { return strings.Contains(h.Log(), "this host does not have the kind") })
	require.False(t, registered("note"))
	save(t, at("kinds", "vendor.acme.note.schema.json"), kindDoc("text"))
	eventually(t, "the definition is registered", func() bool { return registered("note") })

	// The kind is advertised, and a changed schema replaces it.
	_, discovery := get("/.well-known/openwop")
	require.Contains(t, discovery, "vendor.acme.note")
	rename(t, at("kinds", "vendor.acme.note.schema.json"), kindDoc("title"))
	eventually(t, "the new schema is served", func() bool {
		_, doc := get("/schemas/envelopes/vendor.acme.note.schema.json")
		return strings.Contains(doc, `"title"`)
	})

	// A half-written file keeps the last good version, and one warning says so.
	save(t, at("kinds", "vendor.acme.note.schema.json"), `{"type":"obj`)
	eventually(t, "the reason is logged", func() bool { return strings.Contains(h.Log(), "the previous ones stay") })
	_, doc := get("/schemas/envelopes/vendor.acme.note.schema.json")
	require.Contains(t, doc, `"title"`)
	require.Equal(t, 1, strings.Count(h.Log(), "the previous ones stay"))
	save(t, at("kinds", "vendor.acme.note.schema.json"), kindDoc("body"))
	eventually(t, "the new schema is served", func() bool {
		_, doc := get("/schemas/envelopes/vendor.acme.note.schema.json")
		return strings.Contains(doc, `"body"`)
	})
	eventually(t, "its author sees that it is", func() bool { return strings.Contains(h.Log(), "prompts are loaded again") })

	// A pack in a new folder adds a node type, and a template is found.
	use := `{"id":"desk","name":"desk","version":"1","nodes":[{"id":"a","typeId":"vendor.acme.say","config":{"userPromptRef":"prompt:greet"}}]}`
	a, err := c.Do(t.Context(), http.MethodPost, "/v1/workflows", use)
	require.NoError(t, err)
	require.Equal(t, http.StatusBadRequest, a.Status, "%s", a.Body)
	save(t, at("packs", "say", "waybill.json"), `{"nodes":{"vendor.acme.say":{"base":"core.ai.callPrompt"}}}`)
	save(t, at("packs", "say", "pack.json"), `{"name":"vendor.acme.say","version":"1.0.0","engines":{"openwop":">=1.0"},
		"nodes":[{"typeId":"vendor.acme.say","version":"1.0.0","category":"chat","role":"side-effect"}]}`)
	save(t, at("prompts", "greet.json"), `{"templateId":"greet","version":"1.0.0","kind":"user","text":"Hello."}`)
	eventually(t, "the definition is valid now", func() bool {
		a, err := c.Do(t.Context(), http.MethodPost, "/v1/workflows", use)
		require.NoError(t, err)
		return a.Status == http.StatusCreated || a.Status == http.StatusOK
	})
	runID := start(t, c, `{"workflowId":"desk"}`)
	events, err := c.Finish(t.Context(), runID)
	require.NoError(t, err)
	require.Equal(t, "run.completed", events[len(events)-1].Type)
}

// With test seams, too, a template that clashes with one of the seams leaves the kinds as they are.
func TestDev_ReadsAllFoldersAgainOrNone(t *testing.T) {
	t.Parallel()
	needsHost(t)
	dir := t.TempDir()
	kind, template := filepath.Join(dir, "kinds", "vendor.acme.note.schema.json"), filepath.Join(dir, "prompts", "greet.json")
	save(t, kind, kindDoc("text"))
	save(t, template, `{"templateId":"greet","version":"1.0.0","kind":"user","text":"Hello."}`)
	h := harness.Start(t, "--kinds", filepath.Dir(kind), "--prompts", filepath.Dir(template), "--test-seams")
	c := h.Client("dev-key")
	served := func(member string) bool {
		a, err := c.Do(t.Context(), http.MethodGet, "/schemas/envelopes/vendor.acme.note.schema.json", "")
		require.NoError(t, err)
		return strings.Contains(string(a.Body), `"`+member+`"`)
	}
	require.True(t, served("text"))
	save(t, template, `{"templateId":"conformance.stream-text-noop","version":"1.0.0","kind":"user","text":"Hello."}`)
	save(t, kind, kindDoc("title"))
	eventually(t, "the reason is logged", func() bool { return strings.Contains(h.Log(), "the previous ones stay") })
	require.True(t, served("text"), "the kinds are as before")
	save(t, template, `{"templateId":"greet","version":"1.0.1","kind":"user","text":"Hello."}`)
	eventually(t, "the new schema is served", func() bool { return served("title") })
}

// Temporary files of editors are ignored, and a definition that is written in several steps is registered
// once.
func TestDev_IgnoresUnfinishedWorkflows(t *testing.T) {
	t.Parallel()
	needsHost(t)
	dir := t.TempDir()
	h := harness.Start(t, "--workflows", dir)
	c := h.Client("dev-key")
	file := filepath.Join(dir, "flow.json")
	version := func() string {
		a, err := c.Do(t.Context(), http.MethodGet, "/v1/workflows/flow", "")
		require.NoError(t, err)
		var v struct{ Version string }
		if a.Status == http.StatusOK {
			require.NoError(t, json.Unmarshal(a.Body, &v))
		}
		return v.Version
	}
	save(t, filepath.Join(dir, ".flow.json"), "{")
	save(t, filepath.Join(dir, "flow.json~"), "{")
	save(t, file, `{"id":"flow",`)
	rename(t, file, `{"id":"flow","name":"Flow","version":"1","nodes":[{"id":"a","typeId":"core.noop"}]}`)
	eventually(t, "the definition is registered", func() bool { return version() == "1" })
	require.NotContains(t, h.Log(), "skipped", "the unfinished file was not read")

	save(t, file, `{"id":"flow","name":"Flow","version":"2","nodes":[`)
	eventually(t, "one warning", func() bool { return strings.Contains(h.Log(), "its last valid version stays") })
	require.Equal(t, "1", version())
	save(t, file, `{"id":"flow","name":"Flow","version":"2","nodes":[{"id":"a","typeId":"core.noop"}]}`)
	eventually(t, "the new version is registered", func() bool { return version() == "2" })
	require.Equal(t, 1, strings.Count(h.Log(), "its last valid version stays"))
	eventually(t, "its author sees that it is", func() bool { return strings.Contains(h.Log(), "workflow loaded: it has no mistake any more") })
}
