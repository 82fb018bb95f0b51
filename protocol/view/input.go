package view

import "encoding/json"

// NodeInput is what a node was given when an attempt started. It is computed from the run's events
// and its definition. Values that are masked in the log are masked in it.
type NodeInput struct {
	RunID  string `json:"runId"`
	NodeID string `json:"nodeId"`
	TypeID string `json:"typeId"`
	// Sequence is the event that started the attempt.
	Sequence int             `json:"sequence"`
	Config   json.RawMessage `json:"config"`
	// Inputs are the values of the node's ports, and Untrusted those of them that come from outside.
	Inputs    map[string]json.RawMessage `json:"inputs"`
	Untrusted []string                   `json:"untrusted"`
	// Request is what a tool or an agent was sent; absent for other nodes.
	Request json.RawMessage `json:"request,omitempty"`
	// Error is why the inputs could not be computed.
	Error *Error `json:"error,omitempty"`
}
