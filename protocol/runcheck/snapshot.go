package runcheck

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"

	"waybill.dev/waybill/protocol/runstate"
	"waybill.dev/waybill/protocol/strictjson"
	"waybill.dev/waybill/protocol/wire"
)

// Against holds the snapshot of a run against the events up to it. What a snapshot may
// leave out is compared only where it is there.
func (c *Check) Against(s *runstate.Snapshot) {
	if s.RunID != c.runID && c.runID != "" {
		c.differ("it is of the run %s, and the events are of %s", s.RunID, c.runID)
		return
	}
	if s.Status.Terminal() && c.ended == nil && !c.broken {
		c.findings = append(c.findings, Finding{Rule: End, Message: fmt.Sprintf("the snapshot says %s, and no event has ended the run", s.Status)})
	}
	if c.skipped[Snapshot] != "" {
		return
	}
	is := c.state.Snapshot()
	if s.Status != wire.StatusCancelling || is.Status.Terminal() { // that it is to end is no event
		c.same("status", string(is.Status), string(s.Status))
	}
	c.same("startedAt", is.StartedAt, s.StartedAt)
	c.same("completedAt", is.CompletedAt, s.CompletedAt)
	c.same("error", code(is.Error), code(s.Error))
	c.nodes(is.NodeStates, s.NodeStates)
	if is.Metrics != nil && s.Metrics != nil && is.Metrics.Cost.Tokens != s.Metrics.Cost.Tokens {
		c.differ("metrics: the events tell of %+v tokens, it of %+v", is.Metrics.Cost.Tokens, s.Metrics.Cost.Tokens)
	}
	if c.source.Trimmed {
		return
	}
	c.sameJSON("outputs", is.Outputs, s.Outputs)
	for _, name := range slices.Sorted(maps.Keys(c.written)) {
		if _, folded := s.Channels[name]; !folded { // its reducer's settings are in no event
			c.sameJSON("variables."+name, is.Variables[name], s.Variables[name])
		}
	}
	if is.Interrupt != nil && s.Interrupt != nil {
		c.same("interrupt", is.Interrupt.InterruptID, s.Interrupt.InterruptID)
	}
}

func (c *Check) nodes(is, said map[string]runstate.NodeState) {
	for _, id := range slices.Sorted(maps.Keys(is)) {
		a, b, at := is[id], said[id], "nodeStates."+id
		if _, there := said[id]; !there {
			c.differ("%s: the events say %s, and it has no such node", at, a.Status)
			continue
		}
		c.same(at+".status", string(a.Status), string(b.Status))
		c.same(at+".error", code(a.Error), code(b.Error))
		if b.Attempts != 0 && a.Attempts != b.Attempts {
			c.differ("%s.attempts: the events say %d, it says %d", at, a.Attempts, b.Attempts)
		}
		if !c.source.Trimmed && len(b.Outputs) > 0 && !strictjson.Same(object(a.Outputs), object(b.Outputs)) {
			c.differ("%s.outputs: they are not those of the events", at)
		}
	}
	for _, id := range slices.Sorted(maps.Keys(said)) {
		if _, there := is[id]; !there {
			c.differ("nodeStates.%s: it says %s, and no event does", id, said[id].Status)
		}
	}
}

func (c *Check) same(member, events, snapshot string) {
	if events != snapshot {
		c.differ("%s: the events say %q, it says %q", member, events, snapshot)
	}
}

func (c *Check) sameJSON(member string, events, snapshot json.RawMessage) {
	if !strictjson.Same(events, snapshot) {
		c.differ("%s: not what the events say", member) // the values may be large
	}
}

func (c *Check) differ(format string, args ...any) {
	c.findings = append(c.findings, Finding{Rule: Snapshot, Message: fmt.Sprintf(format, args...)})
}

func code(e *runstate.SnapshotError) string {
	if e == nil {
		return ""
	}
	return e.Code
}

func object(m map[string]json.RawMessage) json.RawMessage {
	b, err := json.Marshal(m)
	if err != nil { // a damaged member
		return nil
	}
	return b
}
