package machine_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"waybill.dev/waybill/protocol/runstate"
	"waybill.dev/waybill/protocol/wire"
	"waybill.dev/waybill/services/dispatcher/machine"
)

// spawning returns a machine whose node "call" starts a child.
func spawning(t *testing.T, rec *wire.RunRecord, config string) (*machine.Machine, machine.Spawn) {
	t.Helper()
	m := machine.New(graph{nodes: []string{"call:core.subWorkflow:" + config}}.plan(t), limits, runstate.New(rec))
	effects := m.Advance(at)
	require.Len(t, effects, 1)
	require.NotNil(t, effects[0].Spawn)
	return m, *effects[0].Spawn
}

const mapped = `{"workflowId":"child","inputMapping":{"theirs":"mine"},"outputMapping":{"result":"v"}}`

// A child has the trust of its node's inputs, and the node's outputs have that of the child
// (OpenWOP envelope contract §12).
func TestSpawn_TrustGoesInAndOut(t *testing.T) {
	t.Parallel()
	rec := record()
	rec.Defaults = map[string]json.RawMessage{"mine": json.RawMessage(`1`)}
	m, s := spawning(t, rec, mapped)
	require.NotEqual(t, wire.Untrusted, s.Trust)
	require.JSONEq(t, `1`, string(s.Inputs["theirs"]))
	m.RecordDispatch(at, "call", s)
	require.True(t, m.ApplyReport(at, "call", machine.Report{
		RunID:      s.RunID,
		WorkflowID: "child",
		Status:     wire.StatusCompleted,
		Variables:  map[string]json.RawMessage{"v": json.RawMessage(`2`)},
		Tainted:    map[string]bool{"v": true},
	}))
	require.True(t, m.State().Tainted["result"])
	require.Equal(t, wire.Untrusted, m.State().Nodes["call"].Trust)

	rec = record()
	rec.TrustBoundary, rec.Inputs = wire.Untrusted, map[string]json.RawMessage{"mine": json.RawMessage(`1`)}
	_, s = spawning(t, rec, mapped)
	require.Equal(t, wire.Untrusted, s.Trust)
}

// A report counts only if it is from the child that the node waits for, and only once.
func TestApplyReport_AcceptsReportsOfTheNodesChildOnly(t *testing.T) {
	t.Parallel()
	m, s := spawning(t, record(), `{"workflowId":"child"}`)
	done := machine.Report{RunID: s.RunID, WorkflowID: "child", Status: wire.StatusCompleted}
	stranger := done
	stranger.RunID = "run_other"
	require.False(t, m.ApplyReport(at, "call", stranger))
	require.False(t, m.ApplyReport(at, "nobody", done))
	require.True(t, m.ApplyReport(at, "call", done), "also before the start of the child is recorded")
	require.False(t, m.ApplyReport(at, "call", done))
	m.RecordDispatch(at, "call", s)
	m.Advance(at)
	require.Equal(t, "run.started node.started@call node.dispatched@call node.completed@call run.completed", strings.Join(names(m), " "))
}

// If a child waits twice, the parent records both waits.
func TestApplyReport_RecordsEachWait(t *testing.T) {
	t.Parallel()
	m, s := spawning(t, record(), `{"workflowId":"child"}`)
	m.RecordDispatch(at, "call", s)
	waits := func(id string) bool {
		return m.ApplyReport(at, "call", machine.Report{
			RunID:      s.RunID,
			WorkflowID: "child",
			Status:     wire.StatusWaitingApproval,
			Wait:       &runstate.Wait{NodeID: "gate", InterruptID: id, Kind: "approval"},
		})
	}
	require.True(t, waits("one"))
	require.False(t, waits("one"), "the same wait again")
	require.Equal(t, wire.StatusWaitingApproval, m.State().Status)
	require.True(t, waits("two"))
	require.Equal(t, "run.started node.started@call node.dispatched@call node.suspended@call node.resumed@call node.suspended@call", strings.Join(names(m), " "))
}

// The id of a child is derived from values in the log, and is unique per child.
func TestChildID_IsOfParentNodeAndNumber(t *testing.T) {
	t.Parallel()
	seen := map[string]bool{}
	for _, rec := range []*wire.RunRecord{
		{RunID: "a", Owner: wire.Owner{Tenant: "t"}},
		{RunID: "b", Owner: wire.Owner{Tenant: "t"}},
		{RunID: "a", Owner: wire.Owner{Tenant: "u"}},
	} {
		for _, id := range []string{"n", "m"} {
			for nth := range 3 {
				child := machine.ChildID(rec, id, nth)
				require.Equal(t, child, machine.ChildID(rec, id, nth))
				require.Regexp(t, `^run_[0-9a-z]{26}$`, child)
				require.False(t, seen[child])
				seen[child] = true
			}
		}
	}
}

// A fork starts a child of its own, although its log contains that of the source.
func TestExpected_OfAForkIsItsOwn(t *testing.T) {
	t.Parallel()
	m, s := spawning(t, record(), `{"workflowId":"child"}`)
	m.RecordDispatch(at, "call", s)
	own := record()
	own.RunID = "run_fork"
	fork := runstate.New(own)
	events, _ := m.Pending()
	for _, e := range events {
		fork.Apply(e)
	}
	f := machine.New(graph{nodes: []string{`call:core.subWorkflow:{"workflowId":"child"}`}}.plan(t), limits, fork)
	effects := f.Advance(at)
	require.Len(t, effects, 1)
	require.Equal(t, machine.ChildID(own, "call", 0), effects[0].Spawn.RunID)
	f.RecordDispatch(at, "call", *effects[0].Spawn)
	require.Equal(t, effects[0].Spawn.RunID, f.State().Nodes["call"].Child.RunID)
	require.True(t, f.ApplyReport(at, "call", machine.Report{
		RunID:      effects[0].Spawn.RunID,
		WorkflowID: "child",
		Status:     wire.StatusCompleted,
	}))
}
