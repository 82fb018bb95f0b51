package sim

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"waybill.dev/waybill/protocol/fault"
	"waybill.dev/waybill/protocol/runstate"
	"waybill.dev/waybill/protocol/wire"
	"waybill.dev/waybill/protocol/workflow"
)

// outcome is what a node must come to: its status and, if it completed, the
// outputs that do not depend on who came first.
type outcome struct {
	status runstate.NodeStatus
	ports  map[string]json.RawMessage
}

// foretell executes a workflow naively: node after node, in order, with nobody
// in between.
//
// What became of its gates is not to be foretold: gate tells it.
func (f Flow) foretell(id string, gate func(i int) runstate.NodeStatus) (nodes []outcome, vars map[string]json.RawMessage) {
	vars = map[string]json.RawMessage{"given": quoted("by the client, with " + veil)}
	for i, n := range f.Nodes {
		o := outcome{status: runstate.NodeSkipped}
		if f.runs(n, nodes) {
			if o = f.perform(i, nodes, id); n.Kind == kindGate {
				o.status = gate(i)
			}
		}
		if n.Kind == kindIdentity && o.status == runstate.NodeCompleted {
			for name, v := range o.ports {
				vars[name] = v
			}
		}
		nodes = append(nodes, o)
	}
	return nodes, vars
}

// runs is the trigger rule of a node, once all before it are done.
func (f Flow) runs(n Node, before []outcome) bool {
	completed, failed := 0, 0
	for _, j := range n.From {
		switch before[j].status {
		case runstate.NodeCompleted:
			completed++
		case runstate.NodeFailed:
			failed++
		}
	}
	if len(n.From) == 0 {
		return true
	}
	switch n.Rule {
	case workflow.AnySuccess:
		return completed > 0
	case workflow.AllComplete:
		return true
	case workflow.NoneFailed:
		return failed == 0
	case workflow.AnyFailed:
		return failed > 0
	default:
		return failed == 0 && completed > 0
	}
}

func (f Flow) perform(i int, before []outcome, id string) outcome {
	n := f.Nodes[i]
	o := outcome{status: runstate.NodeCompleted, ports: map[string]json.RawMessage{}}
	switch {
	case n.Kind == kindFail, n.Kind.asksModel() && n.Script.End != endsWell:
		return outcome{status: runstate.NodeFailed}
	case n.Kind == kindPrompt:
		o.ports["output"] = quoted(strings.ReplaceAll(n.text(i), canary, veil))
	case n.Kind.asksModel():
		o.ports["output"] = json.RawMessage(strings.ReplaceAll(n.text(i), canary, veil))
	case n.Kind == kindIdentity:
		o.ports[n.port(i)] = quoted(fmt.Sprintf("value of %s of %s", nodeID(i), id))
		if n.Rule == workflow.AnySuccess || n.Rule == workflow.AnyFailed {
			return o // it did not wait for all of its inputs
		}
		for _, j := range n.From {
			if v, ok := before[j].ports[f.Nodes[j].port(j)]; ok {
				o.ports[input(j, i)] = v
			}
		}
	}
	return o
}

func quoted(s string) json.RawMessage { return wire.AppendString(nil, s) }

// excused are runs that somebody ended before they came to anything, and those with
// so little time that a node may not be tried again.
func (h *history) excused() bool {
	if h.state.Status == wire.StatusCancelled || h.flow.hurried() {
		return true
	}
	return h.timedOut() && h.flow.TimeoutMs > 0
}

func (h *history) timedOut() bool {
	return h.state.Error != nil && h.state.Error.Code == string(fault.RunTimeout)
}

// hurried workflows have nodes that are tried again, and a time limit.
func (f Flow) hurried() bool {
	return f.TimeoutMs > 0 && slices.ContainsFunc(f.Nodes, func(n Node) bool { return n.Script != nil && n.Script.Hangs+n.Script.Fails > 0 })
}

// agrees: the run came to what the workflow says, whatever happened on the way.
func (h *history) agrees() error {
	if h.excused() {
		return nil
	}
	nodes, vars := h.flow.foretell(h.record.WorkflowID, func(i int) runstate.NodeStatus { return h.statusOf(nodeID(i)) })
	for i, want := range nodes {
		n := h.state.Nodes[nodeID(i)]
		if n == nil || n.Status != want.status {
			return fmt.Errorf("node %s (%s) is %q, want %q", nodeID(i), h.flow.Nodes[i].Kind, h.statusOf(nodeID(i)), want.status)
		}
		for name, v := range want.ports {
			if !sameJSON(n.Outputs[name], v) {
				return fmt.Errorf("node %s puts out %s as %s, want %s", nodeID(i), name, n.Outputs[name], v)
			}
		}
		if err := h.shown(i); err != nil {
			return err
		}
	}
	for name, v := range vars {
		if !sameJSON(h.state.Variables[name], v) {
			return fmt.Errorf("variable %s is %s, want %s", name, h.state.Variables[name], v)
		}
	}
	return h.concludes(nodes)
}

// concludes: the run ended as its last nodes did.
func (h *history) concludes(nodes []outcome) error {
	completed, failed := 0, 0
	for i, o := range nodes {
		sink := true
		for _, n := range h.flow.Nodes {
			for _, j := range n.From {
				sink = sink && j != i
			}
		}
		switch {
		case sink && o.status == runstate.NodeCompleted:
			completed++
		case sink && o.status == runstate.NodeFailed:
			failed++
		}
	}
	want := wire.StatusFailed
	if failed == 0 && completed > 0 {
		want = wire.StatusCompleted
	}
	if h.state.Status != want {
		return fmt.Errorf("the run is %s, want %s", h.state.Status, want)
	}
	return nil
}

// shown: what was shown of the attempt that completed a node is its text.
func (h *history) shown(i int) error {
	if h.flow.Nodes[i].Kind != kindPrompt || h.statusOf(nodeID(i)) != runstate.NodeCompleted {
		return nil
	}
	var text strings.Builder
	for _, e := range h.events {
		var p struct{ Chunk string }
		switch {
		case e.NodeID != nodeID(i):
		case e.Type == wire.EventNodeStarted:
			text.Reset()
		case e.Type == wire.EventOutputChunk:
			if err := json.Unmarshal(e.Payload, &p); err != nil {
				return err
			}
			text.WriteString(p.Chunk)
		}
	}
	if out := h.state.Nodes[nodeID(i)].Outputs["output"]; !sameJSON(quoted(text.String()), out) {
		return fmt.Errorf("node %s has shown %q, and puts out %s", nodeID(i), text.String(), out)
	}
	return nil
}

func sameJSON(a, b json.RawMessage) bool {
	var x, y bytes.Buffer
	if json.Compact(&x, a) != nil || json.Compact(&y, b) != nil {
		return false
	}
	return x.String() == y.String()
}
