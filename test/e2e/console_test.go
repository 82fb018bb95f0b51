package e2e

import (
	"context"
	"encoding/json"
	"net/http"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"waybill.dev/waybill/test/harness"
)

// consoleHost starts a host of two tenants, and returns a client without a key.
func consoleHost(t *testing.T, args ...string) (*harness.Host, *harness.Client) {
	t.Helper()
	needsHost(t)
	h := harness.Start(t, append([]string{"--api-key", consoleKey + "=acme:*", "--api-key", readerKey + "=beta:runs:read"}, args...)...)
	return h, h.Client("")
}

const (
	consoleKey = "hk_live_console-e2e-1f0c"
	readerKey  = "hk_live_reader-e2e-77ab"
)

// do sends a request and requires an answer.
func do(t *testing.T, c *harness.Client, method, path, body string, headers ...string) *harness.Answer {
	t.Helper()
	a, err := c.Do(within(t, time.Minute), method, path, body, headers...)
	require.NoError(t, err)
	return a
}

// signIn returns the Cookie header of a new session.
func signIn(t *testing.T, c *harness.Client, offer string) string {
	t.Helper()
	a := do(t, c, http.MethodPost, "/console/session", offer)
	require.Equal(t, http.StatusNoContent, a.Status, "%s", a.Body)
	cookie, _, _ := strings.Cut(a.Header.Get("Set-Cookie"), ";")
	return cookie
}

const consolePolicy = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data: blob:; media-src 'self' blob:; connect-src 'self'; " +
	"font-src 'self'; base-uri 'self'; form-action 'self'; frame-ancestors 'none'; require-trusted-types-for 'script'"

func TestConsole_C1a_ServesPagesUnderTheStrictPolicy(t *testing.T) {
	t.Parallel()
	_, c := consoleHost(t)
	for _, path := range []string{"/console/", "/console/runs/run_1?e=42", "/console/config.json", "/console/assets/none.js"} {
		a := do(t, c, http.MethodGet, path, "")
		require.Equal(t, consolePolicy, a.Header.Get("Content-Security-Policy"), path)
		require.Equal(t, "no-referrer", a.Header.Get("Referrer-Policy"), path)
		require.Equal(t, "nosniff", a.Header.Get("X-Content-Type-Options"), path)
	}
	index := do(t, c, http.MethodGet, "/console/runs", "")
	require.Equal(t, "text/html; charset=utf-8", index.Header.Get("Content-Type"))
	require.Equal(t, "no-store", index.Header.Get("Cache-Control"))
	require.Contains(t, string(index.Body), `<meta name="waybill-base" content="/"`)
	for _, ref := range regexp.MustCompile(`(?:src|href)="([^"]+)"`).FindAllStringSubmatch(string(index.Body), -1) {
		require.True(t, strings.HasPrefix(ref[1], "/console/"), "%s is of this origin and found from every route", ref[1])
		require.Equal(t, http.StatusOK, do(t, c, http.MethodGet, ref[1], "").Status, ref[1])
	}
}

func TestConsole_C1b_ShowsNothingWithoutACredential(t *testing.T) {
	t.Parallel()
	h, c := consoleHost(t, "--log-level", "debug")
	run := start(t, h.Client(consoleKey), `{"workflowId":"triage","inputs":{"mail":"Where is my order?"}}`)
	require.Equal(t, http.StatusUnauthorized, do(t, c, http.MethodGet, "/v1/runs", "").Status)
	require.Equal(t, http.StatusUnauthorized, do(t, c, http.MethodGet, "/v1/runs", "", "Cookie", "waybill_session=1.abc").Status)
	page := do(t, c, http.MethodGet, "/console/runs/"+run, "")
	require.NotContains(t, string(page.Body), run)
	require.Contains(t, string(do(t, c, http.MethodGet, "/console/config.json", "").Body), `"signedIn":false`)

	refused := do(t, c, http.MethodPost, "/console/session", `{"key":"hk_live_wrong-e2e-99"}`)
	require.Equal(t, http.StatusUnauthorized, refused.Status)
	require.Equal(t, "unauthenticated", refused.Code())
	cookie := signIn(t, c, `{"key":"`+consoleKey+`"}`)
	require.NotContains(t, cookie, consoleKey)
	require.Contains(t, string(do(t, c, http.MethodGet, "/v1/runs", "", "Cookie", cookie).Body), run)
	for _, secret := range []string{consoleKey, "hk_live_wrong-e2e-99", cookie} {
		require.NotContains(t, h.Log(), secret)
		require.NotContains(t, string(refused.Body), secret)
	}
}

func TestConsole_C1b_TheLinkOnTheTerminalSignsInOnce(t *testing.T) {
	harness.InOneProcess(t, "waybill dev prints the link")
	t.Parallel()
	h, c := consoleHost(t)
	link := regexp.MustCompile(`http://[^\s#]+/console/#code=(\S+)`)
	require.Eventually(t, func() bool { return link.MatchString(h.Log()) }, 30*time.Second, 10*time.Millisecond)
	offer := `{"code":"` + link.FindStringSubmatch(h.Log())[1] + `"}`
	config := do(t, c, http.MethodGet, "/console/config.json", "", "Cookie", signIn(t, c, offer))
	var v struct {
		Mode     string
		SignedIn bool
		Session  struct{ Tenant string }
	}
	require.NoError(t, json.Unmarshal(config.Body, &v))
	require.Equal(t, "dev", v.Mode)
	require.True(t, v.SignedIn)
	require.Equal(t, "acme", v.Session.Tenant)
	require.Equal(t, http.StatusUnauthorized, do(t, c, http.MethodPost, "/console/session", offer).Status)
}

func TestConsole_C1b_PrintsNoCodeOnAPublicAddress(t *testing.T) {
	harness.InOneProcess(t, "waybill dev prints the link")
	t.Parallel()
	h, _ := consoleHost(t, "--http-addr", "0.0.0.0:0")
	require.Eventually(t, func() bool { return strings.Contains(h.Log(), "/console/") }, 30*time.Second, 10*time.Millisecond)
	require.NotContains(t, h.Log(), "#code=")
}

func TestConsole_C1c_SessionDoesNotAuthorizeWritesOfOtherOrigins(t *testing.T) {
	t.Parallel()
	h, c := consoleHost(t)
	a := do(t, c, http.MethodPost, "/console/session", `{"key":"`+consoleKey+`"}`)
	set := a.Header.Get("Set-Cookie")
	for _, want := range []string{"HttpOnly", "SameSite=Strict", "Path=/;"} {
		require.Contains(t, set, want)
	}
	cookie, _, _ := strings.Cut(set, ";")
	const body = `{"workflowId":"triage","inputs":{"mail":"Where is my order?"}}`
	bare := do(t, c, http.MethodPost, "/v1/runs", body, "Cookie", cookie)
	require.Equal(t, http.StatusForbidden, bare.Status)
	require.Equal(t, "forbidden", bare.Code())
	require.Equal(t, http.StatusCreated, do(t, c, http.MethodPost, "/v1/runs", body, "Cookie", cookie, "X-Waybill-Console", "1").Status)

	// An explicit credential takes precedence over the session: this one may not write.
	reader := do(t, h.Client(readerKey), http.MethodPost, "/v1/runs", body, "Cookie", cookie, "X-Waybill-Console", "1")
	require.Equal(t, http.StatusForbidden, reader.Status)
	require.Contains(t, string(reader.Body), "runs:create")

	out := do(t, c, http.MethodDelete, "/console/session", "", "Cookie", cookie, "X-Waybill-Console", "1")
	require.Equal(t, http.StatusNoContent, out.Status)
	require.Contains(t, out.Header.Get("Set-Cookie"), "Max-Age=0")
}

func TestConsole_C1c_SessionReadsAStreamAndEndsWithItsKey(t *testing.T) {
	t.Parallel()
	h, c := consoleHost(t)
	cookie := signIn(t, c, `{"key":"`+consoleKey+`"}`)
	run := start(t, h.Client(consoleKey), `{"workflowId":"triage","inputs":{"mail":"Where is my order?"}}`)
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	last := ""
	plain := &harness.Client{Base: c.Base, Key: "", HTTP: c.HTTP}
	_, err := plain.Stream(ctx, "/v1/runs/"+run+"/events", func(f harness.Frame) bool { last = f.Event; return true }, "Cookie", cookie)
	require.NoError(t, err)
	require.Equal(t, "run.completed", last)

	h.Kill()
	again := harness.StartIn(t, strings.TrimSuffix(h.Dir(), "/data"), "--api-key", readerKey+"=acme:*")
	gone := do(t, again.Client(""), http.MethodGet, "/v1/runs", "", "Cookie", cookie)
	require.Equal(t, http.StatusUnauthorized, gone.Status, "the host no longer accepts the key")
}
