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

// outcome is the expected result of a node: its status and, if it completed, the outputs that do
// not depend on timing.
type outcome struct {
	status runstate.NodeStatus
	ports  map[string]json.RawMessage
}

// expectedOutcome executes a workflow node by node, in order, without faults.
//
// The decisions of gates cannot be predicted: gate returns them.
func (f Flow) expectedOutcome(id string, gate func(i int) runstate.NodeStatus) (nodes []outcome, vars map[string]json.RawMessage) {
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

// runs evaluates the trigger rule of a node after all nodes before it have ended.
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

// excused reports whether the oracle does not apply: a client ended the run early, or its time
// limit allows no retry.
func (h *history) excused() bool {
	if h.state.Status == wire.StatusCancelled || h.flow.hurried() {
		return true
	}
	return h.timedOut() && h.flow.TimeoutMs > 0
}

func (h *history) timedOut() bool {
	return h.state.Error != nil && h.state.Error.Code == string(fault.RunTimeout)
}

// hurried reports whether a workflow has both retried nodes and a time limit.
func (f Flow) hurried() bool {
	return f.TimeoutMs > 0 && slices.ContainsFunc(f.Nodes, func(n Node) bool { return n.Script != nil && n.Script.Hangs+n.Script.Fails > 0 })
}

// checkOutcome checks that the run has the outcome its workflow defines, whatever faults happened.
func (h *history) checkOutcome() error {
	if h.excused() {
		return nil
	}
	nodes, vars := h.flow.expectedOutcome(h.record.WorkflowID, func(i int) runstate.NodeStatus { return h.statusOf(nodeID(i)) })
	for i, want := range nodes {
		n := h.state.Nodes[nodeID(i)]
		if n == nil || n.Status != want.status {
			return fmt.Errorf("node %s (%s) is %q, want %q", nodeID(i), h.flow.Nodes[i].Kind, h.statusOf(nodeID(i)), want.status)
		}
		for name, v := range want.ports {
			if !sameJSON(n.Outputs[name], v) {
				return fmt.Errorf("node %s outputs %s as %s, want %s", nodeID(i), name, n.Outputs[name], v)
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
	return h.checkEnd(nodes)
}

// checkEnd checks the run's end against its last nodes.
func (h *history) checkEnd(nodes []outcome) error {
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

// shown checks that the streamed text of the attempt that completed a node is its output.
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
		return fmt.Errorf("node %s streamed %q but outputs %s", nodeID(i), text.String(), out)
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
