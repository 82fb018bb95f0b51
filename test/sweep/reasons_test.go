package sweep

import (
	"net/http"
	"strings"
	"unicode/utf8"

	"github.com/stretchr/testify/require"
)

// maxReason is the length limit of a reason, in characters.
const maxReason = 512

// reasons splits a batch into texts that fit into reasons.
func (b batch) reasons() (parts []batch) {
	for _, part := range b.cut(maxReason * 3 / 4) {
		const longest = "reason to cancel a parent"
		if utf8.RuneCountInString(part.at(longest)) <= maxReason {
			parts = append(parts, part)
		}
	}
	if len(parts) == 0 {
		parts = append(parts, b.one(0, fits))
	}
	return parts
}

// reasons plants in the reasons to pause, resume and cancel a run. A pause reason is in a note of
// the log while a node runs.
func (r *rig) reasons(b batch) {
	r.t.Helper()
	parts := b.reasons()
	drained := r.begin(map[string]any{"workflowId": "wait"})
	r.await(drained, "node.started")
	r.change(parts[0], drained, ":pause", "reason to drain", "")
	r.noted = append(r.noted, planted{parts[0], "reason to drain"})
	a := r.do(http.MethodPost, "/v1/runs:bulk-cancel", mustJSON(map[string]any{"runIds": []string{drained, drained}, "reason": parts[0].at("reason for several")}))
	require.Equal(r.t, http.StatusOK, a.Status, "%s", a.Body)
	r.prove(parts[0], r.finish(drained), "reason for several")
	r.audited = append(r.audited, planted{parts[0], "reason for several"})

	runID := r.begin(map[string]any{"workflowId": "wait", "tags": []string{hookTag}})
	for i := 0; i < len(parts); i += 2 {
		r.change(parts[i], runID, ":pause", "reason to pause", "immediate")
		r.change(parts[min(i+1, len(parts)-1)], runID, ":resume", "reason to resume", "")
	}
	for _, what := range []string{":pause", ":resume", "/cancel"} {
		r.reject(http.MethodPost, "/v1/runs/"+runID+what, mustJSON(map[string]any{"reason": strings.Repeat(b.items[0].text, maxReason)}))
		r.reject(http.MethodPost, "/v1/runs/"+runID+what, mustJSON(map[string]any{b.short(): b.short()}))
	}
	r.reject(http.MethodPost, "/v1/runs/"+runID+":pause", mustJSON(map[string]any{"drainPolicy": b.short()}))
	r.change(parts[0], runID, "/cancel", "reason to cancel", "")
	r.reject(http.MethodPost, "/v1/runs/"+runID+":pause", mustJSON(map[string]any{"reason": parts[0].at("reason too late")}))
	shown := r.finish(runID)
	r.prove(parts[0], shown, "reason to cancel")
	for i := 0; i < len(parts); i += 2 {
		r.prove(parts[i], shown, "reason to pause")
		r.prove(parts[min(i+1, len(parts)-1)], shown, "reason to resume")
		r.delivered(parts[i], runID, "reason to pause")
	}
}

// change plants in the reason of a control request.
func (r *rig) change(b batch, runID, what, place, policy string) {
	r.t.Helper()
	body := map[string]any{"reason": b.at(place)}
	if policy != "" {
		body["drainPolicy"] = policy
	}
	a := r.do(http.MethodPost, "/v1/runs/"+runID+what, mustJSON(body))
	require.Contains(r.t, []int{http.StatusOK, http.StatusAccepted}, a.Status, "%s", a.Body)
	r.audited = append(r.audited, planted{b, place})
}
