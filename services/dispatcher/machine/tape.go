package machine

import (
	"bytes"
	"encoding/json"
	"math"
	"strings"

	"waybill.dev/waybill/protocol/wire"
)

// Tape is what a run has recorded, for a replay of it: of each node what it told and how
// it ended, and what came from outside. It follows the replay's own log, so that whoever
// folds that log anew finds the same place on the tape.
type Tape struct {
	fork   wire.Fork
	events []wire.Event
	// ended reports that the source had ended when it was forked.
	ended bool
	// nodes has the events of each node in order; outer what came from outside.
	nodes map[string]*reel
	outer *reel
	// cursor is the index of the source's event that comes next while the two agree, and
	// told that of the next which is compared.
	cursor, told int
	diverged     bool
	// last is the source's time of what was replayed last of all that has one.
	last string
}

// reel is a part of the tape, and how far it has been played.
type reel struct {
	cues []cue
	pos  int
}

// cue is one recorded event, and the attempt of its node that it belongs to.
type cue struct {
	wire.Event
	attempt int
}

// next is the cue to play; nil: none is left.
func (r *reel) next() *cue {
	if r == nil || r.pos >= len(r.cues) {
		return nil
	}
	return &r.cues[r.pos]
}

// paused reports whether the source is paused where it has been played to, and since
// which of its events.
func (r *reel) paused() (since int, paused bool) {
	for i := r.pos - 1; i >= 0; i-- {
		switch r.cues[i].Type {
		case wire.EventRunPaused:
			return r.cues[i].Sequence, true
		case wire.EventRunResumed:
			return 0, false
		}
	}
	return 0, false
}

// NewTape reads the events of a fork's source, and follows those that the fork has.
func NewTape(fork wire.Fork, source, own []wire.Event) *Tape {
	if n := len(source); n > 0 && source[n-1].Type == wire.EventRunPaused {
		source = source[:n-1] // nobody has resumed it: the replay does not wait for that
	}
	t := &Tape{fork: fork, events: source, nodes: map[string]*reel{}, outer: &reel{}}
	if n := len(source); n > 0 {
		t.ended = source[n-1].Type.Terminal()
	}
	t.sort()
	t.skip()
	for _, e := range own {
		t.saw(e)
	}
	return t
}

// sort puts each event on its reel.
func (t *Tape) sort() {
	attempt, early, capped := map[string]int{}, map[string][]int{}, false
	for _, e := range t.events {
		p := attemptOf(e)
		capped = capped || e.Type == wire.EventCapBreached && endsRun(p.Kind)
		if isOuter(e, p, capped) {
			t.outer.cues = append(t.outer.cues, cue{Event: e})
			continue
		}
		if e.NodeID == "" || e.Type == wire.EventNodeSkipped {
			continue // the run loop's own
		}
		r := t.reel(e.NodeID)
		switch e.Type {
		case wire.EventNodeStarted:
			attempt[e.NodeID] = p.Attempt
		case wire.EventNodeFailed:
			attempt[e.NodeID] = max(p.Attempts-1, 0)
		case wire.EventModelSubstituted, wire.EventModelInsufficient:
			early[e.NodeID] = append(early[e.NodeID], len(r.cues))
		}
		r.cues = append(r.cues, cue{e, attempt[e.NodeID]})
		switch e.Type {
		case wire.EventNodeStarted, wire.EventNodeFailed: // what the gate told before is of this attempt
			for _, i := range early[e.NodeID] {
				r.cues[i].attempt = attempt[e.NodeID]
			}
			delete(early, e.NodeID)
		case wire.EventNodeRetried:
			attempt[e.NodeID] = p.Attempt
		}
	}
}

func (t *Tape) reel(node string) *reel {
	r := t.nodes[node]
	if r == nil {
		r = &reel{}
		t.nodes[node] = r
	}
	return r
}

// numbers are the members of payloads that say where an event belongs.
type numbers struct {
	Attempt  int    `json:"attempt"`
	Attempts int    `json:"attempts"`
	Kind     string `json:"kind"`
}

func attemptOf(e wire.Event) numbers {
	var p numbers
	_ = json.Unmarshal(e.Payload, &p) // an unreadable payload reads as an empty one
	return p
}

// The caps that end a run.
const (
	capExecutions = "node-executions"
	capDuration   = "run-duration"
)

func endsRun(kind string) bool { return kind == capExecutions || kind == capDuration }

// isOuter tells what came from outside the run loop and belongs to no node's work: a
// pause, a cancellation, the end of the run's time.
func isOuter(e wire.Event, p numbers, capped bool) bool {
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

// saw follows an event of the replay.
func (t *Tape) saw(e wire.Event) {
	if e.SourceTime != "" {
		t.last = e.SourceTime
	}
	if e.Type == wire.EventReplayDiverged {
		t.diverged = t.diverged || e.Sequence >= t.fork.FromSeq
		return
	}
	if t.cursor < len(t.events) && sameAs(t.events[t.cursor], e.Type, e.NodeID) {
		t.cursor++
		t.skip()
	}
	if x := t.expected(); x != nil && sameAs(*x, e.Type, e.NodeID) {
		t.told++
	}
	if c := t.outer.next(); c != nil && sameAs(c.Event, e.Type, e.NodeID) && bytes.Equal(c.Payload, e.Payload) {
		t.outer.pos++
		return
	}
	r := t.nodes[e.NodeID]
	if e.Type == wire.EventNodeStarted {
		r.seek(attemptOf(e).Attempt)
	}
	if c := r.next(); c != nil && c.Type == e.Type {
		r.pos++
	}
}

// begun reports whether what was played last is of an attempt's work, after its start.
func (r *reel) begun(attempt int) bool {
	if r == nil || r.pos == 0 {
		return false
	}
	c := &r.cues[r.pos-1]
	return c.attempt == attempt && c.Type != wire.EventNodeStarted
}

// seek winds on to the start of an attempt, if there is one.
func (r *reel) seek(attempt int) {
	if r == nil {
		return
	}
	for i := r.pos; i < len(r.cues); i++ {
		if r.cues[i].Type == wire.EventNodeStarted && r.cues[i].attempt == attempt {
			r.pos = i
			return
		}
	}
}

// skip passes by what no replay repeats.
func (t *Tape) skip() {
	for t.cursor < len(t.events) && t.events[t.cursor].Type == wire.EventReplayDiverged {
		t.cursor++
	}
}

func sameAs(e wire.Event, typ wire.EventType, node string) bool {
	return e.Type == typ && e.NodeID == node
}

// upcoming is the sequence of the source's event that comes next while the two agree.
func (t *Tape) upcoming() int {
	if t.cursor < len(t.events) {
		return t.events[t.cursor].Sequence
	}
	return math.MaxInt
}

// compared reports whether the order of a type's events tells if a replay still goes the
// way of its source (OpenWOP host contract §7.2).
func compared(t wire.EventType) bool {
	family, _, _ := strings.Cut(string(t), ".")
	switch family {
	case "run", "node", "approval", "clarification", "interrupt":
		return true
	default:
		return false
	}
}

// expected is the source's next event that is compared; nil: there is none.
func (t *Tape) expected() *wire.Event {
	for ; t.told < len(t.events); t.told++ {
		if compared(t.events[t.told].Type) {
			return &t.events[t.told]
		}
	}
	return nil
}

// parts reports whether an event is where the replay leaves the way of its source. Beyond
// the head of a source that had not ended there is no way.
func (t *Tape) parts(d wire.Draft) (x *wire.Event, parts bool) {
	if t.diverged || !compared(d.Type) {
		return nil, false
	}
	x = t.expected()
	if x == nil {
		return nil, t.ended
	}
	return x, !sameAs(*x, d.Type, d.NodeID)
}

// of is the cue that a node's attempt goes on with; nil: nothing is recorded.
func (t *Tape) of(node string, attempt int) *cue {
	if c := t.nodes[node].next(); c != nil && c.attempt == attempt {
		return c
	}
	return nil
}
