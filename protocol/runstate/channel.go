package runstate

import (
	"encoding/json"

	"waybill.dev/waybill/protocol/channel"
	"waybill.dev/waybill/protocol/wire"
)

// openChannels creates the channels of the run's record with their defaults.
func (s *State) openChannels() {
	for name, decl := range s.Record.Channels {
		if s.Channels == nil {
			s.Channels = make(map[string]*channel.State, len(s.Record.Channels))
		}
		s.Channels[name] = channel.New(decl, s.Record.Since())
		s.mirror(name)
	}
}

// applyChannel folds a write with the reducer its event names. The start of a node is a read, so it
// drops old entries (OpenWOP host contract §5.9). A channel missing from the record belongs to an
// opened run or to another host; only its events define it.
func (s *State) applyChannel(e wire.Event) {
	if e.Type == wire.EventNodeStarted {
		s.Age(e.Clock())
	}
	if e.Type != wire.EventChannelWritten {
		return
	}
	var w wire.ChannelWritten
	if json.Unmarshal(e.Payload, &w) != nil || w.Channel == "" {
		return
	}
	if w.WrittenAt == "" {
		w.WrittenAt = e.Clock()
	}
	c := s.Channels[w.Channel]
	if c == nil {
		if s.Channels == nil {
			s.Channels = map[string]*channel.State{}
		}
		c = channel.New(wire.Channel{Reducer: w.Reducer, SchemaVersion: w.SchemaVersion}, e.Timestamp)
		s.Channels[w.Channel] = c
	}
	c.Apply(e.EventID, w)
	s.mirror(w.Channel)
	s.taint(w, e.ContentTrust)
}

// Age drops channel entries that are too old at an instant. Folding a node's start does this too;
// the dispatcher calls it before creating that event, to get the node's view.
func (s *State) Age(at string) {
	for name, c := range s.Channels {
		c.Expire(at)
		s.mirror(name)
	}
}

// mirror copies a channel's value into the variables. A broken channel has no reliable value.
func (s *State) mirror(name string) {
	c := s.Channels[name]
	switch {
	case c.Broken() != nil:
		delete(s.Variables, name)
	case c.Holds():
		s.Variables[name] = c.Value()
	}
}

// taint marks the variable of a channel. Untrusted content stays in the channel until a write
// replaces it.
func (s *State) taint(w wire.ChannelWritten, trust wire.Trust) {
	s.Tainted[w.Channel] = trust == wire.Untrusted || s.Tainted[w.Channel] && w.Reducer != channel.Replace
}

// channels returns the values of the channels that have one.
func (s *State) channels() map[string]json.RawMessage {
	var out map[string]json.RawMessage
	for name, c := range s.Channels {
		v := c.Value()
		if v == nil || c.Broken() != nil {
			continue
		}
		if out == nil {
			out = make(map[string]json.RawMessage, len(s.Channels))
		}
		out[name] = v
	}
	return out
}
