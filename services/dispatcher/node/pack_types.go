package node

import (
	"encoding/json"
	"maps"
	"slices"
	"strings"

	"waybill.dev/waybill/protocol/pack"
	"waybill.dev/waybill/protocol/schema"
	"waybill.dev/waybill/protocol/wire"
	"waybill.dev/waybill/protocol/workflow"
)

// Made is a type that a pack derives from a type of the host. The host's type executes it with the
// pack's defaults.
type Made struct {
	// Base is the host's type.
	Base     string
	defaults map[string]json.RawMessage
	// config validates the author's config, input the ports, and output the outputs; nil accepts
	// anything.
	config, input, output *schema.Schema
	// Contract is the contract of nodes that declare none.
	Contract *workflow.EnvelopeContract
}

// With adds the types of packs. The packs were loaded for this catalog, so every base exists.
func (c Catalog) With(packs []*pack.Pack) Catalog {
	out := maps.Clone(c)
	for _, p := range packs {
		for _, n := range p.Nodes {
			base, ok := c[n.Base]
			if !ok {
				continue // the pack gives no base
			}
			t := base
			t.ID, t.Source = n.TypeID, packSource(p)
			t.schema = nil // its own is the pack's
			if base.schema != nil {
				t.Check = checkBoth(t.Check, base)
			}
			t.Made = &Made{
				Base:     n.Base,
				defaults: n.Defaults,
				config:   n.Config,
				input:    n.Input,
				output:   n.Output,
				Contract: n.Contract,
			}
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

// packSource returns name and version of a pack.
func packSource(p *pack.Pack) string { return p.Name + "@" + p.Version }

// checkBoth validates the whole config of a derived type as its base does, and with its base's check.
func checkBoth(check func(json.RawMessage) *wire.NodeError, base Type) func(json.RawMessage) *wire.NodeError {
	return func(raw json.RawMessage) *wire.NodeError {
		if len(raw) > 0 {
			if wrong := base.CheckConfig(raw); len(wrong) > 0 {
				return Invalid("/config%s: %s", wrong[0].Path, wrong[0].Message)
			}
		}
		if check == nil {
			return nil
		}
		return check(raw)
	}
}

// Executes returns the id of the host's type that does the work.
func (t Type) Executes() string {
	if t.Made == nil {
		return t.ID
	}
	return t.Made.Base
}

// Configure returns the effective config of a node: the author's members and the pack's defaults
// for the others.
func (t Type) Configure(config json.RawMessage) json.RawMessage {
	if t.Made == nil || len(t.Made.defaults) == 0 {
		return config
	}
	all := maps.Clone(t.Made.defaults)
	var own map[string]json.RawMessage
	if len(config) > 0 && json.Unmarshal(config, &own) != nil {
		return config // the node fails when it starts
	}
	maps.Copy(all, own)
	out, err := json.Marshal(all)
	if err != nil { // members that were JSON
		return config
	}
	return out
}

// CheckConfig returns the problems of a node's config before a run is created. Paths are relative to the
// config. Definitions that an earlier version accepted continue to run: what it did not check is left
// to LintConfig.
func (t Type) CheckConfig(config json.RawMessage) []workflow.Problem {
	if len(config) == 0 {
		config = json.RawMessage(`{}`)
	}
	if t.Made != nil {
		if t.Made.config == nil {
			return nil
		}
		return workflow.Violations("", t.Made.config, config)
	}
	if t.schema == nil {
		return nil
	}
	return slices.DeleteFunc(workflow.Violations("", t.schema, config), func(p workflow.Problem) bool {
		switch p.Path {
		case "/temperature", "/topP":
			return p.Rule != "type"
		default:
			return strings.HasPrefix(p.Path, "/envelopeContract/") || p.Rule == workflow.RuleUnknownMember && strings.Count(p.Path, "/") == 1
		}
	})
}

// CheckInput returns an error if a node's ports violate its type.
func (t Type) CheckInput(ports map[string]json.RawMessage) *wire.NodeError {
	if t.Made == nil {
		return nil
	}
	return validatePorts(t.Made.input, "inputs", ports)
}

// CheckOutput returns an error if a node's outputs violate its type.
func (t Type) CheckOutput(ports map[string]json.RawMessage) *wire.NodeError {
	if t.Made == nil {
		return nil
	}
	return validatePorts(t.Made.output, "outputs", ports)
}

// validatePorts reports the violated rule without the value, which may be sensitive.
func validatePorts(s *schema.Schema, what string, ports map[string]json.RawMessage) *wire.NodeError {
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
