package model_test

import (
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/require"

	"waybill.dev/waybill/protocol/wire"
	"waybill.dev/waybill/services/dispatcher/model"
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
			r := envelope(t, func(req model.AcceptRequest) (model.Outcome, error) {
				return tc.out, json.Unmarshal(req.Envelope, &e)
			}, mock.Entry{Content: `{}`})
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
