package acceptor_test

import (
	"bytes"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	acceptorv1 "waybill.dev/waybill/proto/gen/go/waybill/acceptor/v1"
	runlogv1 "waybill.dev/waybill/proto/gen/go/waybill/runlog/v1"
	"waybill.dev/waybill/protocol/fault"
	"waybill.dev/waybill/protocol/wire"
)

const (
	usage    = `{"provider":"mock","model":"mini","inputTokens":1,"outputTokens":2,"nodeId":"ask"}`
	recovery = `{"nodeId":"ask","path":"markdown-fence","byteOffset":8}`
	thoughts = `{"level":"debug","message":"the model used 7 of its output tokens to think","nodeId":"ask",` +
		`"fields":{"reason":"model_usage","reasoningTokens":7}}`
)

func preceding(typ wire.EventType, payload string) *acceptorv1.PrecedingEvent {
	return &acceptorv1.PrecedingEvent{Type: string(typ), Payload: []byte(payload)}
}

// The caller gets the events as recorded, byte for byte: usage before the envelope's own.
func TestPreceding_IsReturnedAsRecorded(t *testing.T) {
	t.Parallel()
	h := start(t, nil)
	req := h.request(t, good)
	req.Preceding = []*acceptorv1.PrecedingEvent{
		preceding(wire.EventLogAppended, thoughts), preceding(wire.EventProviderUsage, usage),
		preceding(wire.EventEnvelopeRecovery, recovery),
	}
	req.Preceding[2].ContentTrust = "untrusted"
	res, err := h.Accept(t.Context(), req)
	require.NoError(t, err)
	frames := h.log.Frames()
	require.Len(t, frames, 2)
	events := res.GetPreceding()
	require.Len(t, events, 3)
	require.Len(t, res.GetEvents(), 1)
	require.Equal(t, "["+string(bytes.Join(append(events[:3:3], res.GetEvents()[0]), []byte(",")))+"]", string(frames[1].Body))
	require.EqualValues(t, 4, res.GetHead().GetNext())
	require.Contains(t, string(events[0]), thoughts)
	require.NotContains(t, string(events[1]), "contentTrust")
	require.Contains(t, string(events[2]), `"contentTrust":"untrusted"`)
	require.Contains(t, string(res.GetOutcome()), `"recordedEventIds":["ev_run-1_3"]`, "the outcome names the envelope's own events")

	again, err := h.Accept(t.Context(), req)
	require.NoError(t, err)
	require.Equal(t, string(res.GetOutcome()), string(again.GetOutcome()))
	require.Empty(t, again.GetPreceding())
	require.Len(t, h.log.Frames(), 2)
}

func TestPreceding_IsNotRecordedWithARefusal(t *testing.T) {
	t.Parallel()
	h := start(t, nil)
	req := h.request(t, strings.Replace(good, `"text":"<hi>"`, `"text":7`, 1))
	req.Preceding = []*acceptorv1.PrecedingEvent{preceding(wire.EventProviderUsage, usage)}
	res, err := h.Accept(t.Context(), req)
	require.NoError(t, err)
	require.Empty(t, res.GetPreceding())
	require.Len(t, h.log.Frames(), 1)
}

// The list is closed: a caller can add only events of a model call of the node to a
// run's log in this way.
func TestPreceding_RefusesAllOtherEvents(t *testing.T) {
	t.Parallel()
	one := func(typ wire.EventType, payload string) []*acceptorv1.PrecedingEvent {
		return []*acceptorv1.PrecedingEvent{preceding(typ, payload)}
	}
	withTrust := one(wire.EventProviderUsage, usage)
	withTrust[0].ContentTrust = "certainly"
	cases := map[string]struct {
		events []*acceptorv1.PrecedingEvent
		change func(*acceptorv1.AcceptRequest)
		says   string
	}{
		"no type": {events: one("", usage), says: "preceding[0].type"},
		"twice": {
			events: []*acceptorv1.PrecedingEvent{
				preceding(wire.EventProviderUsage, usage), preceding(wire.EventProviderUsage, usage),
			},
			says: "preceding[1].type",
		},
		"another node": {
			events: one(wire.EventProviderUsage, strings.Replace(usage, `"ask"`, `"other"`, 1)),
			says:   "nodeId",
		},
		"no node": {events: one(wire.EventProviderUsage, `{"provider":"p","model":"m"}`), says: "nodeId"},
		"a further member": {
			events: one(wire.EventProviderUsage, strings.Replace(usage, "{", `{"credentialRef":"secret:x",`, 1)),
			says:   "credentialRef",
		},
		"a member of the other": {events: one(wire.EventEnvelopeRecovery, usage), says: "preceding[0].payload"},
		"a text of the answer": {
			events: one(wire.EventEnvelopeRecovery, strings.Replace(recovery, "{", `{"text":"hi",`, 1)),
			says:   "text",
		},
		"a number as text": {
			events: one(wire.EventProviderUsage, strings.Replace(usage, `:1,`, `:"one",`, 1)),
			says:   "inputTokens",
		},
		"a member twice": {
			events: one(wire.EventProviderUsage, strings.Replace(usage, "{", `{"model":"x",`, 1)),
			says:   "model",
		},
		"no object": {events: one(wire.EventProviderUsage, `[]`), says: "preceding[0].payload"},
		"null":      {events: one(wire.EventProviderUsage, `null`), says: "preceding[0].payload"},
		"nothing":   {events: one(wire.EventProviderUsage, ``), says: "preceding[0].payload"},
		"nested": {
			events: one(wire.EventProviderUsage, strings.Replace(usage, `"mini"`, `["mini"]`, 1)),
			says:   "preceding[0].payload",
		},
		"too much": {
			events: one(wire.EventProviderUsage, strings.Replace(usage, "mini", strings.Repeat("m", 4096), 1)),
			says:   "preceding[0].payload",
		},
		"thoughts of another node": {
			events: one(wire.EventLogAppended, strings.Replace(thoughts, `"ask"`, `"other"`, 1)),
			says:   "nodeId",
		},
		"thoughts in other words":   {events: one(wire.EventLogAppended, strings.Replace(thoughts, "the model", "a model", 1)), says: "preceding[0].type"},
		"thoughts of another level": {events: one(wire.EventLogAppended, strings.Replace(thoughts, "debug", "error", 1)), says: "preceding[0].type"},
		"thoughts with a field":     {events: one(wire.EventLogAppended, strings.Replace(thoughts, `{"reason"`, `{"text":"hi","reason"`, 1)), says: "preceding[0].type"},
		"thoughts below zero":       {events: one(wire.EventLogAppended, strings.ReplaceAll(thoughts, "7", "-7")), says: "preceding[0].type"},
		"no trust":                  {events: withTrust, says: "preceding[0].content_trust"},
		"no head": {
			events: one(wire.EventProviderUsage, usage),
			change: func(r *acceptorv1.AcceptRequest) { r.Head = nil },
			says:   "needs head",
		},
	}
	for _, typ := range wire.EventTypes() {
		if (wire.Draft{Type: typ}).MayPrecede() {
			continue
		}
		cases[string(typ)] = struct {
			events []*acceptorv1.PrecedingEvent
			change func(*acceptorv1.AcceptRequest)
			says   string
		}{events: one(typ, usage), says: "preceding[0].type"}
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			h := start(t, nil)
			req := h.request(t, good)
			req.Preceding = tc.events
			if tc.change != nil {
				tc.change(req)
			}
			_, err := h.Accept(t.Context(), req)
			require.Equal(t, fault.ValidationError, fault.CodeOf(err))
			require.ErrorContains(t, err, tc.says)
			refusal, ok := fault.As(err)
			require.True(t, ok)
			require.Equal(t, "preceding", refusal.Details["field"], "the caller may submit the envelope without them")
			require.Len(t, h.log.Frames(), 1, "nothing is recorded")
		})
	}
}

// An external run has no model calls on this host.
func TestPreceding_IsRefusedForExternalRuns(t *testing.T) {
	t.Parallel()
	h := start(t, nil)
	run := &runlogv1.RunRef{Tenant: "acme", WorkflowId: "agent", RunId: "r1"}
	opened, err := h.OpenRun(t.Context(), &acceptorv1.OpenRunRequest{Run: run, NoSecrets: true})
	require.NoError(t, err)
	frames := len(h.log.Frames())
	_, err = h.Accept(t.Context(), &acceptorv1.AcceptRequest{
		Run: run, NodeId: "ask", Head: opened.GetHead(), Envelope: []byte(good),
		Preceding: []*acceptorv1.PrecedingEvent{preceding(wire.EventProviderUsage, usage)},
	})
	require.Equal(t, fault.ValidationError, fault.CodeOf(err))
	require.Len(t, h.log.Frames(), frames)
}
