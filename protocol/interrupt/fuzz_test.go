package interrupt_test

import (
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/require"

	"waybill.dev/waybill/protocol/fault"
	"waybill.dev/waybill/protocol/interrupt"
	"waybill.dev/waybill/protocol/wire"
)

// For any answer, Decide returns an error with a public code, or a decision whose events are
// JSON. It never changes the interrupt.
func FuzzDecide(f *testing.F) {
	for _, s := range []string{
		`{"action":"accept"}`, `{"action":"refine","refineFeedback":{"scope":"whole"}}`, `{"decision":"rejected","feedback":"x"}`, `{"action":"ask","question":"?"}`,
		`{"answers":{"q":1}}`, `{"answers":[{"id":"q","answer":null}]}`, `{"a":1.0}`, `null`, `"\ud800"`, `[[[[]]]]`, `{"action":"accept","voter":"\u0000"}`, `1e999`,
	} {
		for kind := range 4 {
			f.Add([]byte(s), kind, "")
		}
	}
	f.Fuzz(func(t *testing.T, value []byte, kind int, user string) {
		pendings := []*interrupt.Pending{
			gate(t, everyAction), gate(t, threeApprovals("majority")),
			open(t, interrupt.TypeClarificationGate, `{"questions":[{"id":"q","question":"Q?"}]}`),
			open(t, interrupt.TypeInterrupt, `{"kind":"external-event","data":{"eventType":"e","correlation":{"a":1}}}`),
		}
		p := pendings[uint(kind)%uint(len(pendings))] //nolint:gosec // G115: any of them
		before, err := json.Marshal(p)
		require.NoError(t, err)
		d, err := interrupt.Decide(p, interrupt.Answer{Value: value, By: interrupt.Responder{Principal: "k", User: user}, At: now})
		after, merr := json.Marshal(p)
		require.NoError(t, merr)
		require.Equal(t, string(before), string(after))
		if err != nil {
			require.Contains(t, []fault.Code{fault.ValidationError, fault.CorrelationMismatch}, fault.CodeOf(err))
			return
		}
		require.Equal(t, d.Outcome.Resolves(), d.Resume != nil)
		require.Equal(t, d.Outcome.Resolves(), d.Note == nil)
		for _, e := range d.Events {
			require.True(t, json.Valid(e.Payload), "%s", e.Payload)
		}
		if d.Outcome == interrupt.Advanced && p.Kind == interrupt.Approval {
			require.Contains(t, []interrupt.Action{interrupt.Accept, interrupt.EditAccept}, d.Action)
		}
	})
}

// For any config, From returns problems with paths, or a request that opens and reads back.
func FuzzFrom(f *testing.F) {
	for _, s := range []string{
		everyAction, threeApprovals("first"), `{"questions":[{"id":"q","question":"Q?","schema":{"$ref":"#"}}]}`,
		`{"kind":"external-event","data":{"eventType":"e","correlation":{"a":{"b":[1]}}},"timeoutMs":1}`, `{"kind":"custom","data":{"customKind":"\u0000"}}`,
	} {
		for kind := range 3 {
			f.Add([]byte(s), kind)
		}
	}
	f.Fuzz(func(t *testing.T, config []byte, kind int) {
		types := []string{interrupt.TypeApprovalGate, interrupt.TypeClarificationGate, interrupt.TypeInterrupt}
		r, wrong := interrupt.From(types[uint(kind)%3], at, config) //nolint:gosec // G115: any of them
		if len(wrong) > 0 {
			require.Zero(t, r)
			for _, p := range wrong {
				require.NotEmpty(t, p.Rule)
				require.NotEmpty(t, p.Message)
			}
			return
		}
		p, events := interrupt.Open(at, r, now, wire.Trusted)
		for _, e := range events {
			require.True(t, json.Valid(e.Payload), "%s", e.Payload)
		}
		again, err := interrupt.Reopen(events[1].Payload, wire.Trusted)
		require.NoError(t, err)
		one, err := json.Marshal(p)
		require.NoError(t, err)
		two, err := json.Marshal(again)
		require.NoError(t, err)
		require.JSONEq(t, string(one), string(two))
	})
}
