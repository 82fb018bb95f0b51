package conformance

import (
	"encoding/json"
	"net/http"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestCancel_EndsALiveRunWithinFiveSeconds(t *testing.T) {
	t.Parallel()
	c := client(t, testKey)
	id := create(t, c, `{"workflowId":"wait"}`).RunID
	await(t, c, id, patience, "running")
	a := do(t, c, http.MethodPost, "/v1/runs/"+id+"/cancel", `{"reason":"enough"}`)
	require.Equal(t, http.StatusOK, a.Status, "%s", a.Body)
	var v created
	require.NoError(t, a.JSON(&v))
	require.Equal(t, id, v.RunID)
	require.Contains(t, []string{"cancelling", "cancelled"}, v.Status)
	await(t, c, id, patience, "cancelled")
	events, err := c.Finish(within(t, patience), id)
	require.NoError(t, err)
	require.Equal(t, "run.started node.started node.cancelled run.cancelled", strings.Join(names(events), " "))
	var p map[string]any
	require.NoError(t, json.Unmarshal(events[3].Payload, &p))
	require.Equal(t, "enough", p["reason"])
	require.NotContains(t, p, "parentRunId")

	a = do(t, c, http.MethodPost, "/v1/runs/"+id+"/cancel", "")
	require.Equal(t, http.StatusOK, a.Status, "and again")
	require.JSONEq(t, `{"runId":"`+id+`","status":"cancelled"}`, string(a.Body))
}

// Whether the run or the cancellation ends first, both report the same end.
func TestCancel_RightAfterCreationEndsTheRunOnce(t *testing.T) {
	t.Parallel()
	c := client(t, testKey)
	for range 10 {
		id := create(t, c, `{"workflowId":"three"}`).RunID
		a := do(t, c, http.MethodPost, "/v1/runs/"+id+"/cancel", "{}")
		require.Equal(t, http.StatusOK, a.Status, "%s", a.Body)
		events, err := c.Finish(within(t, patience), id)
		require.NoError(t, err)
		ends := 0
		for _, e := range events {
			switch e.Type {
			case "run.completed", "run.failed", "run.cancelled":
				ends++
			}
		}
		require.Equal(t, 1, ends, "%v", names(events))
		require.Equal(t, "run.started", events[0].Type)
	}
}

func TestCancel_OfAnEndedRunReportsItsStatus(t *testing.T) {
	t.Parallel()
	c := client(t, testKey)
	for workflow, status := range map[string]string{"noop": "completed", "fail": "failed"} {
		id, _ := run(t, c, `{"workflowId":"`+workflow+`"}`)
		a := do(t, c, http.MethodPost, "/v1/runs/"+id+"/cancel", "")
		require.Equal(t, http.StatusOK, a.Status)
		require.JSONEq(t, `{"runId":"`+id+`","status":"`+status+`","alreadyTerminal":true}`, string(a.Body))
	}
}

func TestBulkCancel_AnswersEachEntryInOrder(t *testing.T) {
	t.Parallel()
	c := client(t, testKey)
	live := create(t, c, `{"workflowId":"wait"}`).RunID
	done, _ := run(t, c, `{"workflowId":"noop"}`)
	foreign, _ := run(t, client(t, otherKey), `{"workflowId":"noop"}`)
	gone := create(t, c, `{"workflowId":"wait"}`).RunID
	do(t, c, http.MethodPost, "/v1/runs/"+gone+"/cancel", "")
	await(t, c, gone, patience, "cancelled")

	ids := []string{done, live, "ghost", foreign, gone, live}
	body, err := json.Marshal(map[string]any{"runIds": ids, "reason": "all"})
	require.NoError(t, err)
	a := do(t, c, http.MethodPost, "/v1/runs:bulk-cancel", string(body))
	require.Equal(t, http.StatusOK, a.Status, "%s", a.Body)
	var v struct {
		Results []struct {
			RunID, Status string
			OK            bool
			Error         *struct{ Code, Error, Message string }
		}
	}
	require.NoError(t, a.JSON(&v))
	require.Len(t, v.Results, len(ids))
	want := []string{"run_terminal", "", "not_found", "not_found", "", ""}
	for i, r := range v.Results {
		require.Equal(t, ids[i], r.RunID)
		require.Equal(t, want[i] == "", r.OK, "%d: %s", i, a.Body)
		if want[i] == "" {
			require.Contains(t, []string{"cancelling", "cancelled"}, r.Status)
			continue
		}
		require.Equal(t, want[i], r.Error.Code)
		require.Equal(t, r.Error.Code, r.Error.Error)
		require.NotEmpty(t, r.Error.Message)
	}
	require.Contains(t, string(a.Body), `"ok":false`, "members of value zero are there")
	await(t, c, live, patience, "cancelled")
}

func TestBulkCancel_RejectsInvalidLists(t *testing.T) {
	t.Parallel()
	c := client(t, testKey)
	many := `"x"` + strings.Repeat(`,"x"`, 100)
	for _, body := range []string{
		`{}`, `{"runIds":[]}`, `{"runIds":"x"}`, `{"runIds":[1]}`, `{"runIds":[""]}`, `{"runIds":null}`,
		`{"runIds":["` + strings.Repeat("x", 129) + `"]}`, `{"runIds":["x"],"more":1}`,
		`{"runIds":["x"],"reason":"` + strings.Repeat("r", 513) + `"}`, `{"runIds":[` + many + `]}`,
	} {
		a := do(t, c, http.MethodPost, "/v1/runs:bulk-cancel", body)
		require.Equal(t, http.StatusBadRequest, a.Status, "%s: %s", body, a.Body)
		require.Equal(t, "validation_error", a.Code())
	}
	a := do(t, c, http.MethodPost, "/v1/runs:bulk-cancel", `{"runIds":[`+many+`]}`)
	var e struct{ Details struct{ MaxRunIDs int } }
	require.NoError(t, a.JSON(&e))
	require.Equal(t, 100, e.Details.MaxRunIDs, "%s", a.Body)
}
