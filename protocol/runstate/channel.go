package runstate

import (
	"encoding/json"

	"waybill.dev/waybill/protocol/channel"
	"waybill.dev/waybill/protocol/wire"
)

// openChannels begins the channels of the run's record with their defaults.
func (s *State) openChannels() {
	for name, decl := range s.Record.Channels {
		if s.Channels == nil {
			s.Channels = make(map[string]*channel.State, len(s.Record.Channels))
		}
		s.Channels[name] = channel.New(decl, s.Record.Since())
		s.mirror(name)
	}
}

// applyChannel folds a write, through the reducer that its event names. A node that
// starts reads: what is too old by then is dropped (OpenWOP host contract §5.9). A
// channel that no record declares is one of an opened run, or of another host's; it
// is folded by what its events say.
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

// Age drops from the channels what is too old at an instant. Folding the start of a node
// does so by itself; who makes that event does it before, to see what the node will see.
func (s *State) Age(at string) {
	for name, c := range s.Channels {
		c.Expire(at)
		s.mirror(name)
	}
}

// mirror tells in the variables what a channel holds. A broken one holds nothing that
// could be relied on.
func (s *State) mirror(name string) {
	c := s.Channels[name]
	switch {
	case c.Broken() != nil:
		delete(s.Variables, name)
	case c.Holds():
		s.Variables[name] = c.Value()
	}
}

// taint marks the variable of a channel: what was ever written to it stays in it,
// unless the write took its place.
func (s *State) taint(w wire.ChannelWritten, trust wire.Trust) {
	s.Tainted[w.Channel] = trust == wire.Untrusted || s.Tainted[w.Channel] && w.Reducer != channel.Replace
}

// channels are the folded states of the channels that have one.
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
