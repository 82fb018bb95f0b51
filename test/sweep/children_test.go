package sweep

import (
	"net/http"
	"strings"

	"github.com/stretchr/testify/require"
)

// Data passed to child runs and back.

// calls returns a node that runs another workflow.
func calls(id, workflowID string) string {
	return node(id, "core.subWorkflow", `{"workflowId":"`+workflowID+`","inputMapping":{"text":"text"},"outputMapping":{"back":"text"}}`, "{}")
}

// familyFlows are a parent and its children: one returns a value, one fails with its input in the
// message, one waits for an answer.
func familyFlows() []string {
	text := `{"value":{"type":"variable","variableName":"text"}}`
	fails := strings.Replace(workflow("child-fails", node("n", "core.channelWrite", `{"channelName":"numbers"}`, text)),
		`"nodes":`, `"channels":{"numbers":{"reducer":"replace","schema":{"type":"object","additionalProperties":{"type":"number"}}}},"nodes":`, 1)
	gives := graph("child-gives", []string{follows("get", "set")},
		node("set", "core.setVariable", `{"name":"made"}`, text),
		node("get", "core.getVariable", `{"name":"made"}`, "{}"))
	parent := graph("parent", []string{follows("back", "gives"), follows("fails", "back")},
		calls("gives", "child-gives"), node("back", "core.getVariable", `{"name":"back"}`, "{}"),
		calls("fails", "child-fails"))
	asks := graph("child-asks", nil, node("gate", "core.approvalGate", `{"title":"t","actions":["accept"]}`, `{"input":{"type":"variable","variableName":"text"}}`))
	return []string{
		ofObjects(fails), ofObjects(gives), ofObjects(parent), asks,
		graph("parent-waits", nil, calls("asks", "child-asks")),
	}
}

// children returns the child runs of a run. They are checked like all others.
func (r *rig) children(runID string, want int) (ids []string) {
	r.t.Helper()
	var parent struct{ ChildRuns []struct{ RunID string } }
	require.NoError(r.t, r.do(http.MethodGet, "/v1/runs/"+runID, "").JSON(&parent))
	require.Len(r.t, parent.ChildRuns, want)
	for _, c := range parent.ChildRuns {
		r.joins(c.RunID)
		ids = append(ids, c.RunID)
	}
	return ids
}

// families plants in the inputs, outputs and errors of children, and in the reason to cancel a
// parent. While the child ends, the reason is in a note of the log.
func (r *rig) families(b batch) {
	r.t.Helper()
	given := map[string]any{b.at("name in what is given"): b.at("given to a child")}
	runID := r.begin(map[string]any{"workflowId": "parent", "inputs": map[string]any{"text": given}, "tags": []string{hookTag}})
	shown := r.finish(runID)
	require.Contains(r.t, shown, `"code":"child_failed"`)
	for i, child := range r.children(runID, 2) {
		its := r.finish(child)
		r.prove(b, its, "given to a child", "name in what is given")
		if i > 0 {
			_, message, _ := strings.Cut(its, "is not of the channel's schema")
			r.prove(b, message, "name in what is given")
		}
	}
	_, back, found := strings.Cut(shown, `"back":`)
	require.True(r.t, found, "the child returned nothing")
	r.prove(b, back, "given to a child", "name in what is given")
	r.delivered(b, runID, "given to a child")

	part := b.reasons()[0]
	runID = r.begin(map[string]any{"workflowId": "parent-waits", "inputs": map[string]any{"text": b.at("what a child shows")}})
	r.await(runID, "node.suspended")
	child := r.children(runID, 1)[0]
	r.change(part, runID, "/cancel", "reason to cancel a parent", "")
	r.noted = append(r.noted, planted{part, "reason to cancel a parent"})
	r.prove(part, r.finish(runID), "reason to cancel a parent")
	r.prove(b, r.finish(child), "what a child shows")
}
