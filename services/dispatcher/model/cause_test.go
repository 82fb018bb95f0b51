package model_test

import (
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/require"

	"waybill.dev/waybill/protocol/wire"
	"waybill.dev/waybill/services/dispatcher/model"
	"waybill.dev/waybill/services/dispatcher/node"
	"waybill.dev/waybill/services/dispatcher/provider/mock"
)

// OpenWOP envelope contract §8, §10: the events that a refused envelope causes have its
// correlationId.
func TestEnvelope_WhatARefusalCausesNamesTheEnvelope(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		out   model.Outcome
		event wire.EventType // in addition to node.failed
		fails bool
	}{
		"breached":  {model.Outcome{Status: "breached", Reason: "cap_breached: envelopesPerTurn 5", CapKind: "envelopes"}, wire.EventCapBreached, true},
		"gated":     {model.Outcome{Status: "gated", Reason: "envelope_contract_violation: no", Gate: &model.Gate{RefusedType: "vendor.x.ticket"}}, "", true},
		"conflict":  {model.Outcome{Status: "invalid", Reason: "envelope_correlation_conflict: no"}, "", true},
		"discarded": {model.Outcome{Status: "gated", Reason: "envelope_contract_violation: no", Gate: &model.Gate{RefusedType: "vendor.x.ticket", RefusalMode: "discard-and-warn"}}, wire.EventLogAppended, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var e struct{ CorrelationID string }
			const config = `{"envelopeContract":{"accepts":["vendor.y"]},"expectsStreaming":false}`
			r := execute(t, node.TypeCallPrompt, config, func(req model.AcceptRequest) (model.Outcome, error) {
				return tc.out, json.Unmarshal(req.Envelope, &e)
			}, mock.Entry{Content: `{"type":"vendor.x.ticket","payload":{}}`})
			require.NotEmpty(t, e.CorrelationID)
			require.Equal(t, tc.fails, r.result.Err != nil)
			if tc.fails {
				require.Equal(t, e.CorrelationID, r.result.Err.CausationID)
			}
			for _, d := range r.result.Drafts {
				if d.Type == tc.event {
					require.Equal(t, e.CorrelationID, d.CausationID)
					return
				}
			}
			require.Empty(t, tc.event, "not among %s", r.names())
		})
	}
}

func TestEnvelope_TheContractsRefusalModeDecides(t *testing.T) {
	t.Parallel()
	gate := func(mode wire.RefusalMode) func(model.AcceptRequest) (model.Outcome, error) {
		return func(model.AcceptRequest) (model.Outcome, error) {
			return model.Outcome{
				Status: wire.EnvelopeGated, Reason: "envelope_contract_violation: no",
				Gate: &model.Gate{RefusedType: "vendor.x.ticket", AcceptedTypes: []string{"vendor.y"}, RefusalMode: mode},
			}, nil
		}
	}
	failed := envelope(t, gate("fail-node"), mock.Entry{Content: `{}`})
	require.Equal(t, "envelope_contract_violation", failed.result.Err.Code)
	require.Equal(t, map[string]any{"refusedType": "vendor.x.ticket", "acceptedTypes": []string{"vendor.y"}}, failed.result.Err.Details)
	const one = `{"type":"vendor.x.ticket","payload":{}}`
	warned := execute(t, node.TypeCallPrompt, `{"envelopeContract":{"accepts":["vendor.y"]},"expectsStreaming":false}`,
		gate("discard-and-warn"), mock.Entry{Content: one})
	require.Nil(t, warned.result.Err)
	require.Contains(t, warned.names(), "log.appended")
	require.JSONEq(t, `[]`, string(warned.result.Output.Ports["envelopes"]))
	empty := envelope(t, gate("discard-and-warn"), mock.Entry{Content: one}, mock.Entry{Content: one}, mock.Entry{Content: one})
	require.Len(t, empty.spy.reqs, 3, "a kind was asked for")
	require.Equal(t, "no attempt gave an acceptable answer: the node's contract discards all its envelopes; want vendor.x.ticket", empty.result.Err.Message)
}
