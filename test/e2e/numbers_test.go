package e2e

import (
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"waybill.dev/waybill/test/harness"
)

// counted copies a number and waits for nothing.
const counted = `{"id":"counted","name":"c","version":"1","nodes":[
	{"id":"copy","typeId":"core.identity","name":"c","position":{"x":0,"y":0},"config":{},"inputs":{"n":{"type":"variable","variableName":"n"}}}],
	"edges":[],"triggers":[],"variables":[{"name":"n","type":"number"}],"metadata":{},"settings":{}}`

// A secret of digits that is sent as a number is in no answer and no file, although nothing else of
// the run is long enough to be a secret (OpenWOP envelope contract §11).
func TestSecretNumber_IsNowhere(t *testing.T) {
	t.Parallel()
	needsHost(t)
	const card = "4929123456789012"
	secrets := filepath.Join(t.TempDir(), "secrets.yaml")
	require.NoError(t, os.WriteFile(secrets, []byte("card: \""+card+"\"\n"), 0o600))
	h := harness.Start(t, "--secrets-file", secrets, "--api-key", testKey+"=acme:*")
	c := h.Client(testKey)
	put(t, c, counted)
	runID := start(t, c, `{"workflowId":"counted","inputs":{"n":`+card+`},"metadata":{"a":`+card+`}}`)
	events, err := c.Finish(t.Context(), runID)
	require.NoError(t, err)
	require.NotEmpty(t, events)
	var all strings.Builder
	for _, path := range []string{"", "/events", "/events/poll", "/debug-bundle", ":view"} {
		a, err := c.Do(t.Context(), http.MethodGet, "/v1/runs/"+runID+path, "")
		require.NoError(t, err)
		require.Equal(t, http.StatusOK, a.Status, path)
		all.Write(a.Body)
	}
	require.NotContains(t, all.String(), card)
	require.Contains(t, all.String(), "[REDACTED:card]")
	h.Stop()
	require.NoError(t, filepath.WalkDir(h.Dir(), func(path string, d os.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		b, err := os.ReadFile(path)
		require.NotContains(t, string(b), card, path)
		return err
	}))
}
