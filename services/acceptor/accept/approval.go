package accept

import (
	"context"

	"waybill.dev/waybill/protocol/fault"
	"waybill.dev/waybill/protocol/wire"
)

// approval refuses untrusted content that would advance an approval. The approval
// stays open; the reason is exactly the code (OpenWOP envelope contract §12).
func approval(_ context.Context, e *execution) (*Refusal, error) {
	if e.req.ApprovalContext && e.attrs.Trust == wire.Untrusted {
		return &Refusal{Status: Invalid, Code: fault.UntrustedBlocksApproval}, nil
	}
	return nil, nil
}
