package rest_test

import (
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"waybill.dev/waybill/internal/rpc/rpctest"
	openwopv1 "waybill.dev/waybill/proto/gen/go/openwop/v1"
	"waybill.dev/waybill/protocol/fault"
	"waybill.dev/waybill/services/gateway"
	"waybill.dev/waybill/services/gateway/admission"
	"waybill.dev/waybill/services/gateway/session"
)

func TestHandler_ChecksInTheContractsOrder(t *testing.T) {
	t.Parallel()
	h := newHost(t)
	large := strings.Repeat("x", maxBody+1)
	const ct = "Content-Type"
	cases := []struct {
		name, credential, method, target, body string
		headers                                []string
		want                                   fault.Code
	}{
		{"size before the credential", "", "POST", "/v1/runs", large, nil, fault.PayloadTooLarge},
		{"size before the address", full, "POST", "/v1/nowhere", large, nil, fault.PayloadTooLarge},
		{"credential before the address", "", "GET", "/v1/nowhere", "", nil, fault.Unauthenticated},
		{"credential before the method", "", "DELETE", "/v1/runs", "", nil, fault.Unauthenticated},
		{"credential before the run", "", "GET", "/v1/runs/absent", "", nil, fault.Unauthenticated},
		{"credential before the body", "", "POST", "/v1/runs", "{", nil, fault.Unauthenticated},
		{
			"credential before the stream", "", "GET", "/v1/runs/absent/events?streamMode=bogus", "", nil,
			fault.Unauthenticated,
		},
		{"unknown key is never a 403", "Bearer unknown", "POST", "/v1/runs", `{}`, nil, fault.Unauthenticated},
		{"scope before the body", reader, "POST", "/v1/runs", "{", nil, fault.Forbidden},
		{"scope before the run", reader, "POST", "/v1/runs/absent/cancel", "", nil, fault.Forbidden},
		{"scope before the content type", reader, "POST", "/v1/runs", "{}", []string{ct, "text/plain"}, fault.Forbidden},
		{
			"body before the workflow", full, "POST", "/v1/runs", `{"workflowId":"missing","tags":[""]}`,
			nil, fault.ValidationError,
		},
		{"body before the run", full, "POST", "/v1/runs/absent/cancel", `{"bogus":1}`, nil, fault.ValidationError},
		{"query before the run", full, "GET", "/v1/runs/absent/events/poll?timeout=0", "", nil, fault.ValidationError},
		{"run before the stream's modes", full, "GET", "/v1/runs/absent/events?streamMode=bogus", "", nil, fault.RunNotFound},
		{
			"modes before the buffer", full, "GET", "/v1/runs/run_1/events?streamMode=bogus&bufferMs=x", "",
			nil, fault.UnsupportedStreamMode,
		},
		{
			"buffer before the cursor", full, "GET", "/v1/runs/run_1/events?bufferMs=x", "",
			[]string{"Last-Event-ID", "x"},
			fault.ValidationError,
		},
		{"workflow", full, "POST", "/v1/runs", `{"workflowId":"missing"}`, nil, fault.WorkflowNotFound},
		{"run", full, "GET", "/v1/runs/absent", "", nil, fault.RunNotFound},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			refused(t, h.as(t, c.credential, c.method, c.target, c.body, c.headers...), c.want)
		})
	}
}

func TestHandler_HidesDataOfOtherTenants(t *testing.T) {
	t.Parallel()
	h := newHost(t)
	for _, path := range []string{"/v1/runs/run_1", "/v1/runs/run_1/events", "/v1/runs/run_1/events/poll?timeout=1"} {
		own, other := h.as(t, full, "GET", path, ""), h.as(t, beta, "GET", path, "")
		require.Equal(t, http.StatusOK, own.Code, path)
		refused(t, other, fault.RunNotFound)
		absent := h.as(t, full, "GET", strings.Replace(path, "run_1", "run_2", 1), "")
		require.Equal(t, absent.Body.String(), other.Body.String(), "foreign and absent are the same")
	}
}

func TestHandler_AnswersUnknownPaths(t *testing.T) {
	t.Parallel()
	h := newHost(t)
	cases := []struct {
		method, target string
		want           fault.Code
		allow          string
	}{
		{"GET", "/", fault.ValidationError, ""},
		{"GET", "/runs", fault.ValidationError, ""},
		{"POST", "/runs", fault.ValidationError, ""},
		{"GET", "/v2/runs", fault.ValidationError, ""},
		{"GET", "/v1", fault.ValidationError, ""},
		{"GET", "/.well-known/other", fault.ValidationError, ""},
		{"GET", "/v1/", fault.NotFound, ""},
		{"GET", "/v1/nothing", fault.NotFound, ""},
		{"GET", "/v1/runs/", fault.NotFound, ""},
		{"GET", "/v1/runs/run_1/", fault.NotFound, ""},
		{"GET", "/v1//runs", fault.NotFound, ""},
		{"GET", "/v1/runs/run_1/nothing", fault.NotFound, ""},
		{"POST", "/v1/runs/run_1:reopen", fault.NotFound, ""},
		{"POST", "/v1/runs/run_1:poke", fault.NotFound, ""},
		{"GET", "/v1/runs/run_1:compare?against=run_2", fault.NotFound, ""},
		{"GET", "/v1/webhooks", fault.NotFound, ""},
		{"PUT", "/v1/webhooks/wh_1", fault.MethodNotAllowed, "DELETE"},
		{"GET", "/v1/webhooks/wh_1:rotate", fault.MethodNotAllowed, "POST"},
		{"POST", "/v1/webhooks/wh_1:other", fault.NotFound, ""},
		{"POST", "/v1/webhooks/:rotate", fault.NotFound, ""},
		{"DELETE", "/v1/runs", fault.MethodNotAllowed, "GET, POST"},
		{"PUT", "/v1/runs/run_1", fault.MethodNotAllowed, "GET, DELETE"},
		{"GET", "/v1/runs/run_1/cancel", fault.MethodNotAllowed, "POST"},
		{"GET", "/v1/runs:bulk-cancel", fault.MethodNotAllowed, "POST"},
		{"POST", "/v1/runs/run_1/events", fault.MethodNotAllowed, "GET"},
		{"POST", "/v1/runs/run_1/events/poll", fault.MethodNotAllowed, "GET"},
		{"POST", "/.well-known/openwop", fault.MethodNotAllowed, "GET"},
		{"POST", "/v1/openapi.json", fault.MethodNotAllowed, "GET"},
		{"PATCH", "/v1/workflows", fault.MethodNotAllowed, "GET, POST"},
		{"POST", "/schemas/envelopes/error.schema.json", fault.MethodNotAllowed, "GET"},
		{"GET", "/schemas/envelopes/nothing.schema.json", fault.NotFound, ""},
		{"GET", "/v1/workflows/nothing", fault.WorkflowNotFound, ""},
	}
	for _, c := range cases {
		t.Run(c.method+" "+c.target, func(t *testing.T) {
			t.Parallel()
			w := h.as(t, full, c.method, c.target, "")
			refused(t, w, c.want)
			var allow []string
			for name := range strings.SplitSeq(c.allow, ", ") {
				if name != "" {
					allow = append(allow, name)
				}
			}
			var got []string
			for name := range strings.SplitSeq(w.Header().Get("Allow"), ", ") {
				if name != "" {
					got = append(got, name)
				}
			}
			require.ElementsMatch(t, allow, got)
		})
	}
}

func TestHandler_HasNoPackRegistry(t *testing.T) {
	t.Parallel()
	h := newHost(t)
	for _, path := range []string{"/v1/packs", "/v1/packs/", "/v1/packs/x/y"} {
		w := h.do(t, "GET", path, "")
		require.Equal(t, http.StatusNotFound, w.Code)
		require.Contains(t, w.Header().Get("Content-Type"), "text/plain")
	}
	refused(t, h.as(t, full, "GET", "/v1/packsandmore", ""), fault.NotFound)
}

func TestHandler_ServesDiscoveryUnderOverload(t *testing.T) {
	t.Parallel()
	h := newHost(t, func(c *gateway.Config) { c.Admission.MaxRequests = 1 })
	h.log.hold, h.log.entered = make(chan struct{}), make(chan struct{}, 1)
	done := make(chan int, 1)
	go func() { done <- h.as(t, full, "GET", "/v1/runs/run_1", "").Code }()
	<-h.log.entered
	w := h.as(t, "", "GET", "/v1/runs", "")
	e := refused(t, w, fault.ServiceUnavailable)
	require.Equal(t, "1", w.Header().Get("Retry-After"))
	require.EqualValues(t, 1, e.Details["retryAfter"])
	require.Equal(t, http.StatusOK, h.do(t, "GET", "/.well-known/openwop", "").Code)
	require.Equal(t, http.StatusOK, h.do(t, "GET", "/v1/openapi.json", "").Code)
	require.Equal(t, http.StatusOK, h.do(t, "GET", "/healthz", "").Code)
	refused(t, h.as(t, "", "POST", "/v1/runs", strings.Repeat("x", maxBody+1)), fault.PayloadTooLarge)
	close(h.log.hold)
	require.Equal(t, http.StatusOK, <-done)
	require.Equal(t, http.StatusOK, h.as(t, full, "GET", "/v1/runs", "").Code, "the place is given back")
}

func rateLimited(t *testing.T, rules ...string) *host {
	t.Helper()
	parsed, err := admission.ParseRateRules(rules)
	require.NoError(t, err)
	return newHost(t, func(c *gateway.Config) { c.Rates.Rules = parsed })
}

// OpenWOP host contract §2.0: before the credential is checked.
func TestHandler_LimitsTheRateOfEachCredential(t *testing.T) {
	t.Parallel()
	h := rateLimited(t, "key=36/h,burst=2")
	for _, credential := range []string{full, "Bearer unknown"} {
		for i := range 2 {
			w := h.as(t, credential, "GET", "/v1/runs", "")
			require.NotEqual(t, http.StatusTooManyRequests, w.Code)
			require.Equal(t, `"key";q=36;w=3600`, w.Header().Get("RateLimit-Policy"))
			require.Regexp(t, fmt.Sprintf(`^"key";r=%d;t=[0-9]+$`, 1-i), w.Header().Get("RateLimit"))
		}
		w := h.as(t, credential, "GET", "/v1/runs", "")
		e := refused(t, w, fault.RateLimited)
		require.Equal(t, "key", e.Details["scope"])
		require.EqualValues(t, 36, e.Details["limit"])
		require.Regexp(t, `^"key";r=0;t=[0-9]+$`, w.Header().Get("RateLimit"))
		ms, ok := e.Details["retryAfterMs"].(float64)
		require.True(t, ok)
		require.InDelta(t, 100_000, ms, 5000)
		require.Equal(t, seconds(ms), w.Header().Get("Retry-After"), "the header and the details agree")
	}
	refused(t, h.as(t, "", "GET", "/v1/runs", ""), fault.RateLimited)
	refused(t, h.as(t, "Bearer guessed", "GET", "/v1/runs", ""), fault.RateLimited)
	require.Equal(t, http.StatusForbidden, h.as(t, reader, "POST", "/v1/runs", "{}").Code, "each credential has its own")
	refused(t, h.as(t, full, "DELETE", "/v1/nowhere", ""), fault.RateLimited)
	require.Equal(t, http.StatusOK, h.as(t, full, "GET", "/.well-known/openwop", "").Code)
}

// REST and gRPC share the bucket of a key, however its Authorization header is spelled.
func TestHandler_LimitsEverySpellingOfACredentialTogether(t *testing.T) {
	t.Parallel()
	key := strings.TrimPrefix(full, "Bearer ")
	for _, spelling := range []string{full, "bearer " + key, "BEARER " + key, "bEARER   " + key, full + "  "} {
		t.Run(spelling, func(t *testing.T) {
			t.Parallel()
			h := rateLimited(t, "key=1/d")
			require.Equal(t, http.StatusOK, h.as(t, full, "GET", "/v1/runs", "").Code)
			refused(t, h.as(t, spelling, "GET", "/v1/runs", ""), fault.RateLimited)
			conn, _ := rpctest.Serve(t, h.svc.Server())
			_, err := openwopv1.NewEngineClient(conn).GetRun(bearing(t, spelling), &openwopv1.GetRunRequest{RunId: "run_1"})
			require.Equal(t, fault.RateLimited, fault.CodeOf(err), "%v", err)
		})
	}
}

func TestHandler_LimitsConsoleSessionsByTheirKey(t *testing.T) {
	t.Parallel()
	parsed, err := admission.ParseRateRules([]string{"key=2/d"})
	require.NoError(t, err)
	h := newHost(t, func(c *gateway.Config) { c.Rates.Rules, c.Console = parsed, &session.Config{Mode: session.Dev} })
	for range 2 { // two sessions of one key
		w := h.do(t, "POST", "/console/session", `{"key":" full "}`, "Content-Type", "application/json")
		require.Equal(t, http.StatusNoContent, w.Code, w.Body)
		cookie, _, _ := strings.Cut(w.Header().Get("Set-Cookie"), ";")
		require.Equal(t, http.StatusOK, h.do(t, "GET", "/v1/runs", "", "Cookie", cookie).Code)
	}
	refused(t, h.as(t, full, "GET", "/v1/runs", ""), fault.RateLimited)
	require.Equal(t, http.StatusOK, h.as(t, reader, "GET", "/v1/runs", "").Code, "another key")
}

func TestHandler_LimitsEachClassOfRoutes(t *testing.T) {
	t.Parallel()
	h := rateLimited(t, "tenant:start=1/d", "tenant:read=2/d", "key:write=1/d")
	read := func() int { return h.as(t, full, "GET", "/v1/runs", "").Code }
	require.Equal(t, http.StatusOK, read())
	require.NotEqual(t, http.StatusTooManyRequests, h.as(t, full, "POST", "/v1/runs", "{}").Code)
	w := h.as(t, full, "POST", "/v1/runs/run_1:fork", "{}")
	require.Equal(t, "route", refused(t, w, fault.RateLimited).Details["scope"])
	require.Equal(t, `"tenant-start";q=1;w=86400`, w.Header().Get("RateLimit-Policy"))
	require.NotEqual(t, http.StatusTooManyRequests, h.as(t, full, "POST", "/v1/runs/run_1/cancel", "{}").Code)
	refused(t, h.as(t, full, "POST", "/v1/runs/run_1:pause", "{}"), fault.RateLimited)
	require.Equal(t, http.StatusOK, read(), "what was refused was not counted")
	require.Equal(t, http.StatusTooManyRequests, read())
	require.Equal(t, http.StatusTooManyRequests, h.as(t, reader, "GET", "/v1/runs", "").Code, "another key of the tenant")
}
