package machine_test

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"waybill.dev/waybill/protocol/runstate"
	"waybill.dev/waybill/protocol/subject"
	"waybill.dev/waybill/protocol/wire"
	"waybill.dev/waybill/services/dispatcher/machine"
	"waybill.dev/waybill/services/dispatcher/node"
)

var twoCalls = graph{nodes: []string{"a:core.ai.callPrompt", "b:core.ai.callPrompt"}, edges: []string{"a>b"}}

// refolded returns the machine of an executor that takes the run over: it has the state of the log.
func refolded(t *testing.T, g graph, events []wire.Event, notes ...wire.Note) *machine.Machine {
	t.Helper()
	st := runstate.Fold(record(), events)
	for _, n := range notes {
		st.Remember(n)
	}
	return machine.New(g.plan(t), limits, st)
}

// appended returns the pending events and marks them as appended.
func appended(m *machine.Machine) []wire.Event {
	events, _ := m.Pending()
	m.Flushed()
	return events
}

// OpenWOP host contract §2.7: the running node ends before the run is paused, and no other starts.
func TestPause_DrainLetsTheNodeEnd(t *testing.T) {
	t.Parallel()
	m := machine.New(twoCalls.plan(t), limits, runstate.New(record()))
	require.Len(t, m.Advance(at), 1)
	log := appended(m)

	m = machine.NewChange(twoCalls.plan(t), limits, m.State())
	m.Pause(at, wire.DrainCurrent, "lunch", "key")
	require.Empty(t, names(m), "the pause is pending and has no event")
	require.Equal(t, wire.StatusRunning, m.State().Status)
	note := *m.Note()
	require.Equal(t, subject.Step, m.FrameKind(), "the executor of the node continues")
	m.Flushed()

	other := refolded(t, twoCalls, log, wire.ParseNote(note.JSON()))
	require.Len(t, other.Advance(at), 1, "the next executor continues the running node")
	other.Complete(at, "a", node.Output{}, wire.Trusted)
	require.Empty(t, other.Advance(at.Add(time.Second)))
	require.Equal(t, "node.retried@a node.started@a node.completed@a run.paused", strings.Join(names(other), " "))
	require.JSONEq(t, `{"reason":"lunch","drainPolicy":"drain-current-node"}`, payloadOf(t, other, wire.EventRunPaused))
	require.Equal(t, wire.StatusPaused, other.State().Status)
	require.Empty(t, other.Advance(at.Add(time.Hour)), "a paused run takes no step")
	_, due := other.Due()
	require.False(t, due, "a paused run has no due time")
	appended(other)

	other = machine.NewChange(twoCalls.plan(t), limits, other.State())
	other.Resume(at.Add(2*time.Hour), "back")
	require.Equal(t, subject.Wake, other.FrameKind(), "the resume enqueues the run")
	require.Len(t, other.Advance(at.Add(2*time.Hour)), 1)
	require.Equal(t, "run.resumed node.started@b", strings.Join(names(other), " "))
}

// OpenWOP host contract §2.7: a stopped attempt is followed by a new one, which counts as no retry.
func TestPause_ImmediateCutsTheAttempt(t *testing.T) {
	t.Parallel()
	g := graph{nodes: []string{"a:core.ai.callPrompt"}, settings: `{"maxRetries":1}`}
	m := machine.New(g.plan(t), limits, runstate.New(record()))
	m.Advance(at)
	m.Pause(at, wire.DrainNot, "", "key")
	require.Equal(t, "run.started node.started@a run.paused", strings.Join(names(m), " "))
	require.Equal(t, runstate.NodeStopped, m.State().Nodes["a"].Status)
	log := appended(m)

	m = refolded(t, g, log)
	m.Complete(at, "a", node.Output{}, wire.Trusted)
	m.Resume(at, "")
	effects := m.Advance(at)
	require.Len(t, effects, 1)
	require.Equal(t, 1, effects[0].Attempt)
	m.FailNode(at, "a", &wire.NodeError{Code: "x.y", Message: "m", Retryable: true}, wire.Trusted)
	require.Contains(t, names(m), "node.retried@a", "the stopped attempt counts as no retry")
	due, ok := m.Due()
	require.True(t, ok)
	m.Advance(due)
	m.FailNode(due, "a", &wire.NodeError{Code: "x.y", Message: "m", Retryable: true}, wire.Trusted)
	require.Contains(t, names(m), "node.failed@a", "its own retry counts")
}

// An effect whose result is in the log is not repeated.
func TestPause_KeepsAnAnswerThatIsRecorded(t *testing.T) {
	t.Parallel()
	g := graph{nodes: []string{"a:core.ai.callPrompt"}}
	m := machine.New(g.plan(t), limits, runstate.New(record()))
	m.Advance(at)
	m.Emit(at, wire.Draft{
		Type: wire.EventArtifactCreated, NodeID: "a", CausationID: "c",
		Payload: json.RawMessage(`{"artifactId":"x","artifactType":"k","nodeId":"a","payload":{}}`),
	})
	m.Pause(at, wire.DrainNot, "", "key")
	m.Resume(at, "")
	effects := m.Advance(at)
	require.Len(t, effects, 1)
	require.Zero(t, effects[0].Attempt, "the same attempt, which has the recorded answer")
}

func TestPause_ATimerEndsBeforeOrStartsAgain(t *testing.T) {
	t.Parallel()
	g := graph{nodes: []string{`a:core.delay:{"delayMs":1000}`}}
	for policy, want := range map[wire.DrainPolicy]string{
		wire.DrainCurrent: "run.started node.started@a node.completed@a run.paused",
		wire.DrainNot:     "run.started node.started@a run.paused run.resumed node.started@a node.completed@a run.completed",
	} {
		m := machine.New(g.plan(t), limits, runstate.New(record()))
		m.Advance(at)
		log := appended(m)
		m = machine.NewChange(g.plan(t), limits, m.State())
		m.Pause(at.Add(900*time.Millisecond), policy, "", "key")
		if policy == wire.DrainNot {
			m.Resume(at.Add(time.Minute), "")
			m.Advance(at.Add(time.Minute))
			m.Advance(at.Add(time.Minute + 999*time.Millisecond))
			require.Equal(t, wire.StatusRunning, m.State().Status)
			m.Advance(at.Add(time.Minute + time.Second))
		} else {
			require.Equal(t, subject.Wake, m.FrameKind(), "no executor runs it")
			m.Advance(at.Add(time.Second))
		}
		require.Equal(t, want, strings.Join(namesOf(append(log, appended(m)...)), " "), policy)
	}
}

// A drain does not wait for a node that waits for its next attempt. The attempt starts after the
// resume.
func TestPause_WaitsForNoRetry(t *testing.T) {
	t.Parallel()
	g := graph{nodes: []string{"a:core.ai.callPrompt"}, settings: `{"maxRetries":1}`}
	m := machine.New(g.plan(t), limits, runstate.New(record()))
	m.Advance(at)
	m.FailNode(at, "a", &wire.NodeError{Code: "x.y", Message: "m", Retryable: true}, wire.Trusted)
	appended(m)
	m.Pause(at, wire.DrainCurrent, "", "key")
	require.Equal(t, "run.paused", strings.Join(names(m), " "))
	require.Empty(t, m.Advance(at.Add(time.Minute)))
	m.Resume(at.Add(time.Minute), "")
	require.Len(t, m.Advance(at.Add(time.Minute)), 1)
}

// OpenWOP host contract §12 no. 41: paused time does not count against the run's time limit.
func TestPause_StopsTheClockOfTheRun(t *testing.T) {
	t.Parallel()
	g := graph{nodes: []string{"a:core.ai.callPrompt"}}
	m := machine.New(g.plan(t), limits, runstate.New(record()))
	m.Advance(at)
	half := at.Add(limits.MaxDuration / 2)
	m.Pause(half, wire.DrainNot, "", "key")
	back := half.Add(100 * time.Hour)
	m.Resume(back, "")
	m = refolded(t, g, appended(m))
	m.Advance(back)
	require.Equal(t, back.Add(limits.MaxDuration/2), m.Deadline())
	m.Advance(back.Add(limits.MaxDuration/2 - time.Millisecond))
	require.Equal(t, wire.StatusRunning, m.State().Status)
	m.Advance(back.Add(limits.MaxDuration / 2))
	require.Equal(t, wire.StatusFailed, m.State().Status)
	require.JSONEq(t, `{"kind":"run-duration","limit":3600000,"observed":3600001}`, payloadOf(t, m, wire.EventCapBreached))
}

// A run whose pause was acknowledged does not complete before it is resumed.
func TestPause_OfARunWithNothingLeft(t *testing.T) {
	t.Parallel()
	g := graph{nodes: []string{"a:core.ai.callPrompt"}}
	m := machine.New(g.plan(t), limits, runstate.New(record()))
	m.Advance(at)
	m.Pause(at, wire.DrainCurrent, "", "key")
	m.Complete(at, "a", node.Output{}, wire.Trusted)
	m.Advance(at)
	require.Equal(t, wire.StatusPaused, m.State().Status)
	m.Resume(at, "")
	m.Advance(at)
	require.Equal(t, "run.started node.started@a node.completed@a run.paused run.resumed run.completed", strings.Join(names(m), " "))
}

// A resume withdraws a pause that has not taken effect, also for the next executor.
func TestResume_WithdrawsAPendingPause(t *testing.T) {
	t.Parallel()
	m := machine.New(twoCalls.plan(t), limits, runstate.New(record()))
	m.Advance(at)
	log := appended(m)
	m = machine.NewChange(twoCalls.plan(t), limits, m.State())
	m.Pause(at, wire.DrainCurrent, "lunch", "key")
	paused := *m.Note()
	m.Flushed()
	m = machine.NewChange(twoCalls.plan(t), limits, m.State())
	m.Resume(at, "no")
	require.Empty(t, names(m), "there was no run.paused, so there is no run.resumed")
	resumed := *m.Note()
	require.Nil(t, m.State().Pausing)

	other := refolded(t, twoCalls, log, wire.ParseNote(paused.JSON()), wire.ParseNote(resumed.JSON()))
	require.Len(t, other.Advance(at), 1)
	other.Complete(at, "a", node.Output{}, wire.Trusted)
	require.Len(t, other.Advance(at), 1, "the next node starts")
	require.NotContains(t, names(other), "run.paused")
}

// While a pause is pending, nodes can be skipped, but ready nodes do not start, and the run pauses
// instead of ending.
func TestPause_KeepsAReadyNodeFromStarting(t *testing.T) {
	t.Parallel()
	g := graph{
		nodes: []string{"a:core.ai.callPrompt", "b:core.noop", "c:core.noop"},
		edges: []string{"a>b", "a>c:any_failed"},
	}
	m := machine.New(g.plan(t), limits, runstate.New(record()))
	m.Advance(at)
	m.Pause(at, wire.DrainCurrent, "", "key")
	m.Complete(at, "a", node.Output{}, wire.Trusted)
	m.Advance(at)
	require.Equal(t, wire.StatusPaused, m.State().Status)
	m.Resume(at, "")
	m.Advance(at)
	require.Equal(t, wire.StatusCompleted, m.State().Status)
}
