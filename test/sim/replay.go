package sim

import (
	"fmt"
	"slices"
	"time"

	"waybill.dev/waybill/protocol/frame"
	"waybill.dev/waybill/protocol/wire"
	"waybill.dev/waybill/protocol/workflow"
)

// replays is the number of log prefixes to continue from in a simulation.
const replays = 2

// replay cuts logs after some of their frames and continues them, as if the host had died there and
// restarted. Each run must have the same result.
func (w *World) replay() error {
	var ended []*history
	for _, id := range w.runIDs() {
		if h := w.runs[id]; h.alone() && !h.excused() && time.Since(w.began) < maxDuration { // otherwise the run would time out
			ended = append(ended, h)
		}
	}
	for range min(replays, len(ended)) {
		h := ended[w.chance.IntN(len(ended))]
		n := 1 + w.chance.IntN(len(h.frames)-1)
		again, err := w.carryOn(h, h.frames[:n])
		if err == nil && !h.flow.raced() {
			err = again.checkEvents(h)
		}
		if err != nil {
			return fmt.Errorf("replay: run %s, continued after %d of %d frames: %w", h.id, n, len(h.frames), err)
		}
	}
	return nil
}

// alone reports whether the run ended without external callers and without a clock.
func (h *history) alone() bool {
	if h.flow.TimeoutMs > 0 || slices.ContainsFunc(h.flow.Nodes, func(n Node) bool { return n.Kind == kindGate }) {
		return false
	}
	return !slices.ContainsFunc(h.frames, func(f *frame.Frame) bool { return f.Note != "" || slices.Contains(f.Types, wire.EventRunPaused) })
}

// carryOn continues the run's first frames on a new host without faults.
func (w *World) carryOn(h *history, frames []*frame.Frame) (*history, error) {
	s := w.scenario
	s.Dispatchers, s.Clients, s.Faults = 1, nil, Faults{}
	v := newWorld(s, Options{Traced: w.trace != nil})
	v.models.spent = true
	v.began = w.began
	pos := uint64(0)
	for _, f := range frames {
		var err error
		if pos, err = v.store(f, pos); err != nil {
			return nil, err
		}
	}
	for _, it := range v.queue.items { // runs that a dispatcher may own
		it.tries, it.free = 1, time.Now()
	}
	v.start()
	v.loop()
	v.finish()
	if w.trace != nil {
		fmt.Fprintf(w.trace, "--- %s is continued after %d frames\n%s", h.id, len(frames), v.trace)
	}
	return v.runs[h.id], v.broken
}

// raced reports whether a workflow has nodes that do not wait for all their inputs.
func (f Flow) raced() bool {
	return slices.ContainsFunc(f.Nodes, func(n Node) bool { return n.Rule == workflow.AnySuccess || n.Rule == workflow.AnyFailed })
}

// checkEvents checks that each node without a model call records the same events. The order between nodes
// depends on time.
func (h *history) checkEvents(want *history) error {
	for i, n := range h.flow.Nodes {
		if n.Kind.asksModel() {
			continue
		}
		got, want := h.eventsOf(nodeID(i)), want.eventsOf(nodeID(i))
		if !slices.Equal(got, want) {
			return fmt.Errorf("node %s records %s, want %s", nodeID(i), got, want)
		}
	}
	return nil
}

func (h *history) eventsOf(node string) []string {
	var list []string
	for _, e := range h.events {
		if e.NodeID == node && e.Type != wire.EventNodeRetried {
			list = append(list, string(e.Type)+" "+string(e.Payload))
		}
	}
	return list
}
