package conformance

import (
	"net/http"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// addresses lists every operation that requires a credential, with its scope.
func addresses(id string) []struct{ method, path, body, scope string } {
	return []struct{ method, path, body, scope string }{
		{http.MethodPost, "/v1/runs", `{"workflowId":"noop"}`, "runs:create"},
		{http.MethodGet, "/v1/runs", "", "runs:read"},
		{http.MethodGet, "/v1/runs/" + id, "", "runs:read"},
		{http.MethodGet, "/v1/runs/" + id + "/events", "", "runs:read"},
		{http.MethodGet, "/v1/runs/" + id + "/events/poll", "", "runs:read"},
		{http.MethodPost, "/v1/runs/" + id + "/cancel", "", "runs:cancel"},
		{http.MethodPost, "/v1/runs:bulk-cancel", `{"runIds":["x"]}`, "runs:cancel"},
		{http.MethodGet, "/v1/workflows", "", "manifest:read"},
		{http.MethodGet, "/v1/workflows/noop", "", "manifest:read"},
		{http.MethodPost, "/v1/workflows", `{}`, "workflows:write"},
	}
}

func TestCredential_InvalidOnesGet401(t *testing.T) {
	t.Parallel()
	c := client(t, "")
	id, _ := run(t, client(t, testKey), `{"workflowId":"noop"}`)
	for _, header := range []string{"", "Bearer", "Bearer ", "Bearer unknown", "Basic " + testKey, testKey, "Bearer " + testKey + " x"} {
		for _, at := range append(addresses(id), addresses("ghost")...) {
			a := do(t, c, at.method, at.path, at.body, "Authorization", header)
			require.Equal(t, http.StatusUnauthorized, a.Status, "%q %s %s: %s", header, at.method, at.path, a.Body)
			require.Equal(t, "unauthenticated", a.Code())
			require.Equal(t, "Bearer", a.Header.Get("WWW-Authenticate"))
			require.NotContains(t, string(a.Body), testKey, "a credential is never echoed")
		}
	}
	a := do(t, c, http.MethodGet, "/v1/runs/"+id, "", "Authorization", "bEARER "+testKey)
	require.Equal(t, http.StatusOK, a.Status, "the scheme's case does not matter")
}

// A header may contain bytes that no key has.
func TestCredential_WithInvalidBytesGets401Everywhere(t *testing.T) {
	t.Parallel()
	c := client(t, "")
	for _, header := range []string{"Bearer\t" + otherKey + "x", "Bearer \x80\xff", "Bearer schlüssel"} {
		for _, at := range addresses("ghost") {
			a := do(t, c, at.method, at.path, at.body, "Authorization", header)
			require.Equal(t, http.StatusUnauthorized, a.Status, "%q %s %s: %s", header, at.method, at.path, a.Body)
		}
	}
}

func TestCredential_IsCheckedBeforeTheRequest(t *testing.T) {
	t.Parallel()
	for _, body := range []string{`{`, `{"nope":1}`, `{"workflowId":"ghost"}`} {
		require.Equal(t, "unauthenticated", do(t, client(t, "unknown"), http.MethodPost, "/v1/runs", body).Code())
		require.Equal(t, "forbidden", do(t, client(t, readerKey), http.MethodPost, "/v1/runs", body).Code())
	}
	for _, at := range []struct{ method, path string }{{"GET", "/v1/nothing"}, {"DELETE", "/v1/runs"}, {"PUT", "/v1/runs/x"}} {
		require.Equal(t, "unauthenticated", do(t, client(t, ""), at.method, at.path, "").Code(), at.path)
	}
}

func TestScope_AMissingOneIsNamed(t *testing.T) {
	t.Parallel()
	id, _ := run(t, client(t, testKey), `{"workflowId":"noop"}`)
	for _, key := range []string{readerKey, writerKey} {
		has := map[string]string{readerKey: "runs:read", writerKey: "runs:create"}[key]
		for _, at := range addresses(id) {
			a := do(t, client(t, key), at.method, at.path, at.body)
			if at.scope == has {
				require.Less(t, a.Status, 300, "%s may %s %s: %s", key, at.method, at.path, a.Body)
				continue
			}
			require.Equal(t, http.StatusForbidden, a.Status, "%s %s: %s", at.method, at.path, a.Body)
			require.Equal(t, "forbidden", a.Code())
			var e struct {
				Details struct{ ScopeRequired string }
			}
			require.NoError(t, a.JSON(&e))
			require.Equal(t, at.scope, e.Details.ScopeRequired)
		}
	}
}

// A run of another tenant gets the answer for an unknown run.
func TestTenant_CannotSeeOtherTenants(t *testing.T) {
	t.Parallel()
	mine, _ := run(t, client(t, testKey), `{"workflowId":"noop","tags":["secret-tag"]}`)
	other := client(t, otherKey)
	for i, at := range addresses(mine) {
		ghost := addresses("ghost")[i]
		if ghost.path == at.path {
			continue
		}
		a, b := do(t, other, at.method, at.path, at.body), do(t, other, ghost.method, ghost.path, ghost.body)
		require.Equal(t, http.StatusNotFound, a.Status, at.path)
		require.Equal(t, "run_not_found", a.Code())
		require.Equal(t, strings.ReplaceAll(string(b.Body), "ghost", mine), string(a.Body), at.path)
	}
	require.Empty(t, page(t, other, "?tag=secret-tag").Runs)
	require.NotEmpty(t, page(t, client(t, liveKey), "?tag=secret-tag").Runs, "another key of the tenant sees it")

	doc := definition("only-acme", node("a", "core.noop", "{}", "{}"), "", "", "")
	require.Equal(t, http.StatusCreated, do(t, client(t, testKey), http.MethodPost, "/v1/workflows", doc).Status)
	require.Equal(t, "workflow_not_found", do(t, other, http.MethodGet, "/v1/workflows/only-acme", "").Code())
	require.Equal(t, "workflow_not_found", do(t, other, http.MethodPost, "/v1/runs", `{"workflowId":"only-acme"}`).Code())
}

func TestKey_LiveKeysHaveNoTestFeatures(t *testing.T) {
	t.Parallel()
	a := do(t, client(t, liveKey), http.MethodPost, "/v1/runs", talk(0, "x"))
	require.Equal(t, http.StatusForbidden, a.Status)
	require.Equal(t, "mock_provider_forbidden", a.Code())
	require.Contains(t, string(a.Body), `"requestedProvider":"stream-text"`)
	a = do(t, client(t, liveKey), http.MethodPost, "/v1/runs", `{"workflowId":"noop"}`, "X-Force-Engine-Version", "1")
	require.Equal(t, http.StatusForbidden, a.Status)
	require.Equal(t, "force_engine_version_forbidden", a.Code())
	a = do(t, client(t, testKey), http.MethodPost, "/v1/runs", `{"workflowId":"noop"}`, "X-Force-Engine-Version", "99")
	require.Equal(t, http.StatusBadRequest, a.Status)
	require.Equal(t, "unsupported_force_engine_version", a.Code())
}

func TestTrace_IsReturned(t *testing.T) {
	t.Parallel()
	const trace = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"
	a := do(t, client(t, testKey), http.MethodGet, "/v1/runs", "", "Traceparent", trace)
	require.Equal(t, trace, a.Header.Get("Traceparent"))
	a = do(t, client(t, testKey), http.MethodGet, "/v1/runs", "", "Traceparent", "nonsense")
	require.Equal(t, http.StatusOK, a.Status, "a malformed one is ignored")
}
