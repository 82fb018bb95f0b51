package engine_test

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"waybill.dev/waybill/protocol/fault"
	"waybill.dev/waybill/protocol/subject"
	"waybill.dev/waybill/protocol/wire"
	"waybill.dev/waybill/services/dispatcher/engine"
)

const (
	escalatingJSON = `{"title":"t","actions":["accept"],"approversList":["ada"],"timeoutSec":600,"escalation":[{"afterSec":60,"approverGroupRefs":["leads"]},{"afterSec":120}]}`
	asking         = "run.started node.started@gate node.suspended@gate interrupt.requested@gate approval.requested@gate"
	level          = " waybill.approval.escalated@gate"
)

// woken lets time pass and wakes the run on an executor whose log accepts a number of appends; -1
// means all.
func (r *rig) woken(t *testing.T, defs engine.Definitions, ahead time.Duration, appends int) {
	t.Helper()
	r.ahead.Store(int64(ahead))
	_, frames := r.state(t)
	require.NoError(t, r.exec.Wake(t.Context(), theRun, frames[len(frames)-1].Head()))
	if appends >= 0 {
		d, err := r.log.Next(t.Context())
		require.NoError(t, err)
		r.log.SetRetryDelay(0)
		r.executorOn(&breaking{r.log, appends}, defs, nil).Execute(t.Context(), d)
	}
}

// A waiting approval escalates by the run's timer, once per level, whichever dispatcher dies. The
// timer is then set to the next instant.
func TestEscalate_ReachesEachLevelOnce(t *testing.T) {
	t.Parallel()
	defs := define(t, nodeJSON("gate", "core.approvalGate", escalatingJSON))
	r := newRig(t, defs, nil)
	r.create(t)
	r.next(t)
	require.WithinDuration(t, time.Now().Add(time.Minute), r.sleep[len(r.sleep)-1], 5*time.Second, "the first level")

	lead := answers(`{"action":"accept"}`, "key_1", "leads")
	_, err := r.exec.Resolve(t.Context(), "acme", "run_1", lead)
	require.Equal(t, fault.Forbidden, fault.CodeOf(err))
	r.woken(t, defs, 61*time.Second, 0)
	require.Equal(t, asking, r.types(t), "the dispatcher dies before it records the level")
	_, err = r.exec.Resolve(t.Context(), "acme", "run_1", lead)
	require.Equal(t, fault.Forbidden, fault.CodeOf(err), "a level that is due and not recorded has not started")
	r.next(t)
	require.Equal(t, asking+level, r.types(t))
	require.WithinDuration(t, time.Now().Add(2*time.Minute), r.sleep[len(r.sleep)-1], 5*time.Second, "the second")

	r.woken(t, defs, 61*time.Second, -1)
	r.next(t)
	require.Equal(t, asking+level, r.types(t), "the next session records it")
	r.woken(t, defs, 121*time.Second, 1)
	require.Equal(t, asking+level+level, r.types(t), "the dispatcher dies after it records the level")
	r.woken(t, defs, 122*time.Second, -1)
	r.next(t)
	require.Equal(t, asking+level+level, r.types(t))
	require.WithinDuration(t, time.Now().Add(10*time.Minute), r.sleep[len(r.sleep)-1], 5*time.Second, "the end")
	st, _ := r.state(t)
	require.Equal(t, 2, st.Snapshot().Interrupt.Escalation.Level)

	got, err := r.executor(defs, nil).Resolve(t.Context(), "acme", "run_1", lead)
	require.NoError(t, err)
	require.Equal(t, wire.StatusCompleted, got.Status)
	_, want, _ := r.eventsOf(t, theRun)
	slept := len(r.sleep)
	r.fork(t, wire.ForkReplay, 0)
	r.next(t)
	again, replayed, _ := r.eventsOf(t, theFork)
	require.Equal(t, wire.StatusCompleted, again.Status)
	require.Equal(t, render(want), render(replayed))
	require.Len(t, r.sleep, slept, "a replay waits for no level")
}

// If no dispatcher was running when the levels were due, all are recorded together; none once the
// question has ended.
func TestEscalate_AfterDowntimeRecordsAllDueLevels(t *testing.T) {
	t.Parallel()
	for ahead, want := range map[time.Duration]string{
		5 * time.Minute: asking + level + level,
		time.Hour:       asking + " interrupt.resolved@gate approval.received@gate node.failed@gate run.failed",
	} {
		defs := define(t, nodeJSON("gate", "core.approvalGate", escalatingJSON))
		r := newRig(t, defs, nil)
		r.create(t)
		r.next(t)
		r.woken(t, defs, ahead, -1)
		r.next(t)
		require.Equal(t, want, r.types(t))
	}
}

// A branch of an escalated question asks at the same level, and its time starts again. Earlier
// levels are not recorded again.
func TestEscalate_InABranch(t *testing.T) {
	t.Parallel()
	defs := define(t, nodeJSON("gate", "core.approvalGate", escalatingJSON))
	r := newRig(t, defs, nil)
	r.create(t)
	r.next(t)
	r.woken(t, defs, 61*time.Second, -1)
	r.next(t)
	r.fork(t, wire.ForkBranch, 6)
	r.next(t)
	st, got, _ := r.eventsOf(t, theFork)
	require.Equal(t, wire.StatusWaitingApproval, st.Status)
	require.Equal(t, 1, st.Latest("gate").Level())
	require.Equal(t, 1, strings.Count(strings.Join(render(got), "\n"), "waybill.approval.escalated"))
	due, ok := st.Due()
	require.True(t, ok)
	require.WithinDuration(t, time.Now().Add(2*time.Minute), due, 5*time.Second, "the second level, from the fork on")
}

// Votes and questions leave the run waiting and its timer set. The timer wakes the run although the
// log has moved on, and only once.
func TestWake_WakesARunThatGotVotesWhileItSlept(t *testing.T) {
	t.Parallel()
	for name, value := range map[string]string{
		"a vote":      `{"action":"accept"}`,
		"a question":  `{"action":"ask","question":"why?"}`,
		"an override": `{"action":"accept","override":true,"reason":"it burns"}`,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			defs := define(t, nodeJSON("gate", "core.approvalGate", `{"title":"t","actions":["accept","ask"],"requiredApprovals":2,"approverGroupRefs":["leads"],
				"override":{"requiredRole":"chief"},"timeoutSec":600,"escalation":[{"afterSec":60}]}`))
			r := newRig(t, defs, nil)
			r.create(t)
			r.next(t)
			_, frames := r.state(t)
			asleep := frames[len(frames)-1].Head()
			by := answers(value, "key_1", "leads")
			by.By.Roles = []string{"chief"}
			got, err := r.exec.Resolve(t.Context(), "acme", "run_1", by)
			require.NoError(t, err)
			require.Equal(t, wire.StatusWaitingApproval, got.Status)

			r.ahead.Store(int64(61 * time.Second))
			require.NoError(t, r.exec.Wake(t.Context(), theRun, asleep))
			_, woken := r.state(t)
			require.Equal(t, subject.Wake, woken[len(woken)-1].Kind)
			require.NoError(t, r.exec.Wake(t.Context(), theRun, asleep))
			_, again := r.state(t)
			require.Len(t, again, len(woken), "the run was woken already")
			r.next(t)
			require.True(t, strings.HasSuffix(r.types(t), level), r.types(t))
		})
	}
}
