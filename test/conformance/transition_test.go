package conformance

import (
	"net/http"
	"testing"

	"github.com/stretchr/testify/require"

	"waybill.dev/waybill/test/harness"
)

// reach returns a run with a status, and the node to answer.
func reach(t *testing.T, c *harness.Client, status string) (id, gate string) {
	t.Helper()
	switch status {
	case "waiting-approval":
		id, _ = suspended(t, c, "approve", status)
		return id, "gate"
	case "waiting-input":
		id, _ = suspended(t, c, "clarify", status)
		return id, "ask"
	case "waiting-external":
		id, _ = suspended(t, c, "external", status)
		return id, "hook"
	case "completed":
		id, _ = run(t, c, `{"workflowId":"noop"}`)
		return id, "a"
	case "failed":
		id, _ = run(t, c, `{"workflowId":"fail"}`)
		return id, "a"
	}
	id = create(t, c, `{"workflowId":"wait"}`).RunID
	await(t, c, id, patience, "running")
	switch status {
	case "paused":
		require.Equal(t, http.StatusAccepted, do(t, c, http.MethodPost, "/v1/runs/"+id+":pause", `{"drainPolicy":"immediate"}`).Status)
	case "cancelled":
		require.Equal(t, http.StatusOK, do(t, c, http.MethodPost, "/v1/runs/"+id+"/cancel", "").Status)
	}
	await(t, c, id, patience, status)
	return id, "a"
}

// OpenWOP host contract §2.5, §2.7, §3.1: the allowed requests at each status. Other requests get 409
// with the status, and do not change the run.
func TestTransition_ARejectionHasItsCodeAndChangesNothing(t *testing.T) {
	t.Parallel()
	for status, want := range map[string]struct{ pause, resume, resolve string }{
		"running":          {"", "conflict", "interrupt_not_found"},
		"paused":           {"conflict", "", "interrupt_not_found"},
		"waiting-approval": {"conflict", "conflict", ""},
		"waiting-input":    {"conflict", "conflict", ""},
		"waiting-external": {"conflict", "conflict", ""},
		"completed":        {"run_terminal", "run_terminal", "interrupt_not_found"},
		"failed":           {"run_terminal", "run_terminal", "interrupt_not_found"},
		"cancelled":        {"run_terminal", "run_terminal", "interrupt_not_found"},
	} {
		t.Run(status, func(t *testing.T) {
			t.Parallel()
			c := client(t, liveKey)
			id, gate := reach(t, c, status)
			for verb, code := range map[string]string{":pause": want.pause, ":resume": want.resume, "/interrupts/" + gate: want.resolve} {
				if code == "" {
					continue // other tests cover allowed requests
				}
				body, refusal := "", http.StatusConflict
				if code == "interrupt_not_found" {
					body, refusal = `{"resumeValue":{"action":"accept"}}`, http.StatusNotFound
				}
				a := do(t, c, http.MethodPost, "/v1/runs/"+id+verb, body)
				require.Equal(t, refusal, a.Status, "%s: %s", verb, a.Body)
				require.Equal(t, code, a.Code())
				if refusal == http.StatusConflict {
					require.Contains(t, string(a.Body), `"runStatus":"`+status+`"`)
				}
				require.Equal(t, status, read(t, c, id).Status)
			}
			require.Equal(t, http.StatusOK, do(t, c, http.MethodPost, "/v1/runs/"+id+"/cancel", "").Status, "and every run may be cancelled")
		})
	}
}
