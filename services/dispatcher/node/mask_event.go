package node

import (
	"encoding/json"
	"maps"

	"waybill.dev/waybill/protocol/wire"
)

// Event is an event without what is sensitive. What cannot be read is toldPart as nothing.
func (p *MaskPolicy) Event(e wire.Event) wire.Event {
	var m map[string]json.RawMessage
	if json.Unmarshal(e.Payload, &m) != nil {
		e.Payload = json.RawMessage(`{}`)
		return e
	}
	nodeID := e.NodeID
	switch e.Type {
	case wire.EventRunStarted:
		p.within(m, "inputs", p.variable)
	case wire.EventVariableChanged:
		if p.variable(maskedText(m["name"])) || p.tainted[nodeID] {
			p.conceal(m, func(name string) bool { return name == "previous" || name == "next" })
		}
	case wire.EventChannelWritten:
		if p.channel(maskedText(m["channel"])) {
			m["value"] = p.Mode.mustStay(m["value"])
		}
	case wire.EventNodeCompleted:
		p.within(m, "outputs", func(port string) bool { return p.output(nodeID, port) })
	case wire.EventRunCompleted:
		p.within(m, "outputs", p.anyOutput)
	case wire.EventNodeFailed, wire.EventNodeRetried:
		p.failure(m, nodeID)
	case wire.EventRunFailed:
		p.failure(m, maskedText(m["failedNodeId"]))
	case wire.EventLogAppended:
		if p.all || p.tainted[nodeID] {
			m["message"] = json.RawMessage(redactedPart)
			delete(m, "fields")
		}
	default:
		return e
	}
	out, err := json.Marshal(m)
	if err != nil { // members that were JSON
		out = json.RawMessage(`{}`)
	}
	e.Payload = out
	return e
}

// anyOutput reports whether a port of the run's outputs may be a sensitive one: they
// are those of several nodes under the names of their ports.
func (p *MaskPolicy) anyOutput(port string) bool {
	if p.all || len(p.tainted) > 0 {
		return true
	}
	for _, ports := range p.outputs {
		if ports[port] {
			return true
		}
	}
	return false
}

// within conceals members of a member.
func (p *MaskPolicy) within(m map[string]json.RawMessage, name string, sensitive func(string) bool) {
	var inner map[string]json.RawMessage
	if m[name] == nil || json.Unmarshal(m[name], &inner) != nil {
		return
	}
	p.conceal(inner, sensitive)
	if out, err := json.Marshal(inner); err == nil {
		m[name] = out
	}
}

// failure keeps the code of an error of a node that has read something sensitive; what
// it says may repeat it.
func (p *MaskPolicy) failure(m map[string]json.RawMessage, nodeID string) {
	if !p.all && !p.tainted[nodeID] {
		return
	}
	for _, name := range []string{"error", "lastError"} {
		var e map[string]json.RawMessage
		if m[name] == nil || json.Unmarshal(m[name], &e) != nil {
			continue
		}
		e["message"] = json.RawMessage(redactedPart)
		delete(e, "details")
		if out, err := json.Marshal(e); err == nil {
			m[name] = out
		}
	}
}

// Record is a run's record without what is sensitive.
func (p *MaskPolicy) Record(r *wire.RunRecord) *wire.RunRecord {
	out := *r
	out.Masking = string(p.Mode)
	out.Inputs, out.Defaults, out.Channels = maps.Clone(r.Inputs), maps.Clone(r.Defaults), maps.Clone(r.Channels)
	p.conceal(out.Inputs, p.variable)
	p.conceal(out.Defaults, p.variable)
	for name, c := range out.Channels {
		if !p.channel(name) {
			continue
		}
		c.Default = p.Mode.Conceal(c.Default)
		c.Shown = p.Mode.mustStay(json.RawMessage(redactedPart))
		out.Channels[name] = c
	}
	return &out
}

func maskedText(raw json.RawMessage) string {
	var s string
	if json.Unmarshal(raw, &s) != nil {
		return ""
	}
	return s
}
