package machine

import (
	"time"

	"waybill.dev/waybill/protocol/fault"
	"waybill.dev/waybill/protocol/wire"
	"waybill.dev/waybill/services/dispatcher/node"
)

// MaskPolicy is the masking policy of the run. If a changed pack no longer marks any value as
// sensitive, every value is masked: the run started as a masked one.
func (m *Machine) MaskPolicy() *node.MaskPolicy {
	if p := node.NewMaskPolicy(m.plan.Def, m.plan.Types); p != nil {
		return p
	}
	return node.NewMaskAll(node.MaskMode(m.st.Record.Masking))
}

// EndFailed ends a run that cannot continue.
func (m *Machine) EndFailed(now time.Time, why string) {
	m.Begin(now)
	m.cancelNodes(now, string(fault.InternalError))
	m.endFailed(now, "", &wire.NodeError{Code: string(fault.InternalError), Message: why})
}
