package accept_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"waybill.dev/waybill/protocol/fault"
	"waybill.dev/waybill/services/acceptor/accept"
)

func TestCapability_RefusesWithExactlyTheCode(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	f.policy.Disabled = true
	res := f.accept(`not even JSON`)
	refused(t, res, accept.Invalid, fault.CapabilityRequired)
	require.JSONEq(t, `{"status":"invalid","reason":"capability_required","details":[]}`, string(res.Outcome))
}
