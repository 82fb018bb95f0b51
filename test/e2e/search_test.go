package e2e

import (
	"encoding/json"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"waybill.dev/waybill/test/harness"
)

// searched returns the runs of a list with a filter.
func searched(t *testing.T, c *harness.Client, filter string) []string {
	t.Helper()
	a := doing(t, c, http.MethodGet, "/v1/runs?filter="+url.QueryEscape(filter), "", http.StatusOK)
	var page struct{ Runs []struct{ RunID string } }
	require.NoError(t, json.Unmarshal(a.Body, &page))
	ids := []string{}
	for _, r := range page.Runs {
		ids = append(ids, r.RunID)
	}
	return ids
}

// Runs are found by what they got, returned and failed with, by their tenant only, after a kill, and
// until they are erased. Secrets are not found.
func TestSearch_FindsRunsByTheirContents(t *testing.T) {
	t.Parallel()
	needsHost(t)
	dir := t.TempDir()
	for id, doc := range map[string]string{"copying": copying, "sleepy": waitingFlow} {
		require.NoError(t, os.WriteFile(filepath.Join(dir, id+".json"), []byte(doc), 0o600))
	}
	const secret = "sk-proj-Q7mX2vKf9LwR4tYh8NbC3dZs6PaE1uGj"
	h := harness.Start(t, "--workflows", dir, "--lease", "1s", "--index-payloads", "--hot-window", "1s", "--demo-runs=false",
		"--api-key", testKey+"=acme:*", "--api-key", "other=beta:*", "--api-key", "blind=acme:runs:create")
	c, other := h.Client(testKey), h.Client("other")
	word := strings.TrimPrefix(canary("word"), "canary-word-")
	first, second := copied(t, c, "Refund of Order "+word+" "+secret), copied(t, c, "another refund, Größe 4711")
	theirs := copied(t, other, "refund "+word)
	check := func(c, other *harness.Client) {
		require.Equal(t, []string{second, first}, searched(t, c, "text:refund"))
		require.Equal(t, []string{first}, searched(t, c, `text:"`+word[:10]+` ORDER"`))
		require.Equal(t, []string{second}, searched(t, c, `text:größe status:completed`))
		require.Empty(t, searched(t, c, "text:refund status:failed"))
		require.Empty(t, searched(t, c, "text:Q7mX2vKf9LwR4tYh8NbC3dZs6PaE1uGj"))
		require.Equal(t, []string{theirs}, searched(t, other, "text:"+word))
		require.Contains(t, string(doing(t, c, http.MethodGet, "/v1/runs:count?filter=text:refund", "", http.StatusOK).Body), `"total":2`)
	}
	check(c, other)
	h.Kill()
	h.Launch()
	c, other = h.Client(testKey), h.Client("other")
	check(c, other)

	doing(t, h.Client("blind"), http.MethodGet, "/v1/runs?filter=text:refund", "", http.StatusForbidden)
	for filter, says := range map[string]string{
		"text:a":                            "2 letters",
		"text:refund&sort=cost":             "creation time",
		"txt:refund":                        "text",
		`text:"a1 b2 c3 d4 e5 f6 g7 h8 i9"`: "at most 8",
	} {
		filter, rest, _ := strings.Cut(filter, "&")
		a := doing(t, c, http.MethodGet, "/v1/runs?filter="+url.QueryEscape(filter)+"&"+rest, "", http.StatusBadRequest)
		require.Contains(t, string(a.Body), says, filter)
	}
	doing(t, c, http.MethodDelete, "/v1/runs/"+first, "", http.StatusNoContent)
	doing(t, other, http.MethodDelete, "/v1/runs/"+theirs, "", http.StatusNoContent)
	require.Equal(t, []string{second}, searched(t, c, "text:refund"))
	require.Empty(t, searched(t, other, "text:refund"))
	gone(t, h.Dir(), word)
}

// A host without the index says so.
func TestSearch_IsOffByDefault(t *testing.T) {
	t.Parallel()
	needsHost(t)
	h := harness.Start(t, "--demo-runs=false")
	a := doing(t, h.Client("dev-key"), http.MethodGet, "/v1/runs?filter=text:refund", "", http.StatusBadRequest)
	require.Contains(t, string(a.Body), "--index-payloads")
}
