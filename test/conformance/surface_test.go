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

func TestSurface_OutsideTheCatalogueIsRejected(t *testing.T) {
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
	require.Len(t, page.Events, 1, "only the run's start is recorded")
	require.Equal(t, http.StatusBadRequest, do(t, c, http.MethodPost, seams+"a2ui/emit-surface", `{"runId":"x"}`).Status)
}

// OpenWOP envelope contract §18, a2ui-surface-no-secret-rendering: a secret is redacted before the
// surface is recorded.
func TestSurface_ShowsNoSecret(t *testing.T) {
	t.Parallel()
	c := client(t, testKey)
	for place, surface := range map[string]string{
		"label":        `{"component":"field.text","id":"why","label":"Key ` + liveKey + `?"}`,
		"id":           `{"component":"field.text","id":"` + liveKey + `","label":"l"}`,
		"option-value": `{"component":"field.select","id":"s","label":"l","options":[{"value":"` + liveKey + `","label":"l"}]}`,
		"option-label": `{"component":"field.select","id":"s","label":"l","options":[{"value":"v","label":"` + liveKey + `"}]}`,
		"text":         `{"component":"text","text":"` + liveKey + `"}`,
		"escaped":      `{"component":"text","text":"` + `\u0068` + liveKey[1:] + `"}`,
	} {
		t.Run(place, func(t *testing.T) {
			t.Parallel()
			run := "surface-secret-" + place
			var got struct{ SurfaceRef string }
			askSeam(t, c, http.MethodPost, "a2ui/emit-surface", `{"runId":"`+run+`","surface":{"catalogVersion":"0.9.1","surface":{"components":[`+surface+`]}}}`, &got)
			log := do(t, c, http.MethodGet, "/v1/runs/"+run+"/events/poll?timeout=1", "")
			require.Contains(t, string(log.Body), "[REDACTED:")
			for _, at := range []string{"/v1/runs/" + run, "/v1/runs/" + run + "/events/poll?timeout=1", "/v1/runs/" + run + "/debug-bundle", seams + "test/runs/" + run + "/events", seams + "test/otel/spans?runId=" + run} {
				a := do(t, c, http.MethodGet, at, "")
				require.Equal(t, http.StatusOK, a.Status, at)
				require.NotContains(t, string(a.Body), liveKey, at)
			}
		})
	}
	t.Run("a member that the catalogue has not", func(t *testing.T) {
		t.Parallel()
		a := do(t, c, http.MethodPost, seams+"a2ui/emit-surface", `{"runId":"surface-secret-key","surface":{"catalogVersion":"0.9.1","surface":{"components":[{"component":"text","text":"t","`+liveKey+`":1}]}}}`)
		require.Equal(t, http.StatusUnprocessableEntity, a.Status)
		require.NotContains(t, string(a.Body), liveKey)
	})
}

// OpenWOP envelope contract §26 case 18, over HTTP.
func TestSurface_UntrustedNeverDecidesAnApproval(t *testing.T) {
	t.Parallel()
	c := client(t, testKey)
	surface := func(id string) obj {
		return seamEnvelope(t, "ui.a2ui-surface", json.RawMessage(returnForm), "correlationId", id, "meta", metaTrust("untrusted"))
	}
	for name, bound := range map[string]obj{"approvalGateContext": {"approvalGateContext": true}, "boundInterruptKind": {"boundInterruptKind": "approval"}} {
		bound["envelope"], bound["projectTo"] = surface("bound-"+name), obj{"runId": "gate-" + name, "nodeId": "gate"}
		o := acceptBy(t, c, bound)
		require.Equal(t, "invalid", o.Status)
		require.Equal(t, "untrusted_content_blocks_approval", o.Reason)
		require.Empty(t, seamEvents(t, c, "gate-"+name, ""), "no event advances the gate")
	}
	o := acceptBy(t, c, obj{"envelope": surface("beside"), "projectTo": obj{"runId": "beside-gate", "nodeId": "n"}})
	require.Equal(t, "accepted", o.Status, "outside of the gate it is shown")
	require.Equal(t, "untrusted", o.NormalizedMeta.ContentTrust)
	events := seamEvents(t, c, "beside-gate", "")
	require.Equal(t, []string{"artifact.created"}, seamTypes(events))
	require.Equal(t, "untrusted", events[0].ContentTrust)

	var decision struct {
		Released bool
		Event    struct{ Type string }
	}
	askSeam(t, c, http.MethodPost, "governance/approval-gate", `{"scenario":"authorized-grant","principal":"ann"}`, &decision)
	require.True(t, decision.Released, "a person's answer counts")
	require.Equal(t, "approval.granted", decision.Event.Type)
}
