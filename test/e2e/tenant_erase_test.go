package e2e

import (
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"waybill.dev/waybill/test/harness"
)

// A tenant is erased with its runs, workflows, webhooks, views and annotations. Other tenants keep theirs, also
// a workflow with the same content.
func TestErase_ATenant(t *testing.T) {
	t.Parallel()
	needsHost(t)
	h := harness.Start(t, "--lease", "1s", "--metrics-addr", "127.0.0.1:0", "--webhook-allow", "127.0.0.0/8",
		"--api-key", testKey+"=acme:*", "--api-key", "other=beta:*", "--api-key", "weak=acme:runs:read,runs:delete")
	c, other := h.Client(testKey), h.Client("other")
	secret, kept := canary("gone"), canary("kept")
	named := func(id, name string) string {
		doc := strings.Replace(copying, `"id":"copying"`, fmt.Sprintf(`"id":%q`, id), 1)
		return strings.Replace(doc, `"name":"c"`, fmt.Sprintf(`"name":%q`, name), 1)
	}
	shared := named("shared", kept)
	for client, docs := range map[*harness.Client][]string{
		c: {named("mine", secret), named("old", "old"), shared, waitingFlow}, other: {shared, named("theirs", kept)},
	} {
		for _, doc := range docs {
			doing(t, client, http.MethodPost, "/v1/workflows", doc, http.StatusCreated)
		}
	}
	doing(t, c, http.MethodDelete, "/v1/workflows/old", "", http.StatusOK)
	doing(t, c, http.MethodPost, "/v1/webhooks", fmt.Sprintf(`{"url":"https://127.0.0.1:1/%s","events":["run.completed"]}`, secret), http.StatusCreated)
	run := copiedBy(t, c, "mine", secret)
	doing(t, c, http.MethodPost, "/v1/runs/"+run+"/annotations", fmt.Sprintf(`{"signal":{"kind":"label","label":%q}}`, secret), http.StatusCreated)
	doing(t, c, http.MethodPost, "/v1/views", fmt.Sprintf(`{"viewId":"v","name":%q,"shared":true}`, secret), http.StatusOK)
	doing(t, other, http.MethodPost, "/v1/views", fmt.Sprintf(`{"viewId":"v","name":%q}`, kept), http.StatusOK)
	theirs := copiedBy(t, other, "shared", kept)
	going := start(t, c, `{"workflowId":"sleepy"}`)
	require.NotEmpty(t, files(t, h.Dir(), secret))

	doing(t, h.Client("weak"), http.MethodPost, "/v1/tenant:erase", `{}`, http.StatusForbidden)
	require.Equal(t, "conflict", doing(t, c, http.MethodPost, "/v1/tenant:erase", `{}`, http.StatusConflict).Code())
	token := func(key string) string {
		path := filepath.Join(t.TempDir(), "token")
		require.NoError(t, os.WriteFile(path, []byte(key), 0o600))
		return path
	}
	command := func(args ...string) (string, int) {
		return harness.Command(t, append([]string{"tenant", "erase", "--url", h.HTTP, "--token-file", token(testKey)}, args...)...)
	}
	out, status := command("--dry-run")
	require.Zero(t, status, out)
	require.Contains(t, out, "1 ended runs, 1 others")
	out, status = command("--yes")
	require.Equal(t, 6, status, out)
	require.Contains(t, out, "1 runs have not ended")
	out, status = command()
	require.NotZero(t, status, out)
	require.Equal(t, http.StatusOK, statusOf(t, c, going))
	doing(t, c, http.MethodPost, "/v1/runs/"+run+"/hold", `{"reason":"case 7"}`, http.StatusOK)
	out, status = command("--cancel", "--yes")
	require.Equal(t, 6, status, out)
	require.Contains(t, out, "legal hold")
	require.Equal(t, http.StatusOK, statusOf(t, c, run))
	doing(t, c, http.MethodDelete, "/v1/runs/"+run+"/hold", "", http.StatusNoContent)
	for range 2 {
		out, status = command("--cancel", "--yes")
		require.Zero(t, status, out)
		require.Contains(t, out, "tenant erased")
	}
	for _, path := range []string{"/v1/runs", "/v1/workflows", "/v1/webhooks", "/v1/holds", "/v1/audit", "/v1/views"} {
		require.NotContains(t, string(doing(t, c, http.MethodGet, path, "", http.StatusOK).Body), secret, path)
	}
	doing(t, c, http.MethodGet, "/v1/workflows/mine", "", http.StatusNotFound)
	doing(t, c, http.MethodGet, "/v1/workflows/shared", "", http.StatusNotFound)
	require.Contains(t, string(doing(t, c, http.MethodGet, "/v1/audit", "", http.StatusOK).Body), `"tenant.erased"`)
	gone(t, h.Dir(), secret)

	require.Zero(t, h.Stop().ExitCode())
	h.Launch()
	other = h.Client("other")
	copiedBy(t, other, "theirs", kept)
	copiedBy(t, other, "shared", kept)
	require.Equal(t, http.StatusOK, statusOf(t, other, theirs))
	require.Contains(t, string(doing(t, other, http.MethodGet, "/v1/views", "", http.StatusOK).Body), kept)
	require.Empty(t, files(t, h.Dir(), secret))
	out, status = harness.Command(t, "doctor", "--url", h.HTTP, "--token-file", token("other"))
	require.Contains(t, out, "retention", "%d", status)
	require.Contains(t, out, "3 ended runs (3 of 0-1 days)")
}
