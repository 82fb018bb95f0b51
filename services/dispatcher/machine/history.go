package machine

import (
	"bytes"
	"encoding/json"
	"math"
	"strings"

	"waybill.dev/waybill/protocol/wire"
)

// History is the recorded history of a run, for a replay: the events of each node, and the events
// from outside. It follows the replay's own log, so that folding that log again reaches the same
// position.
type History struct {
	fork   wire.Fork
	events []wire.Event
	// ended reports that the source had ended when it was forked.
	ended bool
	// nodes has the events of each node in order, external the events from outside.
	nodes    map[string]*cursor
	external *cursor
	// nextIndex is the index of the source's next event while source and replay agree.
	// comparedIndex is that of the next compared event.
	nextIndex, comparedIndex int
	diverged                 bool
	// lastTime is the last replayed source time.
	lastTime string
}

// cursor is a position in a sequence of recorded events.
type cursor struct {
	events []recorded
	pos    int
}

// recorded is an event of the source, and the attempt of its node.
type recorded struct {
	wire.Event
	attempt int
}

// peek returns the next event; nil if there is none.
func (c *cursor) peek() *recorded {
	if c == nil || c.pos >= len(c.events) {
		return nil
	}
	return &c.events[c.pos]
}

// pausedSince reports whether the source is paused at the cursor, and since which event.
func (c *cursor) pausedSince() (since int, pausedSince bool) {
	for i := c.pos - 1; i >= 0; i-- {
		switch c.events[i].Type {
		case wire.EventRunPaused:
			return c.events[i].Sequence, true
		case wire.EventRunResumed:
			return 0, false
		}
	}
	return 0, false
}

// NewHistory returns the history of a fork's source, at the position after the fork's own events.
func NewHistory(fork wire.Fork, source, own []wire.Event) *History {
	if n := len(source); n > 0 && source[n-1].Type == wire.EventRunPaused {
		source = source[:n-1] // not resumed: the replay does not wait for that
	}
	h := &History{fork: fork, events: source, nodes: map[string]*cursor{}, external: &cursor{}}
	if n := len(source); n > 0 {
		h.ended = source[n-1].Type.Terminal()
	}
	h.splitEvents()
	h.skipDivergence()
	for _, e := range own {
		h.follow(e)
	}
	return h
}

// splitEvents assigns each event to its cursor.
func (h *History) splitEvents() {
	attempt, gates, capped := map[string]int{}, map[string][]int{}, false
	for _, e := range h.events {
		p := readAttempt(e)
		capped = capped || e.Type == wire.EventCapBreached && endsRun(p.Kind)
		if isExternal(e, p, capped) {
			h.external.events = append(h.external.events, recorded{Event: e})
			continue
		}
		if e.NodeID == "" || e.Type == wire.EventNodeSkipped {
			continue // an event of the run loop
		}
		r := h.cursorOf(e.NodeID)
		switch e.Type {
		case wire.EventNodeStarted:
			attempt[e.NodeID] = p.Attempt
		case wire.EventNodeFailed:
			attempt[e.NodeID] = max(p.Attempts-1, 0)
		case wire.EventModelSubstituted, wire.EventModelInsufficient:
			gates[e.NodeID] = append(gates[e.NodeID], len(r.events))
		}
		r.events = append(r.events, recorded{e, attempt[e.NodeID]})
		switch e.Type {
		case wire.EventNodeStarted, wire.EventNodeFailed: // gate events before it belong to this attempt
			for _, i := range gates[e.NodeID] {
				r.events[i].attempt = attempt[e.NodeID]
			}
			delete(gates, e.NodeID)
		case wire.EventNodeRetried:
			attempt[e.NodeID] = p.Attempt
		}
	}
}

func (h *History) cursorOf(node string) *cursor {
	r := h.nodes[node]
	if r == nil {
		r = &cursor{}
		h.nodes[node] = r
	}
	return r
}

// attemptFields are the payload members that assign an event to an attempt.
type attemptFields struct {
	Attempt  int    `json:"attempt"`
	Attempts int    `json:"attempts"`
	Kind     string `json:"kind"`
}

func readAttempt(e wire.Event) attemptFields {
	var p attemptFields
	_ = json.Unmarshal(e.Payload, &p) // an unreadable payload reads as an empty one
	return p
}

// The limits whose breach ends a run.
const (
	capExecutions = "node-executions"
	capDuration   = "run-duration"
)

func endsRun(kind string) bool { return kind == capExecutions || kind == capDuration }

// isExternal reports whether an event came from outside the run loop and belongs to no node's work:
// a pause, a cancellation, the end of the run's time.
func isExternal(e wire.Event, p attemptFields, capped bool) bool {
	switch e.Type {
	case wire.EventNodeCancelled:
		return true
	case wire.EventRunStarted, wire.EventRunCompleted, wire.EventReplayDiverged:
		return false
	case wire.EventRunFailed:
		return capped
	case wire.EventCapBreached:
		return p.Kind == capDuration
	default:
		return e.NodeID == ""
	}
}

// follow advances the cursors after an event of the replay.
func (h *History) follow(e wire.Event) {
	if e.SourceTime != "" {
		h.lastTime = e.SourceTime
	}
	if e.Type == wire.EventReplayDiverged {
		h.diverged = h.diverged || e.Sequence >= h.fork.FromSeq
		return
	}
	if h.nextIndex < len(h.events) && sameAs(h.events[h.nextIndex], e.Type, e.NodeID) {
		h.nextIndex++
		h.skipDivergence()
	}
	if x := h.nextCompared(); x != nil && sameAs(*x, e.Type, e.NodeID) {
		h.comparedIndex++
	}
	if c := h.external.peek(); c != nil && sameAs(c.Event, e.Type, e.NodeID) && bytes.Equal(c.Payload, e.Payload) {
		h.external.pos++
		return
	}
	r := h.nodes[e.NodeID]
	if e.Type == wire.EventNodeStarted {
		r.seekAttempt(readAttempt(e).Attempt)
	}
	if c := r.peek(); c != nil && c.Type == e.Type {
		r.pos++
	}
}

// hasBegun reports whether the last replayed event is part of an attempt's work, after its start.
func (c *cursor) hasBegun(attempt int) bool {
	if c == nil || c.pos == 0 {
		return false
	}
	recorded := &c.events[c.pos-1]
	return recorded.attempt == attempt && recorded.Type != wire.EventNodeStarted
}

// seekAttempt moves to the start of an attempt, if there is one.
func (c *cursor) seekAttempt(attempt int) {
	if c == nil {
		return
	}
	for i := c.pos; i < len(c.events); i++ {
		if c.events[i].Type == wire.EventNodeStarted && c.events[i].attempt == attempt {
			c.pos = i
			return
		}
	}
}

// skipDivergence skips events that replays do not repeat.
func (h *History) skipDivergence() {
	for h.nextIndex < len(h.events) && h.events[h.nextIndex].Type == wire.EventReplayDiverged {
		h.nextIndex++
	}
}

func sameAs(e wire.Event, typ wire.EventType, node string) bool {
	return e.Type == typ && e.NodeID == node
}

// nextSequence is the sequence of the source's next event while source and replay agree.
func (h *History) nextSequence() int {
	if h.nextIndex < len(h.events) {
		return h.events[h.nextIndex].Sequence
	}
	return math.MaxInt
}

// sourceTime is the source's time of the next event. After a divergence, and beyond the source's
// head, no time passes.
func (h *History) sourceTime(typ wire.EventType, node string) string {
	if h.nextIndex < len(h.events) && sameAs(h.events[h.nextIndex], typ, node) {
		return h.events[h.nextIndex].Clock()
	}
	return h.lastTime
}

// isCompared reports whether a replay is compared with its source in the order of this event type
// (OpenWOP host contract §7.2).
func isCompared(t wire.EventType) bool {
	family, _, _ := strings.Cut(string(t), ".")
	switch family {
	case "run", "node", "approval", "clarification", "interrupt":
		return true
	default:
		return false
	}
}

// nextCompared is the source's next compared event; nil if there is none.
func (h *History) nextCompared() *wire.Event {
	for ; h.comparedIndex < len(h.events); h.comparedIndex++ {
		if isCompared(h.events[h.comparedIndex].Type) {
			return &h.events[h.comparedIndex]
		}
	}
	return nil
}

// diverges reports whether an event is the first divergence from the source. Events after the head
// of a source that had not ended do not diverge.
func (h *History) diverges(d wire.Draft) (x *wire.Event, diverges bool) {
	if h.diverged || !isCompared(d.Type) {
		return nil, false
	}
	x = h.nextCompared()
	if x == nil {
		return nil, h.ended
	}
	return x, !sameAs(*x, d.Type, d.NodeID)
}

// recordedFor returns the next recorded event of a node's attempt; nil if there is none.
func (h *History) recordedFor(node string, attempt int) *recorded {
	if c := h.nodes[node].peek(); c != nil && c.attempt == attempt {
		return c
	}
	return nil
}
