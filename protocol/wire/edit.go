package wire

import "encoding/json"

// Edited is what a fork executes differently from its source. It is part of the record, so every
// dispatcher that executes the run, and every replay of it, makes the same changes.
type Edited struct {
	// Definition is the digest of the registered document that the edits change. The record's
	// WorkflowDigest is that of the result, which is not registered: a dispatcher that does not know
	// edits finds no definition, and executes nothing.
	Definition string     `json:"definition"`
	Nodes      []NodeEdit `json:"nodes"`
	// Only names the only node of the run; empty for a run of the whole workflow.
	Only string `json:"only,omitempty"`
	// UntrustedVariables are the untrusted ones of the record's inputs; only set with Only.
	UntrustedVariables []string `json:"untrustedVariables,omitempty"`
}

// NodeEdit is the edit of one node.
type NodeEdit struct {
	NodeID string `json:"nodeId"`
	// Config replaces the node's config; nil keeps it.
	Config json.RawMessage `json:"config,omitempty"`
	// Inputs are the values of ports, instead of their sources. UntrustedInputs names the untrusted
	// ones of them.
	Inputs          map[string]json.RawMessage `json:"inputs,omitempty"`
	UntrustedInputs []string                   `json:"untrustedInputs,omitempty"`
	// Outputs complete the node when it starts, instead of its execution; nil executes it.
	Outputs map[string]json.RawMessage `json:"outputs,omitzero"`
	// Untrusted means that the node of the source was untrusted: an edit does not make it trusted.
	Untrusted bool `json:"untrusted,omitempty"`
}

// Edit returns the edit of a node; nil if it has none.
func (r *RunRecord) Edit(nodeID string) *NodeEdit {
	if r.Fork == nil || r.Fork.Edited == nil {
		return nil
	}
	for i := range r.Fork.Edited.Nodes {
		if e := &r.Fork.Edited.Nodes[i]; e.NodeID == nodeID {
			return e
		}
	}
	return nil
}

// Only returns the only node of the run; empty if it executes the whole workflow.
func (r *RunRecord) Only() string {
	if r.Fork == nil || r.Fork.Edited == nil {
		return ""
	}
	return r.Fork.Edited.Only
}

// Silent reports whether webhooks and callbacks get nothing of the run: it is a replay, or executes one
// node only.
func (r *RunRecord) Silent() bool { return r.Replays() || r.Only() != "" }
