package workflow

import (
	"cmp"
	"slices"
)

// Graph is a definition in execution order. It is immutable.
type Graph struct {
	// Steps in topological order; ties are broken by node id. Edges that close a loop are ignored.
	Steps []Step
	// Sources are the steps without predecessors, Sinks those without successors: indexes into
	// Steps,
	// ascending.
	Sources, Sinks []int

	index map[string]int
}

// Step is a node with its edges.
type Step struct {
	Node *Node
	// Rule determines when the node may start: the rule of the first incoming edge by id, if they
	// differ (OpenWOP host contract §5.2).
	Rule TriggerRule
	// In and Out are sorted by edge id.
	In, Out []Link
}

// Link is an edge as seen from one of its ends.
type Link struct {
	Edge *Edge
	// Step is the index of the step at the other end.
	Step int
	// Back marks an edge that closes a loop through core.dispatch or core.orchestrator.supervisor.
	// The first pass does not wait for it.
	Back bool
}

// Lookup returns the index of a node's step.
func (g *Graph) Lookup(nodeID string) (step int, ok bool) {
	step, ok = g.index[nodeID]
	return step, ok
}

// Compile returns the graph of a valid definition. Edges to unknown nodes are dropped. Equal
// definitions yield equal graphs, regardless of the order of their nodes and edges.
func Compile(d *Definition) *Graph {
	w := newWiring(d)
	w.findBack()
	order := w.order()
	g := &Graph{Steps: make([]Step, len(order)), index: make(map[string]int, len(order))}
	for i, n := range order {
		g.index[w.nodes[n].ID] = i
	}
	for i, n := range order {
		g.Steps[i] = Step{
			Node: w.nodes[n], Rule: AllSuccess,
			In:  g.links(w, w.in[n], func(e *Edge) string { return e.SourceNodeID }),
			Out: g.links(w, w.out[n], func(e *Edge) string { return e.TargetNodeID }),
		}
		first := slices.IndexFunc(g.Steps[i].In, isForward)
		if first < 0 {
			g.Sources = append(g.Sources, i)
		} else {
			g.Steps[i].Rule = g.Steps[i].In[first].Edge.TriggerRule
		}
		if !slices.ContainsFunc(g.Steps[i].Out, isForward) {
			g.Sinks = append(g.Sinks, i)
		}
	}
	return g
}

func isForward(l Link) bool { return !l.Back }

func (g *Graph) links(w *wiring, edges []int, end func(*Edge) string) []Link {
	links := make([]Link, len(edges))
	for i, e := range edges {
		links[i] = Link{Edge: w.edges[e], Step: g.index[end(w.edges[e])], Back: w.back[e]}
	}
	return links
}

// wiring is the graph during sorting: nodes and edges sorted by id and referenced by index.
type wiring struct {
	nodes   []*Node
	edges   []*Edge
	in, out [][]int // edges by node
	target  []int   // node by edge
	back    []bool  // by edge
}

func newWiring(d *Definition) *wiring {
	w := &wiring{}
	for i := range d.Nodes {
		w.nodes = append(w.nodes, &d.Nodes[i])
	}
	slices.SortFunc(w.nodes, func(a, b *Node) int { return cmp.Compare(a.ID, b.ID) })
	at := make(map[string]int, len(w.nodes))
	for i, n := range w.nodes {
		at[n.ID] = i
	}
	for i := range d.Edges {
		_, from := at[d.Edges[i].SourceNodeID]
		if _, to := at[d.Edges[i].TargetNodeID]; from && to {
			w.edges = append(w.edges, &d.Edges[i])
		}
	}
	slices.SortFunc(w.edges, func(a, b *Edge) int { return cmp.Compare(a.ID, b.ID) })
	w.in, w.out = make([][]int, len(w.nodes)), make([][]int, len(w.nodes))
	w.target, w.back = make([]int, len(w.edges)), make([]bool, len(w.edges))
	for i, e := range w.edges {
		source, target := at[e.SourceNodeID], at[e.TargetNodeID]
		w.in[target] = append(w.in[target], i)
		w.out[source] = append(w.out[source], i)
		w.target[i] = target
	}
	return w
}

// findBack marks the edges that close loops: in a depth-first search, those that lead to a node on
// the current path. The search starts where a run would: at nodes without predecessors, then at
// supervisors, then at dispatchers.
func (w *wiring) findBack() {
	starts := make([]int, len(w.nodes))
	for i := range starts {
		starts[i] = i
	}
	rank := func(n int) int {
		switch {
		case len(w.in[n]) == 0:
			return 0
		case w.nodes[n].TypeID == TypeSupervisor:
			return 1
		case w.nodes[n].TypeID == TypeDispatch:
			return 2
		default:
			return 3
		}
	}
	slices.SortStableFunc(starts, func(a, b int) int { return cmp.Compare(rank(a), rank(b)) })
	state := make([]mark, len(w.nodes))
	for _, n := range starts {
		w.visit(n, state)
	}
}

func (w *wiring) visit(n int, state []mark) {
	if state[n] != unseen {
		return
	}
	state[n] = open
	for _, e := range w.out[n] {
		w.back[e] = state[w.target[e]] == open
		w.visit(w.target[e], state)
	}
	state[n] = closed
}

// order sorts the nodes topologically without the back edges (Kahn's algorithm).
func (w *wiring) order() []int {
	waits := make([]int, len(w.nodes))
	var ready []int // ascending, that is, by id
	for n := range w.nodes {
		for _, e := range w.in[n] {
			if !w.back[e] {
				waits[n]++
			}
		}
		if waits[n] == 0 {
			ready = append(ready, n)
		}
	}
	order := make([]int, 0, len(w.nodes))
	for len(ready) > 0 {
		n := ready[0]
		ready = ready[1:]
		order = append(order, n)
		for _, e := range w.out[n] {
			t := w.target[e]
			if w.back[e] {
				continue
			}
			if waits[t]--; waits[t] == 0 {
				at, _ := slices.BinarySearch(ready, t)
				ready = slices.Insert(ready, at, t)
			}
		}
	}
	return order
}
