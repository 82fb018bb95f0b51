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

// ValidReducer reports whether the name is valid for a channel's reducer.
func ValidReducer(name string) bool { return reducerName.MatchString(name) }

// Gathers reports whether a reducer collects writes in a list.
func Gathers(reducer string) bool {
	return reducer == Append || reducer == Votes || reducer == Feedback || reducer == Message
}

// ages reports whether entries of a reducer expire.
func ages(reducer string) bool {
	return reducer == Append || reducer == Votes || reducer == Feedback
}

// reduce applies a write to the state. A write the reducer cannot apply changes nothing: this host
// rejects such writes, so another host made it.
func (s *State) reduce(reducer string, value json.RawMessage, ms int64) {
	switch reducer {
	case Append, Feedback:
		s.gather(entry{value: value, ms: ms})
	case Votes:
		s.vote(entry{value: value, ms: ms, key: voter(value)})
	case Message:
		s.addMessage(entry{value: value, ms: ms, key: text(value, "messageId")})
	case Merge:
		s.merge(value)
	case Counter:
		if sum, ok := add(s.number(), value); ok {
			s.set(sum)
		}
	default: // replace, and every unknown reducer
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

// vote replaces the voter's earlier vote; the latest vote comes last.
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

// addMessage keeps the first message of an id. Nothing is dropped: a dropped message could be added
// again.
func (s *State) addMessage(e entry) {
	s.list()
	if e.key == "" || s.hasMessage(e.key) {
		return
	}
	s.entries = append(s.entries, e)
}

func (s *State) hasMessage(id string) bool {
	for _, e := range s.entries {
		if text(e.value, "messageId") == id {
			return true
		}
	}
	return false
}

// merge overwrites the written members and keeps the others.
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

// voter returns the voter of a vote: its member voter, or userId as some clients send.
func voter(value json.RawMessage) string {
	if v := text(value, "voter"); v != "" {
		return v
	}
	return text(value, "userId")
}

// text returns a string member of an object, or "".
func text(value json.RawMessage, name string) string {
	var s string
	if json.Unmarshal(strictjson.Object(value)[name], &s) != nil {
		return ""
	}
	return s
}
