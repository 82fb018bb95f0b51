package e2e

import (
	"net/http"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"waybill.dev/waybill/test/harness"
)

// A registration is stored and shown again, so it must not contain a registered secret in any
// encoding.
func TestWebhook_ContainsNoRegisteredSecret(t *testing.T) {
	t.Parallel()
	const secret = "Zx9-quartz-Kestrel-4711-vault"
	file := filepath.Join(t.TempDir(), "secrets.yaml")
	require.NoError(t, os.WriteFile(file, []byte("canary: "+secret+"\n"), 0o600))
	c := harness.Start(t, "--test-seams", "--secrets-file", file).Client("dev-key")
	for at, body := range map[string]string{
		"/url":    `{"url":"https://93.184.216.34/` + secret + `","events":["run.completed"]}`,
		"/tags/1": `{"url":"https://93.184.216.34/","events":["run.completed"],"tags":["a","x` + secret + `"]}`,
	} {
		a, err := c.Do(t.Context(), http.MethodPost, "/v1/webhooks", body)
		require.NoError(t, err)
		require.Equal(t, http.StatusBadRequest, a.Status, "%s", a.Body)
		require.Contains(t, string(a.Body), at)
		require.NotContains(t, string(a.Body), secret)
	}
	a, err := c.Do(t.Context(), http.MethodPost, "/v1/webhooks", `{"url":"https://93.184.216.34/hook","events":["run.completed"],"tags":["a"]}`)
	require.NoError(t, err)
	require.Equal(t, http.StatusCreated, a.Status, "%s", a.Body)
}
