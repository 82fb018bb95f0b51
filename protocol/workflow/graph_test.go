package workflow_test

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"waybill.dev/waybill/protocol/workflow"
)

// graph compiles a definition of the given nodes ("id" or "id:typeId") and edges
// {id, from, to, rule?}.
func graph(t testing.TB, nodes []string, edges [][]string) *workflow.Graph {
	t.Helper()
	return workflow.Compile(parse(t, small(t, func(doc map[string]any) {
		var ns, es []any
		for _, n := range nodes {
			id, typeID := n, "core.noop"
			for i := range n {
				if n[i] == ':' {
					id, typeID = n[:i], n[i+1:]
				}
			}
			object := node(id)
			object["typeId"] = typeID
			ns = append(ns, object)
		}
		for _, e := range edges {
			object := edge(e[0], e[1], e[2])
			if len(e) > 3 {
				object["triggerRule"] = e[3]
			}
			es = append(es, object)
		}
		doc["nodes"] = ns
		if es != nil {
			doc["edges"] = es
		}
	})))
}

func order(g *workflow.Graph) []string {
	var ids []string
	for _, s := range g.Steps {
		ids = append(ids, s.Node.ID)
	}
	return ids
}

// pick returns the node ids at the indexes.
func pick(g *workflow.Graph, indexes []int) []string {
	var ids []string
	for _, i := range indexes {
		ids = append(ids, g.Steps[i].Node.ID)
	}
	return ids
}

func TestCompile_OrdersTopologicallyAndByID(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		nodes                 []string
		edges                 [][]string
		order, sources, sinks []string
	}{
		"no edges": {
			nodes:   []string{"c", "a", "b"},
			edges:   nil,
			order:   []string{"a", "b", "c"},
			sources: []string{"a", "b", "c"},
			sinks:   []string{"a", "b", "c"},
		},
		"chain against ids": {
			nodes:   []string{"a", "b", "c"},
			edges:   [][]string{{"1", "c", "b"}, {"2", "b", "a"}},
			order:   []string{"c", "b", "a"},
			sources: []string{"c"},
			sinks:   []string{"a"},
		},
		"diamond": {
			nodes:   []string{"z", "m", "n", "a"},
			edges:   [][]string{{"1", "z", "n"}, {"2", "z", "m"}, {"3", "m", "a"}, {"4", "n", "a"}},
			order:   []string{"z", "m", "n", "a"},
			sources: []string{"z"},
			sinks:   []string{"a"},
		},
		"smaller id first once free": {
			nodes:   []string{"a", "b", "c", "d"},
			edges:   [][]string{{"1", "b", "a"}},
			order:   []string{"b", "a", "c", "d"},
			sources: []string{"b", "c", "d"},
			sinks:   []string{"a", "c", "d"},
		},
		"two edges between two nodes": {
			nodes:   []string{"a", "b"},
			edges:   [][]string{{"1", "b", "a"}, {"2", "b", "a"}},
			order:   []string{"b", "a"},
			sources: []string{"b"},
			sinks:   []string{"a"},
		},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			g := graph(t, tc.nodes, tc.edges)
			require.Equal(t, tc.order, order(g))
			require.Equal(t, tc.sources, pick(g, g.Sources))
			require.Equal(t, tc.sinks, pick(g, g.Sinks))
		})
	}
}

func TestCompile_LinksBothEnds(t *testing.T) {
	t.Parallel()
	g := graph(t, []string{"a", "b", "c"}, [][]string{{"e2", "a", "c"}, {"e1", "b", "c", "any_success"}})
	c, ok := g.Lookup("c")
	require.True(t, ok)
	step := g.Steps[c]
	require.Equal(t, []string{"e1", "e2"}, []string{step.In[0].Edge.ID, step.In[1].Edge.ID})
	require.Equal(t, "b", g.Steps[step.In[0].Step].Node.ID)
	a, _ := g.Lookup("a")
	require.Equal(t, c, g.Steps[a].Out[0].Step)
	require.Empty(t, g.Steps[a].In)

	_, ok = g.Lookup("nowhere")
	require.False(t, ok)
}

func TestCompile_UsesTheRuleOfTheFirstEdgeByID(t *testing.T) {
	t.Parallel()
	g := graph(t, []string{"a", "b", "c"}, [][]string{{"e2", "a", "c", "all_complete"}, {"e1", "b", "c", "any_failed"}})
	rules := map[string]workflow.TriggerRule{}
	for _, s := range g.Steps {
		rules[s.Node.ID] = s.Rule
	}
	require.Equal(t, map[string]workflow.TriggerRule{"a": workflow.AllSuccess, "b": workflow.AllSuccess, "c": workflow.AnyFailed}, rules)
}

func TestCompile_BreaksLoopsWhereARunEntersThem(t *testing.T) {
	t.Parallel()
	back := func(g *workflow.Graph) []string {
		var ids []string
		for _, s := range g.Steps {
			for _, l := range s.Out {
				if l.Back {
					ids = append(ids, l.Edge.ID)
				}
			}
		}
		return ids
	}
	g := graph(t, []string{"d:core.dispatch", "s:core.orchestrator.supervisor"}, [][]string{{"e1", "s", "d"}, {"e2", "d", "s", "any_failed"}})
	require.Equal(t, []string{"s", "d"}, order(g))
	require.Equal(t, []string{"e2"}, back(g))
	require.Equal(t, []string{"s"}, pick(g, g.Sources))
	require.Equal(t, []string{"d"}, pick(g, g.Sinks))
	require.Equal(t, workflow.AllSuccess, g.Steps[0].Rule, "the rule of a back edge does not delay the first pass")

	g = graph(t, []string{"in", "a", "d:core.dispatch", "out"}, [][]string{{"1", "in", "a"}, {"2", "a", "d"}, {"3", "d", "a"}, {"4", "d", "out"}, {"5", "d", "d"}})
	require.Equal(t, []string{"in", "a", "d", "out"}, order(g))
	require.Equal(t, []string{"3", "5"}, back(g))
	require.Equal(t, []string{"out"}, pick(g, g.Sinks))
}

// TestCompile_OrderHoldsForAnyGraph draws acyclic graphs and shuffles them.
func TestCompile_OrderHoldsForAnyGraph(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		n := rapid.IntRange(1, 12).Draw(t, "nodes")
		ids := rapid.Permutation(letters(n)).Draw(t, "ids")
		d := &workflow.Definition{}
		for _, id := range ids {
			d.Nodes = append(d.Nodes, workflow.Node{ID: id})
		}
		for i := range rapid.IntRange(0, 30).Draw(t, "edges") {
			from := rapid.IntRange(0, n-1).Draw(t, "from")
			to := rapid.IntRange(0, n-1).Draw(t, "to")
			if from < to { // forward in the drawn order, so acyclic
				d.Edges = append(d.Edges, workflow.Edge{ID: fmt.Sprint("e", i), SourceNodeID: ids[from], TargetNodeID: ids[to]})
			}
		}
		g := workflow.Compile(d)
		require.Len(t, g.Steps, n)
		for i, s := range g.Steps {
			at, ok := g.Lookup(s.Node.ID)
			require.True(t, ok && at == i)
			for _, l := range s.In {
				require.Less(t, l.Step, i)
				require.False(t, l.Back)
			}
		}

		shuffled := &workflow.Definition{Nodes: rapid.Permutation(d.Nodes).Draw(t, "nodes again"), Edges: rapid.Permutation(d.Edges).Draw(t, "edges again")}
		again := workflow.Compile(shuffled)
		require.Equal(t, order(g), order(again))
		require.Equal(t, g.Steps, again.Steps)
	})
}

func letters(n int) []string {
	ids := make([]string, n)
	for i := range ids {
		ids[i] = string(rune('a' + i))
	}
	return ids
}

func TestCompile_DropsEdgesToUnknownNodes(t *testing.T) {
	t.Parallel()
	require.Empty(t, workflow.Compile(&workflow.Definition{Edges: []workflow.Edge{{ID: "e", SourceNodeID: "x", TargetNodeID: "y"}}}).Steps)
}

func BenchmarkCompile(b *testing.B) {
	var nodes []string
	var edges [][]string
	for i := range 100 {
		nodes = append(nodes, fmt.Sprintf("n%03d", i))
		if i > 0 {
			edges = append(edges, []string{fmt.Sprint("e", i), nodes[i-1], nodes[i]})
		}
	}
	g := graph(b, nodes, edges)
	d := &workflow.Definition{}
	for _, s := range g.Steps {
		d.Nodes = append(d.Nodes, *s.Node)
		for _, l := range s.In {
			d.Edges = append(d.Edges, *l.Edge)
		}
	}
	b.ReportAllocs()
	for b.Loop() {
		workflow.Compile(d)
	}
}
