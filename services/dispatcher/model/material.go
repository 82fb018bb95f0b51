package model

import (
	"encoding/json"
	"maps"

	"waybill.dev/waybill/protocol/untrusted"
	"waybill.dev/waybill/protocol/wire"
	"waybill.dev/waybill/services/dispatcher/node"
	"waybill.dev/waybill/services/dispatcher/node/media"
	"waybill.dev/waybill/services/dispatcher/provider"
)

// material provides the values of a prompt. Untrusted values are fenced before they enter the
// prompt and make the answer untrusted (OpenWOP envelope contract §12).
type material struct {
	// in has marks in place of assets.
	in node.Input
	// items are the assets of the prompt, assets those that were loaded.
	items  []media.Item
	assets loadedAssets
	// trust is the lowest trust of the values used so far.
	trust wire.Trust
}

// lookup returns a port, else a variable, as text.
func (m *material) lookup(name string) (text string, ok bool) {
	raw, isPort := m.in.Ports[name]
	tainted, kind := m.in.UntrustedPorts[name], "input"
	if !isPort {
		if raw, ok = m.in.Variables[name]; !ok {
			return "", m.in.Declared[name] // a declared one without a value is empty
		}
		tainted, kind = m.in.UntrustedVariables[name], kindVariable
	}
	if tainted {
		return m.fence(raw, kind, name), true
	}
	return promptText(raw), true
}

// kindVariable is the fence type of variables. All other fenced values are ports.
const kindVariable = "variable"

// fence returns an untrusted value within a fence and lowers the trust.
func (m *material) fence(raw json.RawMessage, kind, name string) string {
	m.trust = wire.Untrusted
	mark := untrusted.Mark{Type: kind, Attributes: map[string]string{"name": name}}
	if kind != kindVariable {
		mark = m.in.Mark(kind, name)
	}
	return untrusted.Prompt(raw, wire.Untrusted, mark)
}

// promptText renders a value for a prompt: strings unquoted, other values as JSON.
func promptText(raw json.RawMessage) string {
	var s string
	if json.Unmarshal(raw, &s) == nil {
		return s
	}
	return string(raw)
}

// hasTexts reports whether a port belongs into the text of the prompt.
func (m *material) hasTexts() bool {
	_, ok := m.in.Ports[media.PortMedia]
	return len(m.in.Ports) > 1 || len(m.in.Ports) == 1 && !ok
}

// portsText returns all ports but media as JSON, the message of a node without messages and prompt.
func (m *material) portsText() string {
	ports := maps.Clone(m.in.Ports)
	delete(ports, media.PortMedia)
	raw, err := json.Marshal(ports)
	if err != nil || len(ports) == 0 {
		raw = []byte("{}")
	}
	if len(m.in.UntrustedPorts) > 0 {
		return m.fence(raw, "input", "all")
	}
	return string(raw)
}

// fenceMessage fences the text of an untrusted message, including text in files. Images and sounds
// stay. Other content is fenced as a whole. An untrusted system message becomes a user message.
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
	if err != nil { // raw messages always render
		out = wire.AppendString(nil, m.fence(g.Content, "message", portMessages))
	}
	g.Content = out
	return g
}
