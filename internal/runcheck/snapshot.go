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

// Against compares the snapshot of a run with the events up to it. Optional members are compared
// only
// if present.
func (c *Check) Against(s *runstate.Snapshot) {
	if s.RunID != c.runID && c.runID != "" {
		c.differ("it belongs to run %s, the events to run %s", s.RunID, c.runID)
		return
	}
	if s.Status.Terminal() && c.ended == nil && !c.broken {
		c.findings = append(c.findings, Finding{
			Rule:    End,
			Message: fmt.Sprintf("the snapshot has status %s, but no event ended the run", s.Status),
		})
	}
	if c.skipped[Snapshot] != "" {
		return
	}
	folded := c.state.Snapshot()
	if s.Status != wire.StatusCancelling || folded.Status.Terminal() { // cancelling has no event
		c.same("status", string(folded.Status), string(s.Status))
	}
	c.same("startedAt", folded.StartedAt, s.StartedAt)
	c.same("completedAt", folded.CompletedAt, s.CompletedAt)
	c.same("error", code(folded.Error), code(s.Error))
	c.nodes(folded.NodeStates, s.NodeStates)
	if folded.Metrics != nil && s.Metrics != nil && folded.Metrics.Cost.Tokens != s.Metrics.Cost.Tokens {
		c.differ("metrics: the events have %+v tokens, the snapshot has %+v", folded.Metrics.Cost.Tokens, s.Metrics.Cost.Tokens)
	}
	if c.source.Trimmed {
		return
	}
	c.sameJSON("outputs", folded.Outputs, s.Outputs)
	for _, name := range slices.Sorted(maps.Keys(c.written)) {
		if _, isChannel := s.Channels[name]; !isChannel { // no event holds its reducer's settings
			c.sameJSON("variables."+name, folded.Variables[name], s.Variables[name])
		}
	}
	if folded.Interrupt != nil && s.Interrupt != nil {
		c.same("interrupt", folded.Interrupt.InterruptID, s.Interrupt.InterruptID)
	}
}

func (c *Check) nodes(folded, said map[string]runstate.NodeState) {
	for _, id := range slices.Sorted(maps.Keys(folded)) {
		a, b, at := folded[id], said[id], "nodeStates."+id
		if _, there := said[id]; !there {
			c.differ("%s: the events have status %s, the snapshot has no such node", at, a.Status)
			continue
		}
		c.same(at+".status", string(a.Status), string(b.Status))
		c.same(at+".error", code(a.Error), code(b.Error))
		if b.Attempts != 0 && a.Attempts != b.Attempts {
			c.differ("%s.attempts: the events have %d, the snapshot has %d", at, a.Attempts, b.Attempts)
		}
		if !c.source.Trimmed && len(b.Outputs) > 0 && !strictjson.Same(object(a.Outputs), object(b.Outputs)) {
			c.differ("%s.outputs: they differ from the events", at)
		}
	}
	for _, id := range slices.Sorted(maps.Keys(said)) {
		if _, there := folded[id]; !there {
			c.differ("nodeStates.%s: the snapshot has status %s, but no event sets it", id, said[id].Status)
		}
	}
}

func (c *Check) same(member, events, snapshot string) {
	if events != snapshot {
		c.differ("%s: the events have %q, the snapshot has %q", member, events, snapshot)
	}
}

func (c *Check) sameJSON(member string, events, snapshot json.RawMessage) {
	if !strictjson.Same(events, snapshot) {
		c.differ("%s: it differs from the events", member) // the values may be large
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
