package node

import (
	"encoding/json"

	"waybill.dev/waybill/protocol/strictjson"
	"waybill.dev/waybill/protocol/untrusted"
)

// Origin returns the external source of a node's outputs, for the fence around them in a prompt.
// The zero Mark means that there is none (OpenWOP envelope contract §12).
func Origin(typeID string, config json.RawMessage) untrusted.Mark {
	var c struct {
		Server string `json:"server"`
		Tool   string `json:"tool"`
		Agent  string `json:"agent"`
	}
	_ = strictjson.Read(config, &c) // a node with an unreadable config has no output
	switch typeID {
	case TypeMCPCallTool:
		return untrusted.Mark{Source: "mcp-tool", Attributes: map[string]string{"server": c.Server, "tool": c.Tool}}
	case TypeA2ASendMessage:
		return untrusted.Mark{Source: "a2a", Attributes: map[string]string{"agent": c.Agent}}
	default:
		return untrusted.Mark{}
	}
}

// Mark returns the fence of a port's value.
func (in Input) Mark(kind, port string) untrusted.Mark {
	m := untrusted.Mark{Source: in.Origins[port].Source, Type: kind, Attributes: map[string]string{"name": port}}
	for name, v := range in.Origins[port].Attributes {
		m.Attributes[name] = v
	}
	return m
}
