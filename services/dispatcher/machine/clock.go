package machine

import (
	"encoding/json"
	"time"

	"waybill.dev/waybill/protocol/wire"
)

// CopyEvent returns an event of a source as an event of its fork.
func CopyEvent(rec *wire.RunRecord, e wire.Event, now time.Time) wire.Event {
	c := wire.Draft{Type: e.Type, NodeID: e.NodeID, Payload: e.Payload, CausationID: e.CausationID, Trust: e.ContentTrust}.
		Place(rec.RunID, e.Sequence, now)
	c.SchemaVersion, c.EngineVersion = e.SchemaVersion, e.EngineVersion
	if keepsSourceTime(rec, e.Type) {
		c.SourceTime = e.Clock()
	}
	return c
}

// keepsSourceTime reports whether a replayed event records its source's time. A starting node reads
// channels, which drop old writes by time. The time is stored in the replay's log so that folding
// it reproduces the source.
func keepsSourceTime(rec *wire.RunRecord, t wire.EventType) bool {
	return t == wire.EventNodeStarted && rec.Replays() && rec.Ages()
}

// sourceTime is the source's time of the next event. After a divergence, and beyond the source's
// head, no time passes.
func (h *History) sourceTime(typ wire.EventType, node string) string {
	if h.nextIndex < len(h.events) && sameAs(h.events[h.nextIndex], typ, node) {
		return h.events[h.nextIndex].Clock()
	}
	return h.lastTime
}

// ageChannels drops old channel writes before a starting node reads the channel. Folding
// node.started drops them only after the read (OpenWOP host contract §5.9).
func (m *Machine) ageChannels(now time.Time, id string) {
	start := wire.Event{Type: wire.EventNodeStarted, NodeID: id, Timestamp: wire.FormatTime(now)}
	if m.history != nil && keepsSourceTime(m.st.Record, start.Type) {
		start.SourceTime = m.history.sourceTime(start.Type, id)
	}
	m.st.Age(start.Clock())
}

// writtenAt is the time of a node's channel write; in a replay, the source's time.
func (m *Machine) writtenAt(id string, now time.Time) time.Time {
	if m.history == nil {
		return now
	}
	var p struct {
		WrittenAt string `json:"writtenAt"`
	}
	at := m.history.lastTime // the node started and wrote at the same time
	if c := m.history.nodes[id].peek(); c != nil && c.Type == wire.EventChannelWritten && json.Unmarshal(c.Payload, &p) == nil {
		at = p.WrittenAt
	}
	if t, err := time.Parse(wire.TimeLayout, at); err == nil {
		return t
	}
	return now
}
