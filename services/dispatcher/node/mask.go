package node

import (
	"encoding/json"
	"maps"
	"slices"

	"waybill.dev/waybill/protocol/strictjson"
	"waybill.dev/waybill/protocol/workflow"
)

// MaskPolicy is what of a workflow's runs is sensitive. It is immutable.
type MaskPolicy struct {
	Mode MaskMode
	// all: the workflow's class says that everything is.
	all       bool
	variables map[string]bool
	channels  map[string]bool
	// outputs are ports that are marked, by node; tainted are nodes that read something
	// sensitive, so that whatever they make is.
	outputs map[string]map[string]bool
	tainted map[string]bool
	// anyVariable: a node that read something sensitive may have written any.
	anyVariable bool
}

// public is the class of workflows about nothing in particular.
const public = "public"

// PolicyOf is the policy of a workflow; nil: nothing of it is sensitive, or its author wants
// it toldPart.
func PolicyOf(def *workflow.Definition, types Catalog) *MaskPolicy {
	p := &MaskPolicy{
		Mode: MaskMode(def.Metadata.MaskingMode), all: def.Metadata.ComplianceClass != public && def.Metadata.ComplianceClass != "",
		variables: map[string]bool{}, channels: map[string]bool{}, outputs: map[string]map[string]bool{}, tainted: map[string]bool{},
	}
	if p.Mode == "" {
		p.Mode = Mask
	}
	if !p.mark(def, types) || p.Mode == Passthrough {
		return nil
	}
	for p.spread(def, types) { //nolint:revive // each round taints one node more, or ends
	}
	return p
}

// MaskEverything is the policy under which all values are sensitive.
func MaskEverything(mode MaskMode) *MaskPolicy { return &MaskPolicy{Mode: mode, all: true} }

// mark takes what the author and the packs mark; false: that is nothing.
func (p *MaskPolicy) mark(def *workflow.Definition, types Catalog) bool {
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

// spread taints the nodes that read something sensitive, and marks what they write;
// false: there were none but those known.
func (p *MaskPolicy) spread(def *workflow.Definition, types Catalog) bool {
	more := false
	for i := range def.Nodes {
		n := &def.Nodes[i]
		if p.tainted[n.ID] || !p.reads(def, n, types[n.TypeID]) {
			continue
		}
		more = true
		p.tainted[n.ID] = true
		p.writes(def, n, types[n.TypeID])
	}
	return more
}

// readsPorts are the types that see nothing but their ports. Others may look at any
// variable or input, as an expression may.
var readsPorts = map[string]bool{
	"core.noop": true, "core.delay": true, "core.fail": true, "core.identity": true, workflow.TypeChannelWrite: true,
	TypeEnd: true, TypeParallel: true, TypeMerge: true, TypeSetVariable: true,
}

// reads reports whether a node can see something sensitive; there is something.
func (p *MaskPolicy) reads(def *workflow.Definition, n *workflow.Node, t Type) bool {
	if p.all || !readsPorts[t.Executes()] && (p.anyVariable || len(p.variables)+len(p.channels) > 0) {
		return true
	}
	for _, e := range def.Edges {
		if e.TargetNodeID == n.ID && p.output(e.SourceNodeID, e.SourceOutput) {
			return true
		}
	}
	for _, v := range n.Inputs {
		switch v.Type {
		case workflow.PortVariable:
			if p.variable(v.VariableName) {
				return true
			}
		case workflow.PortExpression:
			return true
		case workflow.PortConnection:
			if p.output(v.NodeID, v.OutputKey) {
				return true
			}
		}
	}
	return false
}

// writes marks the variables and channels that a tainted node can write.
func (p *MaskPolicy) writes(def *workflow.Definition, n *workflow.Node, t Type) {
	switch t.Executes() {
	case workflow.TypeChannelWrite:
		var c struct {
			Name string `json:"channelName"`
		}
		_ = strictjson.Read(t.Configure(n.Config), &c) // a node whose config cannot be read writes nothing
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

func (p *MaskPolicy) output(nodeID, port string) bool {
	return p.all || p.tainted[nodeID] || p.outputs[nodeID][port]
}

func (p *MaskPolicy) variable(name string) bool {
	return p.all || p.anyVariable || p.variables[name] || p.channels[name]
}

func (p *MaskPolicy) channel(name string) bool { return p.all || p.channels[name] }

// Refuses names the first node that tells more than this package can take out of what
// is recorded: its words are toldPart while they come, and by others than the run loop.
func Refuses(def *workflow.Definition, types Catalog) (n *workflow.Node, refused bool) {
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
