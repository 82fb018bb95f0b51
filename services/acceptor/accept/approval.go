package accept

import (
	"context"

	"waybill.dev/waybill/protocol/fault"
	"waybill.dev/waybill/protocol/wire"
)

// approval keeps untrusted content from advancing an approval. The gate stays
// closed; the reason is exactly the code (OpenWOP envelope contract §12).
func approval(_ context.Context, p *passage) (*Refusal, error) {
	if p.req.ApprovalContext && p.facts.Trust == wire.Untrusted {
		return &Refusal{Status: Invalid, Code: fault.UntrustedBlocksApproval}, nil
	}
	return nil, nil
}
