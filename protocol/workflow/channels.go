package workflow

import (
	"encoding/json"
	"errors"
	"maps"
	"slices"
	"strings"

	"waybill.dev/waybill/protocol/channel"
	"waybill.dev/waybill/protocol/schema"
	"waybill.dev/waybill/protocol/strictjson"
	"waybill.dev/waybill/protocol/wire"
)

// TypeChannelWrite is the node type that writes to a channel. It also declares the channel if the
// workflow does not.
const TypeChannelWrite = "core.channelWrite"

// reducers are the names of the protocol.
var reducers = []string{channel.Replace, channel.Append, channel.Merge, channel.Counter, channel.Votes, channel.Feedback, channel.Message}

// meant returns a suggestion for an unknown name, as the middle of a message.
func meant(name string, known []string) string {
	if near := schema.Near(name, known); near != "" {
		return "; did you mean " + near + "? "
	}
	return "; "
}

// maxTTL is a year, in milliseconds.
const maxTTL = 31_536_000_000

// maxChannelName limits the name of a channel, in bytes.
const maxChannelName = 256

// Channel returns a channel by name; nil means neither the workflow nor a node declares it.
func (d *Definition) Channel(name string) *channel.Channel { return d.channels[name] }

// DeclaredChannels returns all channels by name. They must not be changed.
func (d *Definition) DeclaredChannels() map[string]*channel.Channel { return d.channels }

// PinnedChannels returns the part of the channels that a run's record holds; nil if none.
func (d *Definition) PinnedChannels() map[string]wire.Channel {
	if len(d.channels) == 0 {
		return nil
	}
	out := make(map[string]wire.Channel, len(d.channels))
	for name, c := range d.channels {
		out[name] = c.Pinned()
	}
	return out
}

// checkChannels checks the declarations and prepares the valid ones (OpenWOP host contract §5.9).
func checkChannels(d *Definition, found *problems) {
	d.channels = map[string]*channel.Channel{}
	for _, name := range slices.Sorted(maps.Keys(d.Channels)) {
		if at := pointer("channels", name); !found.touch(at) {
			checkChannel(d, name, at, found)
		}
	}
	for i := range d.Nodes {
		if n := &d.Nodes[i]; n.TypeID == TypeChannelWrite && !found.touch(pointer("nodes", i)) {
			checkChannelWrite(d, n, pointer("nodes", i, "config"), found)
		}
	}
}

func checkChannel(d *Definition, name, at string, found *problems) {
	if name == "" || len(name) > maxChannelName {
		found.add(at, RuleChannel, "want a channel name of 1 to 256 bytes")
		return
	}
	if i := slices.IndexFunc(d.Variables, func(v Variable) bool { return v.Name == name }); i >= 0 {
		found.add(at, RuleUnique, "the variable at "+pointer("variables", i, "name")+" has this name, and a channel's value is stored in the variable of its name; rename one")
	}
	c := d.Channels[name]
	if c.Default != nil && !fitsReducer(c.Reducer, c.Default) {
		found.add(at+"/default", RuleChannel, "want "+stateOf(c.Reducer)+", as required by reducer "+c.Reducer+"; got "+strictjson.KindOf(c.Default))
	}
	ready, err := channel.Declare(name, wire.Channel{
		Reducer: c.Reducer, Default: c.Default, MaxSize: c.MaxSize, TTLMillis: c.TTLMillis, SchemaVersion: c.SchemaVersion, CompatibleWith: c.CompatibleWith,
	}, c.Schema, channel.ParseAccess(c.Access))
	if err != nil {
		path, reason := "", err.Error()
		if e, ok := errors.AsType[*schema.Error](err); ok {
			path, reason = e.Path, e.Reason
		}
		found.add(at+"/schema"+path, RuleSchema, reason)
		return
	}
	d.channels[name] = ready
}

// stateOf returns the type of value that a reducer produces.
func stateOf(reducer string) string {
	switch {
	case channel.Gathers(reducer):
		return "an array"
	case reducer == channel.Merge:
		return "an object"
	case reducer == channel.Counter:
		return "a number"
	default:
		return ""
	}
}

func fitsReducer(reducer string, value json.RawMessage) bool {
	want := stateOf(reducer)
	return want == "" || strictjson.KindOf(value) == want
}

// checkChannelWrite finds writes to a channel that is undeclared or declared differently elsewhere.
// The value may come from a port, so it may be absent.
func checkChannelWrite(d *Definition, n *Node, at string, found *problems) {
	config := members(n.Config)
	name := config.text("channelName")
	if name == "" || len(name) > maxChannelName {
		found.add(at+"/channelName", RuleChannel, "want the name of the channel that the node writes to, a string of 1 to 256 bytes")
		return
	}
	reducer, ttl, ok := channelOptions(config, at, found)
	if !ok {
		return
	}
	switch c := d.channels[name]; {
	case c == nil && d.Channels[name].Reducer != "": // declared, and wrong
	case c == nil && reducer == "":
		found.add(at+"/channelName", RuleChannel, "the workflow declares no channel of this name"+meant(name, slices.Sorted(maps.Keys(d.Channels)))+
			"declare it under channels, or set reducer here, such as append")
	case c == nil:
		c, _ = channel.Declare(name, wire.Channel{Reducer: reducer, TTLMillis: ttl}, nil, channel.Access{})
		c.Implicit = true
		d.channels[name] = c
	case reducer != "" && reducer != c.Reducer():
		found.add(at+"/reducer", RuleChannel, "the channel is declared with reducer "+c.Reducer()+"; remove the member, or use the same value everywhere")
	case config["ttlMs"] != nil && ttl != c.Pinned().TTLMillis:
		found.add(at+"/ttlMs", RuleChannel, "the channel is declared with another ttlMs or none; remove the member, or use the same value everywhere")
	}
}

func channelOptions(config object, at string, found *problems) (reducer string, ttl int64, ok bool) {
	reducer, ok = config.text("reducer"), true
	if config["reducer"] != nil && !channel.ValidReducer(reducer) {
		found.add(at+"/reducer", RuleChannel, "no reducer has this name"+meant(reducer, reducers)+"want "+strings.Join(reducers, ", ")+", or vendor.<org>.<name>")
		ok = false
	}
	if config["ttlMs"] != nil {
		n, isInt := config.integer("ttlMs")
		if !isInt || n < 1 || n > maxTTL {
			found.add(at+"/ttlMs", RuleChannel, "want milliseconds from 1 to 31536000000, a year")
			ok = false
		}
		ttl = n
	}
	return reducer, ttl, ok
}
