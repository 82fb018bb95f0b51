package conformance

import (
	"encoding/json"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"waybill.dev/waybill/test/harness"
)

type debugBundle struct {
	BundleVersion string
	Run           struct{ RunID, Status string }
	Events        []struct {
		Sequence int
		Type     string
	}
	Spans []struct {
		Name, TraceID, SpanID string
		ParentSpanID          *string
	}
	Metrics struct {
		EventCount  int
		OpenwopCost *struct{ Tokens struct{ Input, Output int } }
	}
}

// OpenWOP host contract §10.4.
func TestDebugBundle_ShowsTheCourseOfARun(t *testing.T) {
	t.Parallel()
	c := client(t, testKey)
	const canary = "bundle-canary-8d1f0c"
	a := do(t, c, http.MethodPost, "/v1/runs", `{"workflowId":"typed","inputs":{"text":"`+canary+`"}}`,
		"Traceparent", "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01")
	require.Equal(t, http.StatusCreated, a.Status)
	var made created
	require.NoError(t, a.JSON(&made))
	events, err := c.Finish(t.Context(), made.RunID)
	require.NoError(t, err)

	a = do(t, c, http.MethodGet, "/v1/runs/"+made.RunID+"/debug-bundle", "")
	require.Equal(t, http.StatusOK, a.Status, "%s", a.Body)
	require.Equal(t, "no-store", a.Header.Get("Cache-Control"))
	require.NotContains(t, string(a.Body), canary)
	var b debugBundle
	require.NoError(t, json.Unmarshal(a.Body, &b))
	require.Equal(t, "completed", b.Run.Status)
	require.Len(t, b.Events, len(events))
	require.Equal(t, len(events), b.Metrics.EventCount)
	for i, e := range events {
		require.Equal(t, i, b.Events[i].Sequence)
		require.Equal(t, e.Type, b.Events[i].Type)
	}
	root := b.Spans[0]
	require.Equal(t, "openwop.run", root.Name)
	require.Equal(t, "0af7651916cd43dd8448eb211c80319c", root.TraceID)
	require.Equal(t, "b7ad6b7169203331", *root.ParentSpanID)
}

func TestDebugBundle_IsTruncatedToTheRequestedSize(t *testing.T) {
	t.Parallel()
	c := client(t, testKey)
	id, events := run(t, c, `{"workflowId":"three"}`)
	a := do(t, c, http.MethodGet, "/v1/runs/"+id+"/debug-bundle?maxEvents=2", "")
	require.Equal(t, http.StatusOK, a.Status)
	var b debugBundle
	require.NoError(t, json.Unmarshal(a.Body, &b))
	require.Len(t, b.Events, 2)
	require.Equal(t, len(events), b.Metrics.EventCount, "of the run")
	require.Equal(t, events[len(events)-1].Type, b.Events[1].Type)
	require.Contains(t, string(a.Body), `"truncatedReason":"events_truncated_to_max_events"`)
	for _, bad := range []string{"0", "-1", "x", "1.5"} {
		a := do(t, c, http.MethodGet, "/v1/runs/"+id+"/debug-bundle?maxEvents="+bad, "")
		require.Equal(t, "validation_error", a.Code(), bad)
	}
}

func TestDebugBundle_IsForCallersWhoMayReadTheRun(t *testing.T) {
	t.Parallel()
	id, _ := run(t, client(t, testKey), `{"workflowId":"noop"}`)
	for key, status := range map[string]int{
		"": http.StatusUnauthorized, writerKey: http.StatusForbidden, otherKey: http.StatusNotFound, readerKey: http.StatusOK,
	} {
		a := do(t, client(t, key), http.MethodGet, "/v1/runs/"+id+"/debug-bundle", "")
		require.Equal(t, status, a.Status, key)
	}
	a := do(t, client(t, testKey), http.MethodGet, "/v1/runs/ghost/debug-bundle", "")
	require.Equal(t, "run_not_found", a.Code())
}

// OpenWOP envelope contract §11: a bundle is its own sink. A text recorded before it was registered
// as a secret is redacted when the bundle is made.
func TestDebugBundle_RedactsSecretsRegisteredLater(t *testing.T) {
	t.Parallel()
	const secret = "correct-horse-battery-staple"
	h, c := painter(t)
	a := do(t, c, http.MethodPost, "/v1/runs", `{"workflowId":"paints","tags":["team `+secret+`"]}`)
	require.Equal(t, http.StatusCreated, a.Status, "%s", a.Body)
	var made created
	require.NoError(t, a.JSON(&made))
	_, err := c.Finish(t.Context(), made.RunID)
	require.NoError(t, err)
	export := func() string {
		a := do(t, c, http.MethodGet, "/v1/runs/"+made.RunID+"/debug-bundle", "")
		require.Equal(t, http.StatusOK, a.Status, "%s", a.Body)
		b := do(t, c, http.MethodPost, seams+"test/debug-bundle/export", `{"runId":"`+made.RunID+`"}`)
		require.Equal(t, http.StatusOK, b.Status, "%s", b.Body)
		return string(a.Body) + string(b.Body)
	}
	require.Contains(t, export(), secret)

	file := filepath.Join(t.TempDir(), "secrets.yaml")
	require.NoError(t, os.WriteFile(file, []byte("late: "+secret+"\n"), 0o600))
	h.Setenv("WAYBILL_SECRETS_FILE=" + file)
	h.Restart()
	c = c.To(h, testKey)
	text := export()
	require.NotContains(t, text, secret)
	require.Contains(t, text, `"openwop.run.tags":["team [REDACTED:late]"]`)
	require.Contains(t, text, `"tags":["team [REDACTED:late]"]`)
}

// OpenWOP envelope contract §17: assets by reference only, and the reference gives no access.
func TestDebugBundle_ReferencesAssetsWithoutAccess(t *testing.T) {
	t.Parallel()
	h, c := painter(t, "--max-inline-media-bytes", "0")
	program(t, c, "painter", `{"type":"media.image","payload":{"base64":"AAAA","bytes":3}}`)
	id, events := run(t, c, `{"workflowId":"paints"}`)
	i := slices.IndexFunc(events, func(e harness.Event) bool { return e.Type == "artifact.created" })
	var made struct{ Payload struct{ URL string } }
	require.NoError(t, json.Unmarshal(events[i].Payload, &made))
	res, _ := fetch(t, http.MethodGet, made.Payload.URL)
	require.Equal(t, http.StatusOK, res.StatusCode)

	a := do(t, c, http.MethodGet, "/v1/runs/"+id+"/debug-bundle", "")
	require.Equal(t, http.StatusOK, a.Status)
	unsigned, mac, ok := strings.Cut(made.Payload.URL[len(h.HTTP):], ".")
	require.True(t, ok)
	require.NotContains(t, string(a.Body), mac)
	require.Contains(t, string(a.Body), `"url":"`+h.HTTP+unsigned+`"`)
	res, _ = fetch(t, http.MethodGet, h.HTTP+unsigned)
	require.Equal(t, http.StatusNotFound, res.StatusCode)
}
