package channel

import (
	"encoding/json"

	"waybill.dev/waybill/protocol/wire"
)

// Saved is the content of a State without its declaration, for storage.
type Saved struct {
	Entries         []SavedEntry
	Value           json.RawMessage
	IsList, Written bool
	Broken          *Break
}

// SavedEntry is one value of a list.
type SavedEntry struct {
	Value json.RawMessage
	// Ms is the time of the write in milliseconds since 1970.
	Ms  int64
	Key string
}

// Declaration returns the declaration that the state was made with.
func (s *State) Declaration() wire.Channel { return s.decl }

// Save returns the content of the state. The result shares memory with it.
func (s *State) Save() Saved {
	v := Saved{Value: s.value, IsList: s.isList, Written: s.written, Broken: s.broken}
	if s.entries != nil {
		v.Entries = make([]SavedEntry, len(s.entries))
	}
	for i, e := range s.entries {
		v.Entries[i] = SavedEntry{Value: e.value, Ms: e.ms, Key: e.key}
	}
	return v
}

// Restore returns the state that Save was called on.
func Restore(decl wire.Channel, v Saved) *State {
	s := &State{decl: decl, value: v.Value, isList: v.IsList, written: v.Written, broken: v.Broken}
	if v.Entries != nil {
		s.entries = make([]entry, len(v.Entries))
	}
	for i, e := range v.Entries {
		s.entries[i] = entry{value: e.Value, ms: e.Ms, key: e.Key}
	}
	return s
}
