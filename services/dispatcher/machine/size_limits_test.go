package machine_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"waybill.dev/waybill/protocol/interrupt"
	"waybill.dev/waybill/protocol/runstate"
	"waybill.dev/waybill/protocol/wire"
	"waybill.dev/waybill/services/dispatcher/machine"
	"waybill.dev/waybill/services/dispatcher/node"
)

// text returns a JSON string of n bytes.
func text(n int) string { return `"` + strings.Repeat("x", n-2) + `"` }

// through advances a run and appends its events until it stops. It returns the payload bytes of
// each frame.
func through(t *testing.T, m *machine.Machine) (frames []int) {
	t.Helper()
	for {
		require.Empty(t, m.Advance(at))
		events, _ := m.Pending()
		size := 0
		for _, e := range events {
			size += len(e.Payload)
		}
		frames = append(frames, size)
		m.Flushed()
		if !m.MustAppend() {
			return frames
		}
		require.Less(t, len(frames), 1000, "the run stops at some point")
	}
}

// chain returns a graph of n nodes of a type that pass one value on.
func chain(n int, typ, value string) graph {
	g := graph{inputs: map[string]string{"n0": `{"input":{"type":"static","value":` + value + `},"output":{"type":"static","value":` + value + `}}`}}
	for i := range n {
		g.nodes = append(g.nodes, fmt.Sprintf("n%d:%s", i, typ))
		if i > 0 {
			g.edges = append(g.edges, fmt.Sprintf("n%d>n%d", i-1, i))
		}
	}
	return g
}

// Each frame of a run of pure nodes is within the limit, whatever their total size.
func TestAdvance_StopsWhenAFrameIsFull(t *testing.T) {
	t.Parallel()
	for _, typ := range []string{"core.end", "core.identity"} {
		m := machine.New(chain(20, typ, text(450<<10)).plan(t), limits, runstate.New(record()))
		frames := through(t, m)
		require.Equal(t, wire.StatusCompleted, m.State().Status, typ)
		require.Greater(t, len(frames), 3)
		for _, size := range frames {
			require.Less(t, size, 8<<20)
		}
	}
}

// Small events make one frame.
func TestAdvance_DoesNotStopForSmallEvents(t *testing.T) {
	t.Parallel()
	m := machine.New(chain(50, "core.end", text(1000)).plan(t), limits, runstate.New(record()))
	require.Len(t, through(t, m), 1)
}

// A run whose executor is lost between two frames continues.
func TestAdvance_GoesOnFromWhereItStopped(t *testing.T) {
	t.Parallel()
	g := chain(6, "core.end", text(450<<10))
	m := machine.New(g.plan(t), limits, runstate.New(record()))
	m.Advance(at)
	require.True(t, m.MustAppend())
	events, _ := m.Pending()
	st := runstate.New(record())
	for _, e := range events {
		st.Apply(e)
	}
	again := machine.New(g.plan(t), limits, st)
	through(t, again)
	require.Equal(t, wire.StatusCompleted, again.State().Status)
	require.Equal(t, 1+2*6+1, again.State().Next, "each node once")
}

// Without the limit, nodes that join their inputs would double them each time.
func TestComplete_BoundsWhatANodePutsOut(t *testing.T) {
	t.Parallel()
	for _, mode := range []string{"object", "array"} {
		g := graph{
			inputs: map[string]string{"n0": `{"output":{"type":"static","value":` + text(1000) + `}}`},
			nodes:  []string{"n0:core.identity"},
		}
		for i := 1; i < 60; i++ {
			from := fmt.Sprintf(`{"type":"connection","nodeId":"n%d","outputKey":"output"}`, i-1)
			g.nodes = append(g.nodes, fmt.Sprintf(`n%d:core.merge:{"mode":%q}`, i, mode))
			g.inputs[fmt.Sprint("n", i)] = `{"a":` + from + `,"b":` + from + `}`
			g.edges = append(g.edges, fmt.Sprintf("n%d>n%d", i-1, i))
		}
		m := machine.New(g.plan(t), limits, runstate.New(record()))
		through(t, m)
		require.Equal(t, wire.StatusFailed, m.State().Status)
		require.Equal(t, "content_too_long", m.State().Error.Code)
		for id, n := range m.State().Nodes {
			require.LessOrEqual(t, len(n.Outputs["output"]), 2<<20, id)
		}
	}
}

// The inputs of a node are limited before they are joined.
func TestStartNode_BoundsWhatANodeIsGiven(t *testing.T) {
	t.Parallel()
	const variable = `{"type":"variable","variableName":"v"}`
	g := graph{
		nodes:  []string{"n:core.noop"},
		vars:   `[{"name":"v","type":"string"}]`,
		inputs: map[string]string{"n": `{"a":` + variable + `,"b":` + variable + `}`},
	}
	for size, want := range map[int]wire.Status{1500 << 10: wire.StatusCompleted, 2500 << 10: wire.StatusFailed} {
		m := machine.New(g.plan(t), limits, runstate.New(record()))
		m.State().Variables["v"] = json.RawMessage(text(size))
		through(t, m)
		require.Equal(t, want, m.State().Status)
	}
}

// The limit for effects is higher, because their client limits the answer.
func TestComplete_BoundsWhatANodeWrites(t *testing.T) {
	t.Parallel()
	_, m, _ := trace(t, graph{nodes: []string{"a:core.ai.callPrompt"}})
	twice := json.RawMessage(text(2 << 20)) // an answer, and the list of envelopes that contains it
	m.Complete(at, "a", node.Output{Ports: map[string]json.RawMessage{"output": twice, "envelopes": twice}}, wire.Trusted)
	require.Contains(t, strings.Join(names(m), " "), "node.completed@a")
	large := map[string]json.RawMessage{"v": json.RawMessage(text(7 << 20))}
	for name, out := range map[string]node.Output{
		"outputs":   {Ports: large},
		"variables": {Writes: large},
		"channels":  {Channels: []node.ChannelWrite{{Channel: "c", Value: large["v"]}}},
	} {
		_, m, _ := trace(t, graph{nodes: []string{"a:core.ai.callPrompt"}})
		m.Flushed()
		m.Complete(at, "a", out, wire.Trusted)
		require.Equal(t, "node.failed@a", strings.Join(names(m), " "), name)
		require.Contains(t, payloadOf(t, m, wire.EventNodeFailed), `"content_too_long"`, name)
	}
}

// The outputs of all nodes of a run are limited together.
func TestComplete_BoundsWhatARunHolds(t *testing.T) {
	t.Parallel()
	m := machine.New(chain(90, "core.end", text(500<<10)).plan(t), limits, runstate.New(record()))
	through(t, m)
	require.Equal(t, wire.StatusFailed, m.State().Status)
	require.Equal(t, "content_too_long", m.State().Error.Code)
	held := 0
	for _, n := range m.State().Nodes {
		for _, v := range n.Outputs {
			held += len(v)
		}
	}
	require.Less(t, held, 64<<20)
	require.Greater(t, held, 60<<20)
}

// Without the limit, nodes that wrap their inputs would nest them ever deeper.
func TestComplete_BoundsHowDeepANodesOutputIsNested(t *testing.T) {
	t.Parallel()
	wrapped := func(n int) string { return strings.Repeat("[", n) + `"]]]\\"` + strings.Repeat("]", n) }
	for depth, want := range map[int]wire.Status{99: wire.StatusCompleted, 100: wire.StatusFailed} {
		g := graph{
			nodes:  []string{`n:core.merge:{"mode":"array"}`},
			vars:   `[{"name":"v","type":"array"}]`,
			inputs: map[string]string{"n": `{"a":{"type":"variable","variableName":"v"}}`},
		}
		m := machine.New(g.plan(t), limits, runstate.New(record()))
		m.State().Variables["v"] = json.RawMessage(wrapped(depth))
		through(t, m)
		require.Equal(t, want, m.State().Status, depth)
	}
}

// EndOversized ends the run and its nodes.
func TestOverflow_EndsTheRun(t *testing.T) {
	t.Parallel()
	_, m, _ := trace(t, graph{nodes: []string{"a:core.ai.callPrompt"}})
	m.Flushed()
	m.EndOversized(at)
	require.Equal(t, "node.cancelled@a run.failed", strings.Join(names(m), " "))
	require.Equal(t, "content_too_long", m.State().Error.Code)
}

// Overwritten values count, because their events contain them.
func TestComplete_BoundsWhatANodeOverwrites(t *testing.T) {
	t.Parallel()
	const vars = `[{"name":"a","type":"string"},{"name":"b","type":"string"},{"name":"c","type":"string"},{"name":"d","type":"string"}]`
	out := node.Output{Writes: map[string]json.RawMessage{"a": json.RawMessage(`1`), "b": json.RawMessage(`1`), "c": json.RawMessage(`1`), "d": json.RawMessage(`1`)}}
	for size, want := range map[int]string{1700 << 10: "node.completed@n", 2 << 20: "node.failed@n"} {
		_, m, _ := trace(t, graph{nodes: []string{"n:core.ai.callPrompt"}, vars: vars})
		for name := range out.Writes {
			m.State().Variables[name] = json.RawMessage(text(size))
		}
		m.Flushed()
		m.Complete(at, "n", out, wire.Trusted)
		told := names(m)
		require.Equal(t, want, told[len(told)-1], size)
	}
}

// The outputs of a gate are limited like those of other nodes.
func TestResolve_BoundsWhatAGatePutsOut(t *testing.T) {
	t.Parallel()
	for depth, want := range map[int]string{100: "node.completed@g", 101: "node.failed@g"} {
		_, m, _ := trace(t, graph{nodes: []string{`g:core.approvalGate:{"title":"t","actions":["accept"]}`}})
		m.Resolve(at, "g", interrupt.Decision{
			Outcome: interrupt.Advanced, Trust: wire.Trusted,
			Resume: json.RawMessage(`{"comment":` + strings.Repeat("[", depth) + strings.Repeat("]", depth) + `}`),
			Events: []wire.Draft{{
				Type:    wire.EventNodeResumed,
				NodeID:  "g",
				Trust:   wire.Trusted,
				Payload: json.RawMessage(`{"nodeId":"g"}`),
			}},
		})
		require.Contains(t, names(m), want)
	}
}
