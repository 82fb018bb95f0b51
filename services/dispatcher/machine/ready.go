package machine

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"

	"waybill.dev/waybill/protocol/runstate"
	"waybill.dev/waybill/protocol/untrusted"
	"waybill.dev/waybill/protocol/wire"
	"waybill.dev/waybill/protocol/workflow"
	"waybill.dev/waybill/services/dispatcher/node"
)

// verdict is the result of a node's trigger rule.
type verdict int

const (
	notYet verdict = iota
	ready
	skip
	broken // a condition cannot be evaluated
)

// tally counts the upstream nodes of a node by how they ended.
type tally struct{ total, completed, failed, skipped int }

func (t tally) allTerminal() bool { return t.completed+t.failed+t.skipped == t.total }

// readiness applies the node's trigger rule to its upstreams (OpenWOP host contract §5.2). A
// disabled node is skipped, and counts as skipped for its successors. reason is why the node is
// skipped, or why the rule cannot be evaluated.
func (m *Machine) readiness(step *workflow.Step) (verdict, string) {
	if step.Node.Disabled {
		return skip, "disabled"
	}
	t, bad := m.countUpstreams(step.In)
	if bad != nil {
		return broken, bad.Message
	}
	if t.total == 0 {
		return ready, ""
	}
	v := applyRule(step.Rule, t)
	if v == skip {
		return skip, "trigger rule " + string(step.Rule) + " not met"
	}
	return v, ""
}

// countUpstreams counts an edge whose condition is false as a skipped upstream.
func (m *Machine) countUpstreams(in []workflow.Link) (tally, *wire.NodeError) {
	var t tally
	for _, l := range in {
		if l.Back { // the first pass ignores edges that close a loop
			continue
		}
		t.total++
		n := m.st.Nodes[l.Edge.SourceNodeID]
		if n == nil {
			continue
		}
		switch n.Status {
		case runstate.NodeCompleted:
			carries, bad := m.edgeCarries(l)
			switch {
			case bad != nil:
				return t, bad
			case carries:
				t.completed++
			default:
				t.skipped++
			}
		case runstate.NodeFailed:
			t.failed++
		case runstate.NodeSkipped, runstate.NodeCancelled:
			t.skipped++
		}
	}
	return t, nil
}

// applyRule is the table of trigger rules.
func applyRule(rule workflow.TriggerRule, t tally) verdict {
	switch rule {
	case workflow.AnySuccess:
		return pickVerdict(t.completed > 0, t.allTerminal())
	case workflow.AllComplete:
		return pickVerdict(t.allTerminal(), false)
	case workflow.NoneFailed:
		return pickVerdict(t.allTerminal() && t.failed == 0, t.failed > 0)
	case workflow.AnyFailed:
		return pickVerdict(t.failed > 0, t.allTerminal())
	default: // all_success
		return pickVerdict(t.allTerminal() && t.failed == 0 && t.completed > 0, t.allTerminal())
	}
}

func pickVerdict(isReady, isSkip bool) verdict {
	switch {
	case isReady:
		return ready
	case isSkip:
		return skip
	default:
		return notYet
	}
}

// gatherInput returns a node's input: the values of its edges, overlaid by its own ports, and the
// trust of their sources.
func (m *Machine) gatherInput(id string) (node.Input, wire.Trust, *wire.NodeError) {
	step := m.step(id)
	def := step.Node
	r, trust := m.st.Record, m.nodeTrust(id)
	ports, tainted, origins := map[string]json.RawMessage{}, map[string]bool{}, map[string]untrusted.Mark{}
	take := func(name string, v json.RawMessage, t wire.Trust, source string) {
		ports[name] = v
		delete(tainted, name)
		delete(origins, name)
		if t == wire.Untrusted {
			tainted[name] = true
			if o := m.originOf(source); o.Source != "" {
				origins[name] = o
			}
		}
	}
	for _, l := range step.In {
		src := m.st.Nodes[l.Edge.SourceNodeID]
		if src == nil || src.Status != runstate.NodeCompleted {
			continue
		}
		if carries, bad := m.edgeCarries(l); bad != nil || !carries {
			continue // a failing condition has failed the node before
		}
		if v, ok := src.Outputs[l.Edge.SourceOutput]; ok {
			take(l.Edge.TargetInput, v, src.Trust, l.Edge.SourceNodeID)
		}
	}
	edges, edgesTainted := edgePorts(def, ports, tainted)
	size := 0
	for _, name := range slices.Sorted(maps.Keys(def.Inputs)) { // sorted: the first error is the same on every replay
		pv := def.Inputs[name]
		v, t, bad := m.resolvePort(id, name, pv)
		if pv.Type == workflow.PortExpression {
			v, t, bad = m.evalExpression(id, name, edges, edgesTainted)
		}
		if size += len(v); bad == nil {
			bad = checkSize(size, maxInputBytes, "the inputs of the node are")
		}
		if bad != nil {
			return node.Input{}, trust, bad
		}
		if v != nil {
			take(name, v, t, pv.NodeID)
		}
	}
	if bad := checkSize(sizeOf(ports), maxInputBytes, "the inputs of the node are"); bad != nil {
		return node.Input{}, trust, bad
	}
	in := node.Input{
		NodeID:             id,
		Config:             m.plan.Types[def.TypeID].Configure(def.Config),
		Ports:              ports,
		Variables:          m.visibleVariables(def),
		RunInputs:          r.Inputs,
		Configurable:       r.Configurable,
		Declared:           m.declaredNames(def),
		UntrustedPorts:     tainted,
		UntrustedVariables: m.st.Tainted,
		Origins:            origins,
		Versions:           m.st.Pins,
		Next:               m.nextModel(id),
	}
	m.addChannels(step, &in)
	return in, trust, nil
}

// declaredNames are the names that placeholders of a node may have, also without a value: the workflow's
// variables, and the optional ports of the node.
func (m *Machine) declaredNames(def *workflow.Node) map[string]bool {
	out := make(map[string]bool, len(m.plan.Def.Variables))
	for _, v := range m.plan.Def.Variables {
		out[v.Name] = true
	}
	for name, pv := range def.Inputs {
		if pv.Optional {
			out[name] = true
		}
	}
	return out
}

// Input returns what a node would be given now, and its type.
func (m *Machine) Input(id string) (in node.Input, typeID string, bad *wire.NodeError) {
	in, _, bad = m.gatherInput(id)
	return in, m.step(id).Node.TypeID, bad
}

// originOf returns the external origin of a node's output; the zero Mark for no node.
func (m *Machine) originOf(id string) untrusted.Mark {
	if _, ok := m.plan.Graph.Lookup(id); !ok {
		return untrusted.Mark{}
	}
	n := m.step(id).Node
	t := m.plan.Types[n.TypeID]
	return node.Origin(t.Executes(), t.Configure(n.Config))
}

// nodeTrust is the meet of all that leads to a node, and of its earlier events. An upstream counts
// however it ended: it decides whether the node runs (OpenWOP envelope contract §12).
func (m *Machine) nodeTrust(id string) wire.Trust {
	// Any node may read the run's inputs, so an untrusted run has no trusted values.
	trust := wire.Trusted.Meet(m.st.Record.TrustBoundary)
	if n := m.st.Nodes[id]; n != nil {
		trust = trust.Meet(n.Trust)
	}
	if e := m.st.Record.Edit(id); e != nil {
		trust = trust.Meet(trustOf(e.Untrusted || len(e.UntrustedInputs) > 0))
	}
	step := m.step(id)
	for _, l := range step.In {
		if src := m.st.Nodes[l.Edge.SourceNodeID]; src != nil && src.Status.Terminal() {
			trust = trust.Meet(src.Trust)
		}
	}
	trust = trust.Meet(m.steeringTrust(step))
	for _, pv := range step.Node.Inputs {
		switch pv.Type {
		case workflow.PortVariable:
			trust = trust.Meet(trustOf(m.st.Tainted[pv.VariableName]))
		case workflow.PortConnection:
			if src := m.st.Nodes[pv.NodeID]; src != nil {
				trust = trust.Meet(src.Trust)
			}
		}
	}
	return trust
}

// resolvePort resolves one port value; nil if it is optional and missing.
func (m *Machine) resolvePort(id, name string, pv workflow.PortValue) (json.RawMessage, wire.Trust, *wire.NodeError) {
	switch pv.Type {
	case workflow.PortStatic:
		return pv.Value, m.trustOfStatic(id, name), nil
	case workflow.PortVariable:
		if bad := m.checkRead(id, pv.VariableName); bad != nil {
			return nil, wire.Trusted, bad
		}
		if v, ok := m.st.Variables[pv.VariableName]; ok {
			return v, trustOf(m.st.Tainted[pv.VariableName]), nil
		}
		return nil, wire.Trusted, missingValue(pv.Optional,
			"node %s, port %s: variable %q has no value", id, name, pv.VariableName)
	case workflow.PortConnection:
		if src := m.st.Nodes[pv.NodeID]; src != nil {
			if v, ok := src.Outputs[pv.OutputKey]; ok {
				return v, src.Trust, nil
			}
		}
		return nil, wire.Trusted, missingValue(pv.Optional,
			"node %s, port %s: node %q has no output %q", id, name, pv.NodeID, pv.OutputKey)
	default: // expressions are evaluated by evalExpression
		return nil, wire.Trusted, nil
	}
}

// trustOfStatic is the trust of a value of the definition. Only an edit can make it untrusted, if the port's
// value in the source was.
func (m *Machine) trustOfStatic(id, port string) wire.Trust {
	e := m.st.Record.Edit(id)
	return trustOf(e != nil && slices.Contains(e.UntrustedInputs, port))
}

func trustOf(tainted bool) wire.Trust {
	if tainted {
		return wire.Untrusted
	}
	return wire.Trusted
}

func missingValue(optional bool, format string, args ...any) *wire.NodeError {
	if optional {
		return nil
	}
	return node.Invalid("%s", fmt.Sprintf(format, args...))
}
