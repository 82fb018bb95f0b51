package machine

import (
	"time"

	"waybill.dev/waybill/protocol/fault"
	"waybill.dev/waybill/protocol/wire"
	"waybill.dev/waybill/services/dispatcher/node"
)

// MaskPolicy is what of a masked run must not be recorded in the clear. If nothing is by
// now, because a pack has changed, everything is: the run began as one that has secrets.
func (m *Machine) MaskPolicy() *node.MaskPolicy {
	if p := node.PolicyOf(m.plan.Def, m.plan.Types); p != nil {
		return p
	}
	return node.MaskEverything(node.MaskMode(m.st.Record.Masking))
}

// EndFailed ends a run that cannot be gone on with.
func (m *Machine) EndFailed(now time.Time, why string) {
	m.Begin(now)
	m.cancelNodes(now, string(fault.InternalError))
	m.endFailed(now, "", &wire.NodeError{Code: string(fault.InternalError), Message: why})
}
