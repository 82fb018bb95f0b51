package services

import (
	"context"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"waybill.dev/waybill/internal/freeport"
	"waybill.dev/waybill/test/harness"
)

// says repeats a request until it has a status, and returns the answer.
func says(t *testing.T, c *harness.Client, status int, method, path, body string) harness.Answer {
	t.Helper()
	var got harness.Answer
	require.Eventually(t, func() bool {
		a, err := c.Do(t.Context(), method, path, body)
		require.NoError(t, err)
		got = *a
		return a.Status == status
	}, 30*time.Second, 20*time.Millisecond, "%s %s does not answer %d", method, path, status)
	return got
}

// metric reports whether a process's metrics have a line.
func metric(t *testing.T, h *harness.Host, line string) bool {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, h.Metrics, http.NoBody)
	require.NoError(t, err)
	res, err := http.DefaultClient.Do(req)
	require.NoError(t, err)
	defer res.Body.Close() //nolint:errcheck // only read
	b, err := io.ReadAll(res.Body)
	require.NoError(t, err)
	return strings.Contains(string(b), "\n"+line+"\n")
}

// A ready gateway stays ready while another service is down. Requests that need it get 503, others
// succeed (docs/services.md, "Readiness").
func TestGateway_StaysReadyWhileAnotherServiceIsUnreachable(t *testing.T) {
	t.Parallel()
	const (
		run  = `{"workflowId":"one"}`
		runs = "/v1/runs"
	)
	type request struct{ method, path, body string }
	reads := []request{{"GET", "/v1/runs/RUN", ""}, {"GET", "/v1/runs/RUN/events/poll", ""}, {"GET", runs, ""}}
	offers := []request{{"GET", "/.well-known/openwop", ""}, {"GET", "/v1/workflows", ""}, {"GET", "/v1/workflows/one", ""}}
	start := request{"POST", runs, run}
	for away, tc := range map[string]struct {
		served  []request
		refused []request
	}{
		"redactor":   {append(offers, reads...), []request{start}},
		"acceptor":   {append(offers[1:], reads...), []request{start, offers[0]}},
		"eventlog":   {offers, append(reads, start)},
		"dispatcher": {reads, append(offers, start)},
	} {
		t.Run(away, func(t *testing.T) {
			t.Parallel()
			all := harness.ServeEach(t, []string{"--nats", broker(t)}, "--api-key", "key-acme=acme:*", "--metrics-addr", "127.0.0.1:0")
			gateway := all["gateway"]
			c := gateway.Client("key-acme")
			ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
			defer cancel()
			says(t, c, http.StatusCreated, "POST", "/v1/workflows", workflow)
			created := says(t, c, http.StatusCreated, "POST", runs, run)
			var is struct{ RunID string }
			require.NoError(t, created.JSON(&is))
			_, err := c.Finish(ctx, is.RunID)
			require.NoError(t, err)
			at := func(r request) string { return strings.ReplaceAll(r.path, "RUN", is.RunID) }

			all[away].Kill()
			require.Eventually(t, func() bool { return metric(t, gateway, "waybill_serving 0") }, 30*time.Second, 20*time.Millisecond, "the metric shows the outage")
			gateway.AwaitLog("another service is away", "peer="+away)
			for _, r := range tc.refused {
				a := says(t, c, http.StatusServiceUnavailable, r.method, at(r), r.body)
				require.NotEmpty(t, a.Header.Get("Retry-After"), "%s %s", r.method, at(r))
				require.Contains(t, string(a.Body), `"service_unavailable"`)
				require.NotContains(t, string(a.Body), all[away].GRPC)
			}
			for _, r := range tc.served {
				a, err := c.Do(ctx, r.method, at(r), r.body)
				require.NoError(t, err)
				require.Equal(t, http.StatusOK, a.Status, "%s %s: %s", r.method, at(r), a.Body)
			}
			a, err := c.Do(ctx, "GET", "/readyz", "")
			require.NoError(t, err)
			require.Equal(t, http.StatusOK, a.Status, "%s", a.Body)

			all[away].Launch()
			says(t, c, http.StatusCreated, "POST", runs, run)
			require.Eventually(t, func() bool { return metric(t, gateway, "waybill_serving 1") }, 30*time.Second, 20*time.Millisecond)
		})
	}
}

// A gateway that starts while another service is down is not ready until that service was up.
func TestGateway_IsNotReadyBeforeAllServicesWereReachable(t *testing.T) {
	t.Parallel()
	at := freeport.Addr(t)
	all := harness.ServeEach(t, []string{"--nats", broker(t)}, "--api-key", "key-acme=acme:*", "--http-addr", at)
	gateway, events := all["gateway"], all["eventlog"]
	c := gateway.Client("key-acme")
	says(t, c, http.StatusOK, "GET", "/readyz", "")
	events.Kill()
	gateway.Kill()
	gateway.Spawn()
	var body string
	require.Eventually(t, func() bool {
		a, err := c.Do(t.Context(), "GET", "/readyz", "")
		if err != nil { // it does not listen yet
			return false
		}
		require.Equal(t, http.StatusServiceUnavailable, a.Status, "it never saw an event log")
		body = string(a.Body)
		return strings.Contains(body, "no eventlog service can be reached")
	}, 30*time.Second, 20*time.Millisecond)
	require.NotContains(t, body, events.GRPC, "addresses are for the log only")
	gateway.AwaitLog(events.GRPC)
	events.Launch()
	gateway.Await()
	says(t, c, http.StatusOK, "GET", "/readyz", "")
}
