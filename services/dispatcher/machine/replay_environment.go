package machine

import (
	"encoding/json"
	"time"

	"waybill.dev/waybill/protocol/fault"
	"waybill.dev/waybill/protocol/strictjson"
	"waybill.dev/waybill/protocol/wire"
	"waybill.dev/waybill/services/dispatcher/node"
)

// startRun repeats run.started of the source, which lacks tags and metadata given to a branch.
func (r *replay) startRun(now time.Time) {
	if first := r.history.events; len(first) > 0 && first[0].Type == wire.EventRunStarted {
		r.repeatEvent(now, &recorded{Event: first[0]})
		return
	}
	host{r.Machine}.startRun(now)
}

// gateAttempt repeats the gate events of an attempt.
func (r *replay) gateAttempt(now time.Time, id string, _ node.Type, attempt int) bool {
	for {
		c := r.history.recordedFor(id, attempt)
		if c == nil {
			return false
		}
		switch c.Type {
		case wire.EventModelSubstituted, wire.EventModelInsufficient:
			r.repeatEvent(now, c)
		case wire.EventNodeFailed:
			r.repeatEvent(now, c)
			return true
		case wire.EventCapBreached:
			r.repeatEvent(now, c)
			r.endAsRecorded(now)
			return true
		default:
			return false
		}
	}
}

// endAsRecorded ends a run that exceeded a limit in the source.
func (r *replay) endAsRecorded(now time.Time) {
	for !r.st.Status.Terminal() {
		c := r.history.external.peek()
		if c == nil {
			r.cancelNodes(now, string(fault.RecursionLimit))
			r.endFailed(now, "", &wire.NodeError{
				Code: string(fault.RecursionLimit), Message: "the run executed more nodes than its limit allowed",
			})
			return
		}
		r.replayExternal(now, c)
	}
}

// pinRecorded pins the version that the source pinned.
func (r *replay) pinRecorded(now time.Time, change string) {
	c := r.history.external.peek()
	if c == nil || c.Type != wire.EventVersionPinned {
		return
	}
	var p pinnedPayload
	if json.Unmarshal(c.Payload, &p) == nil && p.ChangeID == change {
		r.repeatEvent(now, c)
	}
}

func (r *replay) isRecorded(id string, attempt int) bool {
	return r.history.recordedFor(id, attempt) != nil
}

func (r *replay) recordedTimeout(id string, attempt int) (ms int64, ok bool) {
	c := r.history.recordedFor(id, attempt)
	if c == nil || c.Type != wire.EventNodeStarted {
		return 0, false
	}
	var p startedNodePayload
	if json.Unmarshal(c.Payload, &p) != nil {
		return 0, false
	}
	return p.TimeoutMs, true
}

// startTime is the source's time if the replay records it.
func (r *replay) startTime(now time.Time, id string) string {
	if at := r.sourceTime(wire.EventNodeStarted, id); at != "" {
		return at
	}
	return wire.FormatTime(now)
}

// sourceTime is the source's time that an event of the replay records; empty for none.
func (r *replay) sourceTime(t wire.EventType, nodeID string) string {
	if !keepsSourceTime(r.st.Record, t) {
		return ""
	}
	return r.history.sourceTime(t, nodeID)
}

// writeTime is the source's time.
func (r *replay) writeTime(now time.Time, id string) time.Time {
	var p struct {
		WrittenAt string `json:"writtenAt"`
	}
	at := r.history.lastTime // the node started and wrote at the same time
	c := r.history.nodes[id].peek()
	if c != nil && c.Type == wire.EventChannelWritten && json.Unmarshal(c.Payload, &p) == nil {
		at = p.WrittenAt
	}
	if t, err := time.Parse(wire.TimeLayout, at); err == nil {
		return t
	}
	return now
}

// placeEvent compares the event with the source before it adds it.
func (r *replay) placeEvent(now time.Time, d wire.Draft, clean bool) {
	r.compareWithSource(now, d)
	e := d.Place(r.st.Record.RunID, r.st.Next, now)
	e.SourceTime = r.sourceTime(d.Type, d.NodeID)
	r.addEvent(e, clean)
	r.history.follow(e)
}

// executesEffects is false: a replay makes no external calls.
func (*replay) executesEffects() bool { return false }

type divergedPayload struct {
	SourceRunID     string         `json:"sourceRunId"`
	AtSequence      int            `json:"atSequence"`
	OriginalEventID string         `json:"originalEventId,omitempty"`
	ReplayEventID   string         `json:"replayEventId"`
	DivergenceKind  string         `json:"divergenceKind"`
	DivergencePoint wire.EventType `json:"divergencePoint"`
}

// compareWithSource records the first divergence of the replay from its source (OpenWOP host
// contract §7.2, §12 no. 34). The replay continues.
func (r *replay) compareWithSource(now time.Time, d wire.Draft) {
	x, parts := r.history.diverges(d)
	if !parts {
		return
	}
	p := divergedPayload{
		SourceRunID:     r.history.fork.SourceRunID,
		AtSequence:      r.st.Next,
		ReplayEventID:   wire.EventID(r.st.Record.RunID, r.st.Next+1),
		DivergenceKind:  "extra",
		DivergencePoint: d.Type,
	}
	if x != nil {
		p.AtSequence, p.OriginalEventID = x.Sequence, x.EventID
		p.DivergencePoint, p.DivergenceKind = x.Type, "type-mismatch"
		if d.Type.Terminal() {
			p.DivergenceKind = "missing"
		}
	}
	r.history.diverged = true
	r.placeEvent(now, wire.Draft{Type: wire.EventReplayDiverged, Payload: strictjson.Render(p)}, true)
}
