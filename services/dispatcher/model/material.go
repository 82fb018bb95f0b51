package model

import (
	"encoding/json"

	"waybill.dev/waybill/protocol/untrusted"
	"waybill.dev/waybill/protocol/wire"
	"waybill.dev/waybill/services/dispatcher/node"
	"waybill.dev/waybill/services/dispatcher/provider"
)

// material fetches what a prompt is made of. Whatever comes from an untrusted
// source is fenced before it reaches the prompt, and makes the answer untrusted
// (OpenWOP envelope contract §12).
type material struct {
	in node.Input
	// trust falls when something untrusted is used.
	trust wire.Trust
}

// lookup gives a port, else a variable, as text.
func (m *material) lookup(name string) (text string, ok bool) {
	raw, isPort := m.in.Ports[name]
	tainted, kind := m.in.UntrustedPorts[name], "input"
	if !isPort {
		if raw, ok = m.in.Variables[name]; !ok {
			return "", false
		}
		tainted, kind = m.in.UntrustedVariables[name], kindVariable
	}
	if tainted {
		return m.fence(raw, kind, name), true
	}
	return promptText(raw), true
}

// kindVariable is what a fence calls a variable; everything else is a port.
const kindVariable = "variable"

// fence uses something untrusted.
func (m *material) fence(raw json.RawMessage, kind, name string) string {
	m.trust = wire.Untrusted
	mark := untrusted.Mark{Type: kind, Attributes: map[string]string{"name": name}}
	if kind != kindVariable {
		mark = m.in.Mark(kind, name)
	}
	return untrusted.Prompt(raw, wire.Untrusted, mark)
}

// promptText is a value in a prompt: a string as it is, anything else as JSON.
func promptText(raw json.RawMessage) string {
	var s string
	if json.Unmarshal(raw, &s) == nil {
		return s
	}
	return string(raw)
}

// portsText is what a node hands to its model that says nothing itself.
func (m *material) portsText() string {
	raw, err := json.Marshal(m.in.Ports)
	if err != nil || len(m.in.Ports) == 0 {
		raw = []byte("{}")
	}
	if len(m.in.UntrustedPorts) > 0 {
		return m.fence(raw, "input", "all")
	}
	return string(raw)
}

// fenceMessage fences all text of an untrusted one, text in its files among it. Images
// and sounds stay, what is neither is fenced as a whole, and nobody untrusted speaks
// for the system.
func (m *material) fenceMessage(g provider.Message) provider.Message {
	if !m.in.UntrustedPorts[portMessages] {
		return g
	}
	m.trust = wire.Untrusted
	if g.Role == "system" {
		g.Role = "user"
	}
	var parts []json.RawMessage
	if json.Unmarshal(g.Content, &parts) != nil {
		g.Content = wire.AppendString(nil, m.fence(g.Content, "message", portMessages))
		return g
	}
	said := make([]json.RawMessage, 0, len(parts))
	for _, p := range parts {
		said = append(said, m.fencePart(p)...)
	}
	out, err := json.Marshal(said)
	if err != nil { // it came out of JSON
		out = wire.AppendString(nil, m.fence(g.Content, "message", portMessages))
	}
	g.Content = out
	return g
}
