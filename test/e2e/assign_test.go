package e2e

import (
	"net/http"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"waybill.dev/waybill/test/harness"
)

const asksOnce = `{"id":"asks","name":"a","version":"1","nodes":[
	{"id":"gate","typeId":"core.approvalGate","name":"g","position":{"x":0,"y":0},"config":{"title":"Go on?","actions":["accept","reject"]},"inputs":{}}],
	"edges":[],"triggers":[{"id":"m","type":"manual","enabled":true}],"variables":[],"metadata":{},"settings":{}}`

// questionsOf returns the runs and assignees of a list of questions.
func questionsOf(t *testing.T, c *harness.Client, query string) map[string]string {
	t.Helper()
	var page struct {
		Interrupts []struct {
			RunID      string
			Assignment struct{ Assignee string }
		}
	}
	require.NoError(t, doing(t, c, http.MethodGet, "/v1/interrupts"+query, "", http.StatusOK).JSON(&page))
	out := map[string]string{}
	for _, i := range page.Interrupts {
		out[i.RunID] = i.Assignment.Assignee
	}
	return out
}

// The assignee of a question outlives a crash. It is no part of the run: its log and its forks have none.
func TestAssignee_OutlivesACrashAndIsNoPartOfTheRun(t *testing.T) {
	t.Parallel()
	needsHost(t)
	h := harness.Start(t, "--lease", "1s", "--durability", "sync",
		"--api-key", "ada=acme:*,user:ada", "--api-key", "ben=acme:*,user:ben", "--api-key", "eve=beta:*", "--api-key", "weak=acme:runs:read")
	ada, ben, eve := h.Client("ada"), h.Client("ben"), h.Client("eve")
	doing(t, ada, http.MethodPost, "/v1/workflows", asksOnce, http.StatusCreated)
	waits := func(id string) string {
		require.Eventually(t, func() bool { _, open := questionsOf(t, ada, "")[id]; return open }, 20*time.Second, 20*time.Millisecond)
		return id
	}
	run, other := waits(start(t, ada, `{"workflowId":"asks"}`)), waits(start(t, ada, `{"workflowId":"asks"}`))
	events := string(doing(t, ada, http.MethodGet, "/v1/runs/"+run+"/events/poll", "", http.StatusOK).Body)
	path := "/v1/runs/" + run + "/interrupts/gate/assignee"
	doing(t, h.Client("weak"), http.MethodPost, path, `{}`, http.StatusForbidden)
	require.Equal(t, "run_not_found", doing(t, eve, http.MethodPost, path, `{}`, http.StatusNotFound).Code())
	require.Equal(t, "run_not_found", doing(t, eve, http.MethodDelete, path, "", http.StatusNotFound).Code())
	doing(t, ada, http.MethodPost, path, "", http.StatusOK)
	taken := doing(t, ben, http.MethodPost, path, `{}`, http.StatusConflict)
	require.Contains(t, string(taken.Body), `"assignee":"ada"`)

	h.Kill()
	h.Launch()
	ada, ben = h.Client("ada"), h.Client("ben")
	require.Equal(t, map[string]string{run: "ada"}, questionsOf(t, ada, "?mine=true"))
	require.Equal(t, map[string]string{run: "ada"}, questionsOf(t, ben, "?assignee=ada"))
	require.Equal(t, map[string]string{other: ""}, questionsOf(t, ben, "?unassigned=true"))
	require.Empty(t, questionsOf(t, ben, "?mine=true"))
	require.Equal(t, events, string(doing(t, ada, http.MethodGet, "/v1/runs/"+run+"/events/poll", "", http.StatusOK).Body))

	var fork struct{ RunID string }
	require.NoError(t, doing(t, ada, http.MethodPost, "/v1/runs/"+run+":fork", `{"mode":"branch","fromSeq":1}`, http.StatusCreated).JSON(&fork))
	waits(fork.RunID)
	require.Contains(t, questionsOf(t, ada, "?unassigned=true"), fork.RunID)

	doing(t, ben, http.MethodPost, path, `{"replace":true}`, http.StatusOK)
	require.Equal(t, "ben", questionsOf(t, ada, "")[run])
	doing(t, ada, http.MethodDelete, path, "", http.StatusNoContent)
	require.Empty(t, questionsOf(t, ada, "")[run])
	log := string(doing(t, ada, http.MethodGet, "/v1/audit?limit=200", "", http.StatusOK).Body)
	require.Contains(t, log, `"interrupt.assigned"`)
	require.Contains(t, log, `"interrupt.released"`)
	doing(t, ada, http.MethodPost, "/v1/runs/"+run+"/interrupts/gate", `{"resumeValue":{"action":"accept"}}`, http.StatusOK)
	require.Equal(t, "interrupt_already_resolved", doing(t, ada, http.MethodPost, path, `{}`, http.StatusConflict).Code())
}
