package machine

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"waybill.dev/waybill/protocol/fault"
	"waybill.dev/waybill/protocol/wire"
	"waybill.dev/waybill/services/dispatcher/node"
)

// failWithoutCapability fails a node whose type requires a capability that the host's runtime
// lacks. The node never starts (OpenWOP host contract §5.7, which checks this before secrets and
// models).
func (m *Machine) failWithoutCapability(now time.Time, id string, t node.Type, attempt int) bool {
	if t.EmitsEnvelopes && m.plan.NoAIEnvelope {
		m.failNode(now, id, &wire.NodeError{
			Code:    string(fault.CapabilityRequired),
			Message: fmt.Sprintf("nodes of type %q need %s, which this host has switched off", t.ID, node.CapabilityEnvelopes),
			Details: map[string]any{"requiredCapability": node.CapabilityEnvelopes, "offendingTypeId": t.ID, "nodeId": id},
		}, attempt, wire.Trusted)
		return true
	}
	var missing []string
	for _, c := range t.Requires {
		if !slices.Contains(m.plan.Capabilities, c) {
			missing = append(missing, c)
		}
	}
	if len(missing) == 0 {
		return false
	}
	m.failNode(now, id, &wire.NodeError{
		Code: string(fault.CapabilityNotProvided),
		Message: fmt.Sprintf("nodes of type %q require %s of the host's runtime, and this host does not provide that; "+
			"runtimeCapabilities in its discovery document lists what it does",
			t.ID, strings.Join(missing, ", ")),
		Details: map[string]any{"missingCapabilities": missing},
	}, attempt, wire.Trusted)
	return true
}
