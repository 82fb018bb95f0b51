package interrupt_test

import (
	"encoding/json"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"waybill.dev/waybill/protocol/fault"
	"waybill.dev/waybill/protocol/interrupt"
	"waybill.dev/waybill/protocol/wire"
)

const everyAction = `{"title":"T","actions":["accept","reject","refine","edit-accept","ask"]}`

// OpenWOP host contract §6.2, the table of actions.
func TestDecide_ApprovalActions(t *testing.T) {
	t.Parallel()
	const decided = `"decidedAt":"2026-05-01T12:01:00.000Z","decidedBy":"key-1"`
	for name, tc := range map[string]struct {
		value   string
		outcome interrupt.Outcome
		resume  string // without decidedBy and decidedAt
		paths   []string
	}{
		"accept":                        {`{"action":"accept"}`, interrupt.Advanced, `{"action":"accept",` + decided + `}`, nil},
		"accept with words":             {`{"action":"accept","feedback":"<fine>","comment":"c","x":1}`, interrupt.Advanced, `{"action":"accept","comment":"c",` + decided + `,"feedback":"<fine>","x":1}`, nil},
		"reject":                        {`{"action":"reject","feedback":"no"}`, interrupt.Rejected, `{"action":"reject",` + decided + `,"feedback":"no"}`, nil},
		"refine":                        {`{"action":"refine","refineFeedback":{"scope":"items","itemIds":["a"]}}`, interrupt.Refined, `{"action":"refine",` + decided + `,"refineFeedback":{"scope":"items","itemIds":["a"]}}`, nil},
		"refine without feedback":       {`{"action":"refine","feedback":"shorter"}`, "", "", []string{"/resumeValue"}},
		"refine of no scope":            {`{"action":"refine","refineFeedback":{"scope":"all"}}`, "", "", []string{"/resumeValue/refineFeedback/scope"}},
		"edit-accept":                   {`{"action":"edit-accept","editedArtifactData":null}`, interrupt.Advanced, `{"action":"edit-accept",` + decided + `,"editedArtifactData":null}`, nil},
		"edit-accept without data":      {`{"action":"edit-accept"}`, "", "", []string{"/resumeValue"}},
		"edit is spelled edit-accept":   {`{"action":"edit","editedArtifactData":1}`, "", "", []string{"/resumeValue/action"}},
		"ask without a question":        {`{"action":"ask"}`, "", "", []string{"/resumeValue"}},
		"no action":                     {`{"feedback":"x"}`, "", "", []string{"/resumeValue"}},
		"an action that only events do": {`{"action":"timeout"}`, "", "", []string{"/resumeValue/action"}},
		"no object":                     {`"accept"`, "", "", []string{"/resumeValue"}},
		"null":                          {`null`, "", "", []string{"/resumeValue"}},
		"no JSON":                       {`{"action":`, "", "", []string{"/resumeValue/action"}},
		"nothing":                       {``, "", "", []string{"/resumeValue"}},
		"an action twice":               {`{"action":"accept","action":"reject"}`, "", "", []string{"/resumeValue/action"}},
		"feedback that is no text":      {`{"action":"accept","feedback":{}}`, "", "", []string{"/resumeValue/feedback"}},
		"the host's clock counts":       {`{"action":"accept","decidedAt":"1999-01-01T00:00:00.000Z"}`, interrupt.Advanced, `{"action":"accept",` + decided + `}`, nil},
	} {
		p := gate(t, everyAction)
		d, err := interrupt.Decide(p, by(key, tc.value))
		if tc.outcome == "" {
			code, status, paths := refused(t, err)
			require.Equal(t, fault.ValidationError, code, name)
			require.Equal(t, 400, status, name)
			require.Equal(t, tc.paths, paths, name)
			require.Zero(t, d, name)
			continue
		}
		require.NoError(t, err, name)
		require.Equal(t, tc.outcome, d.Outcome, name)
		require.True(t, d.Outcome.Resolves(), name)
		require.Equal(t, tc.resume, string(d.Resume), name)
		require.Nil(t, d.Note, name)
		require.Nil(t, d.Progress, name)
		require.Equal(t, tc.outcome == interrupt.Rejected, d.Failure != nil, name)
		require.Equal(t, gate(t, everyAction), p, "the interrupt is unchanged")
	}
}

// OpenWOP host contract §6.2: action not offered by the gate.
func TestDecide_RejectsActionsNotOffered(t *testing.T) {
	t.Parallel()
	p := gate(t, `{"title":"T","actions":["accept","reject"]}`)
	for _, value := range []string{
		`{"action":"refine","refineFeedback":{"scope":"whole"}}`, `{"action":"edit-accept","editedArtifactData":{}}`, `{"action":"ask","question":"why?"}`,
	} {
		_, err := interrupt.Decide(p, by(key, value))
		code, status, paths := refused(t, err)
		require.Equal(t, fault.ValidationError, code)
		require.Equal(t, 400, status)
		require.Equal(t, []string{"/resumeValue/action"}, paths)
		require.Contains(t, err.Error(), "it offers accept, reject")
	}
}

// OpenWOP host contract §6.2: ask does not leave the suspension.
func TestDecide_AskKeepsTheGateOpen(t *testing.T) {
	t.Parallel()
	p := gate(t, `{"title":"T","actions":["accept","ask"],"resumeSchema":{"required":["reason"]}}`)
	d := decide(t, p, by(interrupt.Responder{Principal: "key-1", User: "ada"}, `{"action":"ask","question":"who pays?"}`))
	require.Equal(t, interrupt.Asked, d.Outcome)
	require.False(t, d.Outcome.Resolves())
	require.Empty(t, d.Events)
	require.Nil(t, d.Resume)
	p.AddNote(*d.Note)
	want := []interrupt.Exchange{{Question: "who pays?", By: "ada", At: "2026-05-01T12:01:00.000Z"}}
	require.Equal(t, want, p.Questions)
	require.Equal(t, interrupt.Advanced, decide(t, p, by(key, `{"action":"accept","reason":"fine"}`)).Outcome)

	for len(p.Questions) < 256 {
		p.AddNote(*d.Note)
	}
	_, err := interrupt.Decide(p, by(key, `{"action":"ask","question":"more?"}`))
	code, status, _ := refused(t, err)
	require.Equal(t, fault.ValidationError, code)
	require.Equal(t, 422, status, "the number of questions is limited")
}

// OpenWOP host contract §6.2: the older body.
func TestDecide_ReadsTheOlderBody(t *testing.T) {
	t.Parallel()
	const plain = `{"title":"T","actions":["accept","reject"]}`
	for name, tc := range map[string]struct {
		config, value string
		action        interrupt.Action
		resume        string
	}{
		"approved":                      {plain, `{"decision":"approved","feedback":"ok"}`, interrupt.Accept, `{"action":"accept","feedback":"ok"}`},
		"rejected":                      {everyAction, `{"decision":"rejected"}`, interrupt.Reject, `{"action":"reject"}`},
		"rejected, blank words":         {everyAction, `{"decision":"rejected","feedback":"  "}`, interrupt.Reject, `{"action":"reject","feedback":"  "}`},
		"rejected with words":           {everyAction, `{"decision":"rejected","feedback":"shorter"}`, interrupt.Refine, `{"action":"refine","feedback":"shorter","refineFeedback":{"scope":"whole","text":"shorter"}}`},
		"with words, nothing to refine": {plain, `{"decision":"rejected","feedback":"shorter"}`, interrupt.Reject, `{"action":"reject","feedback":"shorter"}`},
		"an action wins":                {plain, `{"action":"reject","decision":"approved"}`, interrupt.Reject, `{"action":"reject","decision":"approved"}`},
	} {
		d := decide(t, gate(t, tc.config), by(key, tc.value))
		require.Equal(t, tc.action, d.Action, name)
		var got map[string]any
		require.NoError(t, json.Unmarshal(d.Resume, &got))
		delete(got, "decidedBy")
		delete(got, "decidedAt")
		b, err := json.Marshal(got)
		require.NoError(t, err)
		require.JSONEq(t, tc.resume, string(b), name)
	}
	_, err := interrupt.Decide(gate(t, plain), by(key, `{"decision":"perhaps"}`))
	code, _, paths := refused(t, err)
	require.Equal(t, fault.ValidationError, code)
	require.Equal(t, []string{"/resumeValue"}, paths)
}

// OpenWOP host contract §6.1: the author's schema comes before the kind's.
func TestDecide_AppliesTheResumeSchema(t *testing.T) {
	t.Parallel()
	p := gate(t, `{"title":"T","actions":["accept"],"resumeSchema":{"type":"object","required":["cost"],"properties":{"cost":{"maximum":10},"action":{"const":"accept"}},"additionalProperties":false}}`)
	for value, paths := range map[string][]string{
		`{"action":"accept"}`:                     {"/resumeValue"},
		`{"action":"accept","cost":11}`:           {"/resumeValue/cost"},
		`{"action":"reject","cost":11,"mine~":1}`: {"/resumeValue/action", "/resumeValue/cost", "/resumeValue/mine~0"},
	} {
		_, err := interrupt.Decide(p, by(key, value))
		code, status, got := refused(t, err)
		require.Equal(t, fault.ValidationError, code)
		require.Equal(t, 400, status)
		require.Equal(t, paths, got, value)
	}
	d := decide(t, p, by(key, `{"decision":"approved","cost":10}`))
	require.JSONEq(t, `{"action":"accept","cost":10,"decidedBy":"key-1","decidedAt":"2026-05-01T12:01:00.000Z"}`, string(d.Resume), "the older body is converted first, the host's members are added last")
}

// OpenWOP host contract §6.2, §6.3: who is recorded.
func TestDecide_RecordsWhoDecided(t *testing.T) {
	t.Parallel()
	ada := interrupt.Responder{Principal: "key-1", User: "ada"}
	for name, tc := range map[string]struct {
		who         interrupt.Responder
		value, want string
	}{
		"the credential's user":            {ada, `{"action":"accept"}`, "ada"},
		"a bound user cannot name another": {ada, `{"action":"accept","decidedBy":"eve","voter":"eve"}`, "ada"},
		"the voter":                        {key, `{"action":"accept","voter":"bob","decidedBy":"eve"}`, "bob"},
		"the name in the answer":           {key, `{"action":"accept","decidedBy":"bob"}`, "bob"},
		"the credential":                   {key, `{"action":"accept"}`, "key-1"},
	} {
		d := decide(t, gate(t, everyAction), by(tc.who, tc.value))
		require.Equal(t, tc.want, d.DecidedBy, name)
		require.NotContains(t, string(d.Resume), "eve", name)
		require.Contains(t, payload(t, d.Events, wire.EventApprovalReceived), `"decidedBy":"`+tc.want+`"`, name)
	}
}

// OpenWOP host contract §6.3: approversList, before the value is judged (§6.4).
func TestDecide_RejectsIneligibleResponders(t *testing.T) {
	t.Parallel()
	p := gate(t, `{"title":"T","actions":["accept"],"approversList":["ada","bob"]}`)
	for name, tc := range map[string]struct {
		who   interrupt.Responder
		value string
		code  fault.Code
	}{
		"a user on the list":                         {interrupt.Responder{Principal: "k", User: "ada"}, `{"action":"accept"}`, ""},
		"a voter on the list":                        {key, `{"action":"accept","voter":"bob"}`, ""},
		"a user who is not":                          {interrupt.Responder{Principal: "k", User: "eve"}, `{"action":"accept"}`, fault.Forbidden},
		"a bound user who names a listed voter":      {interrupt.Responder{Principal: "k", User: "eve"}, `{"action":"accept","voter":"ada"}`, fault.Forbidden},
		"a voter who is not":                         {key, `{"action":"accept","voter":"Ada"}`, fault.Forbidden},
		"no principal":                               {key, `{"action":"accept"}`, fault.Forbidden},
		"decidedBy is no voter":                      {key, `{"action":"accept","decidedBy":"ada"}`, fault.Forbidden},
		"a credential of that name":                  {interrupt.Responder{Principal: "ada"}, `{"action":"accept"}`, fault.Forbidden},
		"an unbound credential and an invalid value": {key, `[]`, fault.Forbidden},
		"a listed user and an invalid value":         {interrupt.Responder{Principal: "k", User: "ada"}, `[]`, fault.ValidationError},
	} {
		_, err := interrupt.Decide(p, by(tc.who, tc.value))
		require.Equal(t, tc.code, fault.CodeOf(err), name)
		if err != nil {
			require.NotContains(t, err.Error(), "bob", name)
		}
	}
}

// OpenWOP host contract §6.6.
func TestDecide_UntrustedContentDoesNotApprove(t *testing.T) {
	t.Parallel()
	low := open(t, interrupt.TypeInterrupt, `{"kind":"low-confidence","data":{"agentId":"abc","threshold":0.7,"observed":0.2}}`)
	for _, p := range []*interrupt.Pending{gate(t, everyAction), gate(t, `{"title":"T","actions":["accept"],"requiredApprovals":2}`), low} {
		a := by(key, `{"action":"accept"}`)
		a.Trust = wire.Untrusted
		d, err := interrupt.Decide(p, a)
		require.Equal(t, fault.UntrustedBlocksApproval, fault.CodeOf(err))
		require.Zero(t, d, "the interrupt stays open and nothing is recorded")
	}
	a := by(key, `{"action":"perhaps"}`)
	a.Trust = wire.Untrusted
	_, err := interrupt.Decide(gate(t, everyAction), a)
	require.Equal(t, fault.ValidationError, fault.CodeOf(err), "the value is validated first")
}

// OpenWOP host contract §6.6: trust propagates.
func TestDecide_TrustIsTheLowerOfQuestionAndAnswer(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct{ requestedPayload, answerPath, want wire.Trust }{
		{"", "", ""},
		{wire.Trusted, wire.Trusted, ""},
		{wire.Untrusted, "", wire.Untrusted},
		{"", wire.Untrusted, wire.Untrusted},
	} {
		r, wrong := interrupt.From(interrupt.TypeClarificationGate, at, json.RawMessage(`{"questions":[{"id":"q","question":"Q?"}]}`))
		require.Empty(t, wrong)
		p, events := interrupt.Open(at, r, now, tc.requestedPayload)
		for _, e := range events {
			require.Equal(t, tc.requestedPayload == wire.Untrusted, e.Trust == wire.Untrusted)
		}
		a := by(key, `{"answers":{"q":1}}`)
		a.Trust = tc.answerPath
		d := decide(t, p, a)
		require.Equal(t, tc.want, d.Trust)
		for _, e := range d.Events {
			require.Equal(t, tc.want, e.Trust)
		}
	}
}

// OpenWOP host contract §6.5: a lazy check on every access.
func TestDecide_RejectsAnswersAfterTheDeadline(t *testing.T) {
	t.Parallel()
	p := gate(t, `{"title":"T","actions":["accept"],"timeoutSec":60}`)
	deadline, bounded := p.Deadline()
	require.True(t, bounded)
	require.Equal(t, now.Add(time.Minute), deadline)
	a := by(key, `{"action":"accept"}`)
	a.At = deadline.Add(-time.Millisecond)
	decide(t, p, a)
	a.At = deadline
	_, err := interrupt.Decide(p, a)
	require.Equal(t, fault.InterruptExpired, fault.CodeOf(err))
	a.Value = json.RawMessage(`[]`)
	_, err = interrupt.Decide(p, a)
	require.Equal(t, fault.InterruptExpired, fault.CodeOf(err), "expiry is checked first")

	for _, config := range []string{everyAction, `{"title":"T","actions":["accept"],"timeoutMs":0}`} {
		p := gate(t, config)
		_, bounded := p.Deadline()
		require.False(t, bounded)
		require.False(t, p.Expired(now.AddDate(100, 0, 0)))
	}
}

// Errors do not repeat the rejected value: it may hold a secret.
func TestDecide_ErrorsRepeatNoValue(t *testing.T) {
	t.Parallel()
	const secret = "hunter2-" // a prefix of one
	for _, p := range []*interrupt.Pending{
		gate(t, everyAction), gate(t, `{"title":"T","actions":["accept"],"resumeSchema":{"properties":{"action":{"const":"x"}}}}`),
		open(t, interrupt.TypeClarificationGate, `{"questions":[{"id":"q","question":"Q?","schema":{"enum":["a"]}}]}`),
		open(t, interrupt.TypeInterrupt, `{"kind":"external-event","data":{"eventType":"e","correlation":{"k":"v"}}}`),
	} {
		for _, value := range []string{`{"action":%q}`, `{"action":"accept","voter":7,"feedback":[%q]}`, `{"answers":{"q":%q}}`, `{"answers":[%q]}`, `{"k":%q}`, `%q`} {
			_, err := interrupt.Decide(p, by(key, fmt.Sprintf(value, secret)))
			require.Error(t, err)
			e, _ := fault.As(err)
			require.NotContains(t, string(e.Internal()), secret)
		}
	}
}
