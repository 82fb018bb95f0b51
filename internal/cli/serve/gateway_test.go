package serve

import (
	"context"
	"io"
	"log/slog"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"waybill.dev/waybill/internal/natsd"
)

// patience is for machines with much to do.
const patience = 30 * time.Second

// freeAddr returns an unused address.
func freeAddr(t *testing.T) string {
	t.Helper()
	lis, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	require.NoError(t, lis.Close())
	return lis.Addr().String()
}

// startGateway runs a gateway whose other services are not there. end ends it.
func startGateway(t *testing.T, at, grpcAddr, broker string, more ...string) (end func()) {
	t.Helper()
	key := filepath.Join(t.TempDir(), "host.key")
	require.NoError(t, os.WriteFile(key, []byte(strings.Repeat("k", 48)), 0o600))
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	c := Command()
	c.SetArgs(append([]string{
		"gateway", "--http-addr", at, "--grpc-addr", grpcAddr, "--nats",
		"nats://" + natsd.HostUser + ":secret@" + broker,
		"--host-key-file", key, "--audit=false", "--api-key", "dev-key=acme:*",
		"--redactor", "127.0.0.1:1", "--acceptor", "127.0.0.1:1", "--dispatcher", "127.0.0.1:1",
		"--eventlog", "127.0.0.1:1",
	}, more...))
	c.SetErr(io.Discard)
	go func() { ended <- c.ExecuteContext(ctx) }()
	return func() {
		cancel()
		require.NoError(t, <-ended)
	}
}

// A gateway without a reachable NATS is alive and not ready, and reports that on the address
// that probes ask.
func TestGateway_AnswersProbesBeforeNATSIsThere(t *testing.T) {
	t.Parallel()
	at, broker := freeAddr(t), freeAddr(t)
	end := startGateway(t, at, freeAddr(t), broker, "--otlp-endpoint", "http://127.0.0.1:1", "--trace-ratio", "1")
	client := &http.Client{Transport: &http.Transport{}, Timeout: 30 * time.Second}
	ask := func(path string) (status int, body string) {
		req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "http://"+at+path, nil)
		require.NoError(t, err)
		res, err := client.Do(req)
		if err != nil {
			return 0, err.Error()
		}
		defer func() { _ = res.Body.Close() }()
		b, err := io.ReadAll(res.Body)
		require.NoError(t, err)
		return res.StatusCode, string(b)
	}
	says := func(path string, status int, part string) {
		t.Helper()
		var (
			got  int
			body string
		)
		require.Eventually(t, func() bool { got, body = ask(path); return got == status && strings.Contains(body, part) }, 30*time.Second, 10*time.Millisecond,
			"%s", path)
	}
	says("/healthz", http.StatusOK, `"ok"`)
	says("/readyz", http.StatusServiceUnavailable, "NATS does not open yet")
	_, body := ask("/readyz")
	require.NotContains(t, body, broker, "the page is public and must not contain the address of NATS")
	says("/v1/runs", http.StatusServiceUnavailable, `"service_unavailable"`)

	srv, err := natsd.Start(t.Context(), natsd.Config{Dir: t.TempDir(), Addr: broker, Log: slog.New(slog.DiscardHandler)}, "secret")
	require.NoError(t, err)
	t.Cleanup(func() { client.CloseIdleConnections(); end(); srv.Stop() })
	says("/readyz", http.StatusServiceUnavailable, "the redactor is unavailable")
	says("/healthz", http.StatusOK, `"ok"`)
	says("/v1/runs", http.StatusUnauthorized, `"unauthenticated"`)
}
