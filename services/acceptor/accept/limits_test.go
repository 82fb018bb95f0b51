package accept_test

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"waybill.dev/waybill/protocol/fault"
	"waybill.dev/waybill/services/acceptor/accept"
)

// OpenWOP envelope contract §3.2, §8.
func TestLimits_BreachBeforeAdmittingTheNext(t *testing.T) {
	t.Parallel()
	at := func(current, limit int) *accept.Counter { return &accept.Counter{Current: current, Cap: limit} }
	tests := map[string]struct {
		kind, payload string
		counters      accept.Counters
		capKind       string // empty means passes
		limit         int
		observed      int
		reason        string
	}{
		"unlimited": {note, goodNote, accept.Counters{}, "", 0, 0, ""},
		"below":     {note, goodNote, accept.Counters{EnvelopesPerTurn: at(31, 32)}, "", 0, 0, ""},
		"at the cap": {
			note, goodNote,
			accept.Counters{EnvelopesPerTurn: at(32, 32)},
			"envelopes", 32, 33, "cap_breached: envelopesPerTurn limit of 32 is reached",
		},
		"above the cap": {
			note, goodNote,
			accept.Counters{EnvelopesPerTurn: at(40, 32)},
			"envelopes", 32, 41, "",
		},
		"cap 0 admits none (17)": {note, goodNote, accept.Counters{EnvelopesPerTurn: at(0, 0)}, "envelopes", 0, 1, ""},
		"clarification, own counter": {
			"clarification.request", clarification,
			accept.Counters{ClarificationRounds: at(3, 3), EnvelopesPerTurn: at(9, 9)},
			"clarification", 3, 4, "cap_breached: clarificationRounds limit of 3 is reached",
		},
		"clarification counts as one": {
			"clarification.request", clarification,
			accept.Counters{ClarificationRounds: at(0, 3), EnvelopesPerTurn: at(9, 9)},
			"envelopes", 9, 10, "",
		},
		"schema.request": {
			"schema.request", `{"envelopeType":"error"}`,
			accept.Counters{SchemaRounds: at(2, 2)},
			"schema", 2, 3, "",
		},
		"schema rounds bind no other": {
			note, goodNote,
			accept.Counters{SchemaRounds: at(2, 2), ClarificationRounds: at(3, 3)},
			"", 0, 0, "",
		},
		"schema.response counts": {
			"schema.response", `{"envelopeType":"error","ack":true}`,
			accept.Counters{EnvelopesPerTurn: at(1, 1)},
			"envelopes", 1, 2, "",
		},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := newFixture(t)
			res := f.accept(doc(tc.kind, tc.payload), func(r *accept.Request) { r.Counters = tc.counters })
			if tc.capKind == "" {
				accepted(t, res)
				return
			}
			r := refused(t, res, accept.Breached, fault.CapBreached)
			require.Equal(t, tc.capKind, r.CapKind)
			require.Equal(t, tc.limit, r.Limit)
			require.Equal(t, tc.observed, r.Observed)
			require.Contains(t, r.Reason(), tc.reason)
			require.JSONEq(t, fmt.Sprintf(`{"status":"breached","reason":%q,"capKind":%q}`, r.Reason(), tc.capKind), string(res.Outcome))
			f.nothingRecorded()
		})
	}
}

// Counters exclude an envelope's own correlationId (OpenWOP envelope contract
// §8, §24 C22).
func TestLimits_AreNotBreachedByAReEmission(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	first := f.accept(doc(note, goodNote))
	again := f.accept(doc(note, goodNote), func(r *accept.Request) {
		r.Counters.EnvelopesPerTurn = &accept.Counter{Current: 1, Cap: 1}
	})
	require.Equal(t, string(first.Outcome), string(again.Outcome))
}
