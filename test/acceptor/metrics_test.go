package acceptor

import (
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	acceptorv1 "waybill.dev/waybill/proto/gen/go/waybill/acceptor/v1"
	"waybill.dev/waybill/test/harness"
)

// get returns status and body of a path on a service's metrics port.
func get(t *testing.T, h *harness.Host, path string) (status int, text string) {
	t.Helper()
	base, ok := strings.CutSuffix(h.Metrics, "/metrics")
	require.True(t, ok, "%q", h.Metrics)
	req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, base+path, http.NoBody)
	require.NoError(t, err)
	res, err := http.DefaultClient.Do(req)
	require.NoError(t, err)
	defer func() { _ = res.Body.Close() }()
	body, err := io.ReadAll(res.Body)
	require.NoError(t, err)
	return res.StatusCode, string(body)
}

func TestMetrics_ShowHealthAndOutcomesOfEnvelopes(t *testing.T) {
	t.Parallel()
	n := newNATS(t)
	n.start()
	h := harness.Serve(t, "acceptor", "--nats", n.url(), "--metrics-addr", "127.0.0.1:0")
	client := acceptorv1.NewAcceptorClient(dial(t, h))
	require.NoError(t, opened(t.Context(), client, "r"))
	for _, doc := range [][]byte{envelope("c", "m"), envelope("c", "m"), envelope("d", "m"), []byte(`[]`), file("e", make([]byte, inlineCap+1))} {
		_, err := emitted(t.Context(), client, "r", doc)
		require.NoError(t, err)
	}
	_, err := client.Accept(t.Context(), &acceptorv1.AcceptRequest{Run: ref("ghost"), NodeId: "ask", Envelope: envelope("c", "m")})
	require.Error(t, err)
	status, body := get(t, h, "/metrics")
	require.Equal(t, http.StatusOK, status)
	for _, line := range []string{
		`waybill_acceptor_envelopes_total{outcome="accepted"} 2`,
		`waybill_acceptor_envelopes_total{outcome="recalled"} 1`,
		`waybill_acceptor_envelopes_total{outcome="invalid"} 2`,
		`waybill_acceptor_errors_total{code="run_not_found"} 1`,
		`waybill_acceptor_accept_seconds_count 6`,
		`waybill_serving 1`,
		`go_goroutines`, `process_open_fds`,
	} {
		require.Contains(t, body, line)
	}
	for _, path := range []string{"/healthz", "/readyz"} {
		status, body = get(t, h, path)
		require.Equal(t, http.StatusOK, status, path)
		require.JSONEq(t, `{"status":"ok"}`, body, path)
	}

	n.stop()
	require.Eventually(t, func() bool { status, _ := get(t, h, "/readyz"); return status == http.StatusServiceUnavailable }, 30*time.Second, 20*time.Millisecond)
	_, body = get(t, h, "/readyz")
	require.Contains(t, body, `"service_unavailable"`)
	require.Contains(t, body, "NATS")
	status, _ = get(t, h, "/healthz")
	require.Equal(t, http.StatusOK, status, "the process lives")
	_, body = get(t, h, "/metrics")
	require.Contains(t, body, "waybill_serving 0")
	n.start()
	require.Eventually(t, func() bool { status, _ := get(t, h, "/readyz"); return status == http.StatusOK }, 30*time.Second, 20*time.Millisecond)
}

func TestMetrics_OfARedactor(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("SKIPPED, starts real processes: run without -short")
	}
	h := harness.Serve(t, "redactor", "--metrics-addr", "127.0.0.1:0")
	status, body := get(t, h, "/readyz")
	require.Equal(t, http.StatusOK, status, body)
	_, body = get(t, h, "/metrics")
	require.Contains(t, body, "waybill_serving 1")
}
