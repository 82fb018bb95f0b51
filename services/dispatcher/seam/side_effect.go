package seam

import (
	"context"
	"encoding/json"
	"fmt"

	"waybill.dev/waybill/protocol/fault"
	"waybill.dev/waybill/protocol/wire"
	"waybill.dev/waybill/services/dispatcher/model"
	"waybill.dev/waybill/services/dispatcher/node"
)

// sideEffect has an effect that the log shows and a replay must not repeat: its outcome has to be
// recorded (OpenWOP host contract §5.6).
type sideEffect struct{}

// effectPeer names the receiver of the effect in its invocation id.
const effectPeer = "conformance:side-effect"

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
	id := model.InvocationID(t, 0, effectPeer)
	var fields, payload wire.ObjectWriter
	fields.String("logicalInvocationId", id)
	payload.String("level", "info")
	payload.String("message", "side effect performed")
	payload.String("nodeId", t.Input.NodeID)
	payload.Raw("fields", fields.Close())
	return model.Result{
		Trust:  wire.Trusted,
		Drafts: []wire.Draft{{Type: wire.EventLogAppended, NodeID: t.Input.NodeID, Payload: payload.Close()}},
		Output: node.Output{Ports: map[string]json.RawMessage{
			"performed":           json.RawMessage(`true`),
			"logicalInvocationId": wire.AppendString(nil, id),
		}},
	}
}
