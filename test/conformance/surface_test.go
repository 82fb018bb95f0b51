package conformance

import (
	"encoding/json"
	"net/http"
	"testing"

	"github.com/stretchr/testify/require"

	"waybill.dev/waybill/test/harness"
)

const returnForm = `{"catalogVersion":"0.9.1","surface":{"components":[{"component":"field.text","id":"why","label":"Why?"},` +
	`{"component":"action.button","id":"go","label":"Go","action":{"target":"resume"}}]}}`

// OpenWOP envelope contract §18, §23.5.
func TestSurface_IsRecordedOnceAndReplayed(t *testing.T) {
	t.Parallel()
	c := client(t, testKey)
	var first, again struct{ SurfaceRef string }
	askSeam(t, c, http.MethodPost, "a2ui/emit-surface", `{"runId":"surface-run-1","surface":`+returnForm+`}`, &first)
	askSeam(t, c, http.MethodPost, "a2ui/emit-surface", `{"runId":"surface-run-1","surface":`+returnForm+`}`, &again)
	require.NotEmpty(t, first.SurfaceRef)
	require.Equal(t, first, again)

	a := do(t, c, http.MethodGet, "/v1/runs/surface-run-1/events/poll?timeout=1", "")
	require.Equal(t, http.StatusOK, a.Status, "%s", a.Body)
	var page harness.Page
	require.NoError(t, a.JSON(&page))
	require.Len(t, page.Events, 2)
	var e struct {
		Type    string
		Payload struct {
			ArtifactID, ArtifactType string
			Payload                  json.RawMessage
		}
	}
	require.NoError(t, json.Unmarshal(page.Events[1], &e))
	require.Equal(t, "artifact.created", e.Type)
	require.Equal(t, first.SurfaceRef, e.Payload.ArtifactID)
	require.Equal(t, "ui.a2ui-surface", e.Payload.ArtifactType)
	require.JSONEq(t, returnForm, string(e.Payload.Payload))
	require.Equal(t, http.StatusNotFound, do(t, client(t, otherKey), http.MethodGet, "/v1/runs/surface-run-1", "").Status)
	require.Equal(t, "running", read(t, c, "surface-run-1").Status)
}

func TestSurface_OutsideTheCatalogueIsRefused(t *testing.T) {
	t.Parallel()
	c := client(t, testKey)
	for body, code := range map[string]string{
		`{"catalogVersion":"0.9.2","surface":{"components":[]}}`:                                                                                                          "unknown_schema_version",
		`{"catalogVersion":"0.9.1","surface":{"components":[{"component":"script","text":"x"}]}}`:                                                                         "envelope_invalid",
		`{"catalogVersion":"0.9.1","surface":{"components":[{"component":"action.button","id":"a","label":"A","action":{"target":"https://x.example"}}]}}`:                "envelope_invalid",
		`{"catalogVersion":"0.9.1","surface":{"components":[{"component":"action.button","id":"a","label":"A","action":{"target":"resume","url":"https://x.example"}}]}}`: "envelope_invalid",
	} {
		a := do(t, c, http.MethodPost, seams+"a2ui/emit-surface", `{"runId":"surface-run-2","surface":`+body+`}`)
		require.Equal(t, http.StatusUnprocessableEntity, a.Status, "%s", a.Body)
		var e struct{ Error struct{ Code string } }
		require.NoError(t, a.JSON(&e))
		require.Equal(t, code, e.Error.Code)
	}
	a := do(t, c, http.MethodGet, "/v1/runs/surface-run-2/events/poll?timeout=1", "")
	var page harness.Page
	require.NoError(t, a.JSON(&page))
	require.Len(t, page.Events, 1, "the run has begun, and nothing else is recorded")
	require.Equal(t, http.StatusBadRequest, do(t, c, http.MethodPost, seams+"a2ui/emit-surface", `{"runId":"x"}`).Status)
}
