package engine_test

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"waybill.dev/waybill/internal/runlog"
	"waybill.dev/waybill/internal/runlog/memory"
	"waybill.dev/waybill/protocol/fault"
	"waybill.dev/waybill/protocol/frame"
	"waybill.dev/waybill/protocol/runstate"
	"waybill.dev/waybill/protocol/subject"
	"waybill.dev/waybill/protocol/wire"
	"waybill.dev/waybill/services/dispatcher/engine"
	"waybill.dev/waybill/services/dispatcher/machine"
	"waybill.dev/waybill/services/dispatcher/model"
	"waybill.dev/waybill/services/dispatcher/node"
)

// smallLog accepts frames up to a size.
type smallLog struct {
	*memory.Log
	most int
}

func (l smallLog) Append(ctx context.Context, f *frame.Frame, after uint64) (uint64, error) {
	if len(f.Body) > l.most {
		return 0, &runlog.TooLargeError{Size: int64(len(f.Body)), Limit: int64(l.most)}
	}
	return l.Log.Append(ctx, f, after)
}

// refusals are the errors for events that are too large: of the log, and of the redactor for a
// document that it cannot parse within its limits.
func refusals() map[string]*fault.Error {
	return map[string]*fault.Error{
		"log": nil, "redactor, of its size": fault.New(fault.PayloadTooLarge, "it is not taken"),
		"redactor, of its depth": fault.New(fault.ValidationError, "it is not taken").With("rule", "depth"),
	}
}

// A run whose next frame is rejected permanently fails. A redelivery would produce the same frame.
func TestExecute_FailsARunWhoseNextFrameIsRejected(t *testing.T) {
	t.Parallel()
	value, err := json.Marshal(strings.Repeat("word ", 2000))
	require.NoError(t, err)
	made := define(t, strings.Replace(nodeJSON("a", "core.identity", "{}"), `"inputs":{}`, `"inputs":{"output":{"type":"static","value":`+string(value)+`}}`, 1))
	for by, refusal := range refusals() {
		r := newRig(t, made, nil)
		if refusal == nil {
			r.exec = r.executorOn(smallLog{r.log, 8000}, made, nil)
		} else {
			r.red.most, r.red.refusal = 8000, refusal
		}
		r.create(t)
		r.next(t)
		st, _ := r.state(t)
		require.Equal(t, wire.StatusFailed, st.Status, by)
		require.Equal(t, "content_too_long", st.Error.Code, by)
		waiting, held := r.log.Backlog()
		require.Zero(t, waiting+held, by)
	}
}

// A redactor error about something else, such as the run's registration, is not permanent: the run
// is retried.
func TestExecute_RetriesAfterATemporaryRejection(t *testing.T) {
	t.Parallel()
	made := define(t, strings.Replace(nodeJSON("a", "core.identity", "{}"), `"inputs":{}`, `"inputs":{"output":{"type":"static","value":"a text that might be one"}}`, 1))
	r := newRig(t, made, nil)
	r.red.most, r.red.refusal = 1, fault.New(fault.ValidationError, "scope.registrations[0]: want what Register has answered")
	r.create(t)
	r.next(t)
	st, _ := r.state(t)
	require.False(t, st.Status.Terminal(), st.Status)
	r.red.most = 0
	r.next(t)
	st, _ = r.state(t)
	require.Equal(t, wire.StatusCompleted, st.Status)
}

// An answer is accepted even if the events that follow from it exceed the log's limit. The run then
// fails, instead of the caller retrying without end.
func TestResolve_AcceptsAnAnswerWhoseEventsExceedTheLimit(t *testing.T) {
	t.Parallel()
	large := `"inputs":{"output":{"type":"static","value":"` + strings.Repeat("word ", 2000) + `"}}`
	made := define(t, nodeJSON("gate", "core.approvalGate", `{"title":"t","actions":["accept"]}`)+","+
		strings.Replace(nodeJSON("next", "core.end", "{}"), `"inputs":{}`, large, 1), `{"id":"e","sourceNodeId":"gate","targetNodeId":"next"}`)
	r := newRig(t, made, nil)
	r.exec = r.executorOn(smallLog{r.log, 8000}, made, nil)
	r.create(t)
	r.next(t)
	got, err := r.exec.Resolve(t.Context(), "acme", "run_1", answers(`{"action":"accept"}`, "key_1"))
	require.NoError(t, err)
	require.Equal(t, wire.StatusRunning, got.Status)
	r.next(t)
	st, _ := r.state(t)
	require.Equal(t, "content_too_long", st.Error.Code)
}

// A child whose start frame is rejected permanently does not exist, however often its parent is
// delivered.
func TestSubWorkflow_FailsIfTheStartFrameIsTooLarge(t *testing.T) {
	t.Parallel()
	f := newFamily(t)
	f.defs.add(t, "leaf", `{"name":"w","type":"string"}`, nodeJSON("a", "core.noop", `{}`))
	f.defs.add(t, "parent", `{"name":"v","type":"string"}`, call(`{"workflowId":"leaf","inputMapping":{"w":"v"}}`))
	f.create(t, "parent", `{"v":"`+strings.Repeat("word ", 2000)+`"}`)
	x := engine.New(engine.Config{
		Limits:  machine.Limits{MaxNodeExecutions: 50, MaxDuration: time.Hour, MaxParallel: 4},
		AckWait: 3 * time.Minute,
	}, engine.Deps{
		Storage: engine.Storage{Log: f.log, Definitions: f.defs},
		Services: engine.Services{
			Redactor: &redactor{},
			Acceptor: noAcceptor{},
			Children: f.startsOn(smallLog{f.log, 8000}),
		},
		Rules: engine.Rules{Types: node.Builtin()},
		Timers: engine.Timers{
			Wait:   func(subject.Run, frame.Head, time.Time) {},
			Forget: func(string, string) {},
		},
		Telemetry: engine.Telemetry{Logger: slog.New(slog.DiscardHandler)},
		Clock:     f.now,
	})
	d, err := f.log.Next(t.Context())
	require.NoError(t, err)
	x.Execute(t.Context(), d)
	st := f.state(t, "run_p")
	require.Equal(t, wire.StatusFailed, st.Status)
	require.Equal(t, "content_too_long", st.Error.Code)
	require.Len(t, f.runs(), 1)
}

// An effect whose events are rejected permanently fails its node after one model call. A redelivery
// would call the model again. Events of other effects at the same time are recorded.
func TestExecute_FailsANodeWhoseEventsAreRejected(t *testing.T) {
	t.Parallel()
	large := strings.Repeat("word ", 2000)
	for by, refusal := range refusals() {
		synctest.Test(t, func(t *testing.T) {
			r := newRig(t, nil, nil)
			var log runlog.Log = smallLog{r.log, 8000}
			if refusal != nil {
				log, r.red.most, r.red.refusal = r.log, 8000, refusal
			}
			calls := map[string]int{}
			var mu sync.Mutex
			r.exec = r.executorOn(log, wide(t), models(func(ctx context.Context, task model.Task, j model.Journal) model.Result {
				id := task.Input.NodeID
				mu.Lock()
				calls[id]++
				mu.Unlock()
				time.Sleep(100 * time.Millisecond) //nolint:forbidigo // in a bubble
				d := chunk(id)
				if id == "n1" || id == "n2" {
					d.Payload = json.RawMessage(`{"nodeId":"` + id + `","chunk":"` + large + `"}`)
				}
				if err := j.Record(ctx, d); err != nil {
					return model.Result{Interrupted: fmt.Errorf("record: %w", err)}
				}
				return model.Result{Output: node.Output{Ports: map[string]json.RawMessage{"output": json.RawMessage(`1`)}}}
			}))
			r.create(t)
			r.next(t)
			st, frames := r.state(t)
			require.Equal(t, wire.StatusFailed, st.Status, by)
			require.Equal(t, map[string]int{"n0": 1, "n1": 1, "n2": 1, "n3": 1}, calls, by)
			for id, want := range map[string]runstate.NodeStatus{
				"n0": runstate.NodeCompleted, "n1": runstate.NodeFailed, "n2": runstate.NodeFailed, "n3": runstate.NodeCompleted,
			} {
				require.Equal(t, want, st.Nodes[id].Status, "%s %s", by, id)
			}
			require.Equal(t, "content_too_long", st.Nodes["n1"].Error.Code, by)
			chunks := 0
			for _, f := range frames {
				chunks += len(slices.DeleteFunc(slices.Clone(f.Types), func(t wire.EventType) bool { return t != wire.EventOutputChunk }))
			}
			require.Equal(t, 2, chunks, by)
			waiting, held := r.log.Backlog()
			require.Zero(t, waiting+held, by)
		})
	}
}

func TestExecute_FailsANodeWhoseEnvelopeIsRejected(t *testing.T) {
	t.Parallel()
	calls := 0
	r := newRig(t, nil, nil)
	r.acceptor = acceptor(func(context.Context, subject.Run, frame.Head, model.AcceptRequest) (engine.Accepted, error) {
		return engine.Accepted{}, fault.New(fault.PayloadTooLarge, "what the envelope causes is too large")
	})
	r.exec = r.executorOn(r.log, define(t, nodeJSON("n", "core.ai.callPrompt", "{}")), models(func(ctx context.Context, _ model.Task, j model.Journal) model.Result {
		calls++
		_, err := j.Accept(ctx, model.AcceptRequest{NodeID: "n"})
		return model.Result{Interrupted: err}
	}))
	r.create(t)
	r.next(t)
	st, _ := r.state(t)
	require.Equal(t, "content_too_long", st.Error.Code)
	require.Equal(t, 1, calls)
}

// A child whose outputs exceed the limit of its parent's log counts as failed for the parent.
// Otherwise the child's delivery could never end.
func TestSubWorkflow_FailsIfTheOutputsExceedTheParentsLimit(t *testing.T) {
	t.Parallel()
	f := newFamily(t)
	f.defs.add(t, "leaf", `{"name":"w","type":"string","defaultValue":"`+strings.Repeat("word ", 2000)+`"}`, nodeJSON("a", "core.noop", `{}`))
	f.defs.add(t, "parent", `{"name":"v","type":"string"}`, call(`{"workflowId":"leaf","waitForCompletion":true,"outputMapping":{"v":"w"}}`))
	f.create(t, "parent", `{}`)
	log := smallerFor{f.log, "parent", 8000}
	x := engine.New(engine.Config{
		Limits:  machine.Limits{MaxNodeExecutions: 50, MaxDuration: time.Hour, MaxParallel: 4},
		AckWait: 3 * time.Minute,
	}, engine.Deps{
		Storage: engine.Storage{Log: log, Definitions: f.defs},
		Services: engine.Services{
			Redactor: &redactor{},
			Acceptor: noAcceptor{},
			Children: f.startsOn(f.log),
		},
		Rules: engine.Rules{Types: node.Builtin()},
		Timers: engine.Timers{
			Wait:   func(subject.Run, frame.Head, time.Time) {},
			Forget: func(string, string) {},
		},
		Telemetry: engine.Telemetry{Logger: slog.New(slog.DiscardHandler)},
		Clock:     f.now,
	})
	for handed := 0; ; handed++ {
		require.Less(t, handed, 10, "delivered without end")
		if waiting, _ := f.log.Backlog(); waiting == 0 {
			break
		}
		d, err := f.log.Next(t.Context())
		require.NoError(t, err)
		x.Execute(t.Context(), d)
	}
	require.Equal(t, wire.StatusCompleted, f.state(t, f.runs()[1]).Status)
	st := f.state(t, "run_p")
	require.Equal(t, wire.StatusFailed, st.Status)
	require.Equal(t, "child_failed", st.Error.Code)
	require.Equal(t, "content_too_long", st.Error.Details["childErrorCode"])
}

// smallerFor accepts frames of one workflow's runs up to a size.
type smallerFor struct {
	*memory.Log
	workflowID string
	most       int
}

func (l smallerFor) Append(ctx context.Context, f *frame.Frame, after uint64) (uint64, error) {
	if f.Run.WorkflowID == l.workflowID && len(f.Body) > l.most {
		return 0, &runlog.TooLargeError{Size: int64(len(f.Body)), Limit: int64(l.most)}
	}
	return l.Log.Append(ctx, f, after)
}

// meddled is a small log to which another writer appends when the first frame is too large: the
// size is checked before the position.
type meddled struct {
	smallLog
	once   *sync.Once
	meddle func()
}

func (l meddled) Append(ctx context.Context, f *frame.Frame, after uint64) (uint64, error) {
	if len(f.Body) > l.most {
		l.once.Do(l.meddle)
	}
	return l.smallLog.Append(ctx, f, after)
}

// A session that drops oversized events continues from the log only if the run goes on there:
// nothing follows the end of a run, or its pause (OpenWOP host contract §3.1).
func TestExecute_AppendsNothingAfterAConcurrentEndOrPause(t *testing.T) {
	t.Parallel()
	large := strings.Repeat("word ", 2000)
	said := func(ctx context.Context, task model.Task, j model.Journal) model.Result {
		time.Sleep(100 * time.Millisecond) //nolint:forbidigo // in a bubble
		d := chunk(task.Input.NodeID)
		if task.Input.NodeID == "n1" {
			d.Payload = json.RawMessage(`{"nodeId":"n1","chunk":"` + large + `"}`)
		}
		if err := j.Record(ctx, d); err != nil {
			return model.Result{Interrupted: fmt.Errorf("record: %w", err)}
		}
		return model.Result{}
	}
	joined := nodeJSON("ask", "core.ai.callPrompt", "{}") + "," + strings.Replace(nodeJSON("join", "core.identity", "{}"), `"inputs":{}`, `"inputs":{"output":{"type":"static","value":"`+large+`"}}`, 1)
	for name, defs := range map[string]oneDefinition{
		"the events of an effect": wide(t),
		"what comes next":         define(t, joined, `{"id":"e","sourceNodeId":"ask","targetNodeId":"join"}`),
	} {
		for last, meddle := range map[string]func(*engine.Executor) error{
			"run.cancelled": func(x *engine.Executor) error {
				_, _, err := x.Cancel(context.Background(), "acme", "run_1", "", "key")
				return err
			},
			"run.paused": func(x *engine.Executor) error {
				_, err := x.Pause(context.Background(), "acme", "run_1", wire.DrainNot, "", "key")
				return err
			},
		} {
			synctest.Test(t, func(t *testing.T) {
				r := newRig(t, nil, nil)
				other := r.executorOn(r.log, defs, nil)
				r.exec = r.executorOn(meddled{
					smallLog{r.log, 8000},
					&sync.Once{},
					func() { require.NoError(t, meddle(other)) },
				}, defs, models(said))
				r.create(t)
				r.next(t)
				require.Regexp(t, ` `+last+`$`, r.types(t), name)
			})
		}
	}
}
