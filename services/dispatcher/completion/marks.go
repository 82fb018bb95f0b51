package completion

import (
	"encoding/json"

	"waybill.dev/waybill/protocol/strictjson"
	"waybill.dev/waybill/protocol/untrusted"
	"waybill.dev/waybill/protocol/wire"
	"waybill.dev/waybill/services/dispatcher/node"
)

// material fetches what a prompt is made of. Whatever comes from an untrusted
// source is fenced before it reaches the prompt, and makes the answer untrusted
// (OpenWOP envelope contract §12).
type material struct {
	in node.Input
	// trust falls when something untrusted is used.
	trust wire.Trust
}

// value gives a port, else a variable, as text.
func (m *material) value(name string) (text string, ok bool) {
	raw, isPort := m.in.Ports[name]
	tainted, kind := m.in.UntrustedPorts[name], "input"
	if !isPort {
		if raw, ok = m.in.Variables[name]; !ok {
			return "", false
		}
		tainted, kind = m.in.UntrustedVariables[name], "variable"
	}
	if tainted {
		return m.fenced(shown(raw), kind, name), true
	}
	return shown(raw), true
}

// fenced uses something untrusted.
func (m *material) fenced(text, kind, name string) string {
	m.trust = wire.Untrusted
	return untrusted.Wrap(text, untrusted.Mark{Type: kind, Attributes: map[string]string{"name": name}})
}

// shown is a value in a prompt: a string as it is, anything else as JSON.
func shown(raw json.RawMessage) string {
	var s string
	if json.Unmarshal(raw, &s) == nil {
		return s
	}
	return string(raw)
}

// ports is what a node hands to its model that says nothing itself.
func (m *material) ports() string {
	raw, err := json.Marshal(m.in.Ports)
	if err != nil || len(m.in.Ports) == 0 {
		raw = []byte("{}")
	}
	if len(m.in.UntrustedPorts) > 0 {
		return m.fenced(string(raw), "input", "all")
	}
	return string(raw)
}

// content is that of a message; all text of an untrusted one is fenced, and
// parts that are no text stay.
func (m *material) content(raw json.RawMessage, name string) json.RawMessage {
	if !m.in.UntrustedPorts[name] {
		return raw
	}
	var text string
	if json.Unmarshal(raw, &text) == nil {
		return wire.AppendString(nil, m.fenced(text, "message", name))
	}
	var parts []map[string]json.RawMessage
	if strictjson.Read(raw, &parts) != nil {
		return wire.AppendString(nil, m.fenced(string(raw), "message", name))
	}
	for _, p := range parts {
		if json.Unmarshal(p["text"], &text) == nil {
			p["text"] = wire.AppendString(nil, m.fenced(text, "message", name))
		}
	}
	m.trust = wire.Untrusted
	out, err := json.Marshal(parts)
	if err != nil { // it came out of JSON
		return wire.AppendString(nil, m.fenced(string(raw), "message", name))
	}
	return out
}
