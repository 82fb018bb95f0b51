package node

import (
	"encoding/json"
	"maps"

	"waybill.dev/waybill/protocol/workflow"
)

// Edited returns the result of a node whose output ports a person has edited. ok is false for types whose
// outputs do not determine their result: those that ask a person, and those that set what their ports do
// not name.
func (t Type) Edited(ports map[string]json.RawMessage) (out Output, ok bool) {
	switch id := t.Executes(); {
	case t.Class == Asks, id == TypeSetVariable, id == workflow.TypeChannelWrite:
		return Output{}, false
	case id == TypeIdentity: // its ports are also variables; see identity
		writes := maps.Clone(ports)
		if _, echoed := ports["input"]; echoed {
			delete(writes, "output")
		}
		return Output{Ports: ports, Writes: writes}, true
	default:
		return Output{Ports: ports}, true
	}
}
