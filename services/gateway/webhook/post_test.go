package webhook_test

import (
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"waybill.dev/waybill/services/gateway/egress"
	"waybill.dev/waybill/services/gateway/webhook"
)

// OpenWOP host contract §10.5, success: 2xx only; 3xx is a failure and not followed.
func TestHTTP_TreatsOnly2xxAsSuccess(t *testing.T) {
	t.Parallel()
	for status, want := range map[int]webhook.Result{
		200: {},
		202: {},
		204: {},
		299: {},
		301: {Reason: "redirected, status 301"},
		307: {Reason: "redirected, status 307"},
		304: {Reason: "redirected, status 304"},
		400: {Reason: "status 400"},
		410: {Reason: "status 410"},
		429: {Reason: "status 429", After: 7 * time.Second},
		500: {Reason: "status 500"},
		503: {Reason: "status 503", After: 7 * time.Second},
	} {
		t.Run(strconv.Itoa(status), func(t *testing.T) {
			t.Parallel()
			calls := make(chan string, 8)
			s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				b, _ := io.ReadAll(r.Body)
				calls <- r.Method + " " + r.URL.Path + " " + r.Header.Get("X-Test") + " " + string(b)
				w.Header().Set("Location", "/elsewhere")
				w.Header().Set("Retry-After", "7")
				w.WriteHeader(status)
			}))
			defer s.Close()
			require.Equal(t, want, post(t, egress.Policy{AllowPrivate: true}, s.URL+"/in", patience))
			require.Len(t, calls, 1)
			require.Equal(t, "POST /in v {}", <-calls)
		})
	}
}

const patience = 10 * time.Second

func post(t *testing.T, p egress.Policy, url string, timeout time.Duration) webhook.Result {
	t.Helper()
	c := egress.NewGuard(p).Client(timeout)
	defer c.CloseIdleConnections()
	return webhook.HTTP{Client: c, Policy: p}.Post(t.Context(), url, http.Header{"X-Test": {"v"}}, []byte("{}"))
}

// Reasons are shown to the tenant and logged, so they contain neither the URL nor an address nor text
// of the receiver.
func TestHTTP_ReasonsRevealNothing(t *testing.T) {
	t.Parallel()
	hold := make(chan struct{})
	slow := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		select {
		case <-hold:
		case <-r.Context().Done():
		}
	}))
	defer slow.Close()
	defer close(hold)
	tls := httptest.NewUnstartedServer(http.NotFoundHandler())
	tls.Config.ErrorLog = slog.NewLogLogger(slog.DiscardHandler, slog.LevelInfo) // silence errors about the client
	tls.StartTLS()
	defer tls.Close()
	gone := httptest.NewServer(http.NotFoundHandler())
	gone.Close()
	for name, tc := range map[string]struct {
		policy egress.Policy
		url    string
		want   string
	}{
		"slow":       {egress.Policy{AllowPrivate: true}, slow.URL, "no answer in time"},
		"in clear":   {egress.Policy{}, "http://hooks.example", "refused: want the scheme https"},
		"private":    {egress.Policy{}, tls.URL, "refused: the host has an address that is not public"},
		"unknown CA": {egress.Policy{AllowPrivate: true}, tls.URL, "no trusted TLS connection"},
		"no TLS": {
			egress.Policy{AllowPrivate: true},
			strings.Replace(slow.URL, "http:", "https:", 1), "no trusted TLS connection",
		},
		"no server":   {egress.Policy{AllowPrivate: true}, gone.URL, "the connection failed"},
		"not a URL":   {egress.Policy{AllowPrivate: true}, "http://a b/", "the URL cannot be called"},
		"no such one": {egress.Policy{AllowPrivate: true}, "http://nothing.invalid/", "the host has no address"},
	} {
		t.Run(name, func(t *testing.T) {
			timeout := patience
			if name == "slow" {
				timeout = 50 * time.Millisecond
			}
			r := post(t, tc.policy, tc.url+"/?token=secret", timeout)
			if name == "no such one" && r.Reason == "no answer in time" {
				return // this machine's resolver timed out
			}
			require.Equal(t, tc.want, r.Reason)
		})
	}
}
