package interrupt_test

import (
	"encoding/json"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"waybill.dev/waybill/protocol/fault"
	"waybill.dev/waybill/protocol/interrupt"
	"waybill.dev/waybill/protocol/wire"
)

const escalating = `{"title":"T","actions":["accept"],"approversList":["ada"],"timeoutSec":60,"escalation":[
	{"afterSec":1.5,"approverGroupRefs":["leads"]},{"afterSec":20},{"afterSec":30,"approversList":["eve"],"approverRoleRefs":["chief"]}]}`

// reach moves an interrupt to its next level, as a run does.
func reach(t *testing.T, p *interrupt.Pending, at time.Time) wire.Draft {
	t.Helper()
	e, ok := p.Escalate(at)
	require.True(t, ok)
	var said struct{ Level int }
	require.NoError(t, json.Unmarshal(e.Payload, &said))
	p.SetLevel(said.Level, wire.FormatTime(at))
	return e
}

// Each level adds approvers and sets the time of the next.
func TestEscalate_AddsApprovers(t *testing.T) {
	t.Parallel()
	p := gate(t, escalating)
	lead, boss := interrupt.Responder{Principal: "k1", Groups: []string{"leads"}}, interrupt.Responder{Principal: "k2", Roles: []string{"chief"}}
	may := func(who interrupt.Responder, voter string) bool {
		a := by(who, `{"action":"accept"}`)
		if voter != "" {
			a.Value = json.RawMessage(`{"action":"accept","voter":"` + voter + `"}`)
		}
		a.At = now.Add(31 * time.Second)
		_, err := interrupt.Decide(p, a)
		if err != nil {
			require.Equal(t, fault.Forbidden, fault.CodeOf(err))
		}
		return err == nil
	}
	for i, want := range []struct {
		due             int64
		lead, boss, eve bool
		payload         string
	}{
		{due: 1500},
		{20_000, true, false, false, `{"nodeId":"gate","interruptId":"` + p.InterruptID + `","level":1,"approverGroupRefs":["leads"]}`},
		{30_000, true, false, false, `{"nodeId":"gate","interruptId":"` + p.InterruptID + `","level":2}`},
		{60_000, true, true, true, `{"nodeId":"gate","interruptId":"` + p.InterruptID + `","level":3,"approversList":["eve"],"approverRoleRefs":["chief"]}`},
	} {
		if i > 0 {
			e := reach(t, p, now.Add(time.Duration(i)*time.Second))
			require.Equal(t, wire.EventApprovalEscalated, e.Type)
			require.Equal(t, "gate", e.NodeID)
			require.JSONEq(t, want.payload, string(e.Payload))
			require.Equal(t, &interrupt.Escalation{Level: i, At: wire.FormatTime(now.Add(time.Duration(i) * time.Second))}, p.Escalated)
		}
		require.Equal(t, want.due, p.DueMs(), "level %d", i)
		require.True(t, may(key, "ada"), "level %d", i)
		require.Equal(t, want.lead, may(lead, ""), "level %d", i)
		require.Equal(t, want.boss, may(boss, ""), "level %d", i)
		require.Equal(t, want.eve, may(key, "eve"), "level %d", i)
	}
	_, ok := p.Escalate(now.Add(40 * time.Second))
	require.False(t, ok, "there is no further level")
	p.SetLevel(2, "later")
	require.Equal(t, 3, p.Level(), "a repeated level changes nothing")
}

// An approver added at the timeout could no longer answer.
func TestEscalate_StopsAtTheDeadline(t *testing.T) {
	t.Parallel()
	p := gate(t, escalating)
	_, ok := p.Escalate(now.Add(60 * time.Second))
	require.False(t, ok)
	q := open(t, interrupt.TypeClarificationGate, `{"questions":[{"id":"q","question":"Q?"}],"timeoutSec":9}`)
	_, ok = q.Escalate(now)
	require.False(t, ok, "other kinds have no levels")
	require.EqualValues(t, 9000, q.DueMs())
	require.Zero(t, gate(t, everyAction).DueMs())
}

// An open gate stays open; its levels only repeat the notification.
func TestEscalate_KeepsAnOpenGateOpen(t *testing.T) {
	t.Parallel()
	p := gate(t, `{"title":"T","actions":["accept"],"escalation":[{"afterSec":1}]}`)
	require.JSONEq(t, `{"nodeId":"gate","interruptId":"`+p.InterruptID+`","level":1}`, string(reach(t, p, now).Payload))
	require.Nil(t, decide(t, p, by(key, `{"action":"accept"}`)).Standing)
}

// A level does not open a gate to tokens.
func TestNeedsCredential_AtEveryLevel(t *testing.T) {
	t.Parallel()
	p := gate(t, `{"title":"T","actions":["accept"],"approverGroupRefs":["g"],"escalation":[{"afterSec":1,"approverRoleRefs":["r"]},{"afterSec":2,"approversList":["ada"]}]}`)
	require.True(t, p.NeedsCredential())
	reach(t, p, now)
	require.True(t, p.NeedsCredential())
	reach(t, p, now)
	require.True(t, p.NeedsCredential())
}

func TestEscalate_DoesNotChangeTheQuestion(t *testing.T) {
	t.Parallel()
	r, wrong := interrupt.From(interrupt.TypeApprovalGate, at, json.RawMessage(escalating))
	require.Empty(t, wrong)
	require.Contains(t, string(r.Data), `"escalation":[{"afterSec":1.5,"approverGroupRefs":["leads"]},{"afterSec":20},`)
	p, events := interrupt.Open(at, r, now, wire.Untrusted)
	require.Equal(t, wire.Untrusted, reach(t, p, now).Trust)
	again, err := interrupt.Reopen(events[1].Payload, wire.Untrusted)
	require.NoError(t, err)
	require.Zero(t, again.Level())
}

func TestCheck_LevelsAreInOrder(t *testing.T) {
	t.Parallel()
	for config, want := range map[string][]string{
		`"approversList":["a"],"timeoutSec":10,"escalation":[{"afterSec":1},{"afterSec":9.9}]`:               nil,
		`"approversList":["a"],"escalation":[{"afterSec":0}]`:                                                {"/escalation/0/afterSec exclusiveMinimum"},
		`"approversList":["a"],"escalation":[{"afterSec":"1"}]`:                                              {"/escalation/0/afterSec type"},
		`"approversList":["a"],"escalation":[{"approversList":["b"]}]`:                                       {"/escalation/0 required"},
		`"approversList":["a"],"escalation":[{"afterSec":1,"to":["b"]}]`:                                     {"/escalation/0/to additionalProperties"},
		`"approversList":["a"],"escalation":[{"afterSec":2},{"afterSec":2},{"afterSec":1}]`:                  {"/escalation/1/afterSec escalation", "/escalation/2/afterSec escalation"},
		`"approversList":["a"],"timeoutSec":10,"escalation":[{"afterSec":9},{"afterSec":10}]`:                {"/escalation/1/afterSec escalation"},
		`"approversList":["a"],"timeoutMs":500,"escalation":[{"afterSec":0.5}]`:                              {"/escalation/0/afterSec escalation"},
		`"escalation":[{"afterSec":1},{"afterSec":2,"approverGroupRefs":["g"]}]`:                             {"/escalation/1 escalation"},
		`"approversList":["a"],"requiredApprovals":2,"escalation":[{"afterSec":1}]`:                          {"/requiredApprovals quorum"},
		`"approversList":["a"],"requiredApprovals":2,"escalation":[{"afterSec":1,"approversList":["b"]}]`:    nil,
		`"approversList":["a"],"requiredApprovals":2,"escalation":[{"afterSec":1,"approverRoleRefs":["r"]}]`: nil,
	} {
		require.Equal(t, want, places(interrupt.Check(interrupt.TypeApprovalGate, json.RawMessage(`{"title":"T","actions":["accept"],`+config+`}`))), config)
	}
	require.Equal(t, []string{"/data/escalation/0/afterSec escalation"}, places(interrupt.Check(interrupt.TypeInterrupt,
		json.RawMessage(`{"kind":"approval","timeoutSec":1,"data":{"title":"T","actions":["accept"],"approversList":["a"],"escalation":[{"afterSec":2}]}}`))))
}
