package machine_test

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"waybill.dev/waybill/protocol/runstate"
	"waybill.dev/waybill/protocol/wire"
	"waybill.dev/waybill/services/dispatcher/machine"
	"waybill.dev/waybill/services/dispatcher/node"
)

// tainted is a random workflow in which some nodes produce untrusted content.
type tainted struct {
	graph

	boundary wire.Trust
	sources  map[string]bool
	edges    [][2]string
	ports    map[string][]taintedPort // by node
	sinks    []string
}

// taintedPort is a port and its source: a variable or a node.
type taintedPort struct{ name, variable, node string }

var taintedVariables = []string{"v0", "v1", "v2"}

func drawTainted(r *rapid.T) tainted {
	g := tainted{boundary: wire.Trusted, sources: map[string]bool{}, ports: map[string][]taintedPort{}}
	if rapid.IntRange(0, 9).Draw(r, "boundary") == 0 {
		g.boundary = wire.Untrusted
	}
	g.settings = `{"maxRetries":2}`
	g.inputs = map[string]string{}
	n := rapid.IntRange(1, 9).Draw(r, "nodes")
	leads := map[string]bool{}
	for i := range n {
		id := fmt.Sprint("n", i)
		typ := rapid.SampledFrom([]string{"core.noop", "core.identity", "core.identity", "core.fail", "core.delay", "core.ai.callPrompt", "core.ai.callPrompt"}).Draw(r, "type")
		if typ == "core.ai.callPrompt" && rapid.IntRange(0, 2).Draw(r, "source") == 0 {
			g.sources[id] = true
		}
		config := "{}"
		if typ == "core.delay" {
			config = fmt.Sprintf(`{"delayMs":%d}`, rapid.IntRange(0, 3).Draw(r, "delay"))
		}
		g.nodes = append(g.nodes, id+":"+typ+":"+config)
		for j := range i {
			if rapid.IntRange(0, 2).Draw(r, "edge") == 0 {
				rule := rapid.SampledFrom([]string{"all_success", "any_success", "all_complete", "none_failed", "any_failed"}).Draw(r, "rule")
				from := fmt.Sprint("n", j)
				g.graph.edges = append(g.graph.edges, from+">"+id+":"+rule)
				g.edges = append(g.edges, [2]string{from, id})
				leads[from] = true
			}
		}
		g.inputs[id] = g.drawPorts(r, id, i)
	}
	for i := range n {
		if id := fmt.Sprint("n", i); !leads[id] {
			g.sinks = append(g.sinks, id)
		}
	}
	return g
}

// drawPorts returns ports named like variables, which core.identity writes.
func (g *tainted) drawPorts(r *rapid.T, id string, i int) string {
	var ports []string
	for _, name := range taintedVariables {
		switch rapid.IntRange(0, 4).Draw(r, "port") {
		case 0:
			from := rapid.SampledFrom(taintedVariables).Draw(r, "variable")
			g.ports[id] = append(g.ports[id], taintedPort{name: name, variable: from})
			ports = append(ports, fmt.Sprintf(`%q:{"type":"variable","variableName":%q,"optional":true}`, name, from))
		case 1:
			if i == 0 {
				continue
			}
			from := fmt.Sprint("n", rapid.IntRange(0, i-1).Draw(r, "from"))
			g.ports[id] = append(g.ports[id], taintedPort{name: name, node: from})
			ports = append(ports, fmt.Sprintf(`%q:{"type":"connection","nodeId":%q,"outputKey":"output","optional":true}`, name, from))
		case 2:
			ports = append(ports, fmt.Sprintf(`%q:{"type":"static","value":%q}`, name, id))
		}
	}
	return "{" + strings.Join(ports, ",") + "}"
}

// oracle determines untrusted values from the definition and the order of events, without the
// machine.
type oracle struct {
	tainted
	nodes, variables map[string]bool // untrusted ones
	done             map[string]bool
}

func newOracle(g tainted) *oracle {
	return &oracle{tainted: g, nodes: map[string]bool{}, variables: map[string]bool{}, done: map[string]bool{}}
}

// reached reports whether any source of a node is untrusted now.
func (o *oracle) reached(id string) bool {
	for _, e := range o.edges {
		if e[1] == id && o.done[e[0]] && o.nodes[e[0]] {
			return true
		}
	}
	return slices.ContainsFunc(o.ports[id], func(p taintedPort) bool {
		return p.variable != "" && o.variables[p.variable] || p.node != "" && o.done[p.node] && o.nodes[p.node]
	})
}

// handOut reports whether the input of an effect is untrusted. Inputs are read when the effect is
// handed out, which can be later than the start of its node.
func (o *oracle) handOut(id string) bool {
	return o.boundary == wire.Untrusted || o.nodes[id] || o.reached(id)
}

// see applies the next event and reports whether it must be untrusted.
func (o *oracle) see(e wire.Event) bool {
	if e.Type == wire.EventNodeStarted || e.Type == wire.EventNodeSkipped {
		o.nodes[e.NodeID] = o.nodes[e.NodeID] || o.reached(e.NodeID)
	}
	must := o.boundary == wire.Untrusted
	switch {
	case e.NodeID != "":
		must = must || o.nodes[e.NodeID]
	case e.Type == wire.EventRunCompleted:
		must = must || slices.ContainsFunc(o.sinks, func(id string) bool { return o.nodes[id] })
	case e.Type == wire.EventRunFailed:
		var p struct{ FailedNodeID string }
		_ = json.Unmarshal(e.Payload, &p)
		must = must || o.nodes[p.FailedNodeID]
	}
	switch e.Type {
	case wire.EventVariableChanged:
		var p struct{ Name string }
		_ = json.Unmarshal(e.Payload, &p)
		o.variables[p.Name] = o.nodes[e.NodeID]
	case wire.EventNodeCompleted, wire.EventNodeFailed, wire.EventNodeSkipped, wire.EventNodeCancelled:
		o.done[e.NodeID] = true
	}
	return must
}

// taintedRun executes a run with random crashes.
type taintedRun struct {
	g      tainted
	plan   machine.Plan
	m      *machine.Machine
	o      *oracle
	log    []wire.Event
	open   []machine.Effect
	now    time.Time
	tested bool // an untrusted event was checked
}

func (tr *taintedRun) record() *wire.RunRecord {
	return record(func(r *wire.RunRecord) { r.TrustBoundary = tr.g.boundary })
}

// flush appends the pending events and compares their trust with the oracle.
func (tr *taintedRun) flush(r *rapid.T) {
	events, _ := tr.m.Pending()
	for _, e := range events {
		must := tr.o.see(e)
		tr.tested = tr.tested || must
		if must {
			require.Equal(r, wire.Untrusted, e.ContentTrust, "%s of %q at %d", e.Type, e.NodeID, e.Sequence)
		}
		if len(tr.g.sources) == 0 && tr.g.boundary == wire.Trusted {
			require.NotEqual(r, wire.Untrusted, e.ContentTrust, "unexpectedly untrusted: %s of %q", e.Type, e.NodeID)
		}
	}
	tr.log = append(tr.log, events...)
	tr.m.Flushed()
}

// replayed returns the state that another process folds from the log's bytes.
func (tr *taintedRun) replayed(r *rapid.T) *runstate.State {
	events, err := wire.ParseEvents(wire.AppendEvents(nil, tr.log))
	require.NoError(r, err)
	return runstate.Fold(tr.record(), events)
}

// same compares the trust in the folded state with that in the machine's state.
func (tr *taintedRun) same(r *rapid.T) {
	was, is := tr.m.State(), tr.replayed(r)
	for id, n := range was.Nodes {
		require.Equal(r, n.Trust, is.Nodes[id].Trust, "node %s", id)
		if tr.o.nodes[id] {
			require.Equal(r, wire.Untrusted, is.Nodes[id].Trust, "node %s", id)
		}
	}
	require.Equal(r, was.Tainted, is.Tainted)
	for name := range tr.o.variables {
		if tr.o.variables[name] {
			require.True(r, is.Tainted[name], "variable %s", name)
		}
	}
}

// end ends a random effect, or lets it emit an event.
func (tr *taintedRun) end(r *rapid.T) {
	i := rapid.IntRange(0, len(tr.open)-1).Draw(r, "which")
	e := tr.open[i]
	brings := wire.Trusted.Meet(e.Trust) // the trust of its input
	if tr.g.sources[e.NodeID] && rapid.Bool().Draw(r, "brings untrusted content") {
		brings = wire.Untrusted
	}
	fell := func() {
		if brings == wire.Untrusted {
			tr.o.nodes[e.NodeID] = true
		}
	}
	switch rapid.IntRange(0, 4).Draw(r, "how it goes on") {
	case 0: // a chunk of the answer; the effect continues
		fell()
		d := wire.Draft{
			Type:    wire.EventOutputChunk,
			NodeID:  e.NodeID,
			Trust:   brings,
			Payload: json.RawMessage(`{"nodeId":"` + e.NodeID + `","chunk":"x"}`),
		}
		tr.m.Emit(tr.now, d)
		return
	case 1:
		fell()
		tr.m.FailNode(tr.now, e.NodeID, &wire.NodeError{
			Code:      "provider_unavailable",
			Message:   "down",
			Retryable: true,
		}, brings)
	case 2:
		fell()
		tr.m.FailNode(tr.now, e.NodeID, &wire.NodeError{Code: "envelope_refusal", Message: "no"}, brings)
	default:
		fell()
		out := node.Output{Writes: map[string]json.RawMessage{}}
		if rapid.Bool().Draw(r, "has output") {
			out.Ports = map[string]json.RawMessage{"output": json.RawMessage(fmt.Sprint(len(tr.log)))}
		}
		if rapid.Bool().Draw(r, "writes") {
			out.Writes[rapid.SampledFrom(taintedVariables).Draw(r, "variable")] = json.RawMessage(fmt.Sprint(len(tr.log)))
		}
		tr.m.Complete(tr.now, e.NodeID, out, brings)
	}
	tr.open = slices.Delete(tr.open, i, i+1)
}

// Trust never rises, in random graphs with random untrusted sources, retries, crashes and run
// boundaries (OpenWOP envelope contract §12).
func TestTrust_OnlyEverFalls(t *testing.T) {
	t.Parallel()
	checked := 0
	rapid.Check(t, func(r *rapid.T) {
		g := drawTainted(r)
		tr := &taintedRun{g: g, plan: g.plan(t), o: newOracle(g), now: at}
		tr.m = machine.New(tr.plan, limits, runstate.New(tr.record()))
		for step := 0; !tr.m.State().Status.Terminal(); step++ {
			require.Less(r, step, 500, "the run ends")
			asked := tr.m.Advance(tr.now)
			tr.flush(r)
			for _, e := range asked {
				if tr.o.handOut(e.NodeID) {
					require.Equal(r, wire.Untrusted, e.Trust, "the input of %s", e.NodeID)
				}
			}
			tr.open = append(tr.open, asked...)
			tr.same(r)
			if tr.m.State().Status.Terminal() {
				break
			}
			if rapid.IntRange(0, 5).Draw(r, "crash") == 0 { // another process continues from the log
				tr.m, tr.open = machine.New(tr.plan, limits, tr.replayed(r)), nil
				continue
			}
			if len(tr.open) > 0 {
				tr.end(r)
				tr.flush(r)
				continue
			}
			due, ok := tr.m.Due()
			require.True(r, ok)
			tr.now = due
		}
		if tr.tested {
			checked++
		}
	})
	require.Positive(t, checked, "some run had untrusted content")
}

// A variable with an untrusted value is untrusted until a trusted node writes a new value.
func TestTrust_OfAVariableIsThatOfItsValue(t *testing.T) {
	t.Parallel()
	g := graph{nodes: []string{"a:core.ai.callPrompt", "b:core.ai.callPrompt"}}
	_, m, _ := trace(t, g)
	m.Complete(at, "a", node.Output{Writes: map[string]json.RawMessage{"v": json.RawMessage(`"x"`)}}, wire.Untrusted)
	require.True(t, m.State().Tainted["v"])
	tainted := maps.Clone(m.State().Tainted)
	m.Complete(at, "b", node.Output{Writes: map[string]json.RawMessage{"v": json.RawMessage(`"x"`)}}, wire.Trusted)
	require.Equal(t, tainted, m.State().Tainted, "writing the same value changes nothing")
}
