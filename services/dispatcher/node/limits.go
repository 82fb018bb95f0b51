package node

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"waybill.dev/waybill/protocol/workflow"
)

// RuleLimit is the rule of problems and warnings about values beyond a limit of the host.
const RuleLimit = "limit"

// Limits are those of a host on the runs of a workflow.
type Limits struct {
	MaxNodeExecutions int
	MaxRunDuration    time.Duration
}

// Review finds what no run of a sound definition could carry out on the host. Warnings are what
// the host's limits make void.
func (l Limits) Review(def *workflow.Definition) (problems, warned []workflow.Problem) {
	if n := certain(workflow.Compile(def)); n > l.MaxNodeExecutions {
		problems = append(problems, workflow.Problem{Path: "/nodes", Rule: RuleLimit, Message: fmt.Sprintf(
			"a run executes at least %d nodes if none fails, and may execute %d (--max-node-executions); split the workflow, with core.subWorkflow", n, l.MaxNodeExecutions)})
	}
	if ms := def.Settings.TimeoutMillis; ms > l.MaxRunDuration.Milliseconds() {
		warned = append(warned, workflow.Problem{Path: "/settings/timeout", Rule: RuleLimit, Message: fmt.Sprintf(
			"is %d; the host ends runs that work for more than %d milliseconds (--max-run-duration)", ms, l.MaxRunDuration.Milliseconds())})
	}
	return problems, warned
}

// certain counts the nodes that every run executes in which no node fails: those that start with
// the run, and those that only such nodes lead to, without conditions.
func certain(g *workflow.Graph) int {
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

// lintPorts finds values at ports that no run could carry out.
func (c Catalog) lintPorts(def *workflow.Definition) (found []workflow.Problem) {
	for i, n := range def.Nodes {
		t, known := c[n.TypeID]
		if !known || t.Class != Timer {
			continue
		}
		if pv, there := n.Inputs["delayMs"]; there && pv.Type == workflow.PortStatic && !strings.Contains(string(pv.Value), "{{") {
			found = append(found, lintWait(nodePath(i)+"/inputs/delayMs", pv.Value)...)
		}
	}
	return found
}
