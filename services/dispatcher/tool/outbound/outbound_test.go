package outbound_test

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"waybill.dev/waybill/services/dispatcher/tool/outbound"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func open(t *testing.T, h http.HandlerFunc) (*http.Client, *httptest.Server) {
	t.Helper()
	srv := httptest.NewServer(h)
	base, err := outbound.ParseBase(srv.URL + "/mcp")
	require.NoError(t, err)
	c := outbound.New(outbound.Config{Base: base, Token: "hush", MaxBytes: 100})
	t.Cleanup(func() {
		c.CloseIdleConnections()
		srv.Close()
	})
	return c, srv
}

func get(t *testing.T, ctx context.Context, c *http.Client, url string) (string, error) { //nolint:revive // t comes first in tests
	t.Helper()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	require.NoError(t, err)
	res, err := c.Do(req)
	if err != nil {
		return "", err
	}
	defer func() { _ = res.Body.Close() }()
	b, err := io.ReadAll(res.Body)
	return string(b), err
}

func TestClient_ReachesTheNamedHostAlone(t *testing.T) {
	t.Parallel()
	_, other := open(t, func(http.ResponseWriter, *http.Request) { t.Error("the other host was asked") })
	c, srv := open(t, func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/away" {
			http.Redirect(w, r, other.URL, http.StatusFound)
			return
		}
		_, _ = io.WriteString(w, r.Header.Get("Authorization"))
	})
	got, err := get(t, t.Context(), c, srv.URL+"/any")
	require.NoError(t, err)
	require.Equal(t, "Bearer hush", got)
	for _, url := range []string{
		srv.URL + "/away",
		other.URL, strings.Replace(srv.URL, "http:", "https:", 1),
		strings.Replace(srv.URL, "127.0.0.1", "localhost", 1),
	} {
		_, err := get(t, t.Context(), c, url)
		require.ErrorIs(t, err, outbound.ErrOtherHost, url)
		require.NotContains(t, err.Error(), "hush")
	}
}

// An agent's card may write the port that the operator's URL implies.
func TestSameHost_KnowsImpliedPorts(t *testing.T) {
	t.Parallel()
	for pair, want := range map[[2]string]bool{
		{"https://desk.example/a", "https://Desk.Example:443/b"}: true,
		{"http://desk.example:80", "http://desk.example"}:        true,
		{"http://[::1]", "http://[::1]:80"}:                      true,
		{"https://desk.example", "https://desk.example:80"}:      false,
		{"https://desk.example", "http://desk.example:443"}:      false,
		{"http://desk.example:8080", "http://desk.example"}:      false,
		{"http://desk.example", "http://desk.example.evil"}:      false,
		{"http://desk.example", "/rpc"}:                          false,
	} {
		a, err := url.Parse(pair[0])
		require.NoError(t, err)
		b, err := url.Parse(pair[1])
		require.NoError(t, err)
		require.Equal(t, want, outbound.SameHost(a, b), "%v", pair)
		require.Equal(t, want, outbound.SameHost(b, a), "%v", pair)
	}
}

func TestClient_TakesNoProxyFromTheEnvironment(t *testing.T) { //nolint:paralleltest // sets the environment
	t.Setenv("HTTP_PROXY", "http://127.0.0.1:1")
	c, srv := open(t, func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "there") })
	got, err := get(t, t.Context(), c, srv.URL)
	require.NoError(t, err)
	require.Equal(t, "there", got)
}

func TestClient_BoundsAnswers(t *testing.T) {
	t.Parallel()
	for _, kind := range []string{"application/json", "application/json; charset=utf-8", "text/event-stream"} {
		for size, fits := range map[int]bool{0: true, 100: true, 101: false, 1 << 20: false} {
			c, srv := open(t, func(w http.ResponseWriter, _ *http.Request) {
				w.Header().Set("Content-Type", kind)
				_, _ = io.WriteString(w, strings.Repeat("x", size))
			})
			ctx, note := outbound.WithNote(t.Context())
			got, err := get(t, ctx, c, srv.URL)
			require.Equal(t, fits, err == nil, "%s %d: %v", kind, size, err)
			require.Equal(t, !fits, note.TooLarge())
			require.LessOrEqual(t, len(got), 100)
			if !fits {
				require.ErrorIs(t, err, outbound.ErrTooLarge)
				require.Equal(t, "content_too_long", outbound.Peer{Name: "x"}.Failure(err, note).Code)
			}
		}
	}
}

func TestFailure_SaysWhatTheStatusMeans(t *testing.T) {
	t.Parallel()
	peer := outbound.Peer{Name: `MCP server "x"`, TokenName: "WAYBILL_MCP_X_TOKEN"}
	for status, code := range map[int]string{
		401: "credential_required",
		403: "credential_required",
		407: "credential_required",
		408: "service_unavailable",
		429: "service_unavailable",
		500: "service_unavailable",
		502: "service_unavailable",
		504: "service_unavailable",
	} {
		for header, wait := range map[string]time.Duration{
			"":         0,
			"7":        7 * time.Second,
			"-1":       0,
			"soon":     0,
			"99999999": 24 * time.Hour,
		} {
			c, srv := open(t, func(w http.ResponseWriter, _ *http.Request) {
				w.Header().Set("Retry-After", header)
				http.Error(w, "the vendor says", status)
			})
			ctx, note := outbound.WithNote(t.Context())
			_, err := get(t, ctx, c, srv.URL)
			e := peer.Failure(err, note)
			require.Equal(t, code, e.Code, status)
			require.Contains(t, e.Message, fmt.Sprint(status))
			require.NotContains(t, e.Message, "vendor")
			require.Equal(t, status, note.Status())
			require.Equal(t, code == "service_unavailable", e.Retryable)
			if e.Retryable {
				require.Equal(t, wait, e.RetryAfter)
			}
		}
	}
	for _, status := range []int{200, 202, 400, 404, 405, 501} { // they are the library's to read
		c, srv := open(t, func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(status) })
		_, err := get(t, t.Context(), c, srv.URL)
		require.NoError(t, err)
	}
}
