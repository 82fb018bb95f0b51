package machine_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"waybill.dev/waybill/protocol/runstate"
	"waybill.dev/waybill/protocol/wire"
	"waybill.dev/waybill/services/dispatcher/machine"
	"waybill.dev/waybill/services/dispatcher/node"
)

const (
	pending         = wire.StatusPending
	running         = wire.StatusRunning
	paused          = wire.StatusPaused
	waitingApproval = wire.StatusWaitingApproval
	waitingInput    = wire.StatusWaitingInput
	waitingExternal = wire.StatusWaitingExternal
	cancelling      = wire.StatusCancelling
	completed       = wire.StatusCompleted
	failed          = wire.StatusFailed
	cancelled       = wire.StatusCancelled
)

// gate is a node that asks, its config, an answer, and the older event types of question and
// answer.
type gate struct{ typ, config, answer, asks, answered string }

// gates has a gate for each waiting status.
var gates = map[wire.Status]gate{
	waitingApproval: {
		"core.approvalGate", `{"title":"t","actions":["accept","reject"],"timeoutSec":60}`, `{"action":"accept"}`,
		" approval.requested@gate", " approval.received@gate",
	},
	waitingInput: {
		"core.interrupt", `{"kind":"clarification","data":{"questions":[{"id":"q","question":"?"}]},"timeoutMs":60000}`, `{"answers":{"q":1}}`,
		" clarification.requested@gate", " clarification.resolved@gate",
	},
	waitingExternal: {
		"core.interrupt", `{"kind":"external-event","data":{"eventType":"e","correlation":{"o":1}},"timeoutMs":60000}`, `{"o":1}`, "", "",
	},
}

const minute = time.Minute

// asking returns a graph with a gate between two model nodes.
func asking(s wire.Status) graph {
	g := gates[s]
	return graph{
		nodes: []string{"a:core.ai.callPrompt", "gate:" + g.typ + ":" + g.config, "b:core.ai.callPrompt"},
		edges: []string{"a>gate", "gate>b"},
	}
}

var (
	oneCall = graph{nodes: []string{"a:core.ai.callPrompt"}}
	noop    = graph{nodes: []string{"a:core.noop"}}
)

// Functions that lead a run to a status.
func fresh(*testing.T, *machine.Machine)     {}
func claim(_ *testing.T, m *machine.Machine) { m.Advance(at) }
func pauseNow(t *testing.T, m *machine.Machine) {
	claim(t, m)
	m.Pause(at, wire.DrainNot, "lunch", "key")
}
func cancelSoon(t *testing.T, m *machine.Machine) { claim(t, m); m.RequestCancel(enough) }
func finishCall(_ *testing.T, m *machine.Machine) {
	m.Complete(at, "a", node.Output{}, wire.Trusted)
	m.Advance(at)
}
func reachGate(t *testing.T, m *machine.Machine)   { claim(t, m); finishCall(t, m) }
func cancelNow(_ *testing.T, m *machine.Machine)   { m.Begin(at); m.Cancel(at, enough) }
func rememberEnd(_ *testing.T, m *machine.Machine) { m.Begin(at); m.RequestCancel(enough) }
func resume(_ *testing.T, m *machine.Machine)      { m.Resume(at, "back") }
func tooLate(_ *testing.T, m *machine.Machine)     { m.Advance(at.Add(limits.MaxDuration)) }
func unanswered(_ *testing.T, m *machine.Machine)  { m.Advance(at.Add(minute)) }

func failCall(_ *testing.T, m *machine.Machine) {
	m.FailNode(at, "a", &wire.NodeError{Code: "x.y", Message: "m"}, wire.Trusted)
	m.Advance(at)
}

func answer(value string) func(*testing.T, *machine.Machine) {
	return func(t *testing.T, m *machine.Machine) {
		m.Resolve(at, "gate", decide(t, m, "gate", value))
		m.Advance(at)
	}
}

var enough = wire.CancelNote{Reason: "enough", By: "key"}

// transition is a row of OpenWOP host contract §3.1.
type transition struct {
	from, to wire.Status
	trigger  string
	g        graph
	reach    func(*testing.T, *machine.Machine) // leads to the status from
	do       func(*testing.T, *machine.Machine)
	events   string // appended by do
	snapshot string // members of the snapshot
}

// transitions are the rows without a waiting status; waits has those of each waiting status.
var transitions = []transition{
	{pending, running, "claimed by an executor", oneCall, fresh, claim, "run.started node.started@a", `"startedAt":"2026-05-01T12:00:00.000Z"`},
	{pending, cancelling, "cancelled while its relatives live", oneCall, fresh, rememberEnd, "run.started", `"status":"cancelling"`},
	{pending, cancelled, "cancelled before it was claimed", oneCall, fresh, cancelNow, "run.started run.cancelled", `"completedAt":"2026-05-01T12:00:00.000Z"`},
	{pending, completed, "claimed, and done at once", noop, fresh, claim, "run.started node.started@a node.completed@a run.completed", `"completedAt":"2026-05-01T12:00:00.000Z"`},
	{running, completed, "all terminal nodes done", oneCall, claim, finishCall, "node.completed@a run.completed", `"completedAt":"2026-05-01T12:00:00.000Z"`},
	{running, failed, "an unhandled failure", oneCall, claim, failCall, "node.failed@a run.failed", `"error":{"code":"x.y","message":"m"}`},
	{
		running, failed, "the cap on executions",
		graph{nodes: []string{"a:core.ai.callPrompt", "b:core.noop"}, edges: []string{"a>b"}, overlay: `{"recursionLimit":1}`},
		claim, finishCall, "node.completed@a cap.breached@b run.failed", `"error":{"code":"recursion_limit_exceeded"`,
	},
	{running, failed, "its time is up", oneCall, claim, tooLate, "cap.breached node.cancelled@a run.failed", `"error":{"code":"run_timeout"`},
	{running, paused, "a pause that takes effect at once", oneCall, claim, func(_ *testing.T, m *machine.Machine) { m.Pause(at, wire.DrainNot, "lunch", "key") }, "run.paused", `"a":{"status":"stopped"`},
	{
		running, paused, "a pause that takes effect when the node has ended", twoCalls, claim,
		func(t *testing.T, m *machine.Machine) {
			m.Pause(at, wire.DrainCurrent, "lunch", "key")
			finishCall(t, m)
		},
		"node.completed@a run.paused", `"a":{"status":"completed"`,
	},
	{running, cancelling, "cancelled while its relatives live", oneCall, claim, rememberEnd, "", `"a":{"status":"running"`},
	{running, cancelled, "cancelled", oneCall, claim, cancelNow, "node.cancelled@a run.cancelled", `"a":{"status":"cancelled"`},
	{paused, running, "resumed", oneCall, pauseNow, resume, "run.resumed", `"a":{"status":"stopped"`},
	{paused, cancelling, "cancelled while its relatives live", oneCall, pauseNow, rememberEnd, "", `"a":{"status":"stopped"`},
	{paused, cancelled, "cancelled", oneCall, pauseNow, cancelNow, "node.cancelled@a run.cancelled", `"a":{"status":"cancelled"`},
	{cancelling, cancelled, "its relatives have ended", oneCall, cancelSoon, cancelNow, "node.cancelled@a run.cancelled", `"a":{"status":"cancelled"`},
	{running, waitingInput, "a model asks", oneCall, claim, func(t *testing.T, m *machine.Machine) {
		m.Emit(at, lifted(1)...)
		require.True(t, m.Suspend(at, "a"))
	}, "clarification.requested@a interrupt.requested@a node.suspended@a", `"currentNodeId":"a"`},
	{
		running, waitingExternal, "a node asks what only the host knows",
		graph{nodes: []string{"a:core.ai.callPrompt", `gate:core.interrupt:{"kind":"custom","data":{"customKind":"k"}}`}, edges: []string{"a>gate"}},
		claim, finishCall, "node.completed@a node.started@gate node.suspended@gate interrupt.requested@gate", `"currentNodeId":"gate"`,
	},
}

// waits returns the transitions of a waiting run, for each waiting status.
func waits() []transition {
	var out []transition
	for s, a := range gates {
		g, kind := asking(s), strings.TrimPrefix(string(s), "waiting-")
		asked := "node.started@gate node.suspended@gate interrupt.requested@gate" + a.asks
		half := graph{nodes: []string{"a:core.ai.callPrompt", g.nodes[1]}}
		last := graph{nodes: []string{g.nodes[1]}}
		until := func(t *testing.T, m *machine.Machine) { claim(t, m); require.Equal(t, s, m.State().Status) }
		expired := " interrupt.resolved@gate"
		if s == waitingApproval {
			expired += " approval.received@gate"
		}
		expired = strings.TrimSpace(expired)
		out = append(out,
			transition{pending, s, "claimed, and its first node asks for " + kind, last, fresh, claim, "run.started " + asked, `"currentNodeId":"gate"`},
			transition{running, s, "a gate asks for " + kind, g, claim, finishCall, "node.completed@a " + asked, `"currentNodeId":"gate"`},
			transition{running, s, "only the gate is open", half, claim, func(_ *testing.T, m *machine.Machine) { m.Complete(at, "a", node.Output{}, wire.Trusted) }, "node.completed@a", `"interrupt":{"kind":"`},
			transition{s, running, "answered", g, reachGate, answer(a.answer), "interrupt.resolved@gate" + a.answered + " node.resumed@gate node.completed@gate node.started@b", `"gate":{"status":"completed"`},
			transition{s, failed, "no answer in time", g, reachGate, unanswered, expired + " node.failed@gate node.skipped@b run.failed", `"error":{"code":"interrupt_`},
			transition{s, cancelled, "cancelled", g, reachGate, cancelNow, "node.cancelled@gate run.cancelled", `"gate":{"status":"cancelled"`},
			transition{s, cancelling, "cancelled while its relatives live", g, reachGate, rememberEnd, "", `"gate":{"status":"suspended"`},
			transition{s, completed, "answered, and that was all", last, until, answer(a.answer), "interrupt.resolved@gate" + a.answered + " node.resumed@gate node.completed@gate run.completed", `"gate":{"status":"completed"`},
			transition{s, paused, "the last running node leaves a question open", half, func(t *testing.T, m *machine.Machine) {
				claim(t, m)
				m.Pause(at, wire.DrainCurrent, "lunch", "key")
				m.Complete(at, "a", node.Output{}, wire.Trusted)
			}, claim, "run.paused", `"a":{"status":"completed"`},
			transition{paused, s, "resumed without an answer", half, func(t *testing.T, m *machine.Machine) {
				claim(t, m)
				m.Pause(at, wire.DrainCurrent, "lunch", "key")
				finishCall(t, m)
			}, resume, "run.resumed", `"currentNodeId":"gate"`},
		)
		for next, b := range gates {
			if next == s {
				continue
			}
			two := graph{nodes: []string{"gate:" + a.typ + ":" + a.config, "later:" + b.typ + ":" + b.config}}
			out = append(out, transition{
				s, next, "answered, and another gate asks for " + strings.TrimPrefix(string(next), "waiting-"), two, until, answer(a.answer),
				"interrupt.resolved@gate" + a.answered + " node.resumed@gate node.completed@gate", `"currentNodeId":"later"`,
			})
		}
	}
	return append(out, transition{
		waitingApproval, failed, "rejected without a route", asking(waitingApproval), reachGate, answer(`{"action":"reject"}`),
		"interrupt.resolved@gate approval.received@gate node.failed@gate node.skipped@b run.failed", `"error":{"code":"interrupt_rejected"`,
	})
}

// OpenWOP host contract §3.1: every transition of a run, with its events and the snapshot. Each
// event is in the table of legal moves.
func TestTransition(t *testing.T) {
	t.Parallel()
	for _, tt := range slices.Concat(transitions, waits()) {
		t.Run(fmt.Sprintf("%s->%s: %s", tt.from, tt.to, tt.trigger), func(t *testing.T) {
			t.Parallel()
			m := machine.New(tt.g.plan(t), limits, runstate.New(record(configurable(tt.g.overlay))))
			tt.reach(t, m)
			require.Equal(t, tt.from, m.State().Status)
			log := legal(t, runstate.New(record(configurable(tt.g.overlay))), appended(m))
			tt.do(t, m)
			require.Equal(t, tt.events, strings.Join(names(m), " "))
			require.Equal(t, tt.to, m.State().Status)
			require.Contains(t, string(m.State().SnapshotJSON()), tt.snapshot)
			legal(t, log, appended(m))
			if tt.to != cancelling { // no event records it
				require.JSONEq(t, string(log.SnapshotJSON()), string(m.State().SnapshotJSON()), "the log folds to the same snapshot")
			}
		})
	}
}

// legal folds events one by one, and checks each against the table of moves.
func legal(t *testing.T, st *runstate.State, events []wire.Event) *runstate.State {
	t.Helper()
	for _, e := range events {
		from, was := st.Status, nodeStatus(st, e.NodeID)
		st.Apply(e)
		require.True(t, runstate.MayMove(from, e.Type, st.Status), "%s leads the run from %s to %s", e.Type, from, st.Status)
		require.True(t, runstate.MayMoveNode(was, e.Type, nodeStatus(st, e.NodeID)), "%s leads the node from %q to %q", e.Type, was, nodeStatus(st, e.NodeID))
	}
	return st
}

// nodeMay reports whether an event may occur in a node's status.
func nodeMay(from runstate.NodeStatus, e wire.EventType) bool {
	return slices.ContainsFunc(nodeStatuses, func(to runstate.NodeStatus) bool { return runstate.MayMoveNode(from, e, to) })
}

func nodeStatus(st *runstate.State, id string) runstate.NodeStatus {
	if n := st.Nodes[id]; n != nil {
		return n.Status
	}
	return runstate.NodeNever
}

// Every legal move of a run is one of the transitions above.
func TestTransition_NamesEveryLegalMove(t *testing.T) {
	t.Parallel()
	named := map[[2]wire.Status]bool{}
	for _, tt := range slices.Concat(transitions, waits()) {
		named[[2]wire.Status{tt.from, tt.to}] = true
	}
	for _, from := range wire.Statuses() {
		for _, to := range wire.Statuses() {
			for _, e := range happenings {
				if from != to && runstate.MayMove(from, e, to) {
					require.True(t, named[[2]wire.Status{from, to}], "%s->%s by %s", from, to, e)
				}
			}
		}
	}
}

// happenings are the event types that can affect a run's status.
var happenings = []wire.EventType{
	wire.EventRunStarted, wire.EventRunCompleted, wire.EventRunFailed, wire.EventRunCancelled, wire.EventRunPaused, wire.EventRunResumed,
	wire.EventNodeStarted, wire.EventNodeCompleted, wire.EventNodeFailed, wire.EventNodeRetried, wire.EventNodeSkipped, wire.EventNodeCancelled,
	wire.EventNodeSuspended, wire.EventNodeResumed, wire.EventNodeDispatched, wire.EventInterruptRequested, wire.EventInterruptResolved,
	wire.EventApprovalRequested, wire.EventApprovalReceived, wire.EventClarificationRequested, wire.EventClarificationResolved,
	wire.EventArtifactCreated, wire.EventOutputChunk, wire.EventVariableChanged, wire.EventCapBreached, wire.EventLogAppended,
	"run.resuming", "run.restored-from-snapshot", "run.dead_lettered", "acme.thing.happened",
}

// reached has a run of every status.
var reached = map[wire.Status]struct {
	g     graph
	reach func(*testing.T, *machine.Machine)
}{
	pending:         {oneCall, fresh},
	running:         {oneCall, claim},
	paused:          {oneCall, pauseNow},
	cancelling:      {oneCall, cancelSoon},
	waitingApproval: {asking(waitingApproval), reachGate},
	waitingInput:    {asking(waitingInput), reachGate},
	waitingExternal: {asking(waitingExternal), reachGate},
	completed:       {noop, claim},
	cancelled:       {oneCall, cancelNow},
	failed:          {oneCall, func(t *testing.T, m *machine.Machine) { claim(t, m); failCall(t, m) }},
}

// OpenWOP host contract §3.1: no event causes a transition outside the table. An event in the wrong
// status folds to no change. In particular, an ended run does not change, and a run does not start
// twice.
func TestTransition_ThereIsNoOther(t *testing.T) {
	t.Parallel()
	for _, from := range wire.Statuses() {
		for _, to := range wire.Statuses() {
			t.Run(fmt.Sprintf("%s->%s", from, to), func(t *testing.T) {
				t.Parallel()
				r := reached[from]
				for _, e := range happenings {
					if runstate.MayMove(from, e, to) || from == to {
						continue
					}
					for _, id := range []string{"", "a", "gate"} {
						m := machine.New(r.g.plan(t), limits, runstate.New(record()))
						r.reach(t, m)
						require.Equal(t, from, m.State().Status)
						if !nodeMay(nodeStatus(m.State(), id), e) {
							continue // no writer emits it: TestNodeTransition_ThereIsNoOther
						}
						before := m.State().StartedAt
						m.Emit(at.Add(time.Second), wire.Draft{
							Type:    e,
							NodeID:  id,
							Payload: []byte(`{"nodeId":"` + id + `","interruptId":"i","kind":"approval","key":"k","data":{},"drainPolicy":"immediate"}`),
						})
						require.NotEqual(t, to, m.State().Status, "%s@%s", e, id)
						if from != pending {
							require.Equal(t, before, m.State().StartedAt, "%s@%s", e, id)
						}
					}
				}
			})
		}
	}
}

// A run that has ended, is paused or is being cancelled takes no step. Late results are dropped,
// except while the run is being cancelled.
func TestTransition_LateEventsChangeNothing(t *testing.T) {
	t.Parallel()
	for _, from := range []wire.Status{paused, cancelling, completed, failed, cancelled} {
		for name, late := range map[string]func(*testing.T, *machine.Machine){
			"complete": doneCall, "fail": failOnce, "suspend": func(_ *testing.T, m *machine.Machine) { m.Suspend(at, "a") },
		} {
			t.Run(fmt.Sprintf("%s: %s", from, name), func(t *testing.T) {
				t.Parallel()
				m := machine.New(reached[from].g.plan(t), limits, runstate.New(record()))
				reached[from].reach(t, m)
				m.Flushed()
				m.Begin(at)
				require.Empty(t, m.Advance(at))
				require.Empty(t, m.Advance(at.Add(2*limits.MaxDuration)))
				require.Empty(t, names(m))
				late(t, m)
				require.Empty(t, m.Advance(at))
				require.Equal(t, from, m.State().Status)
				events, _ := m.Pending()
				for _, e := range events {
					require.Equal(t, cancelling, from, "%s", e.Type)
					require.True(t, runstate.MayMove(from, e.Type, from), "%s", e.Type)
				}
				if from == cancelling {
					m.Cancel(at, enough)
					require.Equal(t, cancelled, m.State().Status)
				}
			})
		}
	}
}
