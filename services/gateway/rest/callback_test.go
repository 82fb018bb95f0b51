package rest_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"waybill.dev/waybill/protocol/fault"
	"waybill.dev/waybill/services/gateway/webhook"
)

const runsPath = "/v1/runs"

func calls(url string) string { return fmt.Sprintf(`{"workflowId":"wf","callbackUrl":%q}`, url) }

// OpenWOP host contract §10.6: a callback URL is checked like a webhook's.
func TestCreateRun_ChecksTheCallbackURLLikeAWebhooks(t *testing.T) {
	t.Parallel()
	h, _ := hooked(t)
	for url, says := range map[string]string{
		"https://inside.example/":  "not public",
		"https://six.example/":     "not public",
		"https://169.254.169.254/": "not public",
		"http://hooks.example/":    "want the scheme https",
	} {
		e := refused(t, h.as(t, full, http.MethodPost, runsPath, calls(url)), fault.ValidationError)
		require.Contains(t, e.Message, "/callbackUrl: ")
		require.Contains(t, e.Message, says)
	}
	for _, url := range []string{"https://hooks.example/x", "https://hooks.example/y", "https://later.example/"} {
		w := h.as(t, full, http.MethodPost, runsPath, calls(url))
		require.Equal(t, http.StatusCreated, w.Code, "%s", w.Body)
	}
	var list struct {
		Webhooks []struct{ WebhookID, URL, Status string }
	}
	require.NoError(t, json.Unmarshal(h.as(t, full, http.MethodGet, hooksPath, "").Body.Bytes(), &list))
	seen := map[string]string{}
	for _, w := range list.Webhooks {
		require.True(t, strings.HasPrefix(w.WebhookID, "cb_"))
		seen[w.URL] = w.Status
	}
	require.Equal(t, map[string]string{
		"https://hooks.example": "active",
		"https://later.example": "active",
	}, seen, "each server once")
	require.JSONEq(t, `{"webhooks":[]}`, h.as(t, beta, http.MethodGet, hooksPath, "").Body.String())
}

func TestCreateRun_LimitsTheCallbackServersOfATenant(t *testing.T) {
	t.Parallel()
	h, _ := hooked(t)
	for i := range webhook.DefaultPolicy().PerTenant {
		w := h.as(t, full, http.MethodPost, runsPath, calls(fmt.Sprintf("https://hooks.example:%d/", i+1)))
		require.Equal(t, http.StatusCreated, w.Code, "%s", w.Body)
	}
	const key = "Idempotency-Key"
	more := calls("https://hooks.example/")
	e := refused(t, h.as(t, full, http.MethodPost, runsPath, more, key, "k"), fault.Conflict)
	require.Contains(t, e.Message, "GET /v1/webhooks")
	var list struct{ Webhooks []struct{ WebhookID string } }
	require.NoError(t, json.Unmarshal(h.as(t, full, http.MethodGet, hooksPath, "").Body.Bytes(), &list))
	require.Equal(t, http.StatusNoContent, h.as(t, full, http.MethodDelete, hooksPath+"/"+list.Webhooks[0].WebhookID, "").Code)
	require.Equal(t, http.StatusCreated, h.as(t, full, http.MethodPost, runsPath, more, key, "k").Code, "the refusal was not final")
}
