package sweep

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"time"

	"github.com/stretchr/testify/require"

	"waybill.dev/waybill/test/harness"
)

// run starts a run, waits for it and reads it. A run that does not start or end fails the test,
// because nothing was planted.
func (r *rig) run(request map[string]any, headers ...string) string {
	r.t.Helper()
	return r.finish(r.begin(request, headers...))
}

// begin starts a run.
func (r *rig) begin(request map[string]any, headers ...string) (runID string) {
	r.t.Helper()
	r.planted++
	r.bring(request)
	return r.begun(r.do(http.MethodPost, "/v1/runs", mustJSON(request), headers...))
}

// begun records the run that a request started.
func (r *rig) begun(a *harness.Answer) (runID string) {
	r.t.Helper()
	require.Equal(r.t, http.StatusCreated, a.Status, "%s", a.Body)
	var made struct{ RunID string }
	require.NoError(r.t, a.JSON(&made))
	r.started++
	r.runs = append(r.runs, made.RunID)
	return made.RunID
}

// joins records a run that was not started over REST.
func (r *rig) joins(runID string) {
	r.planted++
	r.started++
	r.runs = append(r.runs, runID)
}

// finish waits for a run's end and reads it.
func (r *rig) finish(runID string) string {
	r.t.Helper()
	ctx, cancel := context.WithTimeout(r.t.Context(), 30*time.Second)
	defer cancel()
	events, err := r.client.Finish(ctx, runID)
	require.NoError(r.t, err)
	require.NotEmpty(r.t, events)
	r.finished++
	r.join(events)
	return r.read(runID)
}

// await polls a run until it has an event of a type, after those already awaited.
func (r *rig) await(runID, typ string) {
	r.t.Helper()
	for found := false; !found; {
		a := r.into("poll", r.client, http.MethodGet, fmt.Sprintf("/v1/runs/%s/events/poll?timeout=20&lastSequence=%d", runID, r.awaited[runID]-1), "")
		var p harness.Page
		require.NoError(r.t, a.JSON(&p))
		require.NotEmpty(r.t, p.Events, "run %s has no event %s: %s", runID, typ, a.Body)
		events, err := harness.ParseEvents(p.Events)
		require.NoError(r.t, err)
		for _, e := range events {
			r.awaited[runID], found = e.Sequence+1, found || e.Type == typ
		}
	}
}

// bring lets a run use the tenant's own keys, if the rig does.
func (r *rig) bring(request map[string]any) {
	if r.ref == "" {
		return
	}
	given, _ := request["configurable"].(map[string]any)
	own := map[string]any{"ai.provider": "vendor", "ai.credentialRef": r.ref}
	maps.Copy(own, given)
	request["configurable"] = own
}

// thoughts is a model's reasoning: its streamed pieces joined, and the whole text.
type thoughts struct{ pieces, whole string }

// join joins streamed pieces: no secret may appear across pieces, either.
func (r *rig) join(events []harness.Event) {
	r.t.Helper()
	joined := map[string]string{}
	r.thoughts = map[string]thoughts{}
	for _, e := range events {
		r.add("poll", e.Raw)
		var piece struct{ Chunk, Delta, Reasoning string }
		require.NoError(r.t, json.Unmarshal(e.Payload, &piece))
		joined[e.NodeID] += piece.Chunk
		thought := r.thoughts[e.NodeID]
		r.thoughts[e.NodeID] = thoughts{thought.pieces + piece.Delta, thought.whole + piece.Reasoning}
	}
	for _, text := range joined {
		r.add("chunks", []byte(text))
	}
	for _, t := range r.thoughts {
		r.add("thoughts", []byte(t.pieces))
	}
}
