package node

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"waybill.dev/waybill/protocol/workflow"
)

// RuleLimit is the rule of values beyond a limit of the host.
const RuleLimit = "limit"

// Limits are a host's limits on runs of a workflow.
type Limits struct {
	MaxNodeExecutions int
	MaxRunDuration    time.Duration
}

// Review returns the problems that make a valid definition impossible to run on the host. Warnings
// are settings that the host's limits override.
func (l Limits) Review(def *workflow.Definition) (problems, warned []workflow.Problem) {
	if n := countCertain(workflow.Compile(def)); n > l.MaxNodeExecutions {
		problems = append(problems, workflow.Problem{Path: "/nodes", Rule: RuleLimit, Message: fmt.Sprintf(
			"a run executes at least %d nodes if none fails, and may execute %d (--max-node-executions); split the workflow, with core.subWorkflow", n, l.MaxNodeExecutions)})
	}
	if ms := def.Settings.TimeoutMillis; ms > l.MaxRunDuration.Milliseconds() {
		warned = append(warned, workflow.Problem{Path: "/settings/timeout", Rule: RuleLimit, Message: fmt.Sprintf(
			"is %d; the host ends runs that work for more than %d milliseconds (--max-run-duration)", ms, l.MaxRunDuration.Milliseconds())})
	}
	return problems, warned
}

// countCertain counts the nodes that every run without failures executes: nodes that start with the
// run, and nodes that depend only on such nodes without conditions.
func countCertain(g *workflow.Graph) int {
	sure := make([]bool, len(g.Steps))
	n := 0
	for i, s := range g.Steps { // sources come before their targets
		sure[i] = !s.Node.Disabled && s.Rule != workflow.AnyFailed && !slices.ContainsFunc(s.In, func(l workflow.Link) bool {
			return !l.Back && (l.Edge.Condition != nil || l.Edge.TriggerRule == workflow.AnyFailed || !sure[l.Step])
		})
		if sure[i] {
			n++
		}
	}
	return n
}

// lintPorts finds impossible values at ports.
func (c Catalog) lintPorts(def *workflow.Definition) (found []workflow.Problem) {
	for i, n := range def.Nodes {
		t, known := c[n.TypeID]
		if !known || t.Class != Timer {
			continue
		}
		if pv, there := n.Inputs["delayMs"]; there && pv.Type == workflow.PortStatic && !strings.Contains(string(pv.Value), "{{") {
			found = append(found, lintMillis(nodePath(i)+"/inputs/delayMs", pv.Value)...)
		}
	}
	return found
}
