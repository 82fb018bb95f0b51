package node

import (
	"encoding/json"
	"maps"
	"slices"

	"waybill.dev/waybill/protocol/strictjson"
	"waybill.dev/waybill/protocol/workflow"
)

// MaskPolicy describes which values of a workflow's runs are sensitive. It is immutable.
type MaskPolicy struct {
	Mode MaskMode
	// all means that the workflow's compliance class makes every value sensitive.
	all       bool
	variables map[string]bool
	channels  map[string]bool
	// outputs are the marked ports, by node. tainted are the nodes that read a sensitive value, so
	// that all their outputs are sensitive.
	outputs map[string]map[string]bool
	tainted map[string]bool
	// anyVariable means that a tainted node may have written any variable.
	anyVariable bool
}

// public is the compliance class of workflows without sensitive data.
const public = "public"

// NewMaskPolicy returns the policy of a workflow; nil if it has no sensitive values or its author
// chose passthrough.
func NewMaskPolicy(def *workflow.Definition, types Catalog) *MaskPolicy {
	p := &MaskPolicy{
		Mode:      MaskMode(def.Metadata.MaskingMode),
		all:       def.Metadata.ComplianceClass != public && def.Metadata.ComplianceClass != "",
		variables: map[string]bool{},
		channels:  map[string]bool{},
		outputs:   map[string]map[string]bool{},
		tainted:   map[string]bool{},
	}
	if p.Mode == "" {
		p.Mode = Mask
	}
	if !p.collectMarks(def, types) || p.Mode == Passthrough {
		return nil
	}
	for p.taintReaders(def, types) { //nolint:revive // each round taints another node, or ends
	}
	return p
}

// NewMaskAll returns a policy under which all values are sensitive.
func NewMaskAll(mode MaskMode) *MaskPolicy { return &MaskPolicy{Mode: mode, all: true} }

// collectMarks collects the marks of the author and the packs. It reports whether there are any.
func (p *MaskPolicy) collectMarks(def *workflow.Definition, types Catalog) bool {
	for _, v := range def.Variables {
		if v.Sensitive {
			p.variables[v.Name] = true
		}
	}
	for name, c := range def.Channels {
		if c.Sensitive {
			p.channels[name] = true
		}
	}
	for i := range def.Nodes {
		n := &def.Nodes[i]
		ports := maps.Clone(types[n.TypeID].Sensitive)
		if ports == nil {
			ports = map[string]bool{}
		}
		maps.Copy(ports, n.OutputSensitivity) // the instance overrides its type
		maps.DeleteFunc(ports, func(_ string, sensitive bool) bool { return !sensitive })
		if len(ports) > 0 {
			p.outputs[n.ID] = ports
		}
	}
	return p.all || len(p.variables)+len(p.channels)+len(p.outputs) > 0
}

// taintReaders taints the nodes that read sensitive values and marks what they write. It reports
// whether it found new ones.
func (p *MaskPolicy) taintReaders(def *workflow.Definition, types Catalog) bool {
	more := false
	for i := range def.Nodes {
		n := &def.Nodes[i]
		if p.tainted[n.ID] || !p.readsSensitive(def, n, types[n.TypeID]) {
			continue
		}
		more = true
		p.tainted[n.ID] = true
		p.markWrites(def, n, types[n.TypeID])
	}
	return more
}

// readsPorts are the types that only read their ports. Other types can read any variable or input,
// as an expression can.
var readsPorts = map[string]bool{
	"core.noop": true, "core.delay": true, "core.fail": true, "core.identity": true, workflow.TypeChannelWrite: true,
	TypeEnd: true, TypeParallel: true, TypeMerge: true, TypeSetVariable: true,
}

// readsSensitive reports whether a node can read a sensitive value, given that there is one.
func (p *MaskPolicy) readsSensitive(def *workflow.Definition, n *workflow.Node, t Type) bool {
	if p.all || !readsPorts[t.Executes()] && (p.anyVariable || len(p.variables)+len(p.channels) > 0) {
		return true
	}
	for _, e := range def.Edges {
		if e.TargetNodeID == n.ID && p.isOutputSensitive(e.SourceNodeID, e.SourceOutput) {
			return true
		}
	}
	for _, v := range n.Inputs {
		switch v.Type {
		case workflow.PortVariable:
			if p.isVariableSensitive(v.VariableName) {
				return true
			}
		case workflow.PortExpression:
			return true
		case workflow.PortConnection:
			if p.isOutputSensitive(v.NodeID, v.OutputKey) {
				return true
			}
		}
	}
	return false
}

// markWrites marks the variables and channels that a tainted node can write.
func (p *MaskPolicy) markWrites(def *workflow.Definition, n *workflow.Node, t Type) {
	switch t.Executes() {
	case workflow.TypeChannelWrite:
		var c struct {
			Name string `json:"channelName"`
		}
		_ = strictjson.Read(t.Configure(n.Config), &c) // a node with an unreadable config writes nothing
		p.channels[c.Name] = true
	case "core.identity":
		for port := range n.Inputs {
			p.variables[port] = true
		}
		for _, e := range def.Edges {
			if e.TargetNodeID == n.ID {
				p.variables[e.TargetInput] = true
			}
		}
	case "core.noop", "core.delay", "core.fail":
	default:
		p.anyVariable = true
	}
}

func (p *MaskPolicy) isOutputSensitive(nodeID, port string) bool {
	return p.all || p.tainted[nodeID] || p.outputs[nodeID][port]
}

func (p *MaskPolicy) isVariableSensitive(name string) bool {
	return p.all || p.anyVariable || p.variables[name] || p.channels[name]
}

func (p *MaskPolicy) isChannelSensitive(name string) bool { return p.all || p.channels[name] }

// FindUnmaskable returns the first node whose output cannot be masked in the log: it is recorded
// while it streams, by other components than the run loop.
func FindUnmaskable(def *workflow.Definition, types Catalog) (n *workflow.Node, refused bool) {
	i := slices.IndexFunc(def.Nodes, func(n workflow.Node) bool {
		t := types[n.TypeID]
		return t.EmitsEnvelopes || t.Class != Pure && t.Class != Timer && t.Class != Effect
	})
	if i < 0 {
		return nil, false
	}
	return &def.Nodes[i], true
}

// conceal replaces members of an object by name.
func (p *MaskPolicy) conceal(m map[string]json.RawMessage, sensitive func(name string) bool) {
	for name, v := range m {
		if !sensitive(name) {
			continue
		}
		if v = p.Mode.Conceal(v); v == nil {
			delete(m, name)
			continue
		}
		m[name] = v
	}
}
