package node

import (
	"encoding/json"
	"maps"

	"waybill.dev/waybill/protocol/wire"
)

// Event returns an event without sensitive values. An unreadable payload becomes empty.
func (p *MaskPolicy) Event(e wire.Event) wire.Event {
	var m map[string]json.RawMessage
	if json.Unmarshal(e.Payload, &m) != nil {
		e.Payload = json.RawMessage(`{}`)
		return e
	}
	nodeID := e.NodeID
	switch e.Type {
	case wire.EventRunStarted:
		p.concealIn(m, "inputs", p.isVariableSensitive)
	case wire.EventVariableChanged:
		if p.isVariableSensitive(textOf(m["name"])) || p.tainted[nodeID] {
			p.conceal(m, func(name string) bool { return name == "previous" || name == "next" })
		}
	case wire.EventChannelWritten:
		if p.isChannelSensitive(textOf(m["channel"])) {
			m["value"] = p.Mode.concealRequired(m["value"])
		}
	case wire.EventNodeCompleted:
		p.concealIn(m, "outputs", func(port string) bool { return p.isOutputSensitive(nodeID, port) })
	case wire.EventRunCompleted:
		p.concealIn(m, "outputs", p.isAnyOutputSensitive)
	case wire.EventNodeFailed, wire.EventNodeRetried:
		p.concealFailure(m, nodeID)
	case wire.EventRunFailed:
		p.concealFailure(m, textOf(m["failedNodeId"]))
	case wire.EventLogAppended:
		if p.all || p.tainted[nodeID] {
			m["message"] = json.RawMessage(redactedValue)
			delete(m, "fields")
		}
	default:
		return e
	}
	out, err := json.Marshal(m)
	if err != nil { // raw members always render
		out = json.RawMessage(`{}`)
	}
	e.Payload = out
	return e
}

// isAnyOutputSensitive reports whether a port of the run's outputs may be sensitive. A run's
// outputs merge those of several nodes by port name.
func (p *MaskPolicy) isAnyOutputSensitive(port string) bool {
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

// concealIn conceals members of a member.
func (p *MaskPolicy) concealIn(m map[string]json.RawMessage, name string, sensitive func(string) bool) {
	var inner map[string]json.RawMessage
	if m[name] == nil || json.Unmarshal(m[name], &inner) != nil {
		return
	}
	p.conceal(inner, sensitive)
	if out, err := json.Marshal(inner); err == nil {
		m[name] = out
	}
}

// concealFailure reduces the error of a tainted node to its code. The message may repeat a
// sensitive value.
func (p *MaskPolicy) concealFailure(m map[string]json.RawMessage, nodeID string) {
	if !p.all && !p.tainted[nodeID] {
		return
	}
	for _, name := range []string{"error", "lastError"} {
		var e map[string]json.RawMessage
		if m[name] == nil || json.Unmarshal(m[name], &e) != nil {
			continue
		}
		e["message"] = json.RawMessage(redactedValue)
		delete(e, "details")
		if out, err := json.Marshal(e); err == nil {
			m[name] = out
		}
	}
}

// Record returns a run's record without sensitive values.
func (p *MaskPolicy) Record(r *wire.RunRecord) *wire.RunRecord {
	out := *r
	out.Masking = string(p.Mode)
	out.Inputs, out.Defaults, out.Channels = maps.Clone(r.Inputs), maps.Clone(r.Defaults), maps.Clone(r.Channels)
	p.conceal(out.Inputs, p.isVariableSensitive)
	p.conceal(out.Defaults, p.isVariableSensitive)
	for name, c := range out.Channels {
		if !p.isChannelSensitive(name) {
			continue
		}
		c.Default = p.Mode.Conceal(c.Default)
		c.Shown = p.Mode.concealRequired(json.RawMessage(redactedValue))
		out.Channels[name] = c
	}
	return &out
}

func textOf(raw json.RawMessage) string {
	var s string
	if json.Unmarshal(raw, &s) != nil {
		return ""
	}
	return s
}
