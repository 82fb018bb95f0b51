package engine_test

import (
	"context"
	"encoding/json"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"waybill.dev/waybill/protocol/fault"
	"waybill.dev/waybill/protocol/frame"
	"waybill.dev/waybill/protocol/interrupt"
	"waybill.dev/waybill/protocol/subject"
	"waybill.dev/waybill/protocol/wire"
	"waybill.dev/waybill/services/dispatcher/engine"
	"waybill.dev/waybill/services/dispatcher/model"
	"waybill.dev/waybill/services/dispatcher/node"
)

// types returns the events of the run's log, as "type@node".
func (r *rig) types(t *testing.T) string {
	t.Helper()
	_, frames := r.state(t)
	var out []string
	for _, f := range frames {
		events, err := f.Events()
		require.NoError(t, err)
		for _, e := range events {
			name := string(e.Type)
			if e.NodeID != "" {
				name += "@" + e.NodeID
			}
			out = append(out, name)
		}
	}
	return strings.Join(out, " ")
}

const approvalJSON = `{"title":"t","actions":["accept","reject"]}`

func accept(by string) engine.Answer {
	return engine.Answer{
		NodeID: "gate",
		Answer: interrupt.Answer{Value: json.RawMessage(`{"action":"accept"}`), By: interrupt.Responder{Principal: by}},
	}
}

// A pause that waits for a node is in the log when it is acknowledged. The session that executes
// the node reads it and starts no other node.
func TestPause_IsReadByTheRunningSession(t *testing.T) {
	t.Parallel()
	started, goOn := make(chan struct{}), make(chan struct{})
	var calls int
	slow := func(context.Context, model.Task, model.Journal) model.Result {
		calls++
		close(started)
		<-goOn
		return model.Result{Output: node.Output{}}
	}
	r := newRig(t, define(t, nodeJSON("a", "core.ai.callPrompt", "{}")+","+nodeJSON("b", "core.ai.callPrompt", "{}"), `{"id":"e","sourceNodeId":"a","targetNodeId":"b"}`), models(slow))
	r.create(t)
	done := make(chan struct{})
	go func() { defer close(done); r.next(t) }()
	<-started
	at, err := r.exec.Pause(t.Context(), "acme", "run_1", wire.DrainCurrent, "", "key")
	require.NoError(t, err)
	require.NotEmpty(t, at)
	_, err = r.exec.Pause(t.Context(), "acme", "run_1", wire.DrainCurrent, "", "key")
	require.Equal(t, map[string]any{"runStatus": "paused", "pausedAt": at}, refusal(t, err, fault.Conflict))
	_, err = r.exec.Resume(t.Context(), "acme", "run_1", "")
	require.NoError(t, err, "a resume withdraws the pause")
	_, err = r.exec.Resume(t.Context(), "acme", "run_1", "")
	require.Equal(t, map[string]any{"runStatus": "running"}, refusal(t, err, fault.Conflict))
	_, err = r.exec.Pause(t.Context(), "acme", "run_1", wire.DrainCurrent, "", "key")
	require.NoError(t, err)
	close(goOn)
	<-done
	require.Equal(t, "run.started node.started@a node.completed@a run.paused", r.types(t))
	require.Equal(t, 1, calls)
}

// refusal returns the details of an error with a code.
func refusal(t *testing.T, err error, code fault.Code) map[string]any {
	t.Helper()
	e, ok := fault.As(err)
	require.True(t, ok, "%v", err)
	require.Equal(t, code, e.Code)
	return e.Details
}

// A run that ends while its pause waits for a node is not paused.
func TestPause_ThatWaitsEndsWithItsRun(t *testing.T) {
	t.Parallel()
	r, done := hanging(t)
	_, err := r.exec.Pause(t.Context(), "acme", "run_1", wire.DrainCurrent, "", "key")
	require.NoError(t, err)
	_, _, err = r.exec.Cancel(t.Context(), "acme", "run_1", "", "key")
	require.NoError(t, err)
	<-done
	_, err = r.exec.Pause(t.Context(), "acme", "run_1", wire.DrainCurrent, "", "key")
	require.Equal(t, map[string]any{"runStatus": "cancelled"}, refusal(t, err, fault.RunTerminal))
	_, err = r.exec.Resume(t.Context(), "acme", "run_1", "")
	require.Equal(t, map[string]any{"runStatus": "cancelled"}, refusal(t, err, fault.RunTerminal))
}

// An immediate pause ends the attempt, and a later session starts it again.
func TestPause_ImmediateEndsTheEffect(t *testing.T) {
	t.Parallel()
	attempts := make(chan int, 2)
	hang := func(ctx context.Context, task model.Task, _ model.Journal) model.Result {
		attempts <- task.Attempt
		if task.Attempt > 0 {
			return model.Result{Output: node.Output{}}
		}
		<-ctx.Done()
		return model.Result{Interrupted: ctx.Err()}
	}
	r := newRig(t, define(t, nodeJSON("a", "core.ai.callPrompt", "{}")), models(hang))
	r.create(t)
	done := make(chan struct{})
	go func() { defer close(done); r.next(t) }()
	require.Zero(t, <-attempts)
	_, err := r.exec.Pause(t.Context(), "acme", "run_1", wire.DrainNot, "", "key")
	require.NoError(t, err)
	<-done
	_, err = r.exec.Resume(t.Context(), "acme", "run_1", "")
	require.NoError(t, err)
	for range 3 { // the interrupted delivery and the wake frame
		if st, _ := r.state(t); st.Status.Terminal() {
			break
		}
		r.next(t)
	}
	require.Equal(t, 1, <-attempts)
	require.Equal(t, "run.started node.started@a run.paused run.resumed node.started@a node.completed@a run.completed", r.types(t))
}

// An answer arrives while another branch is running: the branch continues, and its session
// continues the gate, too.
func TestResolve_DoesNotInterruptARunningBranch(t *testing.T) {
	t.Parallel()
	started, goOn := make(chan struct{}), make(chan struct{})
	var mu sync.Mutex
	calls := map[string]int{}
	slow := func(_ context.Context, task model.Task, j model.Journal) model.Result {
		mu.Lock()
		calls[task.Input.NodeID]++
		mu.Unlock()
		if task.Input.NodeID == "a" {
			close(started)
			<-goOn
		}
		return model.Result{Output: node.Output{}}
	}
	r := newRig(t, define(t, nodeJSON("a", "core.ai.callPrompt", "{}")+","+nodeJSON("gate", "core.approvalGate", approvalJSON)+","+
		nodeJSON("b", "core.ai.callPrompt", "{}"), `{"id":"e","sourceNodeId":"gate","targetNodeId":"b"}`), models(slow))
	r.create(t)
	done := make(chan struct{})
	go func() { defer close(done); r.next(t) }()
	<-started
	st, _ := r.state(t)
	require.Equal(t, wire.StatusRunning, st.Status, "another branch is running")
	_, err := r.exec.Resolve(t.Context(), "acme", "run_1", accept("key"))
	require.NoError(t, err)
	_, frames := r.state(t)
	require.Equal(t, subject.Step, frames[len(frames)-1].Kind, "no wake frame: the session continues")
	close(goOn)
	<-done
	st, _ = r.state(t)
	require.Equal(t, wire.StatusCompleted, st.Status)
	require.Equal(t, map[string]int{"a": 1, "b": 1}, calls)
}

// OpenWOP host contract §6.4: one answer wins, the others get an error.
func TestResolve_HasOneWinner(t *testing.T) {
	t.Parallel()
	r := newRig(t, define(t, nodeJSON("gate", "core.approvalGate", approvalJSON)), nil)
	r.create(t)
	r.next(t)
	st, _ := r.state(t)
	require.Equal(t, wire.StatusWaitingApproval, st.Status)
	const racers = 16
	codes := make(chan fault.Code, racers)
	var wg sync.WaitGroup
	for range racers {
		wg.Go(func() {
			_, err := r.exec.Resolve(context.Background(), "acme", "run_1", accept("key"))
			codes <- fault.CodeOf(err)
		})
	}
	wg.Wait()
	close(codes)
	count := map[fault.Code]int{}
	for c := range codes {
		count[c]++
	}
	require.Equal(t, map[fault.Code]int{"": 1, fault.InterruptResolved: racers - 1}, count)
	require.Equal(t, 1, strings.Count(r.types(t), "interrupt.resolved"))
}

// Votes are recorded without an event, and survive the process that counted them.
func TestResolve_CountsVotesOverRestarts(t *testing.T) {
	t.Parallel()
	two := define(t, nodeJSON("gate", "core.approvalGate", `{"title":"t","actions":["accept","reject"],"requiredApprovals":2}`))
	r := newRig(t, two, nil)
	r.create(t)
	r.next(t)
	vote := func(exec *engine.Executor, voter string) engine.Resolved {
		a := accept("key")
		a.Value = json.RawMessage(`{"action":"accept","voter":"` + voter + `"}`)
		got, err := exec.Resolve(t.Context(), "acme", "run_1", a)
		require.NoError(t, err)
		return got
	}
	before := r.types(t)
	require.Equal(t, interrupt.Counted, vote(r.exec, "ann").Decision.Outcome)
	require.Equal(t, interrupt.Counted, vote(r.exec, "ann").Decision.Outcome, "a voter counts once")
	require.Equal(t, before, r.types(t), "a vote has no event")
	got := vote(r.executor(two, nil), "bob")
	require.Equal(t, interrupt.Advanced, got.Decision.Outcome)
	require.Equal(t, wire.StatusCompleted, got.Status)
}

// A gate without an answer fails closed when its time is over.
func TestResolve_AfterItsTimeIsTooLate(t *testing.T) {
	t.Parallel()
	r := newRig(t, define(t, nodeJSON("gate", "core.approvalGate", `{"title":"t","actions":["accept"],"timeoutSec":1}`)), nil)
	r.create(t)
	r.next(t)
	require.Len(t, r.sleep, 1, "the timer is registered")
	require.WithinDuration(t, time.Now().Add(time.Second), r.sleep[0], time.Second)
	r.ahead.Store(int64(2 * time.Second))
	_, err := r.exec.Resolve(t.Context(), "acme", "run_1", accept("key"))
	require.Equal(t, fault.InterruptExpired, fault.CodeOf(err))
	_, frames := r.state(t)
	require.NoError(t, r.exec.Wake(t.Context(), theRun, frames[len(frames)-1].Head()))
	r.next(t)
	require.Equal(t, "run.started node.started@gate node.suspended@gate interrupt.requested@gate approval.requested@gate "+
		"interrupt.resolved@gate approval.received@gate node.failed@gate run.failed", r.types(t))
	_, err = r.exec.Resolve(t.Context(), "acme", "run_1", accept("key"))
	require.Equal(t, fault.InterruptExpired, fault.CodeOf(err), "expired, not answered")
}

// OpenWOP host contract §6.4: a run that is being cancelled accepts no answers.
func TestResolve_WhileTheRunIsBeingCancelled(t *testing.T) {
	t.Parallel()
	r := newRig(t, define(t, nodeJSON("gate", "core.approvalGate", approvalJSON)), nil)
	r.create(t)
	r.next(t)
	_, frames := r.state(t)
	last := frames[len(frames)-1]
	note := frame.New(theRun, subject.Wake, last.Head(), nil).With(wire.Note{Cancel: &wire.CancelNote{By: "key"}}.JSON())
	_, err := r.log.Append(t.Context(), note, last.Pos)
	require.NoError(t, err)
	_, err = r.exec.Resolve(t.Context(), "acme", "run_1", accept("key"))
	require.Equal(t, fault.InterruptGone, fault.CodeOf(err))
	require.NotContains(t, r.types(t), "interrupt.resolved")
}
