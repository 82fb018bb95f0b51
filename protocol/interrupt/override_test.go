package interrupt_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"waybill.dev/waybill/protocol/fault"
	"waybill.dev/waybill/protocol/interrupt"
	"waybill.dev/waybill/protocol/wire"
)

// overridable returns a gate with three required votes and an override.
func overridable(bypasses string) string {
	return `{"title":"T","actions":["accept","reject","ask"],"requiredApprovals":3,"rejectionPolicy":"majority","approversList":["ada","bob","cy"],
		"override":{"requiredRole":"chief","audited":true},"overrideBypassesQuorum":` + bypasses + `}`
}

var chief = interrupt.Responder{Principal: "key-9", Roles: []string{"clerk", "chief"}}

// OpenWOP host contract §6.3, override: the role, the reason, and what it may do.
func TestDecide_OverrideRequiresRoleAndReason(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		who   interrupt.Responder
		value string
		code  fault.Code
		paths []string
	}{
		"the role and a reason":             {chief, `{"action":"accept","override":true,"reason":"it burns"}`, "", nil},
		"the older body":                    {chief, `{"decision":"approved","override":true,"reason":"it burns"}`, "", nil},
		"another role":                      {interrupt.Responder{Principal: "k", Roles: []string{"clerk"}}, `{"action":"accept","override":true,"reason":"it burns"}`, fault.Forbidden, nil},
		"a group of that name":              {interrupt.Responder{Principal: "k", Groups: []string{"chief"}}, `{"action":"accept","override":true,"reason":"it burns"}`, fault.Forbidden, nil},
		"a voter of that name":              {key, `{"action":"accept","voter":"chief","override":true,"reason":"it burns"}`, fault.Forbidden, nil},
		"a listed voter":                    {key, `{"action":"accept","voter":"ada","override":true,"reason":"it burns"}`, fault.Forbidden, nil},
		"another role and no reason":        {key, `{"action":"accept","override":true}`, fault.Forbidden, nil},
		"no reason":                         {chief, `{"action":"accept","override":true}`, fault.ValidationError, []string{"/resumeValue/reason"}},
		"a blank reason":                    {chief, `{"action":"accept","override":true,"reason":" \n"}`, fault.ValidationError, []string{"/resumeValue/reason"}},
		"a reason that is no text":          {chief, `{"action":"accept","override":true,"reason":7}`, fault.ValidationError, []string{"/resumeValue/reason"}},
		"a reason that is too long":         {chief, `{"action":"accept","override":true,"reason":"` + strings.Repeat("x", 4097) + `"}`, fault.ValidationError, []string{"/resumeValue/reason"}},
		"a rejection":                       {chief, `{"action":"reject","override":true,"reason":"it burns"}`, fault.ValidationError, []string{"/resumeValue/action"}},
		"a question":                        {chief, `{"action":"ask","question":"why?","override":true,"reason":"it burns"}`, fault.ValidationError, []string{"/resumeValue/action"}},
		"an action the gate does not offer": {chief, `{"action":"edit-accept","editedArtifactData":1,"override":true,"reason":"it burns"}`, fault.ValidationError, []string{"/resumeValue/action"}},
		"perhaps":                           {interrupt.Responder{Principal: "k", User: "ada"}, `{"action":"accept","override":"yes","reason":"it burns"}`, fault.ValidationError, []string{"/resumeValue/override"}},
		"the role without saying so":        {chief, `{"action":"accept","reason":"it burns"}`, fault.Forbidden, nil},
		"override: false":                   {chief, `{"action":"accept","override":false,"reason":"it burns"}`, fault.Forbidden, nil},
	} {
		d, err := interrupt.Decide(gate(t, overridable("true")), by(tc.who, tc.value))
		if tc.code == "" {
			require.NoError(t, err, name)
			require.Equal(t, interrupt.Advanced, d.Outcome, name)
			continue
		}
		code, _, paths := refused(t, err)
		require.Equal(t, tc.code, code, name)
		require.Equal(t, tc.paths, paths, name)
		require.Zero(t, d, name)
		require.NotContains(t, err.Error(), "chief", name)
	}
}

// OpenWOP host contract §6.3: the quorum is bypassed where the gate says so.
func TestDecide_AnOverrideBypassesTheQuorumIfConfigured(t *testing.T) {
	t.Parallel()
	p := gate(t, overridable("true"))
	p.AddNote(*decide(t, p, by(key, `{"action":"reject","voter":"ada"}`)).Note)
	d := decide(t, p, by(chief, `{"action":"accept","voter":"bob","override":true,"reason":" it burns "}`))
	require.Equal(t, interrupt.Advanced, d.Outcome)
	require.Equal(t, "key-9", d.DecidedBy, "regardless of voter")
	require.Equal(t, &interrupt.Standing{Override: "chief"}, d.Standing)
	require.Equal(t, interrupt.Progress{Accepts: 1, Rejects: 1, Required: 3}, *d.Progress)
	require.Equal(t, []wire.EventType{wire.EventApprovalOverridden, wire.EventInterruptResolved, wire.EventApprovalReceived, wire.EventNodeResumed}, types(d.Events))
	require.JSONEq(t, `{"gateId":"gate","principal":"key-9","reason":"it burns"}`, payload(t, d.Events, wire.EventApprovalOverridden))
	require.Contains(t, payload(t, d.Events, wire.EventInterruptResolved), `"standing":{"override":"chief"}`)
	require.Equal(t, "gate", d.Events[0].NodeID)
}

// OpenWOP host contract §6.3: otherwise it is one vote of the credential, and always an event.
func TestDecide_AnOverrideIsOneVoteOfTheQuorum(t *testing.T) {
	t.Parallel()
	p := gate(t, overridable("false"))
	for range 3 {
		for _, claimed := range []string{"ada", "bob", ""} {
			d := decide(t, p, by(chief, overrideAs(claimed)))
			require.Equal(t, interrupt.Counted, d.Outcome)
			require.Nil(t, d.Resume)
			require.Equal(t, []wire.EventType{wire.EventApprovalOverridden}, types(d.Events))
			p.AddNote(overTheWire(t, *d.Note))
		}
	}
	require.Len(t, p.Votes, 1)
	require.Equal(t, &interrupt.Standing{Override: "chief"}, p.Votes[0].Standing)
	p.AddNote(*decide(t, p, by(key, vote("ada accept"))).Note)
	d := decide(t, p, by(key, vote("bob accept")))
	require.Equal(t, interrupt.Advanced, d.Outcome)
	require.Equal(t, []wire.EventType{wire.EventInterruptResolved, wire.EventApprovalReceived, wire.EventNodeResumed}, types(d.Events), "this vote overrides nothing")

	user := interrupt.Responder{Principal: "key-9", User: "ada", Roles: []string{"chief"}}
	p = gate(t, overridable("false"))
	p.AddNote(*decide(t, p, by(user, `{"action":"accept"}`)).Note)
	p.AddNote(*decide(t, p, by(user, overrideAs(""))).Note)
	require.Len(t, p.Votes, 1, "a user who votes and overrides is one voter")
}

func overrideAs(voter string) string {
	if voter == "" {
		return `{"action":"accept","override":true,"reason":"it burns"}`
	}
	return `{"action":"accept","voter":"` + voter + `","override":true,"reason":"it burns"}`
}

// Without an override in the gate, the members belong to the author.
func TestDecide_OverrideIsAnOrdinaryMemberWithoutAnOverrideRole(t *testing.T) {
	t.Parallel()
	p := gate(t, `{"title":"T","actions":["accept"],"requiredApprovals":2,"overrideBypassesQuorum":true,"resumeSchema":{"properties":{"override":{"type":["string","boolean"]}}}}`)
	for _, value := range []string{`{"action":"accept","override":"price"}`, `{"action":"accept","override":true}`} {
		d := decide(t, p, by(chief, value))
		require.Equal(t, interrupt.Counted, d.Outcome, "an ordinary vote")
		require.Empty(t, d.Events)
		require.Nil(t, d.Overridden)
	}
}

func TestCheck_OverrideRequiresARole(t *testing.T) {
	t.Parallel()
	for config, want := range map[string][]string{
		`"override":{"requiredRole":"r"}`:                   nil,
		`"override":{}`:                                     {"/override required"},
		`"override":true`:                                   {"/override type"},
		`"override":{"requiredRole":""}`:                    {"/override/requiredRole minLength"},
		`"override":{"requiredRole":"r","roles":["r"]}`:     {"/override/roles additionalProperties"},
		`"override":{"requiredRole":"r","audited":"maybe"}`: {"/override/audited type"},
	} {
		require.Equal(t, want, places(interrupt.Check(interrupt.TypeApprovalGate, json.RawMessage(`{"title":"T","actions":["accept"],`+config+`}`))), config)
	}
}

// Overrides returns the reason before the gate decides.
func TestOverrides_FindsTheReason(t *testing.T) {
	t.Parallel()
	for value, want := range map[string]string{
		`{"override": true ,"reason":"r"}`: "r", `{"override":true}`: "", `{"override":true,"reason":1}`: "",
	} {
		reason, ok := interrupt.Overrides(json.RawMessage(value))
		require.True(t, ok, value)
		require.Equal(t, want, reason, value)
	}
	for _, value := range []string{``, `[]`, `true`, `{}`, `{"override":false,"reason":"r"}`, `{"override":"true","reason":"r"}`, `{"Override":true}`} {
		_, ok := interrupt.Overrides(json.RawMessage(value))
		require.False(t, ok, value)
	}
}

// The author's schema covers the answer; the override members belong to the host.
func TestDecide_OverrideMembersAreNotValidatedByTheAuthorsSchema(t *testing.T) {
	t.Parallel()
	p := gate(t, `{"title":"T","actions":["accept"],"requiredApprovals":2,"override":{"requiredRole":"chief"},"overrideBypassesQuorum":true,
		"resumeSchema":{"type":"object","properties":{"action":{"const":"accept"},"cost":{"maximum":10}},"additionalProperties":false}}`)
	d := decide(t, p, by(chief, `{"action":"accept","cost":3,"override":true,"reason":"it burns"}`))
	require.Equal(t, interrupt.Advanced, d.Outcome)
	_, err := interrupt.Decide(p, by(chief, `{"action":"accept","cost":30,"override":true,"reason":"it burns"}`))
	_, _, paths := refused(t, err)
	require.Equal(t, []string{"/resumeValue/cost"}, paths)
	_, err = interrupt.Decide(p, by(chief, `{"action":"accept","reason":"it burns"}`))
	_, _, paths = refused(t, err)
	require.Equal(t, []string{"/resumeValue/reason"}, paths, "without an override it is a member like any other")
}

// A schema that requires a reason receives the override's reason. An answer without an override
// must satisfy the whole schema.
func TestDecide_ValidatesTheWholeAnswerWithoutAnOverride(t *testing.T) {
	t.Parallel()
	p := gate(t, `{"title":"T","actions":["accept"],"override":{"requiredRole":"chief"},
		"resumeSchema":{"type":"object","required":["reason"],"properties":{"action":{"const":"accept"},"reason":{"type":"string"}},"additionalProperties":false}}`)
	d := decide(t, p, by(chief, `{"action":"accept","override":true,"reason":"it burns"}`))
	require.Equal(t, interrupt.Advanced, d.Outcome)
	for value, path := range map[string]string{
		`{"action":"accept","override":false,"reason":"fine"}`: "/resumeValue/override",
		`{"action":"accept","reason":{"text":"fine"}}`:         "/resumeValue/reason",
	} {
		_, err := interrupt.Decide(p, by(key, value))
		_, _, paths := refused(t, err)
		require.Equal(t, []string{path}, paths, value)
	}
}
