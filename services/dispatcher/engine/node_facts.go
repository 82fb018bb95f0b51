package engine

import (
	"encoding/json"

	"waybill.dev/waybill/protocol/modelgate"
	"waybill.dev/waybill/protocol/strictjson"
	"waybill.dev/waybill/protocol/wire"
	"waybill.dev/waybill/protocol/workflow"
	"waybill.dev/waybill/services/dispatcher/node"
)

// Requested returns the model that a node requests by its config and the run's configurable.
type Requested func(config, configurable json.RawMessage) modelgate.Model

// nodeFacts are what spans have of the definition that a run is pinned to.
type nodeFacts struct {
	rec       *wire.RunRecord
	def       *workflow.Definition
	requested Requested
}

func (f *nodeFacts) config(nodeID string) json.RawMessage {
	for i := range f.def.Nodes {
		if n := &f.def.Nodes[i]; n.ID == nodeID {
			return n.Config
		}
	}
	return nil
}

// Model implements runspan.Definition.
func (f *nodeFacts) Model(nodeID string) (provider, model string) {
	if f.requested == nil {
		return "", ""
	}
	m := f.requested(f.config(nodeID), f.rec.Configurable)
	return m.Provider, m.Model
}

// Peer implements runspan.Definition.
func (f *nodeFacts) Peer(typeID, nodeID string) (tool, agent string) {
	var c struct {
		Tool  string `json:"tool"`
		Agent string `json:"agent"`
	}
	switch typeID {
	case node.TypeMCPCallTool:
		_ = strictjson.Read(f.config(nodeID), &c) // the node fails on an unreadable config
		return c.Tool, ""
	case node.TypeA2ASendMessage:
		_ = strictjson.Read(f.config(nodeID), &c)
		return "", c.Agent
	default:
		return "", ""
	}
}
