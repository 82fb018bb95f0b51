package sim

import (
	"errors"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"time"

	"waybill.dev/waybill/protocol/frame"
	"waybill.dev/waybill/protocol/runstate"
	"waybill.dev/waybill/protocol/wire"
	"waybill.dev/waybill/services/dispatcher/machine"
)

// history is a run as its log tells it so far.
type history struct {
	id     string
	flow   Flow
	frames []*frame.Frame
	events []wire.Event
	record *wire.RunRecord
	state  *runstate.State

	// due is when the run must be looked at, dueBefore what was true one frame ago.
	due, dueBefore     time.Time
	waits, waitsBefore bool
	// results are the positions at which the result of a node's attempt was recorded.
	results map[string]uint64
	// staged: it is a story's.
	staged bool
	// apart is how far two clocks may be from each other.
	apart time.Duration
	// artifacts are the correlation ids that something was recorded for.
	artifacts map[string]bool
	// usages are what is known of calls of models, by node. continued: the run began
	// elsewhere, and its first calls went out there.
	usages    map[string]*usage
	continued bool
}

func (h *history) last() *frame.Frame { return h.frames[len(h.frames)-1] }

func (w *World) runIDs() []string { return slices.Sorted(maps.Keys(w.runs)) }

// frameRules hold of every frame when it is stored.
var frameRules = []struct {
	name  string
	holds func(h *history, f *frame.Frame) error
}{
	{"chain", (*history).chained},
	{"end", (*history).notOver},
	{"fold", (*history).folds},
}

// record takes a stored frame into the history of its run.
func (w *World) record(f *frame.Frame) error {
	h := w.runs[f.Run.RunID]
	if h == nil {
		rec, err := f.Record()
		if err != nil {
			return fmt.Errorf("chain: the first frame is no record: %w", err)
		}
		h = &history{
			id: f.Run.RunID, record: rec, state: runstate.New(rec), results: map[string]uint64{}, artifacts: map[string]bool{},
			usages: map[string]*usage{}, continued: w.models.spent,
			staged: w.scenario.Story != nil, apart: 2 * w.scenario.Faults.Far,
		}
		for i := range w.scenario.Flows {
			if flowID(i) == rec.WorkflowID {
				h.flow = w.scenario.Flows[i]
			}
		}
		w.runs[h.id] = h
	}
	for _, r := range frameRules {
		if err := r.holds(h, f); err != nil {
			return fmt.Errorf("%s: frame %s %d..%d at %d by %s: %w", r.name, f.Kind, f.First, f.Last, f.Pos, f.Writer, err)
		}
	}
	h.frames = append(h.frames, f)
	h.dueBefore, h.waitsBefore = h.due, h.waits
	h.due, h.waits = h.state.Due()
	return nil
}

// chained: the frame follows the last one, by hash and by sequence.
func (h *history) chained(f *frame.Frame) error {
	if err := f.Verify(); err != nil {
		return err
	}
	prev, next := "", 0
	if len(h.frames) > 0 {
		prev, next = h.last().Hash, h.last().Last+1
	} else if !f.Kind.Begins() {
		return errors.New("a run begins with its record")
	}
	if f.Prev != prev || f.First != next {
		return fmt.Errorf("it does not follow the last one: first %d, want %d", f.First, next)
	}
	return nil
}

// notOver: nothing follows the end.
func (h *history) notOver(f *frame.Frame) error {
	if h.state.Status.Terminal() {
		return fmt.Errorf("the run is %s", h.state.Status)
	}
	if len(h.frames) > 0 && f.Kind.Begins() {
		return errors.New("a run begins once")
	}
	return nil
}

// folds: every event is one that may come now.
func (h *history) folds(f *frame.Frame) error {
	events, err := f.Events()
	if err != nil {
		return err
	}
	for i, e := range events {
		if e.Sequence != f.First+i || (e.Sequence == 0) != (e.Type == wire.EventRunStarted) {
			return fmt.Errorf("event %d is %s", e.Sequence, e.Type)
		}
		if err := h.apply(e, f); err != nil {
			return fmt.Errorf("event %d, %s %s: %w", e.Sequence, e.Type, e.NodeID, err)
		}
	}
	h.state.Remember(wire.ParseNote(f.Note))
	if len(events) > 0 && h.state.Status.Terminal() != (f.Kind == "end") {
		return fmt.Errorf("the run is %s", h.state.Status)
	}
	return nil
}

func (h *history) apply(e wire.Event, f *frame.Frame) error {
	before, was := h.state.Status, h.statusOf(e.NodeID)
	h.state.Apply(e)
	after, is := h.state.Status, h.statusOf(e.NodeID)
	h.events = append(h.events, e)
	if !runstate.MayMove(before, e.Type, after) {
		return fmt.Errorf("leads the run from %s to %s", before, after)
	}
	if !runstate.MayMoveNode(was, e.Type, is) {
		return fmt.Errorf("leads the node from %q to %q", was, is)
	}
	if slices.Contains(ofRunning, e.Type) && e.NodeID != "" && was != runstate.NodeRunning {
		return fmt.Errorf("the node is %q", was)
	}
	if err := h.escalates(e, f); err != nil {
		return err
	}
	if err := h.tellsUsage(e); err != nil {
		return err
	}
	return h.recorded(e, f)
}

// escalates: a gate that waits comes to its levels one by one, none of them before its time.
func (h *history) escalates(e wire.Event, f *frame.Frame) error {
	if e.Type != wire.EventApprovalEscalated {
		return nil
	}
	came := 0
	for _, x := range h.events {
		if x.NodeID == e.NodeID && x.Type == e.Type {
			came++
		}
	}
	q := h.state.Open(e.NodeID)
	if q == nil || q.Level() != came || came > levels {
		return fmt.Errorf("the gate comes to a level for the %d. time, and is open: %t", came, q != nil)
	}
	asked, err := time.Parse(wire.TimeLayout, q.RequestedAt)
	if err != nil {
		return err
	}
	for i, n := range h.flow.Nodes {
		if nodeID(i) == e.NodeID && f.Stored.Before(asked.Add(n.level(came)-h.apart).Truncate(time.Millisecond)) {
			return fmt.Errorf("level %d comes too early", came)
		}
	}
	return nil
}

func (h *history) statusOf(node string) runstate.NodeStatus {
	if n := h.state.Nodes[node]; n != nil {
		return n.Status
	}
	return runstate.NodeNever
}

// recorded: an answer is recorded once.
func (h *history) recorded(e wire.Event, f *frame.Frame) error {
	switch e.Type {
	case wire.EventArtifactCreated:
		if h.artifacts[e.CausationID] {
			return fmt.Errorf("the envelope %s is recorded twice", e.CausationID)
		}
		if h.artifacts[e.CausationID] = true; h.staged {
			return nil // it may be one of several
		}
	case wire.EventNodeCompleted, wire.EventNodeFailed:
	default:
		return nil
	}
	n := h.state.Nodes[e.NodeID]
	key := attemptKey(e.NodeID, n.Attempt)
	if e.Type == wire.EventArtifactCreated && h.results[key] != 0 {
		return fmt.Errorf("attempt %d has a result already", n.Attempt)
	}
	if h.results[key] == 0 {
		h.results[key] = f.Pos
	}
	return nil
}

func attemptKey(node string, attempt int) string { return fmt.Sprintf("%s/%d", node, attempt) }

// begins: no model is asked for what the process could have known to be recorded.
// A process that was cut off asks again without knowing; the log decides then.
func (w *World) begins(p *process, h *history, who asker) {
	id := who.node
	h.usageOf(id).called++
	n := h.state.Nodes[id]
	if n == nil {
		w.violate(fmt.Errorf("effects: run %s: a model is asked for %s, which has not started", h.id, id))
		return
	}
	if pos := h.results[attemptKey(id, n.Attempt)]; pos != 0 && p.knows(h.id, pos) {
		w.violate(fmt.Errorf("effects: run %s: a model is asked again for %s, whose result %s had seen at %d", h.id, id, p.name, pos))
	}
}

// atEnd holds the finished world to what was promised and to what must come out.
func (w *World) atEnd() error {
	if err := w.told.kept(w); err != nil {
		return err
	}
	for _, id := range w.runIDs() {
		h := w.runs[id]
		if err := h.refolds(); err != nil {
			return fmt.Errorf("run %s: fold: %w", id, err)
		}
		if w.scenario.Story != nil {
			continue // what it comes to, it did before
		}
		if err := h.agrees(); err != nil {
			return fmt.Errorf("run %s: oracle: %w", id, err)
		}
	}
	return nil
}

// refolds: the stored log folds to the state that its events led to one by one.
func (h *history) refolds() error {
	st, head, err := machine.Load(h.frames)
	if err != nil {
		return err
	}
	if head.Pos != h.last().Pos || !reflect.DeepEqual(st, h.state) {
		return errors.New("folded anew, the log gives another state")
	}
	return nil
}
