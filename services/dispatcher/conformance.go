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

// runners returns the runners of effects other than model calls, including the one of the test
// seams.
func (s *Service) runners() tool.Runners {
	if !s.cfg.TestSeams {
		return s.deps.Tools
	}
	out := tool.Runners{node.TypeSideEffect: sideEffect{}}
	maps.Copy(out, s.deps.Tools)
	return out
}

// sideEffect has an effect that the log shows and a replay must not repeat: its outcome has to be
// recorded (OpenWOP host contract §5.6).
type sideEffect struct{}

// Check accepts any config.
func (sideEffect) Check(json.RawMessage) *wire.NodeError { return nil }

// Run performs the effect. The effect is recorded together with its outcome, so it happens once
// even if the owner is lost.
func (sideEffect) Run(_ context.Context, t model.Task, _ model.Journal) model.Result {
	if t.Replay {
		return model.Result{Trust: wire.Trusted, Err: &wire.NodeError{
			Code:    string(fault.ReplaySourceMissing),
			Message: fmt.Sprintf("node %q has a side effect, and the run that is replayed recorded no outcome of it; fork with mode branch to perform it", t.Input.NodeID),
		}}
	}
	id := model.InvocationID(t, 0, "conformance:side-effect")
	var fields, payload wire.ObjectWriter
	fields.String("logicalInvocationId", id)
	payload.String("level", "info")
	payload.String("message", "side effect performed")
	payload.String("nodeId", t.Input.NodeID)
	payload.Raw("fields", fields.Close())
	event := wire.Draft{Type: wire.EventLogAppended, NodeID: t.Input.NodeID, Payload: payload.Close()}
	return model.Result{
		Trust: wire.Trusted, Drafts: []wire.Draft{event},
		Output: node.Output{Ports: map[string]json.RawMessage{"performed": json.RawMessage(`true`), "logicalInvocationId": wire.AppendString(nil, id)}},
	}
}

// withoutPlantedSecret returns a definition without the attributes of the test suite's cost node.
// One of them deliberately looks like a key, to test that the node does not record it.
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
	if def["nodes"], err = json.Marshal(nodes); err != nil { // raw members always render
		return raw
	}
	out, err := json.Marshal(def)
	if err != nil {
		return raw
	}
	return out
}
