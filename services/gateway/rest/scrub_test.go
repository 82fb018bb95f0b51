package rest_test

import (
	"net/http"
	"testing"

	"github.com/stretchr/testify/require"
)

// OpenWOP host contract §2.0, leakage: an error may quote the caller's input, without secrets.
func TestErrors_RepeatNoSecret(t *testing.T) {
	t.Parallel()
	h := newHost(t, withSeams)
	for _, c := range []struct{ method, target, body string }{
		{http.MethodPost, "/v1/runs", `{"workflowId":"w","` + planted + `":1}`},
		{http.MethodGet, "/v1/workflows/" + planted, ""},
		{http.MethodGet, "/v1/runs/" + planted, ""},
		{http.MethodGet, "/v1/runs/" + planted + "/events", ""},
		{http.MethodGet, "/v1/runs?status=" + planted, ""},
		{http.MethodGet, "/v1/runs/run_1/events?streamMode=" + planted, ""},
		{http.MethodPost, sample + "test/mock-ai/program", `{"` + planted + `":1}`},
	} {
		w := h.as(t, full, c.method, c.target, c.body)
		require.GreaterOrEqual(t, w.Code, 400, c.target)
		require.NotContains(t, w.Body.String(), planted, c.target)
		require.NotEmpty(t, decode(t, w)["error"])
	}
}

func TestErrors_WithoutTheRedactorHaveOnlyTheirCode(t *testing.T) {
	t.Parallel()
	h := newHost(t)
	w := h.as(t, full, http.MethodPost, "/v1/runs", `{"workflowId":"w","`+away+`":1}`)
	require.Equal(t, http.StatusBadRequest, w.Code)
	require.Equal(t, "validation_error", decode(t, w)["error"])
	require.NotContains(t, w.Body.String(), away)
}
