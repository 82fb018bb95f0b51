package interrupt_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"waybill.dev/waybill/protocol/fault"
	"waybill.dev/waybill/protocol/interrupt"
	"waybill.dev/waybill/protocol/wire"
	"waybill.dev/waybill/protocol/workflow"
)

// asked returns a model's open question. Those of an earlier version have no resumeSchema.
func asked(t *testing.T, schema string) *interrupt.Pending {
	t.Helper()
	p := open(t, interrupt.TypeClarificationGate, `{"questions":[{"id":"q","question":"Q?"}]}`)
	if schema != "" {
		p.ResumeSchema = json.RawMessage(schema)
	}
	return p
}

func declining(policy workflow.DeclinePolicy, value string) interrupt.Answer {
	a := by(interrupt.Responder{Principal: "k", User: "ada"}, value)
	a.OnDecline = policy
	return a
}

func TestDecide_AModelsQuestionCanBeDeclined(t *testing.T) {
	t.Parallel()
	for name, schema := range map[string]string{"with its schema": interrupt.ModelAnswerSchema, "of an earlier version": ""} {
		d := decide(t, asked(t, schema), declining(workflow.DeclineContinue, `{"declined":true,"reason":"not known"}`))
		require.Equal(t, interrupt.Declined, d.Outcome, name)
		require.True(t, d.Outcome.Resolves())
		require.Nil(t, d.Failure)
		require.JSONEq(t, `{"declined":true,"reason":"not known"}`, string(d.Resume))
		require.Equal(t, []wire.EventType{wire.EventInterruptResolved, wire.EventClarificationResolved, wire.EventNodeResumed}, types(d.Events))
		require.Contains(t, string(d.Events[0].Payload), `"outcome":"declined"`)
		require.JSONEq(t, `{"nodeId":"`+asked(t, "").NodeID+`","answers":{},"answeredBy":"ada","declined":true}`, string(d.Events[1].Payload))

		d = decide(t, asked(t, schema), declining(workflow.DeclineFail, `{"declined":true}`))
		require.Equal(t, interrupt.Declined, d.Outcome, name)
		require.Equal(t, "interrupt_rejected", d.Failure.Code)
		require.Equal(t, "declined", d.Failure.Details["reason"])
		require.Equal(t, []wire.EventType{wire.EventInterruptResolved, wire.EventClarificationResolved}, types(d.Events), "the run fails the node")

		d = decide(t, asked(t, schema), declining(workflow.DeclineFail, `{"answers":{"q":1},"declined":false,"note":"x"}`))
		require.Equal(t, interrupt.Advanced, d.Outcome, name)
	}
}

func TestDecide_RefusesDeclinationsThatSayNothing(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		policy workflow.DeclinePolicy
		value  string
	}{
		"of a gate's question":  {"", `{"declined":true}`},
		"with answers as well":  {workflow.DeclineContinue, `{"declined":true,"answers":{"q":1}}`},
		"with a reason no text": {workflow.DeclineContinue, `{"declined":true,"reason":7}`},
		"with a long reason":    {workflow.DeclineContinue, `{"declined":true,"reason":"` + strings.Repeat("x", 2001) + `"}`},
		"that is false":         {workflow.DeclineContinue, `{"declined":false}`},
		"of another type":       {workflow.DeclineContinue, `{"declined":"yes"}`},
	} {
		_, err := interrupt.Decide(asked(t, interrupt.ModelAnswerSchema), declining(tc.policy, tc.value))
		code, status, paths := refused(t, err)
		require.Equal(t, fault.ValidationError, code, name)
		require.Equal(t, 400, status, name)
		require.NotEmpty(t, paths, name)
	}
}

func TestDeclinable(t *testing.T) {
	t.Parallel()
	require.True(t, asked(t, interrupt.ModelAnswerSchema).Declinable())
	require.False(t, asked(t, "").Declinable())
	require.False(t, asked(t, `{"type":"object"}`).Declinable())
	_, err := interrupt.Reopen(json.RawMessage(`{"runId":"r","nodeId":"n","interruptId":"i","kind":"clarification","key":"k","data":{"questions":[]},"resumeSchema":`+interrupt.ModelAnswerSchema+`,"timeoutMs":5,"requestedAt":"2026-05-01T12:00:00.000Z"}`), wire.Trusted)
	require.NoError(t, err)
}
