package channel

import (
	"encoding/json"
	"slices"
	"strconv"
	"time"

	"waybill.dev/waybill/protocol/schema"
	"waybill.dev/waybill/protocol/wire"
)

// State is a channel after its writes. It belongs to one goroutine.
type State struct {
	decl wire.Channel
	// entries holds a list, value any other value.
	entries []entry
	value   json.RawMessage
	isList  bool
	written bool
	broken  *Break
}

// entry is one value of a list.
type entry struct {
	value json.RawMessage
	// ms is the time of the write, in milliseconds since 1970.
	ms int64
	// key is the voter or the messageId, set only while the entry is added.
	key string
}

// Break identifies the write that no longer fits the channel's schema.
type Break struct {
	// Version is the version of the write, Current the channel's.
	Version, Current int64
	EventID          string
}

// New returns a channel before its first write: its default, with the age of the run.
func New(decl wire.Channel, since string) *State {
	s := &State{decl: decl}
	if len(decl.Default) == 0 {
		return s
	}
	s.set(decl.Default)
	if Gathers(decl.Reducer) {
		ms := millis(since)
		s.list()
		for i := range s.entries {
			s.entries[i].ms = ms
		}
	}
	return s
}

// Apply folds a write with the event's reducer. A write of an older schema version counts only if
// the channel still reads it; otherwise the channel is broken from then on.
func (s *State) Apply(eventID string, w wire.ChannelWritten) {
	if s.broken != nil || len(w.Value) == 0 {
		return
	}
	if version := max(w.SchemaVersion, 1); version < s.current() && !s.reads(version, w.Value) {
		s.broken = &Break{Version: version, Current: s.current(), EventID: eventID}
		return
	}
	ms := millis(w.WrittenAt)
	s.expire(w.Reducer, ms)
	s.reduce(w.Reducer, w.Value, ms)
	s.written = true
}

func (s *State) current() int64 { return max(s.decl.SchemaVersion, 1) }

// reads reports whether a write of an older version is valid now.
func (s *State) reads(version int64, value json.RawMessage) bool {
	if !slices.Contains(s.decl.CompatibleWith, version) {
		return false
	}
	if len(s.decl.Schema) == 0 {
		return true
	}
	compiled, err := schema.Compile("channel", s.decl.Schema)
	return err == nil && accepts(compiled, s.decl, value, func() json.RawMessage { return s.with(value, 0).bare() })
}

// Expire drops the entries that are too old at an instant.
func (s *State) Expire(at string) { s.expire(s.decl.Reducer, millis(at)) }

func (s *State) expire(reducer string, now int64) {
	if s.decl.TTLMillis <= 0 || !ages(reducer) {
		return
	}
	s.entries = slices.DeleteFunc(slices.Clone(s.entries), func(e entry) bool { return e.ms < now-s.decl.TTLMillis })
}

// With returns a copy of the state after another write.
func (s *State) With(w wire.ChannelWritten) *State {
	next := *s
	next.entries = slices.Clone(s.entries)
	next.Apply("", w)
	return &next
}

// with returns a copy of the state after a value of the current schema version.
func (s *State) with(value json.RawMessage, ms int64) *State {
	next := *s
	next.entries = slices.Clone(s.entries)
	next.expire(s.decl.Reducer, ms)
	next.reduce(s.decl.Reducer, value, ms)
	next.written = true
	return &next
}

// Broken is nil if all writes could be folded.
func (s *State) Broken() *Break { return s.broken }

// Holds reports whether there is a write or a default.
func (s *State) Holds() bool { return s.written || len(s.decl.Default) > 0 }

// Value returns the folded state; nil if there is none. List, counter and merge channels always
// have one. Entries that expire include their timestamp.
func (s *State) Value() json.RawMessage {
	switch {
	case s.decl.Shown != nil:
		return s.decl.Shown
	case s.isList:
		return s.render(s.decl.TTLMillis > 0 && ages(s.decl.Reducer))
	case s.value != nil:
		return s.value
	case Gathers(s.decl.Reducer):
		return json.RawMessage(`[]`)
	case s.decl.Reducer == Counter:
		return json.RawMessage(`0`)
	case s.decl.Reducer == Merge:
		return json.RawMessage(`{}`)
	default:
		return nil
	}
}

// bare returns the folded state without timestamps, as described by a schema.
func (s *State) bare() json.RawMessage {
	if s.isList {
		return s.render(false)
	}
	return s.Value()
}

func (s *State) render(wrap bool) json.RawMessage {
	out := []byte{'['}
	for i, e := range s.entries {
		if i > 0 {
			out = append(out, ',')
		}
		if !wrap {
			out = append(out, e.value...)
			continue
		}
		out = append(append(out, `{"value":`...), e.value...)
		out = append(strconv.AppendInt(append(out, `,"_ts":`...), e.ms, 10), '}')
	}
	return append(out, ']')
}

// set replaces the state with a value that is not a list.
func (s *State) set(v json.RawMessage) { s.entries, s.value, s.isList = nil, v, false }

// list converts the state to a list; a value that is an array becomes its elements.
func (s *State) list() {
	if s.isList {
		return
	}
	var all []json.RawMessage
	_ = json.Unmarshal(s.value, &all) // anything else starts an empty list
	s.entries, s.value, s.isList = nil, nil, true
	for _, v := range all {
		s.entries = append(s.entries, entry{value: v})
	}
}

// number returns the current value of a counter.
func (s *State) number() json.RawMessage {
	if _, ok := number(s.value); ok {
		return s.value
	}
	return json.RawMessage(`0`)
}

// millis parses a time of an event; 0 if it is invalid.
func millis(at string) int64 {
	t, err := time.Parse(time.RFC3339, at)
	if err != nil {
		return 0
	}
	return t.UnixMilli()
}
