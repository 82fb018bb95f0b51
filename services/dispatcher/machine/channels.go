package machine

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"time"

	"waybill.dev/waybill/protocol/channel"
	"waybill.dev/waybill/protocol/cost"
	"waybill.dev/waybill/protocol/fault"
	"waybill.dev/waybill/protocol/wire"
	"waybill.dev/waybill/protocol/workflow"
	"waybill.dev/waybill/services/dispatcher/node"
)

// checkWrites returns an error if a node may not write its output. It runs before any event of the
// output is emitted, so that a node writes all or nothing.
func (m *Machine) checkWrites(now time.Time, id string, out node.Output) *wire.NodeError {
	for _, name := range slices.Sorted(maps.Keys(out.Writes)) {
		if bad := m.checkVariable(name); bad != nil {
			return bad
		}
	}
	after := map[string]*channel.State{}
	now = m.env.writeTime(now, id)
	for _, w := range out.Channels {
		if bad := m.checkWrite(now, id, w, after); bad != nil {
			return bad
		}
	}
	return nil
}

// checkVariable returns an error if a channel has the variable's name.
func (m *Machine) checkVariable(name string) *wire.NodeError {
	if m.plan.Def.Channel(name) == nil {
		return nil
	}
	return node.Invalid("variable %q shows the content of the channel of that name; "+
		"write to the channel, with %s, or rename one", name, workflow.TypeChannelWrite)
}

// checkWrite checks one write against the state after the writes before it.
func (m *Machine) checkWrite(
	now time.Time, id string, w node.ChannelWrite, after map[string]*channel.State,
) *wire.NodeError {
	c := m.plan.Def.Channel(w.Channel)
	if c == nil {
		return node.Invalid("channel %q is not declared; declare it under channels of the workflow", w.Channel)
	}
	def := m.step(id).Node
	if !c.Access.MayWrite(id, def.TypeID) {
		return accessDenied(c.Name, def, "write to", "writers")
	}
	st := after[w.Channel]
	if st == nil {
		st = m.channelState(c)
	}
	if b := st.Broken(); b != nil {
		return schemaBreaking(c.Name, b)
	}
	if err := c.Check(st, w.Value, now); err != nil {
		return node.Invalid("%s", err)
	}
	after[w.Channel] = st.With(c.Written(id, w.Value, now))
	return nil
}

// channelState returns the state of a channel. A run that started before records had channels uses
// the writes since then.
func (m *Machine) channelState(c *channel.Channel) *channel.State {
	if st := m.st.Channels[c.Name]; st != nil {
		return st
	}
	return channel.New(c.Pinned(), m.st.Record.Since())
}

// writeChannels emits the channel writes of a node, and its cost.
func (m *Machine) writeChannels(now time.Time, id string, out node.Output, trust wire.Trust) {
	for _, w := range out.Channels {
		written := m.plan.Def.Channel(w.Channel).Written(id, w.Value, m.env.writeTime(now, id))
		m.emitData(now, wire.EventChannelWritten, id, trust, written)
	}
	if out.Cost != nil {
		m.emitData(now, wire.EventLogAppended, id, trust, costPayload{
			Level: "info", Message: "cost recorded", NodeID: id, Fields: out.Cost,
		})
	}
}

type costPayload struct {
	Level   string          `json:"level"`
	Message string          `json:"message"`
	NodeID  string          `json:"nodeId"`
	Fields  cost.Attributes `json:"fields"`
}

// checkRead returns an error if a node may not read a variable. Only channels have readers.
func (m *Machine) checkRead(id, variable string) *wire.NodeError {
	c := m.plan.Def.Channel(variable)
	if c == nil {
		return nil
	}
	if def := m.step(id).Node; !c.Access.MayRead(id, def.TypeID) {
		return accessDenied(c.Name, def, "read", "readers")
	}
	if st := m.st.Channels[variable]; st != nil && st.Broken() != nil {
		return schemaBreaking(c.Name, st.Broken())
	}
	return nil
}

// visibleVariables are the variables without the channels that a node may not read (OpenWOP host
// contract §5.9). They are used for its inputs, its expressions, the conditions of its edges, and
// the inputs of its child. The caller must not change them.
func (m *Machine) visibleVariables(def *workflow.Node) map[string]json.RawMessage {
	all := m.st.Variables
	hidden := map[string]json.RawMessage(nil)
	for name, c := range m.plan.Def.DeclaredChannels() {
		if c.Access.MayRead(def.ID, def.TypeID) || all[name] == nil {
			continue
		}
		if hidden == nil {
			hidden = maps.Clone(all)
		}
		delete(hidden, name)
	}
	if hidden != nil {
		return hidden
	}
	return all
}

// addChannels adds the names and reducers of all channels to a node's input.
func (m *Machine) addChannels(step *workflow.Step, in *node.Input) {
	declared := m.plan.Def.DeclaredChannels()
	if len(declared) == 0 {
		return
	}
	in.Channels = make(map[string]string, len(declared))
	for name, c := range declared {
		in.Channels[name] = c.Reducer()
	}
}

func accessDenied(name string, def *workflow.Node, what, list string) *wire.NodeError {
	return &wire.NodeError{
		Code: string(fault.ChannelAccessDenied),
		Message: fmt.Sprintf("node %q may not %s channel %q; add its id or its type to access.%s of the channel",
			def.ID, what, name, list),
		Details: map[string]any{
			"channel":     name,
			"requestedBy": map[string]any{"nodeId": def.ID, "typeId": def.TypeID},
			"allowed":     list,
		},
	}
}

func schemaBreaking(name string, b *channel.Break) *wire.NodeError {
	const hint = "keep the channel as it was and declare a new one, with a node that copies what is still needed"
	return &wire.NodeError{
		Code: string(fault.ChannelSchemaBreaking),
		Message: fmt.Sprintf("channel %q holds a write of schema version %d, which version %d does not read: "+
			"list it in compatibleWith if what was written fits the schema, or %s",
			name, b.Version, b.Current, hint),
		Details: map[string]any{
			"channel":                  name,
			"currentSchemaVersion":     b.Current,
			"incompatibleEventVersion": b.Version,
			"incompatibleEventId":      b.EventID,
			"migrationHint":            hint,
		},
	}
}
