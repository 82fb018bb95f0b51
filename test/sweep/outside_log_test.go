package sweep

import (
	"net/http"

	"github.com/stretchr/testify/require"
)

// maxNote limits what is planted in an annotation, in bytes.
const maxNote = 8000

// plantOutsideLog plants in annotations and other data outside the run's log, and reads it back.
func (r *rig) plantOutsideLog(b batch, runID string) {
	r.t.Helper()
	path := "/v1/runs/" + runID + "/annotations"
	for _, part := range b.cut(maxNote) {
		a := r.do(http.MethodPost, path, mustJSON(map[string]any{
			"signal": map[string]any{"kind": "correction", "correction": part.at("correction")}, "note": part.at("note"),
		}))
		require.Equal(r.t, http.StatusCreated, a.Status, "%s", a.Body)
		r.prove(part, string(a.Body), "correction", "note")
	}
	short := b.items[0].text
	r.reject(http.MethodPost, path, mustJSON(map[string]any{"signal": map[string]any{"kind": short, short: short}}))
	r.reject(http.MethodPost, path, mustJSON(map[string]any{"signal": map[string]any{"kind": "flag"}, "target": map[string]any{"eventId": short}}))
	a := r.into("annotations", r.client, http.MethodGet, path, "")
	require.Equal(r.t, http.StatusOK, a.Status, "%s", a.Body)
}
