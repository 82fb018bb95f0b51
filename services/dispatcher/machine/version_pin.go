package machine

import (
	"fmt"
	"time"

	"waybill.dev/waybill/protocol/fault"
	"waybill.dev/waybill/protocol/wire"
	"waybill.dev/waybill/services/dispatcher/node"
)

// pinVersions pins the versions of a type's changes. The first node of a run that uses a change
// pins the newest version, and later nodes use that. A version that the code no longer supports
// fails the node (OpenWOP host contract §7.4).
func (m *Machine) pinVersions(now time.Time, id string, changes []node.Change) *wire.NodeError {
	for _, c := range changes {
		m.env.pinRecorded(now, c.ID)
		version, pinned := m.st.Pins[c.ID]
		if !pinned {
			m.emitFact(now, wire.EventVersionPinned, "", pinnedPayload{ChangeID: c.ID, Version: c.Max})
			continue
		}
		if version < c.Min || version > c.Max {
			return &wire.NodeError{
				Code: string(fault.VersionOutOfRange),
				Message: fmt.Sprintf("the run has settled for version %d of change %q, and node %q has %d to %d; "+
					"run it on a host that has the version, or start it anew",
					version, c.ID, id, c.Min, c.Max),
				Details: map[string]any{"changeId": c.ID, "pinned": version, "min": c.Min, "max": c.Max},
			}
		}
	}
	return nil
}

type pinnedPayload struct {
	ChangeID string `json:"changeId"`
	Version  int    `json:"version"`
}
