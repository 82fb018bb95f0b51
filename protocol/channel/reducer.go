package channel

import (
	"encoding/json"
	"regexp"

	"waybill.dev/waybill/protocol/strictjson"
)

// The canonical reducers.
const (
	Replace  = "replace"
	Append   = "append"
	Merge    = "merge"
	Counter  = "counter"
	Votes    = "votes"
	Feedback = "feedback"
	Message  = "message"
)

var reducerName = regexp.MustCompile(`^(?:replace|append|merge|counter|votes|feedback|message|vendor(?:\.[a-z][a-z0-9_-]*){2})$`)

// ValidReducer reports whether a channel may name the reducer.
func ValidReducer(name string) bool { return reducerName.MatchString(name) }

// Gathers reports whether a reducer makes a list of what is written.
func Gathers(reducer string) bool {
	return reducer == Append || reducer == Votes || reducer == Feedback || reducer == Message
}

// ages reports whether the entries of a reducer grow too old.
func ages(reducer string) bool {
	return reducer == Append || reducer == Votes || reducer == Feedback
}

// reduce is the step of the reducer: what was there, and a write. A write that the
// reducer can do nothing with changes nothing: it was refused when it was made, or
// another host made it.
func (s *State) reduce(reducer string, value json.RawMessage, ms int64) {
	switch reducer {
	case Append, Feedback:
		s.gather(entry{value: value, ms: ms})
	case Votes:
		s.vote(entry{value: value, ms: ms, key: voter(value)})
	case Message:
		s.say(entry{value: value, ms: ms, key: text(value, "messageId")})
	case Merge:
		s.merge(value)
	case Counter:
		if sum, ok := add(s.number(), value); ok {
			s.set(sum)
		}
	default: // replace, and every reducer that nobody here knows
		s.set(value)
	}
}

// gather adds an entry, and drops the oldest beyond the channel's size.
func (s *State) gather(e entry) {
	s.list()
	s.entries = append(s.entries, e)
	if over := int64(len(s.entries)) - s.decl.MaxSize; s.decl.MaxSize > 0 && over > 0 {
		s.entries = s.entries[over:]
	}
}

// vote takes the place of the voter's earlier one; the latest vote comes last.
func (s *State) vote(e entry) {
	s.list()
	if e.key == "" {
		return
	}
	kept := make([]entry, 0, len(s.entries)+1)
	for _, old := range s.entries {
		if voter(old.value) != e.key {
			kept = append(kept, old)
		}
	}
	s.entries = kept
	s.gather(e)
}

// say keeps the first message of an id. Nothing is dropped: a message that was
// dropped could come in again.
func (s *State) say(e entry) {
	s.list()
	if e.key == "" || s.said(e.key) {
		return
	}
	s.entries = append(s.entries, e)
}

func (s *State) said(id string) bool {
	for _, e := range s.entries {
		if text(e.value, "messageId") == id {
			return true
		}
	}
	return false
}

// merge overwrites the members that are written and leaves the others.
func (s *State) merge(value json.RawMessage) {
	next := strictjson.Object(value)
	if next == nil {
		return
	}
	all := strictjson.Object(s.Value())
	if all == nil {
		all = map[string]json.RawMessage{}
	}
	for name, v := range next {
		all[name] = v
	}
	if merged, err := json.Marshal(all); err == nil {
		s.set(merged)
	}
}

// voter is who cast a vote: its member voter, or userId as some clients have it.
func voter(value json.RawMessage) string {
	if v := text(value, "voter"); v != "" {
		return v
	}
	return text(value, "userId")
}

// text is a string member of an object, else "".
func text(value json.RawMessage, name string) string {
	var s string
	if json.Unmarshal(strictjson.Object(value)[name], &s) != nil {
		return ""
	}
	return s
}
