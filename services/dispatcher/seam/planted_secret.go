package seam

import (
	"encoding/json"

	"waybill.dev/waybill/services/dispatcher/node"
)

// WithoutPlantedSecret returns a definition without the attributes of the test suite's cost node.
// One of them deliberately looks like a key, to test that the node does not record it. Without test
// seams the definition is unchanged.
func (s *Seams) WithoutPlantedSecret(raw []byte) []byte {
	if s == nil {
		return raw
	}
	var def map[string]json.RawMessage
	var nodes []map[string]json.RawMessage
	if json.Unmarshal(raw, &def) != nil || json.Unmarshal(def["nodes"], &nodes) != nil {
		return raw
	}
	found := false
	for _, n := range nodes {
		var typeID string
		if json.Unmarshal(n["typeId"], &typeID) == nil && typeID == node.TypeCostEmit {
			n["config"], found = json.RawMessage(`{}`), true
		}
	}
	if !found {
		return raw
	}
	var err error
	if def["nodes"], err = json.Marshal(nodes); err != nil { // raw members always render
		return raw
	}
	out, err := json.Marshal(def)
	if err != nil {
		return raw
	}
	return out
}
