package e2e

import (
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"waybill.dev/waybill/test/harness"
)

// private is a workflow with a sensitive text and a sensitive number. It copies both, waits
// until the host was killed, and then waits for the copied number of milliseconds: with a mask instead
// of the number the last node would fail.
const private = `{"id":"private","name":"p","version":"1","nodes":[
	{"id":"copy","typeId":"core.identity","name":"c","position":{"x":0,"y":0},"config":{},"inputs":{
		"text":{"type":"variable","variableName":"ssn"},"ms":{"type":"variable","variableName":"pause"}}},
	{"id":"wait","typeId":"core.delay","name":"w","position":{"x":0,"y":0},"config":{"ms":6000},"inputs":{}},
	{"id":"keep","typeId":"core.channelWrite","name":"k","position":{"x":0,"y":0},"config":{"channelName":"log","reducer":"append"},
		"inputs":{"value":{"type":"connection","nodeId":"copy","outputKey":"text"}}},
	{"id":"again","typeId":"core.delay","name":"a","position":{"x":0,"y":0},"config":{},"inputs":{"delayMs":{"type":"connection","nodeId":"copy","outputKey":"ms"}}}
],"edges":[{"id":"e1","sourceNodeId":"copy","targetNodeId":"wait"},{"id":"e2","sourceNodeId":"wait","targetNodeId":"keep"},{"id":"e3","sourceNodeId":"keep","targetNodeId":"again"}],
"triggers":[],"variables":[{"name":"ssn","type":"string","sensitive":true},{"name":"pause","type":"number","sensitive":true},{"name":"open","type":"string"}],
"metadata":{},"settings":{}}`

// ssn must appear nowhere. It does not look like a secret, so only its sensitivity mark hides it.
const ssn = "born in Bremen on a monday"

// seeded starts a host with workflows, by id.
func seeded(t *testing.T, workflows map[string]string) *harness.Host {
	t.Helper()
	needsHost(t)
	dir := t.TempDir()
	for id, doc := range workflows {
		require.NoError(t, os.WriteFile(filepath.Join(dir, id+".json"), []byte(doc), 0o600))
	}
	return harness.Start(t, "--workflows", dir, "--lease", "1s", "--test-seams", "--api-key", testKey+"=acme:*")
}

// OpenWOP host contract §10.3: masking happens before the append, so no API and no disk has the
// value. The run continues with the value, also after its executor is killed.
func TestSensitive_IsMaskedInTheLogAndUsedByTheRun(t *testing.T) {
	t.Parallel()
	h := seeded(t, map[string]string{"private": private})
	c := h.Client(testKey)
	runID := start(t, c, `{"workflowId":"private","inputs":{"ssn":"`+ssn+`","pause":150,"open":"told"}}`)
	require.Eventually(t, func() bool {
		a, err := c.Do(t.Context(), http.MethodGet, "/v1/runs/"+runID, "")
		return err == nil && strings.Contains(string(a.Body), `"wait":{"status":"running"`)
	}, time.Minute, 20*time.Millisecond)
	h.Kill()
	h.Restart()
	c = h.Client(testKey)
	schemas := harness.LoadSchemas(t)
	events, snap := finish(t, c, schemas, runID)
	require.Equal(t, "completed", snap.Status, "%v", names(events))
	require.JSONEq(t, `"[REDACTED]"`, string(snap.Variables["ssn"]))
	require.JSONEq(t, `"[REDACTED]"`, string(snap.Variables["text"]))
	require.JSONEq(t, `"[REDACTED]"`, string(snap.Variables["log"]))
	require.JSONEq(t, `"told"`, string(snap.Variables["open"]))
	var all strings.Builder
	for _, path := range []string{"", "/events", "/events/poll", "/debug-bundle", ":view"} {
		a, err := c.Do(t.Context(), http.MethodGet, "/v1/runs/"+runID+path, "")
		require.NoError(t, err)
		require.Equal(t, http.StatusOK, a.Status, path)
		all.Write(a.Body)
	}
	require.NotContains(t, all.String(), ssn)
	require.Contains(t, all.String(), `"inputs":{"open":"told","pause":"[REDACTED]","ssn":"[REDACTED]"}`)
	h.Kill()
	require.NotEmpty(t, holding(t, h.Dir(), runID), "files can be searched")
	require.Empty(t, holding(t, h.Dir(), ssn), "no file of the host has the value")
}

// holding lists the files below a directory that have a text in them.
func holding(t *testing.T, dir, text string) []string {
	t.Helper()
	var out []string
	require.NoError(t, filepath.WalkDir(dir, func(path string, d os.DirEntry, err error) error {
		if err != nil || !d.Type().IsRegular() {
			return err
		}
		b, err := os.ReadFile(path) //nolint:gosec // G122: a directory of this test
		if strings.Contains(string(b), text) {
			out = append(out, path)
		}
		return err
	}))
	return out
}

// The host rejects what it cannot guarantee: a model's answer is streamed before it could be
// masked.
func TestSensitive_IsRejectedWhereItCannotBeMasked(t *testing.T) {
	t.Parallel()
	h := seeded(t, nil)
	c := h.Client(testKey)
	doc := `{"id":"asks","name":"a","version":"1","nodes":[{"id":"ask","typeId":"core.ai.callPrompt","name":"x","position":{"x":0,"y":0},"config":{"prompt":"hello {{ssn}}"},"inputs":{}}],
		"edges":[],"triggers":[],"variables":[{"name":"ssn","type":"string","sensitive":true}],"metadata":{},"settings":{}}`
	a, err := c.Do(t.Context(), http.MethodPost, "/v1/workflows", doc)
	require.NoError(t, err)
	require.Equal(t, http.StatusCreated, a.Status, "%s", a.Body)
	var registered struct {
		Warnings []struct{ Path, Rule, Message string }
	}
	require.NoError(t, a.JSON(&registered))
	require.Len(t, registered.Warnings, 1, "the author gets a warning at registration")
	require.Equal(t, "/nodes/0/typeId", registered.Warnings[0].Path)
	require.Contains(t, registered.Warnings[0].Message, "maskingMode")
	a, err = c.Do(t.Context(), http.MethodPost, "/v1/runs", `{"workflowId":"asks"}`)
	require.NoError(t, err)
	require.Equal(t, http.StatusBadRequest, a.Status, "%s", a.Body)
	require.Equal(t, "capability_required", a.Code())
	require.Contains(t, string(a.Body), "maskingMode")
}
