package wire

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"time"
	"unicode/utf8"

	"waybill.dev/waybill/protocol/strictjson"
)

// TimeLayout is the host's time format: RFC 3339, UTC, milliseconds.
const TimeLayout = "2006-01-02T15:04:05.000Z"

// FormatTime renders t in TimeLayout.
func FormatTime(t time.Time) string { return t.UTC().Format(TimeLayout) }

// Event is a RunEventDoc: one recorded fact of a run (run-event.schema.json).
type Event struct {
	EventID       string          `json:"eventId"`
	RunID         string          `json:"runId"`
	Sequence      int             `json:"sequence"`
	Type          EventType       `json:"type"`
	NodeID        string          `json:"nodeId,omitempty"`
	Payload       json.RawMessage `json:"payload"`
	Timestamp     string          `json:"timestamp"`
	CausationID   string          `json:"causationId,omitempty"`
	ContentTrust  Trust           `json:"contentTrust,omitempty"`
	SchemaVersion int             `json:"schemaVersion"`
	EngineVersion string          `json:"engineVersion"`
	// SourceTime is an extension. In a replay it is the time of the source's event, if folding the
	// event
	// depends on time.
	SourceTime string `json:"sourceTime,omitempty"`
}

// Clock returns the time that applies to the event: in a replay, that of the source (OpenWOP host
// contract §7.2).
func (e Event) Clock() string {
	if e.SourceTime != "" {
		return e.SourceTime
	}
	return e.Timestamp
}

// Engine returns the version of the engine that recorded the event; 0 if it is not a number.
func (e Event) Engine() int {
	n, err := strconv.Atoi(e.EngineVersion)
	if err != nil {
		return 0
	}
	return n
}

// Draft is an event before it is placed in a log: no id, sequence or time yet.
type Draft struct {
	Type        EventType
	NodeID      string
	Payload     json.RawMessage // nil: {}
	CausationID string
	Trust       Trust // empty means trusted, omitted from the event
}

// Place returns the draft as the event at sequence seq of a run. The id derives from run and
// sequence, so that a retried append renders the same bytes.
func (d Draft) Place(runID string, seq int, at time.Time) Event {
	payload := d.Payload
	if len(payload) == 0 {
		payload = json.RawMessage("{}")
	}
	return Event{
		EventID: EventID(runID, seq), RunID: runID, Sequence: seq, Type: d.Type, NodeID: d.NodeID,
		Payload: payload, Timestamp: FormatTime(at), CausationID: d.CausationID, ContentTrust: d.Trust,
		SchemaVersion: eventSchemaVersion, EngineVersion: strconv.Itoa(EngineVersion),
	}
}

// EventID returns the id of the event at sequence seq of a run.
func EventID(runID string, seq int) string {
	return "ev_" + runID + "_" + strconv.Itoa(seq)
}

// AppendJSON appends the event as one line of JSON. Zero values that the
// protocol requires (sequence 0, an empty payload) are always present.
func (e Event) AppendJSON(b []byte) []byte {
	b = append(b, `{"eventId":`...)
	b = AppendString(b, e.EventID)
	b = append(b, `,"runId":`...)
	b = AppendString(b, e.RunID)
	b = append(b, `,"sequence":`...)
	b = strconv.AppendInt(b, int64(e.Sequence), 10)
	b = append(b, `,"type":`...)
	b = AppendString(b, string(e.Type))
	b = appendMember(b, "nodeId", e.NodeID)
	b = append(b, `,"payload":`...)
	b = append(b, e.Payload...)
	b = append(b, `,"timestamp":`...)
	b = AppendString(b, e.Timestamp)
	b = appendMember(b, "causationId", e.CausationID)
	b = appendMember(b, "contentTrust", string(e.ContentTrust))
	b = append(b, `,"schemaVersion":`...)
	b = strconv.AppendInt(b, int64(e.SchemaVersion), 10)
	b = append(b, `,"engineVersion":`...)
	b = AppendString(b, e.EngineVersion)
	b = appendMember(b, "sourceTime", e.SourceTime)
	return append(b, '}')
}

func appendMember(b []byte, name, value string) []byte {
	if value == "" {
		return b
	}
	b = append(b, ',')
	b = AppendString(b, name)
	b = append(b, ':')
	return AppendString(b, value)
}

const hexDigits = "0123456789abcdef"

// AppendString appends s as a JSON string. Unlike encoding/json it does not
// escape for HTML; U+2028 and U+2029 are escaped so that a line of JSON stays
// one line for every reader, and invalid UTF-8 becomes U+FFFD.
func AppendString(b []byte, s string) []byte {
	b = append(slices.Grow(b, len(s)+len(`""`)), '"')
	done := 0 // start of the part of s that is not yet copied and needs no escape
	for i := 0; i < len(s); {
		if c := s[i]; ' ' <= c && c <= '~' && c != '"' && c != '\\' {
			i++
			continue
		}
		r, n := utf8.DecodeRuneInString(s[i:])
		if r < utf8.RuneSelf || r == '\u2028' || r == '\u2029' || r == utf8.RuneError && n == 1 {
			b = append(b, s[done:i]...)
			b = appendEscape(b, r)
			done = i + n
		}
		i += n
	}
	b = append(b, s[done:]...)
	return append(b, '"')
}

func appendEscape(b []byte, r rune) []byte {
	switch r {
	case '"', '\\':
		return append(b, '\\', byte(r))
	case '\n':
		return append(b, `\n`...)
	case '\r':
		return append(b, `\r`...)
	case '\t':
		return append(b, `\t`...)
	default: // includes utf8.RuneError
		return append(b, '\\', 'u', hexDigits[r>>12], hexDigits[r>>8&0xf], hexDigits[r>>4&0xf], hexDigits[r&0xf])
	}
}

// AppendEvents appends events as a JSON array: the body of a frame.
func AppendEvents(b []byte, events []Event) []byte {
	b = append(slices.Grow(b, sizeOf(events)), '[')
	for i, e := range events {
		if i > 0 {
			b = append(b, ',')
		}
		b = e.AppendJSON(b)
	}
	return append(b, ']')
}

// sizeOf estimates the length of events as JSON; a low estimate costs a copy.
func sizeOf(events []Event) int {
	const names = 256 // member names, and values of similar length in all events
	size := len(`[]`)
	for i := range events {
		e := &events[i]
		size += names + len(e.EventID) + len(e.RunID) + len(e.NodeID) + len(e.Payload) + len(e.CausationID) + len(e.SourceTime)
	}
	return size
}

// ParseEvents reads the body of a frame. Unknown members are ignored, as the protocol requires of
// readers.
func ParseEvents(body []byte) ([]Event, error) {
	if events, ok := readEvents(body); ok {
		return events, nil
	}
	var events []Event // slower, but accepts all of JSON and reports the position of an error
	if err := json.Unmarshal(body, &events); err != nil {
		return nil, fmt.Errorf("parse events: %w", err)
	}
	return events, nil
}

// readEvents reads events in the form the host writes.
func readEvents(body []byte) (events []Event, ok bool) {
	events = []Event{}
	c := strictjson.Reading(body)
	c.Array(func() {
		events = append(events, Event{})
		e := &events[len(events)-1]
		c.Object(func(name []byte) {
			if member := e.member(string(name)); member != nil {
				c.Set(member)
			}
		})
	})
	return events, c.Sound()
}

// member returns a pointer to the field of a member; nil if there is none.
func (e *Event) member(name string) any {
	switch name {
	case "eventId":
		return &e.EventID
	case "runId":
		return &e.RunID
	case "sequence":
		return &e.Sequence
	case "type":
		return (*string)(&e.Type)
	case "nodeId":
		return &e.NodeID
	case "payload":
		return &e.Payload
	case "timestamp":
		return &e.Timestamp
	case "causationId":
		return &e.CausationID
	case "contentTrust":
		return (*string)(&e.ContentTrust)
	case "schemaVersion":
		return &e.SchemaVersion
	case "engineVersion":
		return &e.EngineVersion
	case "sourceTime":
		return &e.SourceTime
	default:
		return nil
	}
}

// ErrNotArray means that a frame's body is not a JSON array.
var ErrNotArray = errors.New("frame body is not a JSON array")

// JoinArray returns a frame's body from the documents of its events; the inverse of SplitArray.
func JoinArray(docs []json.RawMessage) []byte {
	size := 2
	for _, d := range docs {
		size += len(d) + 1
	}
	b := append(make([]byte, 0, size), '[')
	for i, d := range docs {
		if i > 0 {
			b = append(b, ',')
		}
		b = append(b, d...)
	}
	return append(b, ']')
}

// SplitArray cuts a JSON array that is known to be valid into its elements
// without decoding them: the bytes of each event as they were appended.
func SplitArray(body []byte) ([]json.RawMessage, error) {
	body = bytes.TrimSpace(body)
	if len(body) < 2 || body[0] != '[' || body[len(body)-1] != ']' {
		return nil, ErrNotArray
	}
	var (
		out      []json.RawMessage
		depth    int
		inString bool
		start    = 1
	)
	for i := 1; i < len(body)-1; i++ {
		switch c := body[i]; {
		case inString && c == '\\':
			i++
		case c == '"':
			inString = !inString
		case inString:
		case c == '{' || c == '[':
			depth++
		case c == '}' || c == ']':
			depth--
		case c == ',' && depth == 0:
			out = append(out, json.RawMessage(body[start:i]))
			start = i + 1
		}
	}
	if inString || depth != 0 {
		return nil, ErrNotArray
	}
	if last := bytes.TrimSpace(body[start : len(body)-1]); len(last) > 0 {
		out = append(out, json.RawMessage(last))
	}
	return out, nil
}
