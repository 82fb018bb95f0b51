package machine

import (
	"encoding/json"
	"time"

	"waybill.dev/waybill/protocol/wire"
)

// CopyEvent is an event of a source as its fork has it.
func CopyEvent(rec *wire.RunRecord, e wire.Event, now time.Time) wire.Event {
	c := wire.Draft{Type: e.Type, NodeID: e.NodeID, Payload: e.Payload, CausationID: e.CausationID, Trust: e.ContentTrust}.
		Place(rec.RunID, e.Sequence, now)
	c.SchemaVersion, c.EngineVersion = e.SchemaVersion, e.EngineVersion
	if keepsSourceTime(rec, e.Type) {
		c.SourceTime = e.Clock()
	}
	return c
}

// keepsSourceTime reports whether a replay tells when its source did what an event says: a node
// that starts reads channels, which drop what is too old by then. It is in the replay's
// log, so that whoever folds that comes to what the source came to.
func keepsSourceTime(rec *wire.RunRecord, t wire.EventType) bool {
	return t == wire.EventNodeStarted && rec.Replays() && rec.Ages()
}

// sourceTime is when the source did what comes next. Off the source's way, and beyond its head,
// no time passes.
func (t *History) sourceTime(typ wire.EventType, node string) string {
	if t.nextIndex < len(t.events) && sameAs(t.events[t.nextIndex], typ, node) {
		return t.events[t.nextIndex].Clock()
	}
	return t.lastTime
}

// ageChannels drops what is too old for a node that starts now, before it reads: folding its start
// would come too late, which tells what was read (OpenWOP host contract §5.9).
func (m *Machine) ageChannels(now time.Time, id string) {
	start := wire.Event{Type: wire.EventNodeStarted, NodeID: id, Timestamp: wire.FormatTime(now)}
	if m.history != nil && keepsSourceTime(m.st.Record, start.Type) {
		start.SourceTime = m.history.sourceTime(start.Type, id)
	}
	m.st.Age(start.Clock())
}

// writtenAt is when a node writes to a channel: in a replay, when it did in the source.
func (m *Machine) writtenAt(id string, now time.Time) time.Time {
	if m.history == nil {
		return now
	}
	var p struct {
		WrittenAt string `json:"writtenAt"`
	}
	at := m.history.lastTime // it began and wrote at one time
	if c := m.history.nodes[id].peek(); c != nil && c.Type == wire.EventChannelWritten && json.Unmarshal(c.Payload, &p) == nil {
		at = p.WrittenAt
	}
	if t, err := time.Parse(wire.TimeLayout, at); err == nil {
		return t
	}
	return now
}
