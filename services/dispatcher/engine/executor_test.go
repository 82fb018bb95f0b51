package engine_test

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"waybill.dev/waybill/internal/runlog"
	"waybill.dev/waybill/internal/runlog/memory"
	"waybill.dev/waybill/protocol/fault"
	"waybill.dev/waybill/protocol/frame"
	"waybill.dev/waybill/protocol/interrupt"
	"waybill.dev/waybill/protocol/subject"
	"waybill.dev/waybill/protocol/wire"
	"waybill.dev/waybill/services/dispatcher/engine"
	"waybill.dev/waybill/services/dispatcher/machine"
	"waybill.dev/waybill/services/dispatcher/model"
	"waybill.dev/waybill/services/dispatcher/node"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func TestExecute_ARunOfPureNodesIsTwoFrames(t *testing.T) {
	t.Parallel()
	r := newRig(t, define(t, nodeJSON("a", "core.noop", "{}")+","+nodeJSON("b", "core.noop", "{}")), nil)
	r.create(t)
	r.next(t)
	st, frames := r.state(t)
	require.Equal(t, wire.StatusCompleted, st.Status)
	require.Len(t, frames, 2)
	require.Equal(t, subject.End, frames[1].Kind)
	require.Zero(t, r.red.calls.Load(), "ids and numbers contain no secret")
}

func TestExecute_NothingIsAppendedWithoutTheRedactor(t *testing.T) {
	t.Parallel()
	r := newRig(t, define(t, nodeJSON("a", "core.fail", `{"message":"a long message"}`)), nil)
	r.create(t)
	r.red.down.Store(true)
	r.next(t)
	_, frames := r.state(t)
	require.Len(t, frames, 1)
	r.red.down.Store(false)
	r.next(t) // delivered again
	st, _ := r.state(t)
	require.Equal(t, wire.StatusFailed, st.Status)
}

func TestExecute_GoesOnFromWhatTheRedactorLeft(t *testing.T) {
	t.Parallel()
	const secret = "hunter2-hunter2"
	answer := func(_ context.Context, task model.Task, _ model.Journal) model.Result {
		return model.Result{Output: node.Output{Ports: map[string]json.RawMessage{"output": json.RawMessage(`"` + secret + `"`)}}}
	}
	r := newRig(t, define(t, nodeJSON("a", "core.ai.callPrompt", "{}")), models(answer))
	r.red.secret = secret
	r.create(t)
	r.next(t)
	st, frames := r.state(t)
	require.Equal(t, wire.StatusCompleted, st.Status)
	require.JSONEq(t, `"[REDACTED:s]"`, string(st.Nodes["a"].Outputs["output"]))
	for _, f := range frames {
		require.NotContains(t, string(f.Body), secret)
	}
}

// A secret of digits may be a number, in an event that has no other long value.
func TestExecute_SecretsInNumbersAreNotAppended(t *testing.T) {
	t.Parallel()
	const secret = "4929123456789012"
	answer := func(context.Context, model.Task, model.Journal) model.Result {
		return model.Result{Output: node.Output{Ports: map[string]json.RawMessage{"output": json.RawMessage(secret)}}}
	}
	r := newRig(t, define(t, nodeJSON("a", "core.ai.callPrompt", "{}")), models(answer))
	r.red.secret, r.red.mark = secret, `"[REDACTED:s]"`
	r.create(t)
	r.next(t)
	_, frames := r.state(t)
	for _, f := range frames {
		require.NotContains(t, string(f.Body), secret)
	}
}

func TestExecute_EffectsAppendThroughTheOneWriter(t *testing.T) {
	t.Parallel()
	talk := func(ctx context.Context, task model.Task, j model.Journal) model.Result {
		for i := range 5 {
			p := fmt.Sprintf(`{"nodeId":%q,"runId":"run_1","chunk":"%d","isLast":false}`, task.Input.NodeID, i)
			err := j.Record(ctx, wire.Draft{Type: wire.EventOutputChunk, NodeID: task.Input.NodeID, Payload: json.RawMessage(p)})
			if err != nil {
				return model.Result{Interrupted: err}
			}
		}
		return model.Result{Output: node.Output{}}
	}
	r := newRig(t, define(t, nodeJSON("a", "core.ai.callPrompt", "{}")+","+nodeJSON("b", "core.ai.callPrompt", "{}")), models(talk))
	r.create(t)
	r.next(t)
	st, _ := r.state(t)
	require.Equal(t, wire.StatusCompleted, st.Status)
	require.Equal(t, 1+2+10+2+1, st.Next)
}

// A second dispatcher took the run over while the first was executing an effect. The first must not
// append another event, and must not complete its effect.
func TestExecute_AStaleExecutorIsFenced(t *testing.T) {
	t.Parallel()
	started, stolen := make(chan struct{}), make(chan struct{})
	var wrote error
	slow := func(ctx context.Context, _ model.Task, j model.Journal) model.Result {
		close(started)
		<-stolen
		wrote = j.Record(ctx, wire.Draft{Type: wire.EventLogAppended})
		return model.Result{Interrupted: wrote}
	}
	r := newRig(t, define(t, nodeJSON("a", "core.ai.callPrompt", "{}")), models(slow))
	r.create(t)
	done := make(chan struct{})
	go func() { defer close(done); r.next(t) }()
	<-started
	_, frames := r.state(t)
	last := frames[len(frames)-1]
	thief := frame.New(theRun, subject.End, last.Head(), []wire.Event{wire.Draft{Type: wire.EventRunCancelled}.Place("run_1", last.Head().Next, time.Now())})
	_, err := r.log.Append(t.Context(), thief, last.Pos)
	require.NoError(t, err)
	close(stolen)
	<-done
	require.ErrorIs(t, wrote, runlog.ErrConflict)
	st, _ := r.state(t)
	require.Equal(t, wire.StatusCancelled, st.Status)
}

// hanging is a run whose model call does not return; done is closed with its session.
func hanging(t *testing.T) (r *rig, done <-chan struct{}) {
	t.Helper()
	started := make(chan struct{})
	hang := func(ctx context.Context, _ model.Task, _ model.Journal) model.Result {
		close(started)
		<-ctx.Done()
		return model.Result{Interrupted: ctx.Err()}
	}
	r = newRig(t, define(t, nodeJSON("a", "core.ai.callPrompt", "{}")), models(hang))
	r.create(t)
	ended := make(chan struct{})
	go func() { defer close(ended); r.next(t) }()
	<-started
	return r, ended
}

func TestCancel_AbortsARunningEffectAndIsFinal(t *testing.T) {
	t.Parallel()
	r, done := hanging(t)
	st, already, err := r.exec.Cancel(t.Context(), "acme", "run_1", "stop", "key")
	require.NoError(t, err)
	require.False(t, already)
	require.Equal(t, wire.StatusCancelled, st.Status)
	<-done // the effect was cancelled

	st, already, err = r.exec.Cancel(t.Context(), "acme", "run_1", "again", "key")
	require.NoError(t, err)
	require.True(t, already)
	require.Equal(t, wire.StatusCancelled, st.Status)
}

func TestCancel_OfAPendingRunStillStartsAtSequenceZero(t *testing.T) {
	t.Parallel()
	r := newRig(t, define(t, nodeJSON("a", "core.noop", "{}")), nil)
	r.create(t)
	_, _, err := r.exec.Cancel(t.Context(), "acme", "run_1", "", "key")
	require.NoError(t, err)
	r.next(t) // the queue still delivers the start frame
	_, frames := r.state(t)
	require.Len(t, frames, 2)
	require.Equal(t, []wire.EventType{wire.EventRunStarted, wire.EventRunCancelled}, frames[1].Types)
}

func TestCancel_AForeignTenantSeesNoRun(t *testing.T) {
	t.Parallel()
	r := newRig(t, define(t, nodeJSON("a", "core.noop", "{}")), nil)
	r.create(t)
	_, _, err := r.exec.Cancel(t.Context(), "other", "run_1", "", "key")
	require.Equal(t, fault.RunNotFound, fault.CodeOf(err))
}

func TestExecute_ASleepingRunHoldsNoExecutorAndWakes(t *testing.T) {
	t.Parallel()
	r := newRig(t, define(t, nodeJSON("w", "core.delay", `{"ms":30}`)), nil)
	r.create(t)
	r.next(t)
	st, frames := r.state(t)
	require.Equal(t, wire.StatusRunning, st.Status)
	require.Len(t, r.sleep, 1, "its timer is registered")
	require.Eventually(t, func() bool { return time.Now().After(r.sleep[0]) }, 30*time.Second, time.Millisecond)
	head := frames[len(frames)-1].Head()
	require.NoError(t, r.exec.Wake(t.Context(), theRun, head))
	require.NoError(t, r.exec.Wake(t.Context(), theRun, head), "awake already")
	r.next(t)
	st, _ = r.state(t)
	require.Equal(t, wire.StatusCompleted, st.Status)
}

// A timer leaves the memory when its run goes on, for whatever reason, and not when it would be due.
func TestTimers_OnlyOfWaitingRuns(t *testing.T) {
	t.Parallel()
	asked := nodeJSON("gate", "core.approvalGate", `{"title":"t","actions":["accept","reject"],"timeoutSec":3000}`)
	for name, tc := range map[string]struct {
		nodes string
		do    func(ctx context.Context, r *rig) error
		// executed: a session executes the run afterwards. again: the run then waits for its timer again.
		executed, again bool
	}{
		"answered": {nodes: asked, do: func(ctx context.Context, r *rig) error {
			_, err := r.exec.Resolve(ctx, "acme", "run_1", engine.Answer{NodeID: "gate", Answer: interrupt.Answer{Value: json.RawMessage(`{"action":"accept"}`)}})
			return err
		}},
		"answered, with work to do": {nodes: asked + "," + nodeJSON("w", "core.delay", `{"ms":60000}`), executed: true, again: true, do: func(ctx context.Context, r *rig) error {
			_, err := r.exec.Resolve(ctx, "acme", "run_1", engine.Answer{NodeID: "gate", Answer: interrupt.Answer{Value: json.RawMessage(`{"action":"accept"}`)}})
			return err
		}},
		"cancelled": {nodes: asked, do: func(ctx context.Context, r *rig) error {
			_, _, err := r.exec.Cancel(ctx, "acme", "run_1", "", "key")
			return err
		}},
		"paused": {nodes: nodeJSON("w", "core.delay", `{"ms":60000}`), do: func(ctx context.Context, r *rig) error {
			_, err := r.exec.Pause(ctx, "acme", "run_1", "", "", "ann")
			return err
		}},
		"ended by its timer": {nodes: nodeJSON("w", "core.delay", `{"ms":60000}`), executed: true, do: func(ctx context.Context, r *rig) error {
			r.ahead.Store(int64(time.Hour))
			frames := r.log.Frames()
			return r.exec.Wake(ctx, theRun, frames[len(frames)-1].Head())
		}},
		"woken too early": {nodes: asked, executed: true, again: true, do: func(ctx context.Context, r *rig) error {
			frames := r.log.Frames()
			return r.exec.Wake(ctx, theRun, frames[len(frames)-1].Head())
		}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := newRig(t, define(t, tc.nodes), nil)
			r.create(t)
			r.next(t)
			require.True(t, r.timers["acme/run_1"])
			require.NoError(t, tc.do(t.Context(), r))
			if tc.executed {
				r.next(t)
			}
			require.Equal(t, tc.again, r.timers["acme/run_1"])
		})
	}
}

// wakeLost wakes a run and reports whether it needed that. Its timer was due after its last frame.
func wakeLost(t *testing.T, x interface {
	WakeLost(ctx context.Context, r subject.Run, due time.Time) (woken, elsewhere bool, err error)
}, r subject.Run, msg ...any,
) bool {
	t.Helper()
	woken, _, err := x.WakeLost(t.Context(), r, time.Now().Add(time.Hour))
	require.NoError(t, err, msg...)
	return woken
}

// A read model that lags lists timers of runs that go on. They are not woken.
func TestWakeLost_LeavesRunsAloneThatGoOn(t *testing.T) {
	t.Parallel()
	delay := nodeJSON("w", "core.delay", `{"ms":60000}`)
	defs := define(t, delay+","+nodeJSON("a", "core.ai.callPrompt", "{}"), `{"id":"e","sourceNodeId":"w","targetNodeId":"a"}`)
	for name, alive := range map[string]bool{"its process is alive": true, "its process is gone": false} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := newRig(t, nil, nil)
			r.alive = true
			calls, goOn := make(chan struct{}), make(chan struct{})
			r.defs, r.models = defs, models(func(context.Context, model.Task, model.Journal) model.Result {
				close(calls)
				<-goOn
				return model.Result{Output: node.Output{}}
			})
			r.exec = r.executor(r.defs, r.models)
			r.create(t)
			r.next(t)
			st, _ := r.state(t)
			due := st.Nodes["w"].Due()
			other := r.executor(r.defs, r.models)
			r.ahead.Store(int64(61 * time.Second))
			require.NoError(t, r.exec.Wake(t.Context(), theRun, lastFrame(t, r).Head()))
			d, err := r.log.Next(t.Context())
			require.NoError(t, err)
			done := make(chan struct{})
			go func() { defer close(done); r.exec.Execute(t.Context(), d) }()
			<-calls
			if !alive {
				r.dead.Store(r.exec.Process(), true)
			}
			for _, x := range []*engine.Executor{r.exec, other} {
				woken, _, err := x.WakeLost(t.Context(), theRun, due)
				require.NoError(t, err)
				require.Equal(t, !alive && x == other, woken)
			}
			close(goOn)
			<-done
		})
	}
}

// A run whose timer was due, and that waits for the next one, is not woken because the read model
// still lists the first.
func TestWakeLost_LeavesARunAloneThatWaitsForItsNextTimer(t *testing.T) {
	t.Parallel()
	r := newRig(t, define(t,
		nodeJSON("v", "core.delay", `{"ms":1}`)+","+nodeJSON("w", "core.delay", `{"ms":60000}`),
		`{"id":"e","sourceNodeId":"v","targetNodeId":"w"}`), nil)
	r.create(t)
	r.next(t)
	first := lastFrame(t, r)
	due := first.Stored.Add(-time.Millisecond)
	lost := func() bool {
		woken, _, err := r.exec.WakeLost(t.Context(), theRun, due)
		require.NoError(t, err)
		return woken
	}
	require.False(t, lost())
	r.ahead.Store(int64(3 * time.Second))
	require.True(t, lost(), "a read model does not lag for so long")
}

// A woken run that waits in the queue is left there, whatever the other runs do. One that is not in the
// queue was put to sleep again by a process that died.
func TestWakeLost_WakesAWokenRunAgainUnlessItIsQueued(t *testing.T) {
	t.Parallel()
	for queued, patience := range map[bool]time.Duration{false: 3 * time.Second, true: 10 * time.Minute} {
		r := newRig(t, define(t, nodeJSON("w", "core.delay", `{"ms":60000}`)), nil)
		var asked uint64
		r.queued = func(run subject.Run, pos uint64) bool {
			asked = pos
			return queued && run == theRun
		}
		r.exec = r.executor(r.defs, nil)
		r.create(t)
		r.next(t)
		require.NoError(t, r.exec.Wake(t.Context(), theRun, lastFrame(t, r).Head()))
		for _, age := range []time.Duration{time.Second, patience - time.Second} {
			r.ahead.Store(int64(age))
			woken, elsewhere, err := r.exec.WakeLost(t.Context(), theRun, time.Now())
			require.NoError(t, err)
			require.False(t, woken)
			require.Equal(t, age < 5*time.Second, elsewhere, "woken a moment ago")
		}
		r.ahead.Store(int64(patience + time.Second))
		require.True(t, wakeLost(t, r.exec, theRun))
		require.Equal(t, lastFrame(t, r).Pos-1, asked)
	}
}

func TestWakeLost_LeavesQueuedAndEndedRunsAlone(t *testing.T) {
	t.Parallel()
	r := newRig(t, define(t, nodeJSON("a", "core.noop", "{}")), nil)
	r.create(t)
	require.False(t, wakeLost(t, r.exec, theRun))
	r.next(t)
	require.False(t, wakeLost(t, r.exec, theRun))
	_, frames := r.state(t)
	require.Len(t, frames, 2, "no wake frame was appended")
}

// A run woken too early, by a lagging index or a fast clock, waits again after its wake frame. The
// dispatcher that has its timer may die, too.
func TestWakeLost_WakesARunAgainWhoseWakeFrameNobodyHas(t *testing.T) {
	t.Parallel()
	r := newRig(t, define(t, nodeJSON("w", "core.delay", `{"ms":60000}`)), nil)
	r.create(t)
	r.next(t)
	require.True(t, wakeLost(t, r.exec, theRun))
	_, frames := r.state(t)
	require.Len(t, frames, 3)
	require.False(t, wakeLost(t, r.exec, theRun))
	_, frames = r.state(t)
	require.Len(t, frames, 3, "it has just been woken")
	r.next(t) // finds it waiting, and dies

	r.ahead.Store(int64(10 * lease))
	require.True(t, wakeLost(t, r.exec, theRun))
	_, frames = r.state(t)
	require.Len(t, frames, 4)
	require.Equal(t, subject.Wake, frames[3].Kind)
}

// A dispatcher without an extension for AckWait does not end its delivery: the queue may have
// delivered the run to another one.
func TestExecute_ASilentHolderDoesNotEndTheDelivery(t *testing.T) {
	t.Parallel()
	for silence, held := range map[time.Duration]int{0: 0, time.Minute: 1} {
		log, now := memory.New(), time.Now()
		x := engine.New(engine.Config{
			Limits: machine.Limits{MaxNodeExecutions: 10, MaxDuration: 24 * time.Hour, MaxParallel: 4}, AckWait: 3 * time.Second,
		}, engine.Deps{
			Storage: engine.Storage{
				Log:         log,
				Definitions: define(t, nodeJSON("w", "core.delay", `{"ms":86400}`)),
			},
			Services:  engine.Services{Redactor: &redactor{}},
			Rules:     engine.Rules{Types: node.Builtin()},
			Timers:    engine.Timers{Wait: func(subject.Run, frame.Head, time.Time) {}},
			Telemetry: engine.Telemetry{Logger: slog.New(slog.DiscardHandler)},
			Clock:     func() time.Time { now = now.Add(silence); return now },
		})
		r := &rig{log: log, exec: x}
		r.create(t)
		r.next(t)
		_, got := log.Backlog()
		require.Equal(t, held, got, silence)
	}
}

func TestExecute_APanicFailsTheNodeAndNothingElse(t *testing.T) {
	t.Parallel()
	boom := func(context.Context, model.Task, model.Journal) model.Result { panic("boom") }
	r := newRig(t, define(t, nodeJSON("a", "core.ai.callPrompt", "{}")), models(boom))
	r.create(t)
	r.next(t)
	st, _ := r.state(t)
	require.Equal(t, wire.StatusFailed, st.Status)
	require.Equal(t, string(fault.InternalError), st.Error.Code)
	require.NotContains(t, st.Error.Message, "boom")
}

func TestExecute_ADuplicateHandOutDoesNothingTwice(t *testing.T) {
	t.Parallel()
	var asked atomic.Int32
	once := func(context.Context, model.Task, model.Journal) model.Result {
		asked.Add(1)
		return model.Result{}
	}
	r := newRig(t, define(t, nodeJSON("a", "core.ai.callPrompt", "{}")), models(once))
	r.create(t)
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
	defer cancel()
	d, err := r.log.Next(ctx)
	require.NoError(t, err)
	r.exec.Execute(t.Context(), d)
	// the same frame again, not marked as redelivered
	r.exec.Execute(t.Context(), again{d.Frame()})
	require.Equal(t, int32(1), asked.Load())
	st, _ := r.state(t)
	require.Equal(t, wire.StatusCompleted, st.Status)
}

// again delivers a frame that was delivered before.
