package e2e

import (
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"testing"

	"github.com/stretchr/testify/require"

	"waybill.dev/waybill/test/harness"
)

func TestRateLimit_IsSetByFlagsAndAFile(t *testing.T) {
	t.Parallel()
	needsHost(t)
	file := filepath.Join(t.TempDir(), "limits.json")
	require.NoError(t, os.WriteFile(file, []byte(`{"limits": ["key=3/m"], "tenants": {"free": []}}`), 0o600))
	h := harness.Start(t, "--rate-limits", file, "--rate-limit", "tenant:start=1/d",
		"--api-key", testKey+"=acme:*", "--api-key", "key-free=free:*")
	c := h.Client(testKey)
	for range 2 {
		a, err := c.Do(t.Context(), http.MethodGet, "/v1/workflows", "")
		require.NoError(t, err)
		require.Equal(t, http.StatusOK, a.Status)
		require.Equal(t, `"key";q=3;w=60`, a.Header.Get("RateLimit-Policy"))
	}
	a, err := c.Do(t.Context(), http.MethodPost, "/v1/runs", `{"workflowId":"triage","inputs":{"mail":"x"}}`)
	require.NoError(t, err)
	require.Equal(t, http.StatusCreated, a.Status, "%s", a.Body)
	a, err = c.Do(t.Context(), http.MethodGet, "/v1/workflows", "")
	require.NoError(t, err)
	require.Equal(t, http.StatusTooManyRequests, a.Status)
	require.Equal(t, "rate_limited", a.Code())
	seconds, err := strconv.Atoi(a.Header.Get("Retry-After"))
	require.NoError(t, err)
	require.InDelta(t, 20, seconds, 5)
	free := h.Client("key-free")
	for range 10 {
		a, err := free.Do(t.Context(), http.MethodGet, "/v1/workflows", "")
		require.NoError(t, err)
		require.Equal(t, http.StatusOK, a.Status)
		require.Empty(t, a.Header.Get("RateLimit"))
	}
}

// Each class of routes says when it accepts the next request, and what its limit is.
func TestRateLimit_EachClassSaysWhenToRetry(t *testing.T) {
	t.Parallel()
	needsHost(t)
	requests := map[string][2]string{
		"start":  {http.MethodPost, "/v1/runs"},
		"stream": {http.MethodGet, "/v1/runs/none/events"},
		"read":   {http.MethodPost, "/v1/answers:read"},
		"write":  {http.MethodPost, "/v1/runs/none/cancel"},
	}
	var args []string
	for class := range requests {
		args = append(args, "--rate-limit", "key:"+class+"=1/h")
	}
	c := harness.Start(t, args...).Client("dev-key")
	for class, r := range requests {
		var last *harness.Answer
		for range 2 {
			var err error
			last, err = c.Do(t.Context(), r[0], r[1], "", "Accept", "text/event-stream")
			require.NoError(t, err)
		}
		require.Equal(t, http.StatusTooManyRequests, last.Status, "%s: %s", class, last.Body)
		var e struct {
			Details struct {
				Scope                           string
				Limit, RetryAfter, RetryAfterMs int
			}
		}
		require.NoError(t, last.JSON(&e))
		require.Equal(t, "route", e.Details.Scope)
		require.Equal(t, 1, e.Details.Limit)
		require.Equal(t, strconv.Itoa(e.Details.RetryAfter), last.Header.Get("Retry-After"))
		require.InDelta(t, e.Details.RetryAfter, float64(e.Details.RetryAfterMs)/1000, 1)
		require.Equal(t, `"key-`+class+`";q=1;w=3600`, last.Header.Get("RateLimit-Policy"))
		require.Contains(t, last.Header.Get("RateLimit"), `"key-`+class+`";r=0;t=`)
	}
}

// OpenWOP host contract §2.0: the protocol's tests reach the limit at once, behind the test seams.
func TestRateLimit_IsForcedBehindTheSeams(t *testing.T) {
	t.Parallel()
	needsHost(t)
	for _, seams := range []bool{true, false} {
		o := harness.Options{Env: []string{"OPENWOP_FORCE_RATE_LIMIT=true"}}
		if seams {
			o.Args = []string{"--test-seams"}
		}
		c := harness.StartWith(t, o).Client("")
		limited := 0
		for range 10 {
			a, err := c.Do(t.Context(), http.MethodGet, "/.well-known/openwop", "")
			require.NoError(t, err)
			if a.Status == http.StatusTooManyRequests {
				limited++
				require.Equal(t, "rate_limited", a.Code())
				require.NotEmpty(t, a.Header.Get("Retry-After"))
			}
		}
		require.Equal(t, seams, limited == 7, "%d of 10", limited)
		require.Equal(t, !seams, limited == 0)
	}
}

func TestRateLimit_InvalidSettingsStopTheHost(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "limits.json")
	require.NoError(t, os.WriteFile(file, []byte(`{"limits": ["key=3/w"]}`), 0o600))
	needsHost(t)
	for want, args := range map[string][]string{
		`--rate-limit: "key=3": unknown unit ""`: {"--rate-limit", "key=3"},
		`unknown unit "w"`:                       {"--rate-limits", file},
		`--max-streams 0: want at least 1`:       {"--max-streams", "0"},
		`--otlp-protocol "thrift": want grpc`:    {"--otlp-protocol", "thrift"},
		`contains a user or password`:            {"--otlp-endpoint", "http://user:hunter2@127.0.0.1:1"},
		`--trace-ratio 2: must be`:               {"--trace-ratio", "2"},
	} {
		out, status := harness.Command(t, append([]string{"dev", "--data-dir", t.TempDir(), "--http-addr", "127.0.0.1:0", "--grpc-addr", "127.0.0.1:0"}, args...)...)
		require.Equal(t, 2, status, "%s", out)
		require.Contains(t, out, want)
		require.NotContains(t, out, "hunter2")
	}
}
