package conformance

import (
	"net/http"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

type paused struct {
	RunID, Status, PausedAt, ResumedAt string
}

// OpenWOP host contract §2.7: the running node ends before the run is paused.
func TestPause_DrainsTheCurrentNode(t *testing.T) {
	t.Parallel()
	c := client(t, liveKey)
	id := create(t, c, `{"workflowId":"wait-two","inputs":{"delayMs":4000}}`).RunID // pause requests arrive within it
	await(t, c, id, patience, "running")
	a := do(t, c, http.MethodPost, "/v1/runs/"+id+":pause", `{"reason":"lunch"}`, "Idempotency-Key", "p-"+id)
	require.Equal(t, http.StatusAccepted, a.Status, "%s", a.Body)
	var p paused
	require.NoError(t, a.JSON(&p))
	require.Equal(t, "paused", p.Status)
	require.NotEmpty(t, p.PausedAt)
	again := do(t, c, http.MethodPost, "/v1/runs/"+id+":pause", `{"reason":"lunch"}`, "Idempotency-Key", "p-"+id)
	require.Equal(t, http.StatusAccepted, again.Status, "with the key of the first")
	require.Equal(t, string(a.Body), string(again.Body))
	other := do(t, c, http.MethodPost, "/v1/runs/"+id+":pause", "")
	require.Equal(t, http.StatusConflict, other.Status)
	require.Contains(t, string(other.Body), `"runStatus":"paused"`)
	await(t, c, id, patience, "paused")
	a = do(t, c, http.MethodPost, "/v1/runs/"+id+":resume", "")
	require.Equal(t, http.StatusAccepted, a.Status, "%s", a.Body)
	require.NoError(t, a.JSON(&p))
	require.Equal(t, "running", p.Status)
	require.NotEmpty(t, p.ResumedAt)
	events, err := c.Finish(within(t, patience), id)
	require.NoError(t, err)
	require.Equal(t, "run.started node.started node.completed run.paused run.resumed node.started node.completed run.completed", strings.Join(names(events), " "))
}

// OpenWOP host contract §2.7: a resume takes back a pause that waits for the running node, so that the run goes on
// as if it had not been requested. A second pause and a second resume are refused with the status that they
// find.
func TestPause_IsTakenBackByAResume(t *testing.T) {
	t.Parallel()
	c := client(t, liveKey)
	id := create(t, c, `{"workflowId":"wait-two","inputs":{"delayMs":4000}}`).RunID // the requests arrive within it
	await(t, c, id, patience, "running")
	for _, step := range []struct {
		verb   string
		status int
		says   string
	}{
		{"pause", http.StatusAccepted, `"status":"paused"`},
		{"pause", http.StatusConflict, `"runStatus":"paused"`},
		{"resume", http.StatusAccepted, `"status":"running"`},
		{"resume", http.StatusConflict, `"runStatus":"running"`},
	} {
		a := do(t, c, http.MethodPost, "/v1/runs/"+id+":"+step.verb, "")
		require.Equal(t, step.status, a.Status, "%s %s", step.verb, a.Body)
		require.Contains(t, string(a.Body), step.says)
	}
	events, err := c.Finish(within(t, patience), id)
	require.NoError(t, err)
	require.NotContains(t, names(events), "run.paused")
	require.Equal(t, "run.completed", names(events)[len(events)-1])
}

// A run whose last node ends while it drains is paused, as the answer says, and ends once it is resumed.
func TestPause_DrainsTheLastNode(t *testing.T) {
	t.Parallel()
	c := client(t, liveKey)
	for _, body := range []string{"", `{"drainPolicy":"drain-current-node"}`} {
		id := create(t, c, `{"workflowId":"wait","inputs":{"delayMs":700}}`).RunID
		await(t, c, id, patience, "running")
		a := do(t, c, http.MethodPost, "/v1/runs/"+id+":pause", body)
		require.Equal(t, http.StatusAccepted, a.Status, "%s", a.Body)
		await(t, c, id, patience, "paused")
		require.Equal(t, http.StatusAccepted, do(t, c, http.MethodPost, "/v1/runs/"+id+":resume", "").Status)
		events, err := c.Finish(within(t, patience), id)
		require.NoError(t, err)
		require.Equal(t, "run.started node.started node.completed run.paused run.resumed run.completed", strings.Join(names(events), " "))
	}
}

// OpenWOP host contract §2.7: an interrupted node starts again.
func TestPause_ImmediateStartsAFreshAttempt(t *testing.T) {
	t.Parallel()
	c := client(t, liveKey)
	id := create(t, c, `{"workflowId":"wait","inputs":{"delayMs":3000}}`).RunID
	await(t, c, id, patience, "running")
	a := do(t, c, http.MethodPost, "/v1/runs/"+id+":pause", `{"drainPolicy":"immediate"}`)
	require.Equal(t, http.StatusAccepted, a.Status, "%s", a.Body)
	await(t, c, id, patience, "paused")
	require.Equal(t, http.StatusAccepted, do(t, c, http.MethodPost, "/v1/runs/"+id+":resume", `{"reason":"back"}`).Status)
	events, err := c.Finish(within(t, patience), id)
	require.NoError(t, err)
	require.Equal(t, "run.started node.started run.paused run.resumed node.started node.completed run.completed", strings.Join(names(events), " "))
}

// OpenWOP host contract §2.7, table.
func TestPause_IsRejectedAtOtherStatuses(t *testing.T) {
	t.Parallel()
	c := client(t, liveKey)
	done, _ := run(t, c, `{"workflowId":"noop"}`)
	waits, _ := suspended(t, c, "approve", "waiting-approval")
	live := create(t, c, `{"workflowId":"wait"}`).RunID
	await(t, c, live, patience, "running")
	for _, tc := range []struct {
		run, verb, body string
		status          int
		code, says      string
	}{
		{done, "pause", "", 409, "run_terminal", `"runStatus":"completed"`},
		{done, "resume", "", 409, "run_terminal", `"runStatus":"completed"`},
		{waits, "pause", "", 409, "conflict", `"runStatus":"waiting-approval"`},
		{live, "resume", "", 409, "conflict", `"runStatus":"running"`},
		{live, "pause", `{"drainPolicy":"later"}`, 422, "validation_error", `"supportedDrainPolicies":["immediate","drain-current-node"]`},
		{live, "pause", `{"more":1}`, 400, "validation_error", "/more"},
		{"run_ghost", "pause", "", 404, "run_not_found", ""},
	} {
		a := do(t, c, http.MethodPost, "/v1/runs/"+tc.run+":"+tc.verb, tc.body)
		require.Equal(t, tc.status, a.Status, "%s %s: %s", tc.verb, tc.body, a.Body)
		require.Equal(t, tc.code, a.Code())
		require.Contains(t, string(a.Body), tc.says)
	}
	require.Equal(t, http.StatusForbidden, do(t, client(t, readerKey), http.MethodPost, "/v1/runs/"+live+":pause", "").Status)
	require.Equal(t, http.StatusNotFound, do(t, client(t, otherKey), http.MethodPost, "/v1/runs/"+live+":pause", "").Status)
	do(t, c, http.MethodPost, "/v1/runs/"+live+"/cancel", "")
}

// A paused run can be cancelled.
func TestPause_CancelEndsAPausedRun(t *testing.T) {
	t.Parallel()
	c := client(t, liveKey)
	id := create(t, c, `{"workflowId":"wait"}`).RunID
	await(t, c, id, patience, "running")
	do(t, c, http.MethodPost, "/v1/runs/"+id+":pause", `{"drainPolicy":"immediate"}`)
	require.Equal(t, http.StatusOK, do(t, c, http.MethodPost, "/v1/runs/"+id+"/cancel", "").Status)
	await(t, c, id, patience, "cancelled")
}
