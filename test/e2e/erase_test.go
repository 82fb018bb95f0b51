package e2e

import (
	"bytes"
	"crypto/rand"
	"fmt"
	"io"
	"io/fs"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"waybill.dev/waybill/test/harness"
)

// copying copies its input into an output, a variable and a channel.
const copying = `{"id":"copying","name":"c","version":"1","nodes":[
	{"id":"copy","typeId":"core.identity","name":"c","position":{"x":0,"y":0},"config":{},"inputs":{"text":{"type":"variable","variableName":"text"}}},
	{"id":"keep","typeId":"core.channelWrite","name":"k","position":{"x":0,"y":0},"config":{"channelName":"log","reducer":"append"},
		"inputs":{"value":{"type":"connection","nodeId":"copy","outputKey":"text"}}}
],"edges":[{"id":"e1","sourceNodeId":"copy","targetNodeId":"keep"}],
"triggers":[],"variables":[{"name":"text","type":"string"}],"metadata":{},"settings":{}}`

const waitingFlow = `{"id":"sleepy","name":"s","version":"1","nodes":[
	{"id":"wait","typeId":"core.delay","name":"w","position":{"x":0,"y":0},"config":{"ms":3600000},"inputs":{}}
],"edges":[],"triggers":[],"variables":[],"metadata":{},"settings":{}}`

// erasing starts a host for tests of erasure.
func erasing(t *testing.T) *harness.Host {
	t.Helper()
	needsHost(t)
	dir := t.TempDir()
	for id, doc := range map[string]string{"copying": copying, "sleepy": waitingFlow} {
		require.NoError(t, os.WriteFile(filepath.Join(dir, id+".json"), []byte(doc), 0o600))
	}
	return harness.Start(t, "--workflows", dir, "--lease", "1s", "--metrics-addr", "127.0.0.1:0",
		"--api-key", testKey+"=acme:*", "--api-key", "other=beta:*", "--api-key", "weak=acme:runs:read,runs:cancel")
}

// canary is a text that appears nowhere else.
func canary(name string) string { return "canary-" + name + "-" + strings.ToLower(rand.Text()) }

// copied runs the workflow with a text in its input, tags and metadata, up to its end.
func copied(t *testing.T, c *harness.Client, text string) (runID string) {
	t.Helper()
	runID = start(t, c, fmt.Sprintf(`{"workflowId":"copying","inputs":{"text":%q},"tags":[%q],"metadata":{"note":%q}}`, text, text, text))
	_, err := c.Finish(within(t, 30*time.Second), runID)
	require.NoError(t, err)
	return runID
}

// files returns the files of a data directory that contain a text.
func files(t *testing.T, dir, text string) (found []string) {
	t.Helper()
	err := filepath.WalkDir(dir, func(path string, e fs.DirEntry, err error) error {
		if err != nil || !e.Type().IsRegular() {
			return ignoreGone(err)
		}
		b, err := os.ReadFile(path)
		if bytes.Contains(b, []byte(text)) {
			found = append(found, path)
		}
		return ignoreGone(err)
	})
	require.NoError(t, err)
	return found
}

// ignoreGone ignores that a file was removed while a directory was read.
func ignoreGone(err error) error {
	if os.IsNotExist(err) {
		return nil
	}
	return err
}

// gone waits until no file of a data directory contains a text: a minute is the documented bound.
func gone(t *testing.T, dir, text string) {
	t.Helper()
	var left []string
	if !assert.Eventually(t, func() bool {
		left = files(t, dir, text)
		return len(left) == 0
	}, time.Minute, 100*time.Millisecond) {
		t.Fatalf("it is still in %v", left)
	}
}

func remove(t *testing.T, c *harness.Client, runID string) *harness.Answer {
	t.Helper()
	a, err := c.Do(t.Context(), http.MethodDelete, "/v1/runs/"+runID, "")
	require.NoError(t, err)
	return a
}

func metrics(t *testing.T, h *harness.Host) string {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, h.Metrics, http.NoBody)
	require.NoError(t, err)
	res, err := http.DefaultClient.Do(req)
	require.NoError(t, err)
	defer func() { _ = res.Body.Close() }()
	b, err := io.ReadAll(res.Body)
	require.NoError(t, err)
	return string(b)
}

func TestErase_RemovesARunFromEveryInterfaceAndFromTheDisk(t *testing.T) {
	t.Parallel()
	h := erasing(t)
	c := h.Client(testKey)
	secret, kept := canary("gone"), canary("kept")
	stays := copied(t, c, kept)
	runID := copied(t, c, secret)
	after := copied(t, c, kept)
	note := fmt.Sprintf(`{"signal":{"kind":"label","label":"l"},"note":%q}`, secret)
	a, err := c.Do(t.Context(), http.MethodPost, "/v1/runs/"+runID+"/annotations", note, "Idempotency-Key", "note")
	require.NoError(t, err)
	require.Equal(t, http.StatusCreated, a.Status, "%s", a.Body)
	again, err := c.Do(t.Context(), http.MethodPost, "/v1/runs/"+runID+"/annotations", note, "Idempotency-Key", "note")
	require.NoError(t, err)
	require.Equal(t, string(a.Body), string(again.Body))
	paths := []string{"", "/events", "/events/poll", ":view", "/annotations", "/debug-bundle"}
	for _, path := range paths {
		a, err := c.Do(t.Context(), http.MethodGet, "/v1/runs/"+runID+path, "")
		require.NoError(t, err)
		require.Equal(t, http.StatusOK, a.Status, "%s: %s", path, a.Body)
		require.Equal(t, path != "/debug-bundle" && path != ":view", bytes.Contains(a.Body, []byte(secret)), path)
	}
	require.NotEmpty(t, files(t, h.Dir(), secret))

	for _, tt := range []struct {
		key, run string
		status   int
		code     string
	}{
		{"weak", runID, http.StatusForbidden, "forbidden"},
		{"other", runID, http.StatusNotFound, "run_not_found"},
		{testKey, "run_ghost", http.StatusNotFound, "run_not_found"},
		{testKey, start(t, c, `{"workflowId":"sleepy"}`), http.StatusConflict, "conflict"},
	} {
		a := remove(t, h.Client(tt.key), tt.run)
		require.Equal(t, tt.status, a.Status, "%s", a.Body)
		require.Equal(t, tt.code, a.Code())
	}
	for range 2 {
		a := remove(t, c, runID)
		require.Equal(t, http.StatusNoContent, a.Status, "%s", a.Body)
		require.Empty(t, a.Body)
	}
	for _, path := range append(paths, ":owner", ":diff?against="+stays) {
		a, err := c.Do(t.Context(), http.MethodGet, "/v1/runs/"+runID+path, "")
		require.NoError(t, err)
		require.Equal(t, http.StatusNotFound, a.Status, "%s: %s", path, a.Body)
	}
	for path, body := range map[string]string{
		"/cancel": `{}`, ":fork": `{"mode":"branch","fromSeq":0}`, ":pause": `{}`, "/annotations": note,
	} {
		a, err := c.Do(t.Context(), http.MethodPost, "/v1/runs/"+runID+path, body, "Idempotency-Key", "note")
		require.NoError(t, err)
		require.Equal(t, http.StatusNotFound, a.Status, "%s: %s", path, a.Body)
		require.NotContains(t, string(a.Body), secret)
	}
	for _, path := range []string{"/v1/runs", "/v1/runs?tag=" + secret, "/v1/audit", "/v1/interrupts"} {
		a, err := c.Do(t.Context(), http.MethodGet, path, "")
		require.NoError(t, err)
		require.NotContains(t, string(a.Body), secret, path)
		require.Equal(t, path == "/v1/audit", bytes.Contains(a.Body, []byte(runID)), "%s: %s", path, a.Body)
	}
	gone(t, h.Dir(), secret)
	checkUnharmed(t, h, kept, stays, after)

	require.Zero(t, h.Stop().ExitCode())
	out, status := harness.Command(t, "log", "verify", "--data-dir", h.Dir())
	require.Zero(t, status, out)
	h.Launch()
	c = h.Client(testKey)
	a, err = c.Do(t.Context(), http.MethodGet, "/v1/runs/"+runID, "")
	require.NoError(t, err)
	require.Equal(t, http.StatusNotFound, a.Status)
	require.Equal(t, http.StatusNoContent, remove(t, c, runID).Status)
	require.Empty(t, files(t, h.Dir(), secret))
	checkUnharmed(t, h, kept, stays, after)
}

// checkUnharmed checks that runs are whole, and that no record counts as lost.
func checkUnharmed(t *testing.T, h *harness.Host, text string, runs ...string) {
	t.Helper()
	c := h.Client(testKey)
	for _, id := range runs {
		a, err := c.Do(t.Context(), http.MethodGet, "/v1/runs/"+id, "")
		require.NoError(t, err)
		require.Equal(t, http.StatusOK, a.Status, "%s", a.Body)
		require.Contains(t, string(a.Body), text)
	}
	require.Eventually(t, func() bool {
		return strings.Contains(metrics(t, h), "\nwaybill_eventlog_lost_records 0\n")
	}, 10*time.Second, 50*time.Millisecond)
	a, err := c.Do(t.Context(), http.MethodGet, "/readyz", "")
	require.NoError(t, err)
	require.Equal(t, http.StatusOK, a.Status, "%s", a.Body)
	require.NotContains(t, string(a.Body), "warnings")
	require.NotContains(t, h.Log(), "frame not applied")
	require.NotContains(t, h.Log(), "is damaged")
	require.NotContains(t, h.Log(), "will be rebuilt")
}

// A key that was used for an erased run creates no second one.
func TestErase_KeepsTheKeyOfTheRun(t *testing.T) {
	t.Parallel()
	h := erasing(t)
	c := h.Client(testKey)
	create := func() *harness.Answer {
		a, err := c.Do(t.Context(), http.MethodPost, "/v1/runs", `{"workflowId":"copying","inputs":{"text":"x"},"scopeId":"s"}`,
			"Idempotency-Key", "once", "X-Dedup", "enforce")
		require.NoError(t, err)
		return a
	}
	var run struct{ RunID string }
	require.NoError(t, create().JSON(&run))
	_, err := c.Finish(within(t, 30*time.Second), run.RunID)
	require.NoError(t, err)
	require.Equal(t, http.StatusCreated, create().Status)
	require.Equal(t, http.StatusNoContent, remove(t, c, run.RunID).Status)
	require.Eventually(t, func() bool {
		return strings.Contains(metrics(t, h), `waybill_dispatcher_erasures_total{result="done"} 1`)
	}, time.Minute, 20*time.Millisecond)
	a := create()
	require.Equal(t, http.StatusConflict, a.Status, "%s", a.Body)
	require.Contains(t, string(a.Body), "erased")
	a, err = c.Do(t.Context(), http.MethodPost, "/v1/runs", `{"workflowId":"copying","scopeId":"s"}`, "X-Dedup", "enforce")
	require.NoError(t, err)
	require.Equal(t, http.StatusCreated, a.Status, "the scope is free: %s", a.Body)
}

// The host is killed at random moments of erasures. Every acknowledged erasure holds, the others can
// be repeated, and nothing of the runs is left.
func TestErase_ContinuesAfterKills(t *testing.T) {
	t.Parallel()
	h := erasing(t)
	r := harness.Seed(t)
	secret, kept := canary("gone"), canary("kept")
	const rounds = 6
	var stays, victims []string
	for range rounds {
		c := h.Client(testKey)
		victims, stays = append(victims, copied(t, c, secret)), append(stays, copied(t, c, kept))
	}
	acknowledged := map[string]bool{}
	for _, id := range victims {
		c, answered := h.Client(testKey), make(chan bool, 1)
		go func() {
			a, err := c.Do(t.Context(), http.MethodDelete, "/v1/runs/"+id, "")
			answered <- err == nil && a.Status == http.StatusNoContent
		}()
		select {
		case <-time.After(time.Duration(r.IntN(60)) * time.Millisecond): // the moment of the kill is what is tested
		case acknowledged[id] = <-answered:
			answered <- acknowledged[id]
		}
		h.Kill()
		acknowledged[id] = <-answered
		h.Launch()
	}
	c := h.Client(testKey)
	for _, id := range victims {
		a, err := c.Do(t.Context(), http.MethodGet, "/v1/runs/"+id, "")
		require.NoError(t, err)
		require.True(t, a.Status == http.StatusNotFound || !acknowledged[id] && a.Status == http.StatusOK, "%s: %d", id, a.Status)
		require.Equal(t, http.StatusNoContent, remove(t, c, id).Status)
	}
	gone(t, h.Dir(), secret)
	checkUnharmed(t, h, kept, stays...)
}
