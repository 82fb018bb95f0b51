package conformance

import (
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"waybill.dev/waybill/test/double/otlp"
	"waybill.dev/waybill/test/harness"
)

// families are parent and child workflows.
var families = []string{
	definition("kid", node("n", "core.identity", "{}", "{}"), "", `{"name":"word","type":"string","defaultValue":"own"}`, ""),
	definition("kid-fails", node("n", "core.fail", `{"code":"boom","message":"m"}`, "{}"), "", "", ""),
	definition("kid-waits", node("n", "core.delay", `{"delayMs":60000}`, "{}"), "", "", ""),
	definition("parent", node("call", "core.subWorkflow", `{"workflowId":"kid","inputMapping":{"word":"mine"},"outputMapping":{"result":"word"}}`, "{}"), "",
		`{"name":"mine","type":"string","defaultValue":"given"}`, ""),
	definition("parent-of-approve", node("call", "core.subWorkflow", `{"workflowId":"approve"}`, "{}"), "", "", ""),
	definition("grandparent", node("call", "core.subWorkflow", `{"workflowId":"parent-of-approve"}`, "{}"), "", "", ""),
	definition("parent-fails", node("call", "core.subWorkflow", `{"workflowId":"kid-fails"}`, "{}"), "", "", ""),
	definition("parent-absorbs", node("call", "core.subWorkflow", `{"workflowId":"kid-fails","onChildFailure":"absorb"}`, "{}"), "", "", ""),
	definition("parent-lets-be", node("call", "core.subWorkflow", `{"workflowId":"kid-waits","propagateCancellation":false}`, "{}"), "", "", ""),
	definition("parent-goes-on", node("call", "core.subWorkflow", `{"workflowId":"kid-waits","waitForCompletion":false}`, "{}"), "", "", ""),
	definition("parent-of-nobody", node("call", "core.subWorkflow", `{"workflowId":"nobody-at-all"}`, "{}"), "", "", ""),
}

// childOf waits for the child of a run.
func childOf(t *testing.T, c *harness.Client, id string) string {
	t.Helper()
	var child string
	require.Eventually(t, func() bool {
		s := read(t, c, id)
		if len(s.ChildRuns) > 0 {
			child = s.ChildRuns[0].RunID
		}
		return child != ""
	}, time.Minute, 10*time.Millisecond)
	return child
}

// OpenWOP host contract §3.5, §5.6: the child's events are in the child's log only.
func TestSubWorkflow_WaitsForItsChild(t *testing.T) {
	t.Parallel()
	c := client(t, liveKey)
	id, events := run(t, c, `{"workflowId":"parent"}`)
	require.Equal(t, "run.started node.started node.dispatched variable.changed node.completed run.completed", strings.Join(names(events), " "))
	s := read(t, c, id)
	require.JSONEq(t, `"given"`, string(s.Variables["result"]))
	child := read(t, c, s.ChildRuns[0].RunID)
	require.Equal(t, "completed", s.ChildRuns[0].Status)
	require.Equal(t, id, child.ParentRunID)
	require.Equal(t, "call", child.ParentNodeID)
	require.Equal(t, "kid", child.WorkflowID)
	require.JSONEq(t, fmt.Sprintf(`{"childRunId":%q,"childWorkflowId":"kid"}`, child.RunID), string(events[2].Payload))
	require.JSONEq(t, fmt.Sprintf(`{"nodeId":"call","outputs":{"childRunId":%q,"childStatus":"completed"}}`, child.RunID), string(events[4].Payload))
}

func TestSubWorkflow_EndsAsConfigured(t *testing.T) {
	t.Parallel()
	c := client(t, liveKey)
	for workflow, code := range map[string]string{
		"parent-fails": "child_failed", "parent-absorbs": "", "parent-of-nobody": "unknown_child_workflow", "parent-goes-on": "",
	} {
		id, _ := run(t, c, `{"workflowId":"`+workflow+`"}`)
		s := read(t, c, id)
		if code == "" {
			require.Equal(t, "completed", s.Status, workflow)
			continue
		}
		require.Equal(t, "failed", s.Status, workflow)
		require.Equal(t, code, s.Error.Code)
	}
}

// OpenWOP host contract §5.6, §3.1: a parent waits for what its child waits for.
func TestSubWorkflow_MirrorsAWaitingChild(t *testing.T) {
	t.Parallel()
	c := client(t, liveKey)
	id := create(t, c, `{"workflowId":"grandparent"}`).RunID
	s := await(t, c, id, patience, "waiting-approval")
	require.Equal(t, "call", s.CurrentNodeID)
	leaf := childOf(t, c, childOf(t, c, id))
	a := do(t, c, http.MethodPost, "/v1/runs/"+leaf+"/interrupts/gate", `{"resumeValue":{"action":"accept"}}`)
	require.Equal(t, http.StatusOK, a.Status, "%s", a.Body)
	events, err := c.Finish(within(t, patience), id)
	require.NoError(t, err)
	require.Equal(t, "run.started node.started node.dispatched node.suspended node.resumed node.completed run.completed", strings.Join(names(events), " "))
}

// OpenWOP host contract §2.5.
func TestSubWorkflow_CancellationReachesChildrenUnlessConfiguredOtherwise(t *testing.T) {
	t.Parallel()
	c := client(t, liveKey)
	cancel := func(id string) {
		a := do(t, c, http.MethodPost, "/v1/runs/"+id+"/cancel", `{"reason":"enough"}`)
		require.Equal(t, http.StatusOK, a.Status, "%s", a.Body)
		require.Contains(t, string(a.Body), `"status":"cancelled"`)
	}
	id := create(t, c, `{"workflowId":"grandparent"}`).RunID
	await(t, c, id, patience, "waiting-approval")
	leaf := childOf(t, c, childOf(t, c, id))
	cancel(id)
	await(t, c, leaf, patience, "cancelled")
	require.Equal(t, http.StatusGone, do(t, c, http.MethodPost, "/v1/runs/"+leaf+"/interrupts/gate", `{"resumeValue":{"action":"accept"}}`).Status)

	id = create(t, c, `{"workflowId":"parent-lets-be"}`).RunID
	child := childOf(t, c, id)
	await(t, c, child, patience, "running")
	cancel(id)
	require.Equal(t, "cancelled", read(t, c, id).Status)
	require.Equal(t, "running", read(t, c, child).Status)
	cancel(child)
}

func TestSubWorkflow_CannotBeTheWorkflowItself(t *testing.T) {
	t.Parallel()
	c := client(t, liveKey)
	a := do(t, c, http.MethodPost, "/v1/workflows", definition("ouroboros", node("call", "core.subWorkflow", `{"workflowId":"ouroboros"}`, "{}"), "", "", ""))
	require.Equal(t, http.StatusBadRequest, a.Status, "%s", a.Body)
	require.Contains(t, string(a.Body), "the workflow runs itself without end")
}

// A workflow may be registered before the workflows it runs.
func TestSubWorkflow_AnUnknownChildIsAWarningAtRegistration(t *testing.T) {
	t.Parallel()
	c := client(t, liveKey)
	a := do(t, c, http.MethodPost, "/v1/workflows", definition("early", node("call", "core.subWorkflow", `{"workflowId":"comes-later"}`, "{}"), "", "", ""))
	require.Equal(t, http.StatusCreated, a.Status, "%s", a.Body)
	var v struct {
		Warnings []struct{ Path, Rule, Message string }
	}
	require.NoError(t, a.JSON(&v))
	require.Len(t, v.Warnings, 1)
	require.Equal(t, "/nodes/0/config/workflowId", v.Warnings[0].Path)
	require.Contains(t, v.Warnings[0].Message, "unknown_child_workflow")
}

// A child belongs to the tenant of its parent.
func TestSubWorkflow_ChildrenAreOfTheTenant(t *testing.T) {
	t.Parallel()
	c := client(t, liveKey)
	id, _ := run(t, c, `{"workflowId":"parent"}`)
	child := read(t, c, id).ChildRuns[0].RunID
	require.Equal(t, http.StatusNotFound, do(t, client(t, otherKey), http.MethodGet, "/v1/runs/"+child, "").Status)
}

// OpenWOP host contract §10.1: the child's root span is under the invoking node's.
func TestSubWorkflow_TracesTheChildUnderItsNode(t *testing.T) {
	t.Parallel()
	collector := otlp.New()
	t.Cleanup(collector.Close)
	c := client(t, testKey)
	h := harness.Start(t, "--otlp-endpoint", collector.URL(), "--trace-ratio", "0")
	c = c.To(h, "dev-key")
	for _, doc := range families[:4] {
		require.Equal(t, http.StatusCreated, do(t, c, http.MethodPost, "/v1/workflows", doc).Status)
	}
	a := do(t, c, http.MethodPost, "/v1/runs", `{"workflowId":"parent"}`, "Traceparent", sampled)
	require.Equal(t, http.StatusCreated, a.Status, "%s", a.Body)
	var made created
	require.NoError(t, a.JSON(&made))
	_, err := c.Finish(within(t, patience), made.RunID)
	require.NoError(t, err)
	var node, child *otlp.Span
	require.Eventually(t, func() bool {
		for _, s := range collector.Spans() {
			switch {
			case s.Name == "openwop.node.core.subWorkflow":
				node = &s
			case s.Name == "openwop.run" && s.Attributes["openwop.parent.run_id"] == made.RunID:
				child = &s
			}
		}
		return node != nil && child != nil
	}, 30*time.Second, 20*time.Millisecond)
	require.Equal(t, node.SpanID, child.ParentID)
	require.Equal(t, traceID, child.TraceID)
	require.Equal(t, "call", child.Attributes["openwop.parent.node_id"])
	require.Equal(t, "parent", child.Attributes["openwop.parent.workflow_id"])
}
