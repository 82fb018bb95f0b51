package conformance

import (
	"encoding/json"
	"net/http"
	"testing"

	"github.com/stretchr/testify/require"
)

const wellKnown = "/.well-known/openwop"

func TestDiscovery_NeedsNoKeyAndHasTheRequiredMembers(t *testing.T) {
	t.Parallel()
	a := do(t, client(t, ""), http.MethodGet, wellKnown, "")
	require.Equal(t, http.StatusOK, a.Status)
	require.Equal(t, "application/json", a.Header.Get("Content-Type"))
	require.Equal(t, "public, max-age=300", a.Header.Get("Cache-Control"))
	var d struct {
		ProtocolVersion    string
		SupportedEnvelopes []string
		SchemaVersions     map[string]int
		Limits             map[string]float64
		Transports         []string `json:"supportedTransports"`
		GRPC               struct{ Service string }
	}
	require.NoError(t, a.JSON(&d))
	require.Equal(t, "1.1", d.ProtocolVersion)
	require.Subset(t, d.SupportedEnvelopes, []string{"clarification.request", "schema.request", "schema.response", "error"})
	require.Len(t, d.SchemaVersions, len(d.SupportedEnvelopes))
	for _, k := range d.SupportedEnvelopes {
		require.Contains(t, d.SchemaVersions, k)
	}
	for _, name := range []string{"clarificationRounds", "schemaRounds", "envelopesPerTurn"} {
		require.Contains(t, d.Limits, name)
	}
	require.InDelta(t, maxBody, d.Limits["maxRequestBodyBytes"], 0, "the advertised limit is enforced")
	require.ElementsMatch(t, []string{"rest", "grpc"}, d.Transports)
	require.Equal(t, "openwop.v1.Engine", d.GRPC.Service)
}

func TestDiscovery_KeepsTheRootLayout(t *testing.T) {
	t.Parallel()
	a := do(t, client(t, ""), http.MethodGet, wellKnown, "")
	var root map[string]json.RawMessage
	require.NoError(t, a.JSON(&root))
	require.NotContains(t, root, "capabilities", "families are members of the root")
	require.NotContains(t, string(a.Body), `"edit"`)
	require.NotContains(t, string(a.Body), `"supported":false`, "unsupported features are left out")
	for _, absent := range []string{"orchestrator", "memory"} {
		require.NotContains(t, root, absent, "not implemented, hence not advertised")
	}
}

func TestDiscovery_IsTheSameForAllCallersUntilItChanges(t *testing.T) {
	t.Parallel()
	public := do(t, client(t, ""), http.MethodGet, wellKnown, "")
	tag := public.Header["Etag"]
	require.Len(t, tag, 1)
	require.Regexp(t, `^"[^"]+"$`, tag[0], "a strong validator")
	require.NotEmpty(t, public.Header.Get("Capabilities-Etag"))
	for _, key := range []string{"", testKey, readerKey, otherKey, "unknown"} {
		again := do(t, client(t, key), http.MethodGet, wellKnown, "")
		require.Equal(t, http.StatusOK, again.Status)
		require.Equal(t, public.Header.Get("Capabilities-Etag"), again.Header.Get("Capabilities-Etag"))
		require.Equal(t, string(public.Body), string(again.Body))
	}
	for _, value := range []string{tag[0], "W/" + tag[0], `"x", ` + tag[0], "*"} {
		a := do(t, client(t, ""), http.MethodGet, wellKnown, "", "If-None-Match", value)
		require.Equal(t, http.StatusNotModified, a.Status, value)
		require.Empty(t, a.Body)
		require.Equal(t, tag, a.Header["Etag"])
	}
	a := do(t, client(t, ""), http.MethodGet, wellKnown, "", "If-None-Match", `"another"`)
	require.Equal(t, http.StatusOK, a.Status)
}

func TestEnvelopeSchemas_AreServedForEveryAdvertisedKind(t *testing.T) {
	t.Parallel()
	c := client(t, "")
	var d struct{ SupportedEnvelopes []string }
	require.NoError(t, do(t, c, http.MethodGet, wellKnown, "").JSON(&d))
	for _, k := range d.SupportedEnvelopes {
		a := do(t, c, http.MethodGet, "/schemas/envelopes/"+k+".schema.json", "")
		require.Equal(t, http.StatusOK, a.Status, k)
		require.Equal(t, "application/schema+json", a.Header.Get("Content-Type"))
		require.Equal(t, "public, max-age=300", a.Header.Get("Cache-Control"))
		var s map[string]any
		require.NoError(t, a.JSON(&s))
		require.Equal(t, "https://json-schema.org/draft/2020-12/schema", s["$schema"], k)
	}
	for _, name := range []string{"ghost.schema.json", "error", "error.schema.json.schema.json"} {
		a := do(t, c, http.MethodGet, "/schemas/envelopes/"+name, "")
		require.Equal(t, http.StatusNotFound, a.Status, name)
		require.Equal(t, "not_found", a.Code(), name)
	}
}

func TestOpenAPI_DescribesWhatIsServed(t *testing.T) {
	t.Parallel()
	a := do(t, client(t, ""), http.MethodGet, "/v1/openapi.json", "")
	require.Equal(t, http.StatusOK, a.Status)
	var d struct {
		OpenAPI string
		Paths   map[string]map[string]json.RawMessage
	}
	require.NoError(t, a.JSON(&d))
	require.Regexp(t, `^3\.[1-9]`, d.OpenAPI)
	for path, method := range map[string]string{
		"/.well-known/openwop": "get", "/v1/runs": "post", "/v1/runs/{runId}": "get", "/v1/runs/{runId}/events": "get",
		"/v1/runs/{runId}/events/poll": "get", "/v1/runs/{runId}/cancel": "post", "/v1/runs:bulk-cancel": "post",
		"/v1/workflows/{workflowId}": "get",
	} {
		require.Contains(t, d.Paths, path)
		require.Contains(t, d.Paths[path], method, path)
	}
}
