package workflow_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"waybill.dev/waybill/protocol/workflow"
)

// drawn is a random definition: node types by id, and edges.
type drawn struct {
	types map[string]string
	edges [][2]string
}

func drawGraph(t *rapid.T) drawn {
	d := drawn{types: map[string]string{}}
	n := rapid.IntRange(1, 6).Draw(t, "nodes")
	kinds := []string{"core.noop", "core.noop", "core.noop", workflow.TypeDispatch, workflow.TypeSupervisor}
	for _, id := range letters(n) {
		d.types[id] = rapid.SampledFrom(kinds).Draw(t, "type")
	}
	for range rapid.IntRange(0, 10).Draw(t, "edges") {
		id := rapid.SampledFrom(letters(n))
		d.edges = append(d.edges, [2]string{id.Draw(t, "from"), id.Draw(t, "to")})
	}
	return d
}

// document writes the drawn definition.
func (d drawn) document(t testing.TB) []byte {
	return small(t, func(doc map[string]any) {
		var nodes []any
		for _, id := range letters(len(d.types)) {
			n := node(id)
			n["typeId"] = d.types[id]
			nodes = append(nodes, n)
		}
		edges := []any{}
		for i, e := range d.edges {
			edges = append(edges, edge(fmt.Sprint("e", i), e[0], e[1]))
		}
		doc["nodes"], doc["edges"] = nodes, edges
	})
}

// isLoop reports whether the node is a loop node.
func (d drawn) isLoop(id string) bool { return d.types[id] != "core.noop" }

// hasCycle removes edges to nodes without successors until nothing changes; any remaining edge is
// part
// of a cycle.
func (d drawn) hasCycle() bool {
	edges := slices.DeleteFunc(slices.Clone(d.edges), func(e [2]string) bool { return d.isLoop(e[0]) || d.isLoop(e[1]) })
	for {
		all := slices.Clone(edges)
		edges = slices.DeleteFunc(edges, func(e [2]string) bool {
			return !slices.ContainsFunc(all, func(next [2]string) bool { return next[0] == e[1] })
		})
		if len(edges) == len(all) {
			return len(all) > 0
		}
	}
}

func TestParse_FindsACycleExactlyIfThereIsOne(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(rt *rapid.T) {
		d := drawGraph(rt)
		_, problems := workflow.Parse(d.document(t))
		require.Equal(rt, d.hasCycle(), len(problems) > 0, "%v %v", d, problems)
		for _, p := range problems {
			require.Equal(rt, workflow.RuleCycle, p.Rule)
			requireRealCycle(rt, d, p.Message)
		}
	})
}

// requireRealCycle follows the cycle a message names along the edges.
func requireRealCycle(t *rapid.T, d drawn, text string) {
	text = strings.TrimPrefix(text, "the edge closes the cycle ")
	text, _, _ = strings.Cut(text, ";")
	ids := strings.Split(text, "->")
	require.Greater(t, len(ids), 1)
	require.Equal(t, ids[0], ids[len(ids)-1])
	for i := range ids[1:] {
		require.Contains(t, d.edges, [2]string{ids[i], ids[i+1]})
	}
}

func TestCompile_IncludesAllNodesOfLoops(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(rt *rapid.T) {
		d := drawGraph(rt)
		for d.hasCycle() { // a definition with one is not compiled
			d.edges = d.edges[:len(d.edges)-1]
		}
		g := workflow.Compile(parse(t, d.document(t)))
		require.Len(rt, g.Steps, len(d.types))
		require.NotEmpty(rt, g.Sources, "a run needs a first step")
		require.NotEmpty(rt, g.Sinks)
		for i, s := range g.Steps {
			for _, l := range s.In {
				require.True(rt, l.Back || l.Step < i, "only back edges lead backwards")
			}
			for _, l := range s.Out {
				require.True(rt, slices.ContainsFunc(g.Steps[l.Step].In, func(in workflow.Link) bool {
					return in.Edge == l.Edge && in.Step == i && in.Back == l.Back
				}), "both ends agree")
			}
		}
	})
}

func TestParse_AcceptsCoherentConditions(t *testing.T) {
	t.Parallel()
	for name, condition := range map[string]map[string]any{
		"empty":              {},
		"bare expression":    {"expression": "outputs.ok"},
		"expression":         {"type": "expression", "expression": "variables.n > 1"},
		"equals null":        {"type": "equals", "left": "output.value", "right": nil},
		"equals false":       {"type": "equals", "left": "ok", "right": false},
		"not equals object":  {"type": "notEquals", "left": "a.b.c", "right": map[string]any{"x": []any{1}}},
		"contains":           {"type": "contains", "left": "tags", "right": "x"},
		"regex":              {"type": "regex", "left": "s", "right": `^(?i:a|b)\d+\z`},
		"regex of no length": {"type": "regex", "left": "s", "right": ""},
	} {
		d := parse(t, small(t, func(doc map[string]any) {
			e := edge("e", "a", "b")
			e["condition"] = condition
			doc["edges"] = []any{e}
		}))
		require.NotNil(t, d.Edges[0].Condition, name)
	}
}

// Semantic checks do not depend on shape problems elsewhere, and an invalid list of nodes does not
// make
// every edge invalid.
func TestParse_ChecksSemanticsDespiteShapeProblems(t *testing.T) {
	t.Parallel()
	find := func(change func(map[string]any)) []string {
		_, problems := workflow.Parse(small(t, change))
		var got []string
		for _, p := range problems {
			got = append(got, p.Path+" "+p.Rule)
		}
		return got
	}
	require.Equal(t, []string{"/edges/0 cycle", "/edges/0/label type", "/triggers/0/enabled type"}, find(func(doc map[string]any) {
		e := edge("e", "a", "a")
		e["label"] = 5
		doc["edges"] = []any{e}
		doc["triggers"] = []any{map[string]any{"id": "t", "type": "manual", "enabled": "yes"}}
	}))
	require.Equal(t, []string{"/nodes/1/id type"}, find(func(doc map[string]any) {
		doc["nodes"].([]any)[1].(map[string]any)["id"] = 5
		doc["edges"] = []any{edge("e", "a", "b")}
	}))
	require.Equal(t, []string{"/nodes type"}, find(func(doc map[string]any) {
		doc["nodes"] = map[string]any{}
		doc["edges"] = []any{edge("e", "a", "b")}
	}))
	require.Equal(t, []string{"/edges/0 required"}, find(func(doc map[string]any) {
		doc["edges"] = []any{map[string]any{"id": "e", "targetNodeId": "a"}}
	}))
	require.Equal(t, []string{"/edges/0/condition/type enum"}, find(func(doc map[string]any) {
		e := edge("e", "a", "b")
		e["condition"] = map[string]any{"type": "magic", "left": "x"}
		doc["edges"] = []any{e}
	}))
}
