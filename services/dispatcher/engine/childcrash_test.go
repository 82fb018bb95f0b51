package engine_test

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"waybill.dev/waybill/protocol/subject"
	"waybill.dev/waybill/protocol/wire"
	"waybill.dev/waybill/services/dispatcher/create"
)

// everyDeath kills a process at each of its appends in turn, before and after the log stored it,
// until a process survives.
func everyDeath(t *testing.T, scene func(t *testing.T, appends int, stores bool) (died bool)) {
	t.Helper()
	for _, stores := range []bool{false, true} {
		for n := 0; ; n++ {
			died := false
			t.Run(fmt.Sprintf("append %d, stored %v", n, stores), func(t *testing.T) { died = scene(t, n, stores) })
			if !died || t.Failed() {
				require.Positive(t, n, "nothing was appended")
				break
			}
		}
	}
}

func TestSubWorkflow_StartsOneChildDespiteCrashes(t *testing.T) {
	t.Parallel()
	everyDeath(t, func(t *testing.T, appends int, stores bool) bool {
		f := newFamily(t)
		f.defs.add(t, "child", `{"name":"result","type":"string","defaultValue":"done"}`, nodeJSON("n", "core.noop", "{}"))
		f.defs.add(t, "parent", ``, call(`{"workflowId":"child","outputMapping":{"outcome":"result"}}`))
		f.create(t, "parent", `{}`)
		first := f.process(appends, stores)
		f.drain(t, first)
		f.log.Expire()
		f.drain(t, f.live())
		require.Len(t, f.runs(), 2)
		require.Equal(t, "run.started node.started@call node.dispatched@call variable.changed@call node.completed@call run.completed", f.story(t, "run_p"))
		require.Equal(t, wire.StatusCompleted, f.state(t, f.runs()[1]).Status)
		return first.log.died()
	})
}

// One process dies when a grandchild starts to wait, another when it continues. Every run ends.
func TestSubWorkflow_WaitsAndContinuesDespiteCrashes(t *testing.T) {
	t.Parallel()
	everyDeath(t, func(t *testing.T, appends int, stores bool) bool {
		f := gated(t, "")
		first := f.process(appends, stores)
		f.drain(t, first)
		f.log.Expire()
		f.drain(t, f.live())
		for _, id := range f.runs() {
			require.Equal(t, wire.StatusWaitingApproval, f.state(t, id).Status, id)
		}
		leaf := f.runs()[2]
		f.answer(t, f.live(), leaf)
		second := f.process(appends, stores)
		f.drain(t, second)
		f.log.Expire()
		f.drain(t, f.live())
		for _, id := range f.runs() {
			require.Equal(t, wire.StatusCompleted, f.state(t, id).Status, id)
		}
		require.Len(t, f.runs(), 3)
		require.Equal(t, waitingStory, f.story(t, "run_p"))
		return first.log.died() || second.log.died()
	})
}

// A recorded cancellation reaches every child, whichever process dies.
func TestSubWorkflow_CancellingCascadesDespiteCrashes(t *testing.T) {
	t.Parallel()
	everyDeath(t, func(t *testing.T, appends int, stores bool) bool {
		f := gated(t, "")
		f.drain(t, f.live())
		first := f.process(appends, stores)
		st, _, err := first.Cancel(t.Context(), "acme", "run_p", "enough", "ann")
		if appends > 0 {
			require.NoError(t, err, "the cancellation is recorded")
			require.Contains(t, []wire.Status{wire.StatusCancelling, wire.StatusCancelled}, st.Status)
		}
		f.log.Expire()
		f.drain(t, f.live())
		want := wire.StatusCancelled
		if err != nil && appends == 0 && !stores {
			want = wire.StatusWaitingApproval
		}
		for i, id := range f.runs() {
			require.Equal(t, want, f.state(t, id).Status, id)
			if i > 0 && want == wire.StatusCancelled {
				require.Contains(t, f.last(t, id), wire.ReasonParentCancelled)
			}
		}
		return first.log.died()
	})
}

// The parent is cancelled before another process starts its child. The child does no work.
func TestSubWorkflow_AChildOfACancelledParentDoesNotBegin(t *testing.T) {
	t.Parallel()
	for stores, runs := range map[bool]int{false: 1, true: 2} {
		f := newFamily(t)
		f.defs.add(t, "child", ``, nodeJSON("n", "core.noop", "{}"))
		f.defs.add(t, "parent", ``, call(`{"workflowId":"child"}`))
		f.create(t, "parent", `{}`)
		f.drain(t, f.process(1, stores)) // appends node.started, and perhaps the child
		x := f.live()
		_, _, err := x.Cancel(t.Context(), "acme", "run_p", "", "ann")
		require.NoError(t, err)
		f.log.Expire()
		f.drain(t, x)
		require.Len(t, f.runs(), runs)
		require.Equal(t, "run.started node.started@call node.cancelled@call run.cancelled", f.story(t, "run_p"))
		if runs == 2 {
			require.Equal(t, "run.started run.cancelled", f.story(t, f.runs()[1]))
		}
	}
}

// A child that is created after its parent ended is cancelled by the dispatcher that executes it.
func TestSubWorkflow_AChildThatComesTooLateIsCancelled(t *testing.T) {
	t.Parallel()
	f := newFamily(t)
	f.defs.add(t, "child", ``, nodeJSON("n", "core.noop", "{}"))
	f.defs.add(t, "parent", ``, call(`{"workflowId":"child"}`))
	f.create(t, "parent", `{}`)
	slow := f.process(1, true)
	slow.log.before = func(kind subject.Kind, workflowID string) {
		if kind == subject.Start && workflowID == "child" {
			x := f.live()
			_, _, err := x.Cancel(t.Context(), "acme", "run_p", "", "ann")
			require.NoError(t, err)
			f.drain(t, x)
		}
	}
	f.drain(t, slow)
	f.drain(t, f.live()) // the child is delivered before the dead process's deliveries
	require.Equal(t, wire.StatusCancelled, f.state(t, "run_p").Status)
	require.Len(t, f.runs(), 2)
	require.Equal(t, "run.started run.cancelled", f.story(t, f.runs()[1]))
}

// A child may end before its parent has recorded its start.
func TestSubWorkflow_AChildMayEndBeforeItsStartIsRecorded(t *testing.T) {
	t.Parallel()
	f := newFamily(t)
	f.defs.add(t, "child", ``, nodeJSON("n", "core.noop", "{}"))
	f.defs.add(t, "parent", ``, call(`{"workflowId":"child"}`))
	f.create(t, "parent", `{}`)
	slow, quick, started := f.process(-1, false), f.live(), false
	slow.log.after = func(kind subject.Kind, workflowID string) {
		if kind == subject.Start && workflowID == "child" && !started {
			started = true
			f.drain(t, quick)
		}
	}
	f.drain(t, slow)
	f.drain(t, f.live())
	require.True(t, started)
	require.Equal(t, wholeStory, f.story(t, "run_p"))
	require.Len(t, f.runs(), 2)
}

// A node is retried with a new child if the child's error allows it.
func TestSubWorkflow_EachAttemptHasItsChild(t *testing.T) {
	t.Parallel()
	f := newFamily(t)
	f.defs.add(t, "child", ``, nodeJSON("gate", "core.approvalGate", approvalJSON))
	f.defs.add(t, "parent", ``, call(`{"workflowId":"child"}`))
	f.create(t, "parent", `{}`)
	x := f.live()
	f.drain(t, x)
	f.fails(t, f.runs()[1], &wire.NodeError{Code: "rate_limited", Message: "later", Retryable: true})
	f.drain(t, x)
	st := f.state(t, "run_p")
	require.Equal(t, wire.StatusFailed, st.Children[0].Status)
	f.ahead = time.Minute
	wakeLost(t, x, subject.Run{Tenant: "acme", RunID: "run_p"})
	f.drain(t, x)
	require.Len(t, f.runs(), 3)
	f.answer(t, x, f.runs()[2])
	f.drain(t, x)
	require.Equal(t, wire.StatusCompleted, f.state(t, "run_p").Status)
	require.Equal(t, 2, strings.Count(f.story(t, "run_p"), "node.dispatched"))
}

// Several processes execute many families concurrently, with repeated deliveries.
func TestSubWorkflow_ManyProcessesAtOnce(t *testing.T) {
	t.Parallel()
	f := newFamily(t)
	f.defs.add(t, "leaf", ``, nodeJSON("n", "core.noop", "{}"))
	f.defs.add(t, "middle", ``, nodeJSON("one", "core.subWorkflow", `{"workflowId":"leaf"}`), nodeJSON("two", "core.subWorkflow", `{"workflowId":"leaf"}`))
	f.defs.add(t, "parent", ``, nodeJSON("one", "core.subWorkflow", `{"workflowId":"middle"}`), nodeJSON("two", "core.subWorkflow", `{"workflowId":"middle"}`))
	const parents = 8
	for i := range parents {
		_, err := f.starter.Start(t.Context(), create.Request{
			Tenant:     "acme",
			WorkflowID: "parent",
			RunID:      fmt.Sprintf("run_%d", i),
		})
		require.NoError(t, err)
	}
	ctx, stop := context.WithCancel(t.Context())
	var wg sync.WaitGroup
	for range 4 {
		x := f.live()
		wg.Go(func() {
			for ctx.Err() == nil { // returned deliveries come back immediately
				d, err := f.log.Next(ctx)
				if err != nil {
					return
				}
				x.Execute(ctx, d)
			}
		})
	}
	require.Eventually(t, func() bool {
		f.log.Expire()
		for i := range parents {
			if !f.state(t, fmt.Sprintf("run_%d", i)).Status.Terminal() {
				return false
			}
		}
		return true
	}, 30*time.Second, 5*time.Millisecond)
	stop()
	wg.Wait()
	ids := f.runs()
	require.Len(t, ids, parents*7, "each parent has two children, each of them two")
	for _, id := range ids {
		require.Equal(t, wire.StatusCompleted, f.state(t, id).Status, id)
		require.Equal(t, 1, strings.Count(f.story(t, id), "run.completed"))
	}
}
