package sweep

import (
	"context"
	"encoding/json"
	"maps"
	"net/http"
	"time"

	"github.com/stretchr/testify/require"

	"waybill.dev/waybill/test/harness"
)

// run carries a run out and reads it. A run that does not start or does not end
// fails the test: nothing would have been planted.
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

// begun takes the run that a request has started.
func (r *rig) begun(a *harness.Answer) (runID string) {
	r.t.Helper()
	require.Equal(r.t, http.StatusCreated, a.Status, "%s", a.Body)
	var made struct{ RunID string }
	require.NoError(r.t, a.JSON(&made))
	r.started++
	r.runs = append(r.runs, made.RunID)
	return made.RunID
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

// await follows a run until it has told as many events of a type.
func (r *rig) await(runID, typ string, n int) {
	r.t.Helper()
	ctx, cancel := context.WithTimeout(r.t.Context(), 30*time.Second)
	defer cancel()
	_, err := r.client.Stream(ctx, "/v1/runs/"+runID+"/events?streamMode=debug", func(f harness.Frame) bool {
		r.add("SSE", []byte(f.Event+" "+f.ID+" "+f.Data+" "+f.Comment))
		if f.Event == typ {
			n--
		}
		return n > 0
	})
	require.NoError(r.t, err)
	require.Zero(r.t, n, "run %s has ended, and told too little of %s", runID, typ)
}

// bring has a run use the tenant's own keys, while the rig does.
func (r *rig) bring(request map[string]any) {
	if r.ref == "" {
		return
	}
	given, _ := request["configurable"].(map[string]any)
	own := map[string]any{"ai.provider": "vendor", "ai.credentialRef": r.ref}
	maps.Copy(own, given)
	request["configurable"] = own
}

// thoughts are what a node's model thought, put together and as a whole.
type thoughts struct{ pieces, whole string }

// join puts the pieces of texts together: nothing may show then, either.
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
