package node

import (
	"encoding/json"
	"maps"
	"slices"

	"waybill.dev/waybill/protocol/pack"
	"waybill.dev/waybill/protocol/schema"
	"waybill.dev/waybill/protocol/wire"
	"waybill.dev/waybill/protocol/workflow"
)

// Made is a type that a pack makes of one of the host's: that one does the work, with
// the config filled in as far as the pack knows it.
type Made struct {
	// Base is the host's type.
	Base     string
	defaults map[string]json.RawMessage
	// config judges what the author of a workflow writes, input the ports, output what
	// comes out; nil: anything will do.
	config, input, output *schema.Schema
	// Contract is that of nodes which declare none of their own.
	Contract *workflow.EnvelopeContract
}

// With adds the types that packs make. The packs were read for this catalog, so that
// every base is there.
func (c Catalog) With(packs []*pack.Pack) Catalog {
	out := maps.Clone(c)
	for _, p := range packs {
		for _, n := range p.Nodes {
			base, ok := c[n.Base]
			if !ok {
				continue // the pack does not say of what to make it
			}
			t := base
			t.ID, t.Source = n.TypeID, source(p)
			if t.Made != nil {
				t.Check = both(t.Check, t.Made.config)
			}
			t.Made = &Made{Base: n.Base, defaults: n.Defaults, config: n.Config, input: n.Input, output: n.Output, Contract: n.Contract}
			t.Sensitive = n.Sensitive
			t.Secrets, t.Requires = n.Secrets, slices.Concat(base.Requires, n.Requires)
			if needs := n.Needs; len(needs.Required) > 0 || needs.Fallback != nil {
				t.Needs = &needs
			}
			out[n.TypeID] = t
		}
	}
	return out
}

// source names a pack.
func source(p *pack.Pack) string { return p.Name + "@" + p.Version }

// both checks the whole config of a made type as its base would, too.
func both(check func(json.RawMessage) *wire.NodeError, config *schema.Schema) func(json.RawMessage) *wire.NodeError {
	return func(raw json.RawMessage) *wire.NodeError {
		if config != nil && len(raw) > 0 {
			if wrong := config.Validate(raw); len(wrong) > 0 {
				return Invalid("/config%s: %s", wrong[0].InstancePath, wrong[0].Message)
			}
		}
		if check == nil {
			return nil
		}
		return check(raw)
	}
}

// Executes is the host's type that does the work.
func (t Type) Executes() string {
	if t.Made == nil {
		return t.ID
	}
	return t.Made.Base
}

// Configure is the config a node of the type works with: the author's members, and
// the pack's where the author wrote none.
func (t Type) Configure(config json.RawMessage) json.RawMessage {
	if t.Made == nil || len(t.Made.defaults) == 0 {
		return config
	}
	all := maps.Clone(t.Made.defaults)
	var own map[string]json.RawMessage
	if len(config) > 0 && json.Unmarshal(config, &own) != nil {
		return config // the node fails on it, once it starts
	}
	maps.Copy(all, own)
	out, err := json.Marshal(all)
	if err != nil { // members that were JSON
		return config
	}
	return out
}

// CheckConfig finds what is wrong with the config of a node; Path is below it.
func (t Type) CheckConfig(config json.RawMessage) []workflow.Problem {
	if t.Made == nil || t.Made.config == nil {
		return nil
	}
	if len(config) == 0 {
		config = json.RawMessage(`{}`)
	}
	var out []workflow.Problem
	for _, v := range t.Made.config.Validate(config) {
		out = append(out, workflow.Problem{Path: v.InstancePath, Message: v.Message})
	}
	return out
}

// CheckInput fails a node whose ports are not what its type takes.
func (t Type) CheckInput(ports map[string]json.RawMessage) *wire.NodeError {
	if t.Made == nil {
		return nil
	}
	return judge(t.Made.input, "inputs", ports)
}

// CheckOutput fails a node that puts out what its type does not.
func (t Type) CheckOutput(ports map[string]json.RawMessage) *wire.NodeError {
	if t.Made == nil {
		return nil
	}
	return judge(t.Made.output, "outputs", ports)
}

// judge names the rule and not the value, which may be anybody's.
func judge(s *schema.Schema, what string, ports map[string]json.RawMessage) *wire.NodeError {
	if s == nil {
		return nil
	}
	if ports == nil {
		ports = map[string]json.RawMessage{}
	}
	doc, err := json.Marshal(ports)
	if err != nil {
		return Invalid("/%s: not JSON", what)
	}
	if wrong := s.Validate(doc); len(wrong) > 0 {
		return Invalid("/%s: %s (%s of the node type's schema)", what, wrong[0].Message, wrong[0].SchemaPath)
	}
	return nil
}
