package accept

import (
	"context"

	"waybill.dev/waybill/protocol/fault"
)

// capability refuses every envelope while the host does not offer host.aiEnvelope.
// The reason is exactly the code.
func capability(_ context.Context, e *execution) (*Refusal, error) {
	if e.policy.Disabled {
		return &Refusal{Status: Invalid, Code: fault.CapabilityRequired}, nil
	}
	return nil, nil
}
