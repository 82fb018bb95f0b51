package machine_test

import (
	"maps"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"waybill.dev/waybill/protocol/runstate"
	"waybill.dev/waybill/protocol/wire"
	"waybill.dev/waybill/services/dispatcher/machine"
	"waybill.dev/waybill/services/dispatcher/node"
)

// An operator can remove a pack or an MCP server whose types running runs still use.
func TestAdvance_FailsARunningNodeWhoseTypeIsGone(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		g    graph
		want string
	}{
		"alone": {graph{nodes: []string{"a:core.ai.callPrompt"}}, "node.failed@a run.failed"},
		"no retry brings it back": {
			graph{nodes: []string{"a:core.ai.callPrompt"}, settings: `{"maxRetries":2}`}, "node.failed@a run.failed",
		},
		"another node handles the failure": {
			graph{nodes: []string{"a:core.ai.callPrompt", "b:core.noop"}, edges: []string{"a>b:any_failed"}},
			"node.failed@a node.started@b node.completed@b run.completed",
		},
		"a timer": {graph{nodes: []string{`a:core.delay:{"delayMs":1000}`}}, "node.failed@a run.failed"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, before, _ := trace(t, tc.g)
			st := runstate.New(record())
			events, _ := before.Pending()
			for _, e := range events {
				st.Apply(e)
			}
			require.Equal(t, runstate.NodeRunning, st.Nodes["a"].Status)
			plan := tc.g.plan(t)
			plan.Types = maps.Clone(plan.Types)
			delete(plan.Types, st.Nodes["a"].TypeID)

			m := machine.New(plan, limits, st)
			require.Empty(t, m.Advance(at.Add(time.Second/2)))
			require.Equal(t, tc.want, strings.Join(names(m), " "))
			require.Contains(t, payloadOf(t, m, wire.EventNodeFailed), `"unsupported_node_type"`)
			require.Contains(t, payloadOf(t, m, wire.EventNodeFailed), `is not registered on this host`)
		})
	}
}

// If another writer appends before the recovery of a lost attempt is recorded, the recovery is
// repeated after the other events.
func TestAdvance_RecoversAgainWhenTheLogHasMovedOn(t *testing.T) {
	t.Parallel()
	g := graph{nodes: []string{"a:core.ai.callPrompt"}, settings: `{"maxRetries":2}`}
	_, before, _ := trace(t, g)
	events, _ := before.Pending()
	events = append(events, wire.Draft{
		Type: wire.EventOutputChunk, NodeID: "a", Payload: []byte(`{"nodeId":"a","chunk":"hm"}`),
	}.Place("r", len(events), at))

	m := machine.New(g.plan(t), limits, runstate.Fold(record(), events))
	effects := m.Advance(at.Add(time.Second))
	require.Equal(t, "node.retried@a node.started@a", strings.Join(names(m), " "))
	m.ReplaceState(runstate.Fold(record(), events), effects)
	effects = m.Advance(at.Add(time.Second))
	require.Equal(t, "node.retried@a node.started@a", strings.Join(names(m), " "))
	require.Len(t, effects, 1)

	m.Flushed() // the recovery is recorded, and the effect runs
	m.ReplaceState(m.State(), nil)
	require.Empty(t, m.Advance(at.Add(2*time.Second)))
	require.Empty(t, names(m))
}

// A lost executor costs the run no retry and no node execution.
func TestAdvance_ALostExecutorTakesNoRetryAndNoExecution(t *testing.T) {
	t.Parallel()
	g := graph{
		nodes:    []string{"a:core.ai.callPrompt", "b:core.noop"},
		edges:    []string{"a>b"},
		settings: `{"maxRetries":1}`,
	}
	plan, tight := g.plan(t), limits
	tight.MaxNodeExecutions = 3
	var log []wire.Event
	m := machine.New(plan, tight, runstate.New(record()))
	now, flush := at, func() {
		events, _ := m.Pending()
		log = append(log, events...)
		m.Flushed()
	}
	m.Advance(now)
	flush()
	for range 2 { // two executors stream a chunk, and are lost
		log = append(log, wire.Draft{
			Type:    wire.EventOutputChunk,
			NodeID:  "a",
			Payload: []byte(`{"nodeId":"a","chunk":"hm"}`),
		}.Place("r", len(log), now))
		now = now.Add(time.Second)
		m = machine.New(plan, tight, runstate.Fold(record(), log))
		require.Len(t, m.Advance(now), 1)
		flush()
	}
	m.FailNode(now, "a", &wire.NodeError{Code: "provider_unavailable", Message: "down", Retryable: true}, wire.Trusted)
	require.Equal(t, "node.retried@a", strings.Join(names(m), " "), "it has its retry left")
	flush()
	now = now.Add(time.Minute)
	require.Len(t, m.Advance(now), 1)
	flush()
	m.Complete(now, "a", node.Output{}, wire.Trusted)
	m.Advance(now)
	require.Equal(t, "node.completed@a node.started@b node.completed@b run.completed", strings.Join(names(m), " "))
}
