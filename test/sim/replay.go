package sim

import (
	"fmt"
	"slices"
	"time"

	"waybill.dev/waybill/protocol/frame"
	"waybill.dev/waybill/protocol/wire"
	"waybill.dev/waybill/protocol/workflow"
)

// replays is how many prefixes of logs are carried on with in a simulation.
const replays = 2

// replay takes logs as they were after some of their frames, as if the host had
// died there and another one had come up: each run comes to the same.
func (w *World) replay() error {
	var ended []*history
	for _, id := range w.runIDs() {
		if h := w.runs[id]; h.alone() && !h.excused() && time.Since(w.began) < maxDuration { // else its time would be up
			ended = append(ended, h)
		}
	}
	for range min(replays, len(ended)) {
		h := ended[w.chance.IntN(len(ended))]
		n := 1 + w.chance.IntN(len(h.frames)-1)
		again, err := w.carryOn(h, h.frames[:n])
		if err == nil && !h.flow.raced() {
			err = again.tells(h)
		}
		if err != nil {
			return fmt.Errorf("replay: run %s, carried on after %d of %d frames: %w", h.id, n, len(h.frames), err)
		}
	}
	return nil
}

// alone are runs that came to their end without anybody outside, and without a clock.
func (h *history) alone() bool {
	if h.flow.TimeoutMs > 0 || slices.ContainsFunc(h.flow.Nodes, func(n Node) bool { return n.Kind == kindGate }) {
		return false
	}
	return !slices.ContainsFunc(h.frames, func(f *frame.Frame) bool { return f.Note != "" || slices.Contains(f.Types, wire.EventRunPaused) })
}

// carryOn gives the run's first frames to a new host, whom nothing happens to.
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
	for _, it := range v.queue.items { // somebody may have worked on them
		it.tries, it.free = 1, time.Now()
	}
	v.start()
	v.loop()
	v.finish()
	if w.trace != nil {
		fmt.Fprintf(w.trace, "--- %s is carried on after %d frames\n%s", h.id, len(frames), v.trace)
	}
	return v.runs[h.id], v.broken
}

// raced workflows have nodes that do not wait for all that they could read.
func (f Flow) raced() bool {
	return slices.ContainsFunc(f.Nodes, func(n Node) bool { return n.Rule == workflow.AnySuccess || n.Rule == workflow.AnyFailed })
}

// tells: each node that asks nobody tells the same events. What order nodes have
// among each other depends on time.
func (h *history) tells(want *history) error {
	for i, n := range h.flow.Nodes {
		if n.Kind.asksModel() {
			continue
		}
		got, want := h.toldOf(nodeID(i)), want.toldOf(nodeID(i))
		if !slices.Equal(got, want) {
			return fmt.Errorf("node %s tells %s, and told %s", nodeID(i), got, want)
		}
	}
	return nil
}

func (h *history) toldOf(node string) []string {
	var told []string
	for _, e := range h.events {
		if e.NodeID == node && e.Type != wire.EventNodeRetried {
			told = append(told, string(e.Type)+" "+string(e.Payload))
		}
	}
	return told
}
