package engine_test

import (
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/require"

	"waybill.dev/waybill/protocol/fault"
	"waybill.dev/waybill/protocol/interrupt"
	"waybill.dev/waybill/protocol/wire"
	"waybill.dev/waybill/services/dispatcher/engine"
)

// answers returns an answer whose credential belongs to groups.
func answers(value, principal string, groups ...string) engine.Answer {
	return engine.Answer{NodeID: "gate", Answer: interrupt.Answer{
		Value: json.RawMessage(value), By: interrupt.Responder{Principal: principal, Groups: groups},
	}}
}

// OpenWOP host contract §6.3; RFC 0104: the log records the groups of the person who decided, so
// that another executor and a replay need not look them up.
func TestResolve_RecordsTheGroupsOfTheResponder(t *testing.T) {
	t.Parallel()
	two := define(t, nodeJSON("gate", "core.approvalGate", `{"title":"t","actions":["accept"],"requiredApprovals":2,"approverGroupRefs":["ops"]}`))
	r := newRig(t, two, nil)
	r.create(t)
	r.next(t)
	before := r.types(t)
	_, err := r.exec.Resolve(t.Context(), "acme", "run_1", answers(`{"action":"accept"}`, "key_0", "hr"))
	require.Equal(t, fault.Forbidden, fault.CodeOf(err))
	require.Equal(t, before, r.types(t))
	_, err = r.exec.Resolve(t.Context(), "acme", "run_1", answers(`{"action":"accept"}`, "key_1", "ops", "hr"))
	require.NoError(t, err)
	st, _ := r.state(t)
	require.Equal(t, &interrupt.Standing{Groups: []string{"ops"}}, st.Latest("gate").Votes[0].Standing, "and nothing else that they belong to")
	got, err := r.executor(two, nil).Resolve(t.Context(), "acme", "run_1", answers(`{"action":"accept"}`, "key_2", "ops"))
	require.NoError(t, err)
	require.Equal(t, wire.StatusCompleted, got.Status)
	_, want, _ := r.eventsOf(t, theRun)
	r.fork(t, wire.ForkReplay, 0)
	r.next(t)
	_, again, _ := r.eventsOf(t, theFork)
	require.Equal(t, render(want), render(again))
	require.Contains(t, render(again)[5], `"standing":{"groups":["ops"]}`)
}

// A token has no groups and no principal: it cannot answer a gate that names its approvers.
func TestResolve_RejectsATokenIfTheGateNamesApprovers(t *testing.T) {
	t.Parallel()
	for config, want := range map[string]fault.Code{
		`"approverGroupRefs":["ops"]`:                         fault.AuthElevationRequired,
		`"approverRoleRefs":["chief"]`:                        fault.AuthElevationRequired,
		`"approversList":["ada"]`:                             fault.AuthElevationRequired,
		`"approverGroupRefs":["ops"],"approversList":["ada"]`: fault.AuthElevationRequired,
		`"approversList":[]`:                                  "",
	} {
		r := newRig(t, define(t, nodeJSON("gate", "core.approvalGate", `{"title":"t","actions":["accept"],`+config+`}`)), nil)
		r.create(t)
		r.next(t)
		a := answers(`{"action":"accept","voter":"ada"}`, "token")
		a.ByToken = true
		_, err := r.exec.Resolve(t.Context(), "acme", "run_1", a)
		require.Equal(t, want, fault.CodeOf(err), config)
	}
}

// OpenWOP host contract §6.3: an override that is one vote of several is recorded immediately, with
// its vote. A replay has both events again.
func TestResolve_RecordsAnOverrideThatIsOneVoteOfSeveral(t *testing.T) {
	t.Parallel()
	two := define(t, nodeJSON("gate", "core.approvalGate", `{"title":"t","actions":["accept"],"requiredApprovals":2,"approversList":["ada","bob"],"override":{"requiredRole":"chief"}}`))
	r := newRig(t, two, nil)
	const secret = "hunter2-hunter2-hunter2"
	r.red.secret = secret
	r.create(t)
	r.next(t)
	before := r.types(t)
	a := answers(`{"action":"accept","override":true,"reason":"it burns, `+secret+`"}`, "key_9")
	_, err := r.exec.Resolve(t.Context(), "acme", "run_1", a)
	require.Equal(t, fault.Forbidden, fault.CodeOf(err))
	a.By.Roles = []string{"chief"}
	got, err := r.exec.Resolve(t.Context(), "acme", "run_1", a)
	require.NoError(t, err)
	require.Equal(t, interrupt.Counted, got.Decision.Outcome)
	require.Equal(t, wire.StatusWaitingApproval, got.Status)
	require.Equal(t, before+" approval.overridden@gate", r.types(t))
	st, frames := r.state(t)
	require.Len(t, st.Latest("gate").Votes, 1)
	require.NotContains(t, string(frames[len(frames)-1].Body)+frames[len(frames)-1].Note, secret)

	got, err = r.executor(two, nil).Resolve(t.Context(), "acme", "run_1", answers(`{"action":"accept","voter":"bob"}`, "key_1"))
	require.NoError(t, err)
	require.Equal(t, interrupt.Advanced, got.Decision.Outcome)
	require.Equal(t, before+" approval.overridden@gate interrupt.resolved@gate approval.received@gate node.resumed@gate node.completed@gate run.completed", r.types(t))
	_, want, _ := r.eventsOf(t, theRun)
	r.fork(t, wire.ForkReplay, 0)
	r.next(t)
	_, again, _ := r.eventsOf(t, theFork)
	require.Equal(t, render(want), render(again))
}
