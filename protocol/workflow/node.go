package workflow

import "encoding/json"

// Node types whose edges may form a cycle (OpenWOP host contract §5.1).
const (
	TypeDispatch   = "core.dispatch"
	TypeSupervisor = "core.orchestrator.supervisor"
)

// Node is one step of a workflow.
type Node struct {
	ID     string `json:"id"`
	TypeID string `json:"typeId"`
	Name   string `json:"name"`
	// Config is an object whose shape the node type defines.
	Config json.RawMessage `json:"config"`
	// Inputs by port name. They override values from edges.
	Inputs         map[string]PortValue `json:"inputs"`
	CredentialsRef string               `json:"credentialsRef"`
	// Settings is an object, or nil.
	Settings json.RawMessage `json:"settings"`
	// OutputRole is primary, secondary or empty; a hint for display.
	OutputRole string `json:"outputRole"`
	// Disabled nodes are skipped.
	Disabled bool   `json:"disabled"`
	Notes    string `json:"notes"`
	GroupID  string `json:"groupId"`
	// Agent is an AgentRef, or nil.
	Agent json.RawMessage `json:"agent"`
	// EnvelopeContract is an object, or nil.
	EnvelopeContract json.RawMessage `json:"envelopeContract"`
	ArtifactType     string          `json:"artifactType"`
	CardType         string          `json:"cardType"`
	// OutputSensitivity by output port: true masks the port's value.
	OutputSensitivity map[string]bool `json:"outputSensitivity"`
}

// MaxRetries returns the node's own retry limit; ok is false if the workflow's applies.
func (n *Node) MaxRetries() (retries int64, ok bool) {
	if n, ok := n.retry().integer("maxRetries"); ok {
		return n, true
	}
	return members(n.Settings).integer("maxRetries")
}

// loops reports whether edges at this node may close a cycle.
func (n *Node) loops() bool {
	return n.TypeID == TypeDispatch || n.TypeID == TypeSupervisor
}

// PortType is the source of a port's value.
type PortType string

// The types of PortValue.
const (
	PortStatic     PortType = "static"
	PortExpression PortType = "expression"
	PortConnection PortType = "connection"
	PortVariable   PortType = "variable"
)

// PortValue is the source of an input port. Type determines the fields that count.
type PortValue struct {
	Type PortType `json:"type"`
	// Value of a static port.
	Value json.RawMessage `json:"value"`
	// Expression of an expression port.
	Expression string `json:"expression"`
	// NodeID and OutputKey of a connection.
	NodeID    string `json:"nodeId"`
	OutputKey string `json:"outputKey"`
	// VariableName of a variable port.
	VariableName string `json:"variableName"`
	// Optional: a connection or variable without a value leaves the port empty instead of failing
	// the
	// node.
	Optional bool `json:"optional"`
}
