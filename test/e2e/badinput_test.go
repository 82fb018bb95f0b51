package e2e

import (
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
	h, c := seamHost(t)
	schemas := harness.LoadSchemas(t)
	done := start(t, c, `{"workflowId":"conformance-noop"}`)
	_, err := c.Finish(within(t, 10*time.Second), done)
	require.NoError(t, err)
	other := h.Client("other")
	plain := func(s string) []string { return []string{s} }
	cases := []struct {
		name         string
		as           *harness.Client
		method, path string
		body         string
		headers      []string
		status       int
		code         string
		says         []string
	}{
		{"malformed JSON", c, "POST", "/v1/runs", `{"workflowId":`, nil, 400, "validation_error", nil},
		{"duplicate keys", c, "POST", "/v1/runs", `{"workflowId":"a","workflowId":"b"}`, nil, 400, "validation_error", plain("/workflowId")},
		{"invalid UTF-8", c, "POST", "/v1/runs", "{\"workflowId\":\"\xff\"}", nil, 400, "validation_error", nil},
		{"too deep", c, "POST", "/v1/runs", `{"workflowId":"conformance-noop","inputs":` + nested(70) + `}`, nil, 400, "validation_error", nil},
		{"too large", c, "POST", "/v1/runs", `{"workflowId":"` + strings.Repeat("x", 2<<20) + `"}`, nil, 413, "payload_too_large", nil},
		{"unknown member", c, "POST", "/v1/runs", `{"workflowId":"conformance-noop","nope":1}`, nil, 400, "validation_error", plain("/nope")},
		{"wrong type", c, "POST", "/v1/runs", `{"workflowId":7}`, nil, 400, "validation_error", plain("/workflowId")},
		{"not an object", c, "POST", "/v1/runs", `[]`, nil, 400, "validation_error", nil},
		{"no body", c, "POST", "/v1/runs", ``, nil, 400, "validation_error", nil},
		{"wrong content type", c, "POST", "/v1/runs", `{}`, []string{"Content-Type", "text/plain"}, 400, "validation_error", plain("Content-Type")},
		{"unknown workflow", c, "POST", "/v1/runs", `{"workflowId":"ghost"}`, nil, 404, "workflow_not_found", nil},
		{"foreign tenant in the body", c, "POST", "/v1/runs", `{"workflowId":"conformance-noop","tenantId":"beta"}`, nil, 403, "forbidden", plain("/tenantId")},
		{"inputs not an object", c, "POST", "/v1/runs", `{"workflowId":"conformance-noop","inputs":[]}`, nil, 400, "validation_error", plain("/inputs")},
		{"missing input", c, "POST", "/v1/runs", `{"workflowId":"conformance-identity"}`, nil, 400, "validation_error", plain("/inputs/payload")},
		{"recursionLimit 0", c, "POST", "/v1/runs", `{"workflowId":"conformance-noop","configurable":{"recursionLimit":0}}`, nil, 400, "validation_error", plain("recursionLimit")},
		{"configurable outside its schema", c, "POST", "/v1/runs", `{"workflowId":"conformance-configurable-schema","configurable":{"surprise":1}}`, nil, 400, "validation_error", plain("/configurable")},
		{"unknown provider", c, "POST", "/v1/runs", `{"workflowId":"conformance-noop","configurable":{"ai.provider":"ghost"}}`, nil, 400, "validation_error", plain("ai.provider")},
		{"a credential of one's own", c, "POST", "/v1/runs", `{"workflowId":"conformance-noop","configurable":{"ai.credentialRef":"x"}}`, nil, 403, "credential_forbidden", nil},
		{"mock provider without a test key", other, "POST", "/v1/runs", `{"workflowId":"conformance-noop","configurable":{"mockProvider":{"id":"stream-text"}}}`, nil, 403, "mock_provider_forbidden", nil},
		{"unknown mock provider", c, "POST", "/v1/runs", `{"workflowId":"conformance-noop","configurable":{"mockProvider":{"id":"ghost"}}}`, nil, 400, "unsupported_mock_provider", nil},
		{"forced engine version", other, "POST", "/v1/runs", `{"workflowId":"conformance-noop"}`, []string{"X-Force-Engine-Version", "9"}, 403, "force_engine_version_forbidden", nil},
		{"too many tags", c, "POST", "/v1/runs", `{"workflowId":"conformance-noop","tags":["` + strings.Repeat(`x","`, 100) + `x"]}`, nil, 400, "validation_error", plain("/tags")},
		{"deep metadata", c, "POST", "/v1/runs", `{"workflowId":"conformance-noop","metadata":` + nested(5) + `}`, nil, 400, "validation_error", plain("/metadata")},
		{"an endless idempotency key", c, "POST", "/v1/runs", `{"workflowId":"conformance-noop"}`, []string{"Idempotency-Key", strings.Repeat("k", 256)}, 400, "validation_error", plain("Idempotency-Key")},
		{"an agent", c, "POST", "/v1/runs", `{"workflowId":"conformance-noop","agentId":"x"}`, nil, 501, "capability_not_provided", nil},
		{"an invalid definition", c, "POST", "/v1/workflows", `{"id":"x","name":"x","version":"1","nodes":[{"id":"a","typeId":"core.noop","name":"n","position":{"x":0,"y":0},"config":{},"inputs":{}}],"edges":[{"id":"e","sourceNodeId":"a","targetNodeId":"ghost"}],"triggers":[],"variables":[],"metadata":{},"settings":{}}`, nil, 400, "validation_error", plain("/edges/0/targetNodeId")},
		{"no runs to cancel", c, "POST", "/v1/runs:bulk-cancel", `{"runIds":[]}`, nil, 400, "validation_error", plain("/runIds")},
		{"a foreign run", other, "GET", "/v1/runs/" + done, "", nil, 404, "run_not_found", nil},
		{"a foreign run's events", other, "GET", "/v1/runs/" + done + "/events/poll", "", nil, 404, "run_not_found", nil},
		{"a foreign run's stream", other, "GET", "/v1/runs/" + done + "/events", "", nil, 404, "run_not_found", nil},
		{"cancelling a foreign run", other, "POST", "/v1/runs/" + done + "/cancel", "", nil, 404, "run_not_found", nil},
		{"a stream mode that is none", c, "GET", "/v1/runs/" + done + "/events?streamMode=all", "", nil, 400, "unsupported_stream_mode", nil},
		{"values with another mode", c, "GET", "/v1/runs/" + done + "/events?streamMode=values,debug", "", nil, 400, "unsupported_stream_mode", nil},
		{"a bad mode for a JSON caller", c, "GET", "/v1/runs/" + done + "/events?streamMode=all", "", []string{"Accept", "application/json"}, 400, "unsupported_stream_mode", nil},
		{"bufferMs out of range", c, "GET", "/v1/runs/" + done + "/events?bufferMs=5001", "", nil, 400, "validation_error", plain("bufferMs")},
		{"a malformed Last-Event-ID", c, "GET", "/v1/runs/" + done + "/events", "", []string{"Last-Event-ID", "abc"}, 400, "validation_error", plain("Last-Event-ID")},
		{"a poll that waits too long", c, "GET", "/v1/runs/" + done + "/events/poll?timeout=61", "", nil, 400, "validation_error", plain("timeout")},
		{"a cursor that is no number", c, "GET", "/v1/runs/" + done + "/events/poll?lastSequence=x", "", nil, 400, "validation_error", plain("lastSequence")},
		{"an unknown path", c, "GET", "/v1/nothing", "", nil, 404, "not_found", nil},
		{"an unknown verb of a run", c, "POST", "/v1/runs/" + done + ":reopen", `{}`, nil, 404, "not_found", nil},
		{"a wrong method", c, "DELETE", "/v1/runs/" + done, "", nil, 405, "method_not_allowed", nil},
		{"an unversioned root", c, "GET", "/runs", "", nil, 400, "validation_error", nil},
		{"an unknown envelope kind", c, "GET", "/schemas/envelopes/ghost.schema.json", "", nil, 404, "not_found", nil},
		{"no credential", &harness.Client{Base: c.Base, HTTP: c.HTTP}, "GET", "/v1/runs/" + done, "", nil, 401, "unauthenticated", nil},
		{"no credential, at an unknown run", &harness.Client{Base: c.Base, HTTP: c.HTTP}, "GET", "/v1/runs/ghost", "", nil, 401, "unauthenticated", nil},
		{"an unknown key", &harness.Client{Base: c.Base, HTTP: c.HTTP, Key: "ghost"}, "POST", "/v1/runs", `{`, nil, 401, "unauthenticated", nil},
	}
	for _, tc := range cases {
		t.Run(tc.name, func(t *testing.T) {
			a, err := tc.as.Do(t.Context(), tc.method, tc.path, tc.body, tc.headers...)
			require.NoError(t, err)
			require.Equal(t, tc.status, a.Status, "%s", a.Body)
			require.Equal(t, tc.code, a.Code(), "%s", a.Body)
			require.Equal(t, "application/json", a.Header.Get("Content-Type"))
			require.NoError(t, schemas.Validate("error-envelope.schema.json", a.Body))
			for _, s := range tc.says {
				require.Contains(t, string(a.Body), s)
			}
		})
	}
	a, err := c.Do(t.Context(), http.MethodGet, "/v1/runs/"+done, "")
	require.NoError(t, err)
	require.Equal(t, http.StatusOK, a.Status, "the host still works")
}

func TestScope_AMissingOneIsNamed(t *testing.T) {
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
	_, c := seamHost(t)
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
		events, err := c.Finish(within(t, 10*time.Second), id)
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
	needsHost(t)
	h := harness.Start(t)
	c := h.Client("dev-key")
	id := start(t, c, `{"workflowId":"triage","inputs":{"mail":"Where is my parcel? Order 4711."}}`)
	before, err := c.Finish(within(t, 20*time.Second), id)
	require.NoError(t, err)
	state := h.Stop()
	require.True(t, state.Success(), "a clean stop: %s", state)
	h.Launch()
	c = h.Client("dev-key")
	after, err := c.Finish(within(t, 20*time.Second), id)
	require.NoError(t, err)
	require.Equal(t, fmt.Sprint(before), fmt.Sprint(after))
}
