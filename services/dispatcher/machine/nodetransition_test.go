package machine_test

import (
	"cmp"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"waybill.dev/waybill/protocol/runstate"
	"waybill.dev/waybill/protocol/wire"
	"waybill.dev/waybill/services/dispatcher/machine"
	"waybill.dev/waybill/services/dispatcher/node"
)

const never = runstate.NodeNever

// nodeStatuses are all statuses of a node.
var nodeStatuses = []runstate.NodeStatus{
	never, runstate.NodeRunning, runstate.NodeRetrying, runstate.NodeSuspended, runstate.NodeStopped,
	runstate.NodeCompleted, runstate.NodeFailed, runstate.NodeSkipped, runstate.NodeCancelled,
}

var (
	twice = graph{nodes: []string{"a:core.ai.callPrompt"}, settings: `{"maxRetries":1}`}
	after = graph{nodes: []string{"b:core.ai.callPrompt", "a:core.noop"}, edges: []string{"b>a"}}
)

func failOnce(_ *testing.T, m *machine.Machine) {
	m.FailNode(at, "a", &wire.NodeError{Code: "x.y", Message: "m", Retryable: true}, wire.Trusted)
}

func beginRetry(t *testing.T, m *machine.Machine) { claim(t, m); failOnce(t, m) }

func beginAsking(t *testing.T, m *machine.Machine) { claim(t, m); lift(t, m) }

func lift(t *testing.T, m *machine.Machine) {
	m.Emit(at, lifted(1)...)
	require.True(t, m.Suspend(at, "a"))
}

func answerModel(t *testing.T, m *machine.Machine) {
	m.Resolve(at, "a", decide(t, m, "a", `{"answers":{"q":1}}`))
}

func doneCall(_ *testing.T, m *machine.Machine) { m.Complete(at, "a", node.Output{}, wire.Trusted) }

// approve returns a graph with the approval gate "a".
func approve(actions string) graph {
	return graph{nodes: []string{`a:core.approvalGate:{"title":"t","actions":` + actions + `}`}}
}

var nodeTransitions = []struct {
	from, to runstate.NodeStatus
	trigger  string
	g        graph
	reach    func(*testing.T, *machine.Machine)
	do       func(*testing.T, *machine.Machine)
	events   string // of the node
}{
	{never, runstate.NodeRunning, "it is ready", oneCall, fresh, claim, "node.started"},
	{never, runstate.NodeFailed, "the gate before its start refuses it", graph{nodes: []string{"a:core.nowhere"}}, fresh, claim, "node.failed"},
	{never, runstate.NodeSkipped, "its trigger rule is not met", after, claim, func(_ *testing.T, m *machine.Machine) {
		m.FailNode(at, "b", &wire.NodeError{Code: "x.y", Message: "m"}, wire.Trusted)
		m.Advance(at)
	}, "node.skipped"},
	{runstate.NodeRunning, runstate.NodeCompleted, "its result is there", oneCall, claim, doneCall, "node.completed"},
	{runstate.NodeRunning, runstate.NodeFailed, "an error that is final", oneCall, claim, failOnce, "node.failed"},
	{runstate.NodeRunning, runstate.NodeRetrying, "an error, and an attempt left", twice, claim, failOnce, "node.retried"},
	{runstate.NodeRunning, runstate.NodeSuspended, "its model asks", oneCall, claim, lift, "clarification.requested interrupt.requested node.suspended"},
	{runstate.NodeRunning, runstate.NodeStopped, "a pause cuts the attempt", oneCall, claim, pauseNow, ""},
	{runstate.NodeRunning, runstate.NodeCancelled, "the run is cancelled", oneCall, claim, cancelNow, "node.cancelled"},
	{runstate.NodeRetrying, runstate.NodeRunning, "its wait is over", twice, beginRetry, unanswered, "node.started"},
	{runstate.NodeRetrying, runstate.NodeCancelled, "the run is cancelled", twice, beginRetry, cancelNow, "node.cancelled"},
	{runstate.NodeSuspended, runstate.NodeRunning, "its model is answered", oneCall, beginAsking, answerModel, "interrupt.resolved clarification.resolved node.resumed"},
	{runstate.NodeSuspended, runstate.NodeCompleted, "the gate is passed", approve(`["accept"]`), claim, func(t *testing.T, m *machine.Machine) {
		m.Resolve(at, "a", decide(t, m, "a", `{"action":"accept"}`))
	}, "interrupt.resolved approval.received node.resumed node.completed"},
	{runstate.NodeSuspended, runstate.NodeFailed, "the gate is rejected", approve(`["reject"]`), claim, func(t *testing.T, m *machine.Machine) {
		m.Resolve(at, "a", decide(t, m, "a", `{"action":"reject"}`))
	}, "interrupt.resolved approval.received node.failed"},
	{runstate.NodeSuspended, runstate.NodeCancelled, "the run is cancelled", oneCall, beginAsking, cancelNow, "node.cancelled"},
	{runstate.NodeStopped, runstate.NodeRunning, "the run goes on", oneCall, pauseNow, func(t *testing.T, m *machine.Machine) { resume(t, m); m.Advance(at) }, "node.started"},
	{runstate.NodeStopped, runstate.NodeCancelled, "the run is cancelled", oneCall, pauseNow, cancelNow, "node.cancelled"},
}

// OpenWOP host contract §3.1, §3.5: every transition of a node.
func TestNodeTransition(t *testing.T) {
	t.Parallel()
	named := map[[2]runstate.NodeStatus]bool{{runstate.NodeRetrying, runstate.NodeFailed}: true} // tested below
	for _, tt := range nodeTransitions {
		named[[2]runstate.NodeStatus{tt.from, tt.to}] = true
		t.Run(fmt.Sprintf("%s->%s: %s", cmp.Or(tt.from, "never"), tt.to, tt.trigger), func(t *testing.T) {
			t.Parallel()
			m := machine.New(tt.g.plan(t), limits, runstate.New(record()))
			tt.reach(t, m)
			require.Equal(t, tt.from, nodeStatus(m.State(), "a"))
			log := legal(t, runstate.New(record()), appended(m))
			tt.do(t, m)
			var own []string
			for _, name := range names(m) {
				if name, ok := strings.CutSuffix(name, "@a"); ok {
					own = append(own, name)
				}
			}
			require.Equal(t, tt.events, strings.Join(own, " "))
			require.Equal(t, tt.to, nodeStatus(m.State(), "a"))
			require.Equal(t, tt.to, m.State().Snapshot().NodeStates["a"].Status)
			legal(t, log, appended(m))
		})
	}
	t.Run("retrying->failed: the gate before its start refuses it", func(t *testing.T) {
		t.Parallel()
		m := machine.New(twice.plan(t), limits, runstate.New(record()))
		beginRetry(t, m)
		log := legal(t, runstate.New(record()), appended(m))
		p := twice.plan(t)
		p.Types = node.Catalog{} // the host no longer has the type
		m = machine.New(p, limits, log)
		m.Advance(at.Add(minute))
		require.Equal(t, "node.failed@a run.failed", strings.Join(names(m), " "))
	})
	for _, from := range nodeStatuses {
		for _, to := range nodeStatuses {
			for _, e := range happenings {
				if moves := strings.HasPrefix(string(e), "node."); moves && e != wire.EventNodeDispatched && from != to && runstate.MayMoveNode(from, e, to) {
					require.True(t, named[[2]runstate.NodeStatus{from, to}], "%q->%q by %s", from, to, e)
				}
			}
		}
	}
}

// No operation on a node in any status leads to a transition outside the table. Results for ended
// nodes are dropped.
func TestNodeTransition_ThereIsNoOther(t *testing.T) {
	t.Parallel()
	deeds := map[string]func(*testing.T, *machine.Machine){
		"complete": doneCall,
		"fail":     failOnce,
		"suspend":  func(_ *testing.T, m *machine.Machine) { m.Suspend(at, "a") },
		"dispatch": func(_ *testing.T, m *machine.Machine) { m.RecordDispatch(at, "a", machine.Spawn{RunID: "run_c"}) },
		"hear": func(_ *testing.T, m *machine.Machine) {
			m.ApplyReport(at, "a", machine.Report{RunID: "run_c", Status: wire.StatusCompleted})
		},
		"advance":  claim,
		"wait":     unanswered,
		"time out": tooLate,
	}
	for _, tt := range nodeTransitions {
		for name, deed := range deeds {
			t.Run(fmt.Sprintf("%s after %s", name, tt.trigger), func(t *testing.T) {
				t.Parallel()
				m := machine.New(tt.g.plan(t), limits, runstate.New(record()))
				tt.reach(t, m)
				tt.do(t, m)
				log := legal(t, runstate.New(record()), appended(m))
				require.Equal(t, tt.to, nodeStatus(m.State(), "a"))
				deed(t, m)
				legal(t, log, appended(m))
				if tt.to.Terminal() {
					require.Equal(t, tt.to, nodeStatus(m.State(), "a"))
				}
			})
		}
	}
}

// An answer does not restart a node that failed after its model asked a question. The question is
// no longer open, and the run does not wait for it.
func TestNodeTransition_AnAnswerBringsNoEndedNodeBack(t *testing.T) {
	t.Parallel()
	m := machine.New(graph{
		nodes: []string{"a:core.ai.callPrompt", "b:core.ai.callPrompt"},
		edges: []string{"a>b:any_failed"},
	}.plan(t), limits, runstate.New(record()))
	claim(t, m)
	m.Emit(at, lifted(1)...)
	failOnce(t, m)
	m.Advance(at)
	require.Nil(t, m.State().Open("a"))
	m.Complete(at, "b", node.Output{}, wire.Trusted)
	require.Equal(t, wire.StatusRunning, m.State().Status)
	m.Advance(at)
	require.Equal(t, wire.StatusCompleted, m.State().Status)
}

// An answer to the question of a failed attempt does not start the next attempt early.
func TestNodeTransition_AnAnswerDoesNotCutTheWaitForAnAttempt(t *testing.T) {
	t.Parallel()
	m := machine.New(twice.plan(t), limits, runstate.New(record()))
	claim(t, m)
	m.Emit(at, lifted(1)...)
	failOnce(t, m)
	log := legal(t, runstate.New(record()), appended(m))
	answerModel(t, m)
	require.Equal(t, "interrupt.resolved@a clarification.resolved@a", strings.Join(names(m), " "))
	require.Equal(t, runstate.NodeRetrying, nodeStatus(m.State(), "a"))
	require.Empty(t, m.Advance(at.Add(time.Millisecond)))
	effects := m.Advance(at.Add(minute))
	require.Len(t, effects, 1)
	require.Equal(t, 1, effects[0].Attempt)
	require.Len(t, effects[0].Answered, 1)
	legal(t, log, appended(m))
}
