package machine

import (
	"bytes"
	"encoding/json"
	"math"
	"strings"

	"waybill.dev/waybill/protocol/wire"
)

// History is what a run has recorded, for a replay of it: of each node what it told and how
// it ended, and what came from outside. It follows the replay's own log, so that whoever
// folds that log anew finds the same place on the tape.
type History struct {
	fork   wire.Fork
	events []wire.Event
	// ended reports that the source had ended when it was forked.
	ended bool
	// nodes has the events of each node in order; outer what came from outside.
	nodes    map[string]*cursor
	external *cursor
	// nextIndex is the index of the source's event that comes next while the two agree, and
	// told that of the next which is compared.
	nextIndex, comparedIndex int
	diverged                 bool
	// lastTime is the source's time of what was replayed last of all that has one.
	lastTime string
}

// cursor is a part of the tape, and how far it has been played.
type cursor struct {
	events []recorded
	pos    int
}

// recorded is one recorded event, and the attempt of its node that it belongs to.
type recorded struct {
	wire.Event
	attempt int
}

// peek is the cue to play; nil: none is left.
func (r *cursor) peek() *recorded {
	if r == nil || r.pos >= len(r.events) {
		return nil
	}
	return &r.events[r.pos]
}

// pausedSince reports whether the source is paused where it has been played to, and since
// which of its events.
func (r *cursor) pausedSince() (since int, pausedSince bool) {
	for i := r.pos - 1; i >= 0; i-- {
		switch r.events[i].Type {
		case wire.EventRunPaused:
			return r.events[i].Sequence, true
		case wire.EventRunResumed:
			return 0, false
		}
	}
	return 0, false
}

// NewHistory reads the events of a fork's source, and follows those that the fork has.
func NewHistory(fork wire.Fork, source, own []wire.Event) *History {
	if n := len(source); n > 0 && source[n-1].Type == wire.EventRunPaused {
		source = source[:n-1] // nobody has resumed it: the replay does not wait for that
	}
	t := &History{fork: fork, events: source, nodes: map[string]*cursor{}, external: &cursor{}}
	if n := len(source); n > 0 {
		t.ended = source[n-1].Type.Terminal()
	}
	t.splitEvents()
	t.skipDivergence()
	for _, e := range own {
		t.follow(e)
	}
	return t
}

// splitEvents puts each event on its reel.
func (t *History) splitEvents() {
	attempt, early, capped := map[string]int{}, map[string][]int{}, false
	for _, e := range t.events {
		p := readAttempt(e)
		capped = capped || e.Type == wire.EventCapBreached && endsRun(p.Kind)
		if isExternal(e, p, capped) {
			t.external.events = append(t.external.events, recorded{Event: e})
			continue
		}
		if e.NodeID == "" || e.Type == wire.EventNodeSkipped {
			continue // the run loop's own
		}
		r := t.cursorOf(e.NodeID)
		switch e.Type {
		case wire.EventNodeStarted:
			attempt[e.NodeID] = p.Attempt
		case wire.EventNodeFailed:
			attempt[e.NodeID] = max(p.Attempts-1, 0)
		case wire.EventModelSubstituted, wire.EventModelInsufficient:
			early[e.NodeID] = append(early[e.NodeID], len(r.events))
		}
		r.events = append(r.events, recorded{e, attempt[e.NodeID]})
		switch e.Type {
		case wire.EventNodeStarted, wire.EventNodeFailed: // what the gate told before is of this attempt
			for _, i := range early[e.NodeID] {
				r.events[i].attempt = attempt[e.NodeID]
			}
			delete(early, e.NodeID)
		case wire.EventNodeRetried:
			attempt[e.NodeID] = p.Attempt
		}
	}
}

func (t *History) cursorOf(node string) *cursor {
	r := t.nodes[node]
	if r == nil {
		r = &cursor{}
		t.nodes[node] = r
	}
	return r
}

// attemptFields are the members of payloads that say where an event belongs.
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

// The caps that end a run.
const (
	capExecutions = "node-executions"
	capDuration   = "run-duration"
)

func endsRun(kind string) bool { return kind == capExecutions || kind == capDuration }

// isExternal tells what came from outside the run loop and belongs to no node's work: a
// pause, a cancellation, the end of the run's time.
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

// follow follows an event of the replay.
func (t *History) follow(e wire.Event) {
	if e.SourceTime != "" {
		t.lastTime = e.SourceTime
	}
	if e.Type == wire.EventReplayDiverged {
		t.diverged = t.diverged || e.Sequence >= t.fork.FromSeq
		return
	}
	if t.nextIndex < len(t.events) && sameAs(t.events[t.nextIndex], e.Type, e.NodeID) {
		t.nextIndex++
		t.skipDivergence()
	}
	if x := t.nextCompared(); x != nil && sameAs(*x, e.Type, e.NodeID) {
		t.comparedIndex++
	}
	if c := t.external.peek(); c != nil && sameAs(c.Event, e.Type, e.NodeID) && bytes.Equal(c.Payload, e.Payload) {
		t.external.pos++
		return
	}
	r := t.nodes[e.NodeID]
	if e.Type == wire.EventNodeStarted {
		r.seekAttempt(readAttempt(e).Attempt)
	}
	if c := r.peek(); c != nil && c.Type == e.Type {
		r.pos++
	}
}

// hasBegun reports whether what was played last is of an attempt's work, after its start.
func (r *cursor) hasBegun(attempt int) bool {
	if r == nil || r.pos == 0 {
		return false
	}
	c := &r.events[r.pos-1]
	return c.attempt == attempt && c.Type != wire.EventNodeStarted
}

// seekAttempt winds on to the start of an attempt, if there is one.
func (r *cursor) seekAttempt(attempt int) {
	if r == nil {
		return
	}
	for i := r.pos; i < len(r.events); i++ {
		if r.events[i].Type == wire.EventNodeStarted && r.events[i].attempt == attempt {
			r.pos = i
			return
		}
	}
}

// skipDivergence passes by what no replay repeats.
func (t *History) skipDivergence() {
	for t.nextIndex < len(t.events) && t.events[t.nextIndex].Type == wire.EventReplayDiverged {
		t.nextIndex++
	}
}

func sameAs(e wire.Event, typ wire.EventType, node string) bool {
	return e.Type == typ && e.NodeID == node
}

// nextSequence is the sequence of the source's event that comes next while the two agree.
func (t *History) nextSequence() int {
	if t.nextIndex < len(t.events) {
		return t.events[t.nextIndex].Sequence
	}
	return math.MaxInt
}

// isCompared reports whether the order of a type's events tells if a replay still goes the
// way of its source (OpenWOP host contract §7.2).
func isCompared(t wire.EventType) bool {
	family, _, _ := strings.Cut(string(t), ".")
	switch family {
	case "run", "node", "approval", "clarification", "interrupt":
		return true
	default:
		return false
	}
}

// nextCompared is the source's next event that is compared; nil: there is none.
func (t *History) nextCompared() *wire.Event {
	for ; t.comparedIndex < len(t.events); t.comparedIndex++ {
		if isCompared(t.events[t.comparedIndex].Type) {
			return &t.events[t.comparedIndex]
		}
	}
	return nil
}

// diverges reports whether an event is where the replay leaves the way of its source. Beyond
// the head of a source that had not ended there is no way.
func (t *History) diverges(d wire.Draft) (x *wire.Event, diverges bool) {
	if t.diverged || !isCompared(d.Type) {
		return nil, false
	}
	x = t.nextCompared()
	if x == nil {
		return nil, t.ended
	}
	return x, !sameAs(*x, d.Type, d.NodeID)
}

// recordedFor is the cue that a node's attempt goes on with; nil: nothing is recorded.
func (t *History) recordedFor(node string, attempt int) *recorded {
	if c := t.nodes[node].peek(); c != nil && c.attempt == attempt {
		return c
	}
	return nil
}
