package accept_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"waybill.dev/waybill/protocol/fault"
	"waybill.dev/waybill/protocol/wire"
	"waybill.dev/waybill/services/acceptor/accept"
)

// OpenWOP envelope contract §12, §25 a2ui-untrusted-blocks-approval.
func TestApproval_UntrustedContentNeverAdvancesTheGate(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	bound := func(r *accept.Request) { r.ApprovalContext = true }
	res := f.accept(doc(note, goodNote, meta("contentTrust", "untrusted")), bound)
	refused(t, res, accept.Invalid, fault.UntrustedBlocksApproval)
	require.JSONEq(t, `{"status":"invalid","reason":"untrusted_content_blocks_approval","details":[]}`, string(res.Outcome))
	f.nothingRecorded()
	res = f.accept(doc(note, goodNote), bound, func(r *accept.Request) { r.Boundary = wire.Untrusted })
	refused(t, res, accept.Invalid, fault.UntrustedBlocksApproval)
	accepted(t, f.accept(doc(note, goodNote), bound))
}
