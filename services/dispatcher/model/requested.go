package model

import (
	"encoding/json"

	"waybill.dev/waybill/protocol/modelgate"
	"waybill.dev/waybill/services/dispatcher/node"
)

// Requested returns the model that a node requests by its config and the run's configurable.
func (l *Loop) Requested(config, configurable json.RawMessage) modelgate.Model {
	return l.activeModel(node.Input{Config: config, Configurable: configurable})
}
