package machine

import (
	"time"

	"waybill.dev/waybill/protocol/wire"
)

// CopyEvent returns an event of a source as an event of its fork.
func CopyEvent(rec *wire.RunRecord, e wire.Event, now time.Time) wire.Event {
	c := wire.Draft{
		Type:        e.Type,
		NodeID:      e.NodeID,
		Payload:     e.Payload,
		CausationID: e.CausationID,
		Trust:       e.ContentTrust,
	}.Place(rec.RunID, e.Sequence, now)
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

// ageChannels drops old channel writes before a starting node reads the channel. Folding
// node.started drops them only after the read (OpenWOP host contract §5.9).
func (m *Machine) ageChannels(now time.Time, id string) {
	m.st.Age(m.env.startTime(now, id))
}
