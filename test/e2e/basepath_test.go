package e2e

import (
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"waybill.dev/waybill/test/harness"
)

func TestBasePath_C13_EverythingIsBelowIt(t *testing.T) {
	t.Parallel()
	h, c := consoleHost(t, "--base-path", "/a/b")
	require.True(t, strings.HasSuffix(h.HTTP, "/a/b"), h.HTTP)
	own := h.Client(consoleKey)
	a := do(t, own, http.MethodPost, "/v1/runs", `{"workflowId":"triage","inputs":{"mail":"Where is my order?"}}`)
	var made struct{ RunID, EventsURL, StatusURL string }
	require.NoError(t, a.JSON(&made))
	require.Equal(t, h.HTTP+"/v1/runs/"+made.RunID, made.StatusURL)
	require.Equal(t, h.HTTP+"/v1/runs/"+made.RunID+"/events", made.EventsURL)
	events, err := own.Finish(within(t, time.Minute), made.RunID)
	require.NoError(t, err)
	last := ""
	_, err = own.Stream(within(t, time.Minute), "/v1/runs/"+made.RunID+"/events", func(f harness.Frame) bool { last = f.Event; return true })
	require.NoError(t, err)
	require.Equal(t, events[len(events)-1].Type, last)

	require.Equal(t, http.StatusOK, do(t, c, http.MethodGet, "/.well-known/openwop", "").Status)
	require.Contains(t, string(do(t, c, http.MethodGet, "/v1/openapi.json", "").Body), `"servers":[{"url":"/a/b/"}]`)
	page := do(t, c, http.MethodGet, "/console/runs/"+made.RunID, "")
	require.Contains(t, string(page.Body), `<meta name="waybill-base" content="/a/b/"`)
	require.Contains(t, string(do(t, c, http.MethodGet, "/console/config.json", "").Body), `"basePath":"/a/b/"`)
	cookie := do(t, c, http.MethodPost, "/console/session", `{"key":"`+consoleKey+`"}`).Header.Get("Set-Cookie")
	require.Contains(t, cookie, "Path=/a/b/;")
	rows := watch(t, own)
	run := start(t, own, `{"workflowId":"triage","inputs":{"mail":"Where is my order?"}}`)
	require.Equal(t, run, next(t, rows).RunID)

	root := &harness.Client{Base: strings.TrimSuffix(h.HTTP, "/a/b"), Key: consoleKey, HTTP: c.HTTP}
	for _, path := range []string{"/v1/runs", "/.well-known/openwop", "/console/", "/a/bc/v1/runs"} {
		require.Equal(t, http.StatusNotFound, do(t, root, http.MethodGet, path, "").Status, path)
	}
	require.Equal(t, http.StatusOK, do(t, root, http.MethodGet, "/readyz", "").Status, "probes do not know the base path")
}

func TestBasePath_C13_IsPartOfTheAnswerLinksOfCallbacks(t *testing.T) {
	t.Parallel()
	needsHost(t)
	in, url, env := receiver(t, http.StatusNoContent)
	for _, public := range []string{publicAddress, publicAddress + "/a/b/"} {
		h := harness.StartWith(t, harness.Options{Args: letThrough("--base-path", "/a/b", "--public-url", public), Env: env})
		c := h.Client(testKey)
		put(t, c, one("approve", "core.approvalGate", `{"title":"Ship it?","actions":["accept"]}`))
		run := calls(t, c, "approve", url)
		got := in.asks(t, run).asked(t).ResolveURL
		require.True(t, strings.HasPrefix(got, publicAddress+"/a/b/v1/interrupts/"), got)
		status := do(t, c, http.MethodPost, strings.TrimPrefix(got, publicAddress+"/a/b"), `{"resumeValue":{"action":"accept"}}`).Status
		require.Equal(t, http.StatusOK, status, "the path leads to the question")
	}
}

func TestBasePath_C13_RejectsInvalidPaths(t *testing.T) {
	t.Parallel()
	needsHost(t)
	for _, args := range [][]string{{"--base-path", "a"}, {"--base-path", "/a//b"}, {"--base-path", "/a b"}, {"--base-path", "/a/../b"}, {"--base-path", "/a", "--public-url", "https://h/b"}} {
		out, status := harness.Command(t, append([]string{"dev", "--data-dir", t.TempDir()}, args...)...)
		require.Equal(t, 2, status, args)
		require.Contains(t, out, args[1])
	}
}

func TestConsole_C1b_CanBeDisabled(t *testing.T) {
	t.Parallel()
	h, c := consoleHost(t, "--console=false")
	for _, path := range []string{"/console", "/console/", "/console/runs", "/console/config.json", "/console/session", "/console/assets/a.js"} {
		for _, method := range []string{http.MethodGet, http.MethodPost, http.MethodDelete} {
			a := do(t, c, method, path, "")
			require.Equal(t, http.StatusNotFound, a.Status, "%s %s", method, path)
			require.Equal(t, "not_found", a.Code())
		}
	}
	require.NotContains(t, h.Log(), "/console/")
	require.Equal(t, http.StatusOK, do(t, h.Client(consoleKey), http.MethodGet, "/v1/runs", "").Status)
}
