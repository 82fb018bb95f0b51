package e2e

import (
	"net/http"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"waybill.dev/waybill/test/harness"
)

// OpenWOP host contract §5.8: a forbidden model is never called. A run that names one at creation
// is rejected then.
func TestPolicy_ForbidsAModelToATenant(t *testing.T) {
	t.Parallel()
	needsHost(t)
	file := filepath.Join(t.TempDir(), "policies.json")
	require.NoError(t, os.WriteFile(file, []byte(`{"tenants":{"default":{"sample":{"mode":"restricted","allowedModels":["other-*"]},"box":{"mode":"disabled"}}}}`), 0o600))
	h := harness.Start(t, "--provider-policies", file, "--provider", "box=http://127.0.0.1:1/v1", "--api-key", "dev-key=default:*", "--api-key", "their-key=other:*")
	const flow = `{"id":"ask","name":"n","version":"1","edges":[],"triggers":[],"variables":[],"metadata":{},"settings":{},"nodes":[` +
		`{"id":"a","typeId":"core.ai.callPrompt","name":"n","position":{"x":0,"y":0},"config":{"prompt":"hello"},"inputs":{}}]}`
	run := func(key, body string) (status int, code, reason string) {
		c := h.Client(key)
		a, err := c.Do(t.Context(), http.MethodPost, "/v1/workflows", flow)
		require.NoError(t, err)
		require.Less(t, a.Status, http.StatusBadRequest, "%s", a.Body)
		a, err = c.Do(t.Context(), http.MethodPost, "/v1/runs", body)
		require.NoError(t, err)
		if a.Status != http.StatusCreated {
			var refused struct {
				Error   string
				Details struct{ Reason string }
			}
			require.NoError(t, a.JSON(&refused))
			return a.Status, refused.Error, refused.Details.Reason
		}
		var made struct{ RunID string }
		require.NoError(t, a.JSON(&made))
		_, err = c.Finish(t.Context(), made.RunID)
		require.NoError(t, err)
		a, err = c.Do(t.Context(), http.MethodGet, "/v1/runs/"+made.RunID, "")
		require.NoError(t, err)
		var snap struct {
			Status string
			Error  struct {
				Code    string
				Details struct{ Reason string }
			}
		}
		require.NoError(t, a.JSON(&snap))
		if snap.Status == "completed" {
			return http.StatusCreated, "", ""
		}
		return http.StatusCreated, snap.Error.Code, snap.Error.Details.Reason
	}
	for _, tc := range []struct {
		name, key, body string
		status          int
		code, reason    string
	}{
		{"a model that is not allowed", "dev-key", `{"workflowId":"ask"}`, http.StatusCreated, "provider_policy_denied", "model_not_allowed"},
		{"the rule is another tenant's", "their-key", `{"workflowId":"ask"}`, http.StatusCreated, "", ""},
		{"a provider that is switched off", "dev-key", `{"workflowId":"ask","configurable":{"ai.provider":"box"}}`, http.StatusForbidden, "provider_policy_denied", "provider_disabled"},
	} {
		status, code, reason := run(tc.key, tc.body)
		require.Equal(t, tc.status, status, tc.name)
		require.Equal(t, tc.code, code, tc.name)
		require.Equal(t, tc.reason, reason, tc.name)
	}
}
