package machine

import (
	"encoding/json"
	"time"

	"waybill.dev/waybill/protocol/runstate"
	"waybill.dev/waybill/protocol/wire"
	"waybill.dev/waybill/services/dispatcher/node"
)

// editedOutputs returns the outputs that the run's record has for a node; nil executes the node.
func (m *Machine) editedOutputs(id string) map[string]json.RawMessage {
	if e := m.st.Record.Edit(id); e != nil {
		return e.Outputs
	}
	return nil
}

// completeEdited starts a node and completes it with the outputs of the run's record. Start and end are
// in one frame, as for a pure node, so that a crash leaves both or neither, and a replay repeats them
// from its own record, which has the same outputs.
func (m *Machine) completeEdited(now time.Time, id string, out map[string]json.RawMessage, attempt int) {
	m.emitFact(now, wire.EventNodeStarted, id, startedNodePayload{
		NodeID: id, TypeID: m.step(id).Node.TypeID, Attempt: attempt,
	})
	m.returnEdited(now, id, out)
}

// repairEdited completes a node with edited outputs if the copied history ends between its start and its
// end. It returns false for other nodes.
func (m *Machine) repairEdited(now time.Time, id string, n *runstate.Node) bool {
	out := m.editedOutputs(id)
	if out == nil || n.Status != runstate.NodeRunning {
		return false
	}
	m.returnEdited(now, id, out)
	return true
}

func (m *Machine) returnEdited(now time.Time, id string, out map[string]json.RawMessage) {
	typeID := m.step(id).Node.TypeID
	result, ok := m.plan.Types[typeID].Edited(out)
	if !ok { // the host that created the run had another version of the type
		m.failNode(now, id, node.Invalid("the outputs of a node of type %s cannot be edited", typeID), m.st.Nodes[id].Attempt, m.nodeTrust(id))
		return
	}
	m.Complete(now, id, result, m.nodeTrust(id))
}
