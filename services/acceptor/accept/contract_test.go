package accept_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"waybill.dev/waybill/protocol/fault"
	"waybill.dev/waybill/protocol/wire"
	"waybill.dev/waybill/services/acceptor/accept"
)

func TestContract_GatesKindsThatTheNodeDoesNotAccept(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		kind, payload string
		contract      *accept.Contract
		ok            bool
	}{
		"no contract":      {note, goodNote, nil, true},
		"accepted":         {note, goodNote, &accept.Contract{Accepts: []string{note}}, true},
		"not accepted":     {note, goodNote, &accept.Contract{Accepts: []string{"vendor.acme.x"}}, false},
		"accepts nothing":  {note, goodNote, &accept.Contract{}, false},
		"universal always": {"error", `{"code":"x","message":"y"}`, &accept.Contract{}, true},
		"universal kind listed (16)": {
			"error", `{"code":"x","message":"y"}`,
			&accept.Contract{Accepts: []string{"error", "error"}},
			true,
		},
		"only a universal kind listed": {note, goodNote, &accept.Contract{Accepts: []string{"error"}}, false},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := newFixture(t)
			res := f.accept(doc(tc.kind, tc.payload), func(r *accept.Request) { r.Contract, r.Mode = tc.contract, accept.DiscardAndWarn })
			if tc.ok {
				accepted(t, res)
				return
			}
			r := refused(t, res, accept.Gated, fault.EnvelopeContractViolation)
			require.Equal(t, note, r.RefusedType)
			require.Equal(t, accept.DiscardAndWarn, r.Mode)
			require.Subset(t, r.AllowedKinds, wire.Universals())
			require.Subset(t, r.AllowedKinds, tc.contract.Accepts)
			require.NotContains(t, r.AllowedKinds, note)
			f.nothingRecorded()
		})
	}
}
