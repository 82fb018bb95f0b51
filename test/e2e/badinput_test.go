package e2e

import (
	"cmp"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"waybill.dev/waybill/test/harness"
)

func nested(depth int) string {
	return strings.Repeat(`{"a":`, depth) + "1" + strings.Repeat("}", depth)
}

// Bad input gets its error code, a message with cause and place, and the closed error envelope.
func TestBadInput_IsRejectedWithCodeAndPlace(t *testing.T) {
	t.Parallel()
	h, c := sharedHost(t)
	schemas := harness.LoadSchemas(t)
	done := start(t, c, `{"workflowId":"conformance-noop"}`)
	_, err := c.Finish(within(t, time.Minute), done)
	require.NoError(t, err)
	other := h.Client("other")
	anonymous := &harness.Client{Base: c.Base, HTTP: c.HTTP}
	stranger := &harness.Client{Base: c.Base, HTTP: c.HTTP, Key: "ghost"}
	cases := []struct {
		name    string
		as      *harness.Client // default c
		request string          // default POST /v1/runs
		headers []string
		body    string
		status  int    // default 400
		code    string // default validation_error
		place   string // must be in the answer
	}{
		{name: "malformed JSON", body: `{"workflowId":`},
		{name: "duplicate keys", body: `{"workflowId":"a","workflowId":"b"}`, place: "/workflowId"},
		{name: "invalid UTF-8", body: "{\"workflowId\":\"\xff\"}"},
		{name: "too deep", body: `{"workflowId":"conformance-noop","inputs":` + nested(70) + `}`},
		{
			name:   "too large",
			body:   `{"workflowId":"` + strings.Repeat("x", 2<<20) + `"}`,
			status: 413,
			code:   "payload_too_large",
		},
		{name: "unknown member", body: `{"workflowId":"conformance-noop","nope":1}`, place: "/nope"},
		{name: "wrong type", body: `{"workflowId":7}`, place: "/workflowId"},
		{name: "not an object", body: `[]`},
		{name: "no body"},
		{name: "wrong content type", headers: []string{"Content-Type", "text/plain"}, body: `{}`, place: "Content-Type"},
		{name: "unknown workflow", body: `{"workflowId":"ghost"}`, status: 404, code: "workflow_not_found"},
		{
			name:   "foreign tenant in the body",
			body:   `{"workflowId":"conformance-noop","tenantId":"beta"}`,
			status: 403,
			code:   "forbidden",
			place:  "/tenantId",
		},
		{name: "inputs not an object", body: `{"workflowId":"conformance-noop","inputs":[]}`, place: "/inputs"},
		{name: "missing input", body: `{"workflowId":"conformance-identity"}`, place: "/inputs/payload"},
		{
			name:  "recursionLimit 0",
			body:  `{"workflowId":"conformance-noop","configurable":{"recursionLimit":0}}`,
			place: "recursionLimit",
		},
		{
			name:  "configurable outside its schema",
			body:  `{"workflowId":"conformance-configurable-schema","configurable":{"surprise":1}}`,
			place: "/configurable",
		},
		{
			name:  "unknown provider",
			body:  `{"workflowId":"conformance-noop","configurable":{"ai.provider":"ghost"}}`,
			place: "ai.provider",
		},
		{
			name:   "the caller's own credential",
			body:   `{"workflowId":"conformance-noop","configurable":{"ai.credentialRef":"x"}}`,
			status: 403,
			code:   "credential_forbidden",
		},
		{
			name:   "mock provider without a test key",
			as:     other,
			body:   `{"workflowId":"conformance-noop","configurable":{"mockProvider":{"id":"stream-text"}}}`,
			status: 403,
			code:   "mock_provider_forbidden",
		},
		{
			name: "unknown mock provider",
			body: `{"workflowId":"conformance-noop","configurable":{"mockProvider":{"id":"ghost"}}}`,
			code: "unsupported_mock_provider",
		},
		{
			name:    "forced engine version",
			as:      other,
			headers: []string{"X-Force-Engine-Version", "9"},
			body:    `{"workflowId":"conformance-noop"}`,
			status:  403,
			code:    "force_engine_version_forbidden",
		},
		{
			name:  "too many tags",
			body:  `{"workflowId":"conformance-noop","tags":["` + strings.Repeat(`x","`, 100) + `x"]}`,
			place: "/tags",
		},
		{
			name:  "deep metadata",
			body:  `{"workflowId":"conformance-noop","metadata":` + nested(5) + `}`,
			place: "/metadata",
		},
		{
			name:    "an idempotency key that is too long",
			headers: []string{"Idempotency-Key", strings.Repeat("k", 256)},
			body:    `{"workflowId":"conformance-noop"}`,
			place:   "Idempotency-Key",
		},
		{
			name:   "an agent",
			body:   `{"workflowId":"conformance-noop","agentId":"x"}`,
			status: 501,
			code:   "capability_not_provided",
		},
		{
			name:    "an invalid definition",
			request: "POST /v1/workflows",
			body:    `{"id":"x","name":"x","version":"1","nodes":[{"id":"a","typeId":"core.noop","name":"n","position":{"x":0,"y":0},"config":{},"inputs":{}}],"edges":[{"id":"e","sourceNodeId":"a","targetNodeId":"ghost"}],"triggers":[],"variables":[],"metadata":{},"settings":{}}`,
			place:   "/edges/0/targetNodeId",
		},
		{name: "no runs to cancel", request: "POST /v1/runs:bulk-cancel", body: `{"runIds":[]}`, place: "/runIds"},
		{name: "a foreign run", as: other, request: "GET /v1/runs/" + done, status: 404, code: "run_not_found"},
		{
			name:    "a foreign run's events",
			as:      other,
			request: "GET /v1/runs/" + done + "/events/poll",
			status:  404,
			code:    "run_not_found",
		},
		{
			name:    "a foreign run's stream",
			as:      other,
			request: "GET /v1/runs/" + done + "/events",
			status:  404,
			code:    "run_not_found",
		},
		{
			name:    "cancelling a foreign run",
			as:      other,
			request: "POST /v1/runs/" + done + "/cancel",
			status:  404,
			code:    "run_not_found",
		},
		{
			name:    "an unknown stream mode",
			request: "GET /v1/runs/" + done + "/events?streamMode=all",
			code:    "unsupported_stream_mode",
		},
		{
			name:    "values with another mode",
			request: "GET /v1/runs/" + done + "/events?streamMode=values,debug",
			code:    "unsupported_stream_mode",
		},
		{
			name:    "a bad mode for a JSON caller",
			request: "GET /v1/runs/" + done + "/events?streamMode=all",
			headers: []string{"Accept", "application/json"},
			code:    "unsupported_stream_mode",
		},
		{name: "bufferMs out of range", request: "GET /v1/runs/" + done + "/events?bufferMs=5001", place: "bufferMs"},
		{
			name:    "a malformed Last-Event-ID",
			request: "GET /v1/runs/" + done + "/events",
			headers: []string{"Last-Event-ID", "abc"},
			place:   "Last-Event-ID",
		},
		{
			name:    "a poll that waits too long",
			request: "GET /v1/runs/" + done + "/events/poll?timeout=61",
			place:   "timeout",
		},
		{
			name:    "a cursor that is not a number",
			request: "GET /v1/runs/" + done + "/events/poll?lastSequence=x",
			place:   "lastSequence",
		},
		{name: "an unknown path", request: "GET /v1/nothing", status: 404, code: "not_found"},
		{
			name:    "an unknown verb of a run",
			request: "POST /v1/runs/" + done + ":reopen",
			body:    `{}`,
			status:  404,
			code:    "not_found",
		},
		{name: "a wrong method", request: "PUT /v1/runs/" + done, status: 405, code: "method_not_allowed"},
		{name: "an unversioned root", request: "GET /runs"},
		{
			name:    "an unknown envelope kind",
			request: "GET /schemas/envelopes/ghost.schema.json",
			status:  404,
			code:    "not_found",
		},
		{
			name:    "no credential",
			as:      anonymous,
			request: "GET /v1/runs/" + done,
			status:  401,
			code:    "unauthenticated",
		},
		{
			name:    "no credential, at an unknown run",
			as:      anonymous,
			request: "GET /v1/runs/ghost",
			status:  401,
			code:    "unauthenticated",
		},
		{
			name:   "an unknown key",
			as:     stranger,
			body:   `{`,
			status: 401,
			code:   "unauthenticated",
		},
	}
	for _, tc := range cases {
		t.Run(tc.name, func(t *testing.T) {
			method, path, _ := strings.Cut(cmp.Or(tc.request, "POST /v1/runs"), " ")
			a, err := cmp.Or(tc.as, c).Do(t.Context(), method, path, tc.body, tc.headers...)
			require.NoError(t, err)
			require.Equal(t, cmp.Or(tc.status, http.StatusBadRequest), a.Status, "%s", a.Body)
			require.Equal(t, cmp.Or(tc.code, "validation_error"), a.Code(), "%s", a.Body)
			require.Equal(t, "application/json", a.Header.Get("Content-Type"))
			require.NoError(t, schemas.Validate("error-envelope.schema.json", a.Body))
			require.Contains(t, string(a.Body), tc.place)
		})
	}
	a, err := c.Do(t.Context(), http.MethodGet, "/v1/runs/"+done, "")
	require.NoError(t, err)
	require.Equal(t, http.StatusOK, a.Status, "the host still works")
}

func TestScope_AMissingOneIsNamed(t *testing.T) {
	t.Parallel()
	needsHost(t)
	h := harness.Start(t, "--api-key", "reader=acme:runs:read", "--api-key", "writer=acme:runs:create")
	a, err := h.Client("reader").Do(t.Context(), http.MethodPost, "/v1/runs", `{"workflowId":"triage"}`)
	require.NoError(t, err)
	require.Equal(t, http.StatusForbidden, a.Status)
	require.Contains(t, string(a.Body), `"scopeRequired":"runs:create"`)
	a, err = h.Client("writer").Do(t.Context(), http.MethodGet, "/v1/runs", "")
	require.NoError(t, err)
	require.Equal(t, http.StatusForbidden, a.Status)
}

func TestIdempotency_TwentyRacersGetOneRun(t *testing.T) {
	t.Parallel()
	_, c := sharedHost(t)
	var (
		mu  sync.Mutex
		ids = map[string]int{}
		wg  sync.WaitGroup
	)
	for range 20 {
		wg.Go(func() {
			a, err := c.Do(t.Context(), http.MethodPost, "/v1/runs", `{"workflowId":"conformance-noop"}`, "Idempotency-Key", "race")
			if err != nil || a.Status != http.StatusCreated {
				t.Errorf("create: %v %s", err, a.Body)
				return
			}
			var v struct{ RunID string }
			if err := a.JSON(&v); err != nil {
				t.Error(err)
			}
			mu.Lock()
			defer mu.Unlock()
			ids[v.RunID]++
		})
	}
	wg.Wait()
	require.Len(t, ids, 1)
	for id := range ids {
		events, err := c.Finish(within(t, time.Minute), id)
		require.NoError(t, err)
		require.Len(t, events, 4)
	}
	a, err := c.Do(t.Context(), http.MethodPost, "/v1/runs", `{"workflowId":"conformance-multi-node"}`, "Idempotency-Key", "race")
	require.NoError(t, err)
	require.Equal(t, "idempotency_key_mismatch", a.Code(), "another workflow is another request")
	for id := range ids {
		require.NotContains(t, string(a.Body), id)
	}
}

func TestRestart_KeepsEverything(t *testing.T) {
	t.Parallel()
	needsHost(t)
	h := harness.Start(t)
	c := h.Client("dev-key")
	id := start(t, c, `{"workflowId":"triage","inputs":{"mail":"Where is my parcel? Order 4711."}}`)
	before, err := c.Finish(within(t, time.Minute), id)
	require.NoError(t, err)
	state := h.Stop()
	require.True(t, state.Success(), "a clean stop: %s", state)
	h.Launch()
	c = h.Client("dev-key")
	after, err := c.Finish(within(t, time.Minute), id)
	require.NoError(t, err)
	require.Equal(t, fmt.Sprint(before), fmt.Sprint(after))
}
