package conformance

import (
	"encoding/json"
	"net/http"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

var pathParameter = regexp.MustCompile(`\{[^}]+\}`)

// The host serves every operation of its description. The harness validates each answer with it, and
// fails for an answer that it does not describe.
func TestDescription_EveryOperationIsServed(t *testing.T) {
	t.Parallel()
	c := client(t, eraseKey)
	a := do(t, c, http.MethodGet, "/v1/openapi.json", "")
	require.Equal(t, http.StatusOK, a.Status)
	var doc struct {
		Paths map[string]map[string]json.RawMessage
	}
	require.NoError(t, a.JSON(&doc))
	require.Greater(t, len(doc.Paths), 30)
	for path, item := range doc.Paths {
		for verb := range item {
			if path == "/v1/runs:watch" {
				continue // has no end
			}
			a := do(t, c, strings.ToUpper(verb), pathParameter.ReplaceAllString(path, "none"), "")
			require.NotEqual(t, http.StatusMethodNotAllowed, a.Status, "%s %s", verb, path)
			require.NotContains(t, string(a.Body), "no resource at this path", "%s %s", verb, path)
			if !strings.Contains(path, "{") && verb == "get" {
				require.Less(t, a.Status, 500, "%s: %s", path, a.Body)
			}
		}
	}
}

// The AsyncAPI document is public, as the OpenAPI document is.
func TestDescription_AsyncAPIIsServed(t *testing.T) {
	t.Parallel()
	a := do(t, client(t, ""), http.MethodGet, "/v1/asyncapi.json", "")
	require.Equal(t, http.StatusOK, a.Status)
	var doc struct{ AsyncAPI string }
	require.NoError(t, a.JSON(&doc))
	require.Equal(t, "3.0.0", doc.AsyncAPI)
	require.Equal(t, http.StatusMethodNotAllowed, do(t, client(t, ""), http.MethodPost, "/v1/asyncapi.json", "").Status)
}
