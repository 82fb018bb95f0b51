package dispatcher

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"

	"waybill.dev/waybill/protocol/fault"
	"waybill.dev/waybill/protocol/wire"
	"waybill.dev/waybill/services/dispatcher/model"
	"waybill.dev/waybill/services/dispatcher/node"
	"waybill.dev/waybill/services/dispatcher/tool"
)

// runners execute the effects that are no models; test seams have one more.
func (s *Service) runners() tool.Runners {
	if !s.cfg.TestSeams {
		return s.deps.Tools
	}
	out := tool.Runners{node.TypeSideEffect: sideEffect{}}
	maps.Copy(out, s.deps.Tools)
	return out
}

// sideEffect does something that is seen in the log, and nothing in a replay: what it
// did then has to be recorded (OpenWOP host contract §5.6).
type sideEffect struct{}

// Check finds nothing wrong with any config.
func (sideEffect) Check(json.RawMessage) *wire.NodeError { return nil }

// Run performs the effect: what is seen of it is recorded together with its outcome,
// so that it happens once, whoever is lost meanwhile.
func (sideEffect) Run(_ context.Context, t model.Task, _ model.Journal) model.Result {
	if t.Replay {
		return model.Result{Trust: wire.Trusted, Err: &wire.NodeError{
			Code:    string(fault.ReplaySourceMissing),
			Message: fmt.Sprintf("node %q has a side effect, and the run that is replayed recorded no outcome of it; fork with mode branch to perform it", t.Input.NodeID),
		}}
	}
	id := model.InvocationID(t, 0, "conformance:side-effect")
	told := wire.Draft{Type: wire.EventLogAppended, NodeID: t.Input.NodeID, Payload: fmt.Appendf(nil,
		`{"level":"info","message":"side effect performed","nodeId":%s,"fields":{"logicalInvocationId":%q}}`, wire.AppendString(nil, t.Input.NodeID), id)}
	return model.Result{
		Trust: wire.Trusted, Drafts: []wire.Draft{told},
		Output: node.Output{Ports: map[string]json.RawMessage{"performed": json.RawMessage(`true`), "logicalInvocationId": wire.AppendString(nil, id)}},
	}
}

// withoutPlantedSecret is a definition without the attributes that the suite's node for costs
// is given: one of them looks like a key on purpose, and the test is that the node
// tells it to nobody.
func withoutPlantedSecret(raw []byte) []byte {
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
	if def["nodes"], err = json.Marshal(nodes); err != nil { // members that were JSON
		return raw
	}
	out, err := json.Marshal(def)
	if err != nil {
		return raw
	}
	return out
}
