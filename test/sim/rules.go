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

// history is a run as recorded so far.
type history struct {
	id     string
	flow   Flow
	frames []*frame.Frame
	events []wire.Event
	record *wire.RunRecord
	state  *runstate.State

	// due is when the run's next timer fires, dueBefore the value one frame ago.
	due, dueBefore     time.Time
	waits, waitsBefore bool
	// results maps a node's attempt to the position of its result.
	results map[string]uint64
	// the run belongs to a story
	staged bool
	// apart is the maximum difference of two clocks.
	apart time.Duration
	// artifacts are the correlation ids with a recorded artifact.
	artifacts map[string]bool
	// usages are the counted model calls, by node. continued: the run began in another world, where
	// its first calls were made.
	usages    map[string]*usage
	continued bool
}

func (h *history) last() *frame.Frame { return h.frames[len(h.frames)-1] }

func (w *World) runIDs() []string { return slices.Sorted(maps.Keys(w.runs)) }

// frameRules are checked for every stored frame.
var frameRules = []struct {
	name  string
	holds func(h *history, f *frame.Frame) error
}{
	{"chain", (*history).checkChain},
	{"end", (*history).checkNotEnded},
	{"fold", (*history).folds},
}

// record adds a stored frame to the history of its run and checks the rules.
func (w *World) record(f *frame.Frame) error {
	h := w.runs[f.Run.RunID]
	if h == nil {
		rec, err := f.Record()
		if err != nil {
			return fmt.Errorf("chain: the first frame is not a record: %w", err)
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

// checkChain checks that the frame follows the last one by hash and by sequence.
func (h *history) checkChain(f *frame.Frame) error {
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
		return fmt.Errorf("first sequence is %d, want %d", f.First, next)
	}
	return nil
}

// checkNotEnded checks that nothing follows the end.
func (h *history) checkNotEnded(f *frame.Frame) error {
	if h.state.Status.Terminal() {
		return fmt.Errorf("the run is %s", h.state.Status)
	}
	if len(h.frames) > 0 && f.Kind.Begins() {
		return errors.New("a run has one record only")
	}
	return nil
}

// folds checks that every event is allowed in the current state.
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
		return fmt.Errorf("illegal run transition from %s to %s", before, after)
	}
	if !runstate.MayMoveNode(was, e.Type, is) {
		return fmt.Errorf("illegal node transition from %q to %q", was, is)
	}
	if slices.Contains(ofRunning, e.Type) && e.NodeID != "" && was != runstate.NodeRunning {
		return fmt.Errorf("the node is %q", was)
	}
	if err := h.checkEscalation(e, f); err != nil {
		return err
	}
	if err := h.checkUsage(e); err != nil {
		return err
	}
	return h.recorded(e, f)
}

// checkEscalation checks that an open gate reaches its levels one by one, none before its time.
func (h *history) checkEscalation(e wire.Event, f *frame.Frame) error {
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
		return fmt.Errorf("escalation no. %d of the gate (open: %t)", came, q != nil)
	}
	asked, err := time.Parse(wire.TimeLayout, q.RequestedAt)
	if err != nil {
		return err
	}
	for i, n := range h.flow.Nodes {
		if nodeID(i) == e.NodeID && f.Stored.Before(asked.Add(n.level(came)-h.apart).Truncate(time.Millisecond)) {
			return fmt.Errorf("level %d is too early", came)
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

// recorded checks that an answer is recorded once.
func (h *history) recorded(e wire.Event, f *frame.Frame) error {
	switch e.Type {
	case wire.EventArtifactCreated:
		if h.artifacts[e.CausationID] {
			return fmt.Errorf("the envelope %s is recorded twice", e.CausationID)
		}
		if h.artifacts[e.CausationID] = true; h.staged {
			return nil // a part of an answer: others may follow
		}
	case wire.EventNodeCompleted, wire.EventNodeFailed:
	default:
		return nil
	}
	n := h.state.Nodes[e.NodeID]
	key := attemptKey(e.NodeID, n.Attempt)
	if e.Type == wire.EventArtifactCreated && h.results[key] != 0 {
		return fmt.Errorf("attempt %d already has a result", n.Attempt)
	}
	if h.results[key] == 0 {
		h.results[key] = f.Pos
	}
	return nil
}

func attemptKey(node string, attempt int) string { return fmt.Sprintf("%s/%d", node, attempt) }

// begins checks that no model call repeats a result that the process had read. A process that was
// cut off may repeat the call unknowingly; the log then rejects one of them.
func (w *World) begins(p *process, h *history, who asker) {
	id := who.node
	h.usageOf(id).called++
	n := h.state.Nodes[id]
	if n == nil {
		w.violate(fmt.Errorf("effects: run %s: a model is called for %s, which has not started", h.id, id))
		return
	}
	if pos := h.results[attemptKey(id, n.Attempt)]; pos != 0 && p.knows(h.id, pos) {
		w.violate(fmt.Errorf("effects: run %s: a model is called again for %s although %s had read the result at %d", h.id, id, p.name, pos))
	}
}

// atEnd checks the finished world against the promises and the oracle.
func (w *World) atEnd() error {
	if err := w.promises.kept(w); err != nil {
		return err
	}
	for _, id := range w.runIDs() {
		h := w.runs[id]
		if err := h.checkRefold(); err != nil {
			return fmt.Errorf("run %s: fold: %w", id, err)
		}
		if w.scenario.Story != nil {
			continue // the continued run's result was checked before
		}
		if err := h.checkOutcome(); err != nil {
			return fmt.Errorf("run %s: oracle: %w", id, err)
		}
	}
	return nil
}

// checkRefold checks that the stored log folds to the state reached event by event.
func (h *history) checkRefold() error {
	st, head, err := machine.Load(h.frames)
	if err != nil {
		return err
	}
	if head.Pos != h.last().Pos || !reflect.DeepEqual(st, h.state) {
		return errors.New("folding the log again gives a different state")
	}
	return nil
}
