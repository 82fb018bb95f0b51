package interrupt_test

import (
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/require"

	"waybill.dev/waybill/protocol/fault"
	"waybill.dev/waybill/protocol/interrupt"
	"waybill.dev/waybill/protocol/wire"
)

const routed = `{"title":"T","actions":["accept","ask"],"approversList":["ada"],"approverGroupRefs":["fin/eu","ops"],"approverRoleRefs":["releaser"]}`

// OpenWOP host contract §6.2, §6.3; RFC 0104: eligible is the union of the list, the
// groups and the roles, by exact names.
func TestDecide_RoutesToTheUnionOfApprovers(t *testing.T) {
	t.Parallel()
	holder := func(groups, roles []string) interrupt.Responder {
		return interrupt.Responder{Principal: "key-1", Groups: groups, Roles: roles}
	}
	for name, tc := range map[string]struct {
		who      interrupt.Responder
		value    string
		standing *interrupt.Standing // nil means rejected
		by       string
	}{
		"a group":              {holder([]string{"hr", "ops"}, nil), `{"action":"accept"}`, &interrupt.Standing{Groups: []string{"ops"}}, "key-1"},
		"a role":               {holder(nil, []string{"releaser"}), `{"action":"accept"}`, &interrupt.Standing{Roles: []string{"releaser"}}, "key-1"},
		"all that it names":    {holder([]string{"ops", "fin/eu"}, []string{"x", "releaser"}), `{"action":"accept","voter":"ada"}`, &interrupt.Standing{Listed: true, Groups: []string{"fin/eu", "ops"}, Roles: []string{"releaser"}}, "ada"},
		"the list":             {holder(nil, nil), `{"action":"accept","voter":"ada"}`, &interrupt.Standing{Listed: true}, "ada"},
		"voter is ignored":     {holder([]string{"ops"}, nil), `{"action":"accept","voter":"eve"}`, &interrupt.Standing{Groups: []string{"ops"}}, "key-1"},
		"the bound user":       {interrupt.Responder{Principal: "key-1", User: "bea", Groups: []string{"ops"}}, `{"action":"accept","voter":"eve"}`, &interrupt.Standing{Groups: []string{"ops"}}, "bea"},
		"another group":        {holder([]string{"hr"}, []string{"ops"}), `{"action":"accept"}`, nil, ""},
		"a group is no role":   {holder([]string{"releaser"}, nil), `{"action":"accept"}`, nil, ""},
		"names are exact":      {holder([]string{"Ops", "fin", "fin/eu/"}, []string{"releaser "}), `{"action":"accept"}`, nil, ""},
		"no group or role":     {holder(nil, nil), `{"action":"accept"}`, nil, ""},
		"a claimed group":      {holder(nil, nil), `{"action":"accept","voter":"ops","groups":["ops"],"approverGroupRefs":["ops"]}`, nil, ""},
		"ask without a role":   {holder([]string{"hr"}, nil), `{"action":"ask","question":"why?"}`, nil, ""},
		"before a wrong value": {holder(nil, nil), `[]`, nil, ""},
	} {
		p := gate(t, routed)
		d, err := interrupt.Decide(p, by(tc.who, tc.value))
		if tc.standing == nil {
			require.Equal(t, fault.Forbidden, fault.CodeOf(err), name)
			require.Zero(t, d, name)
			for _, secret := range []string{"ada", "fin/eu", "ops", "releaser"} {
				require.NotContains(t, err.Error(), secret, name)
			}
			continue
		}
		require.NoError(t, err, name)
		require.Equal(t, tc.standing, d.Standing, name)
		require.Equal(t, tc.by, d.DecidedBy, name)
		require.NotContains(t, string(d.Resume), "eve", name)
		var resolved struct{ Standing *interrupt.Standing }
		require.NoError(t, json.Unmarshal([]byte(payload(t, d.Events, wire.EventInterruptResolved)), &resolved))
		require.Equal(t, tc.standing, resolved.Standing, "%s: the standing is recorded with the decision", name)
		require.NotContains(t, string(d.Resume), "standing", "the node's outputs are the answer's")
	}
	require.Nil(t, decide(t, gate(t, everyAction), by(holder([]string{"ops"}, nil), `{"action":"accept"}`)).Standing, "an open gate records no standing")
	require.Nil(t, decide(t, gate(t, `{"title":"T","actions":["accept"],"approverGroupRefs":[],"approverRoleRefs":[]}`), by(key, `{"action":"accept"}`)).Standing)
}

// OpenWOP host contract §6.3: one credential of a group is one vote, regardless of voter. Its group
// is recorded with the vote.
func TestDecide_AGroupQuorumCountsCredentials(t *testing.T) {
	t.Parallel()
	p := gate(t, `{"title":"T","actions":["accept"],"requiredApprovals":2,"approverGroupRefs":["ops"]}`)
	one, two := interrupt.Responder{Principal: "key-1", Groups: []string{"ops"}}, interrupt.Responder{Principal: "key-2", Groups: []string{"ops"}}
	for _, claimed := range []string{"a", "b", ""} {
		d := decide(t, p, by(one, vote(claimed+" accept")))
		require.Equal(t, interrupt.Counted, d.Outcome)
		p.AddNote(overTheWire(t, *d.Note))
	}
	require.Equal(t, interrupt.Votes{{
		Voter: "key-1", Action: interrupt.Accept, By: "key-1", At: "2026-05-01T12:01:00.000Z", Standing: &interrupt.Standing{Groups: []string{"ops"}},
	}}, p.Votes)
	require.Equal(t, interrupt.Advanced, decide(t, p, by(two, `{"action":"accept"}`)).Outcome, "a vote counts even after its voter left the group")
}

// RFC 0104: approver refs and audience are displayed unchanged.
func TestFrom_KeepsApproverRefsAndAudience(t *testing.T) {
	t.Parallel()
	const refs = `"approverGroupRefs":["fin/eu"],"approverRoleRefs":["r"],"audience":{"groups":["all"],"subjects":["s"]}`
	r, wrong := interrupt.From(interrupt.TypeApprovalGate, at, json.RawMessage(`{"title":"T","actions":["accept"],`+refs+`}`))
	require.Empty(t, wrong)
	require.JSONEq(t, `{"artifactId":"run_1:gate","artifactType":"approval","title":"T","actions":["accept"],`+refs+`}`, string(r.Data))
	require.Equal(t, r, r.WithArtifact(nil))
	require.Contains(t, string(r.WithArtifact(json.RawMessage(`1`)).Data), `"audience":{"groups":["all"],"subjects":["s"]}`)
	_, events := interrupt.Open(at, r, now, "")
	require.Contains(t, payload(t, events, wire.EventApprovalRequested), `"approverGroupRefs":["fin/eu"],"approverRoleRefs":["r"]`)

	for config, want := range map[string][]string{
		`"approverGroupRefs":"ops"`:                                             {"/approverGroupRefs type"},
		`"approverRoleRefs":[""]`:                                               {"/approverRoleRefs/0 minLength"},
		`"audience":{"users":["a"]}`:                                            {"/audience/users additionalProperties"},
		`"requiredApprovals":2,"approversList":["a"]`:                           {"/requiredApprovals quorum"},
		`"approverRoleRefs":["r"],"requiredApprovals":99`:                       nil, // the number of holders of a role is unknown
		`"approversList":["a"],"approverGroupRefs":["g"],"requiredApprovals":3`: nil,
	} {
		require.Equal(t, want, places(interrupt.Check(interrupt.TypeApprovalGate, json.RawMessage(`{"title":"T","actions":["accept"],`+config+`}`))), config)
	}
}
