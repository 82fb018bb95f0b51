package host

import (
	"errors"
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/stretchr/testify/require"
)

// OpenWOP host contract §9.1: also a host that starts answers every path with the error envelope.
func TestStartingHandler_RejectsRequestsInTheCanonicalForm(t *testing.T) {
	t.Parallel()
	h := startingHandler(func() error { return errors.New("NATS does not answer yet") })
	for _, tc := range []struct{ method, path, says string }{
		{http.MethodGet, "/v1/runs", "the host starts"},
		{http.MethodPost, "/v1//runs", "the host starts"},
		{http.MethodGet, "/v1/../v1/runs", "the host starts"},
		{http.MethodPost, "/healthz", "the host starts"},
		{http.MethodConnect, "/", "the host starts"},
		{http.MethodGet, "/readyz", "NATS does not answer yet"},
	} {
		r := httptest.NewRequestWithContext(t.Context(), tc.method, "/", http.NoBody)
		r.URL.Path = tc.path
		w := httptest.NewRecorder()
		h.ServeHTTP(w, r)
		require.Equal(t, http.StatusServiceUnavailable, w.Code, "%s %s", tc.method, tc.path)
		require.Equal(t, "application/json", w.Header().Get("Content-Type"))
		require.NotEmpty(t, w.Header().Get("Retry-After"))
		require.Contains(t, w.Body.String(), `"error":"service_unavailable"`)
		require.Contains(t, w.Body.String(), `"retryAfter":`)
		require.Contains(t, w.Body.String(), tc.says)
	}
	w := httptest.NewRecorder()
	h.ServeHTTP(w, httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/healthz", http.NoBody))
	require.Equal(t, http.StatusOK, w.Code)
}
