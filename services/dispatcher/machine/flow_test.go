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
	"waybill.dev/waybill/protocol/workflow"
	"waybill.dev/waybill/services/dispatcher/definition"
	"waybill.dev/waybill/services/dispatcher/machine"
	"waybill.dev/waybill/services/dispatcher/node"
)

// planOf returns the plan of a definition with the given members.
func planOf(t testing.TB, nodes, edges, rest string) machine.Plan {
	t.Helper()
	def, problems := workflow.Parse([]byte(fmt.Sprintf(
		`{"id":"wf","name":"wf","version":"1","nodes":[%s],"edges":[%s],"triggers":[],"metadata":{}%s}`, nodes, edges, rest)))
	require.Empty(t, problems)
	problems, _ = node.Builtin().Review(def, nil)
	require.Empty(t, problems)
	f, _ := definition.Compile(def)
	return machine.Plan{Def: def, Graph: workflow.Compile(def), Flow: f, Types: node.Builtin()}
}

const noVars = `,"variables":[],"settings":{}`

func one(id, typ, config, inputs string, settings ...string) string {
	extra := ""
	if len(settings) > 0 {
		extra = `,"settings":` + settings[0]
	}
	return fmt.Sprintf(`{"id":%q,"typeId":%q,"name":"x","position":{"x":0,"y":0},"config":%s,"inputs":%s%s}`, id, typ, config, inputs, extra)
}

func link(id, from, to, extra string) string {
	return fmt.Sprintf(`{"id":%q,"sourceNodeId":%q,"targetNodeId":%q%s}`, id, from, to, extra)
}

func static(value string) string { return `{"output":{"type":"static","value":` + value + `}}` }

func advance(p machine.Plan, mod ...func(*wire.RunRecord)) *machine.Machine {
	m := machine.New(p, limits, runstate.New(record(mod...)))
	m.Advance(at)
	return m
}

func statuses(m *machine.Machine) map[string]runstate.NodeStatus {
	out := map[string]runstate.NodeStatus{}
	for id, n := range m.State().Nodes {
		out[id] = n.Status
	}
	return out
}

// A false edge counts as a skipped upstream (OpenWOP host contract §5.2).
func TestCondition_AFalseEdgeSkipsItsTargetAndATrueOneCarries(t *testing.T) {
	t.Parallel()
	p := planOf(t, strings.Join([]string{
		one("a", "core.end", "{}", static(`{"score":7}`)), one("high", "core.end", "{}", "{}"), one("low", "core.end", "{}", "{}"), one("after", "core.noop", "{}", "{}"),
	}, ","), strings.Join([]string{
		link("e1", "a", "high", `,"condition":{"expression":"outputs.output.score > variables.limit"}`),
		link("e2", "a", "low", `,"condition":{"expression":"outputs.output.score <= variables.limit"}`),
		link("e3", "low", "after", ""),
	}, ","), `,"variables":[{"name":"limit","type":"number","defaultValue":5}],"settings":{}`)
	m := advance(p, func(r *wire.RunRecord) { r.Defaults = map[string]json.RawMessage{"limit": json.RawMessage("5")} })
	require.Equal(t, "run.started node.started@a node.completed@a node.started@high node.completed@high node.skipped@low node.skipped@after run.completed", strings.Join(names(m), " "))
	require.JSONEq(t, `{"score":7}`, string(m.State().Nodes["high"].Outputs["output"]))
}

// A condition that cannot be evaluated fails the node it leads to (OpenWOP host
// contract §5.2), which never starts.
func TestCondition_ThatErrsFailsTheTarget(t *testing.T) {
	t.Parallel()
	p := planOf(t, one("a", "core.end", "{}", static(`{"secret":"hunter2hunter2"}`))+","+one("b", "core.noop", "{}", "{}"),
		link("e1", "a", "b", `,"condition":{"expression":"outputs.output.secret > 5"}`), noVars)
	m := advance(p)
	require.Equal(t, "run.started node.started@a node.completed@a node.failed@b run.failed", strings.Join(names(m), " "))
	failed := payloadOf(t, m, wire.EventNodeFailed)
	require.Contains(t, failed, `"validation_error"`)
	require.Contains(t, failed, "the condition of edge e1")
	require.NotContains(t, failed, "hunter2")
}

// The condition of an edge is not evaluated if its source failed, because there are no outputs.
func TestCondition_DoesNotJudgeASourceThatFailed(t *testing.T) {
	t.Parallel()
	p := planOf(t, one("a", "core.fail", "{}", "{}")+","+one("b", "core.noop", "{}", "{}"),
		link("e1", "a", "b", `,"triggerRule":"any_failed","condition":{"expression":"outputs.output.ok"}`), noVars)
	require.Equal(t, wire.StatusCompleted, advance(p).State().Status)
}

// An edge with a false condition supplies no input, even if another edge starts the node.
func TestCondition_AFalseEdgeCarriesNoInput(t *testing.T) {
	t.Parallel()
	p := planOf(t, strings.Join([]string{one("a", "core.end", "{}", static(`1`)), one("b", "core.end", "{}", static(`2`)), one("c", "core.end", "{}", "{}")}, ","),
		link("e1", "a", "c", `,"triggerRule":"any_success","targetInput":"one"`)+","+
			link("e2", "b", "c", `,"triggerRule":"any_success","targetInput":"two","condition":{"type":"equals","left":"output","right":1}`), noVars)
	m := advance(p)
	require.Equal(t, map[string]json.RawMessage{"one": json.RawMessage("1")}, m.State().Nodes["c"].Outputs)
}

// byTheTable returns the result of a trigger rule by the rows of the contract's table.
func byTheTable(rule workflow.TriggerRule, states []string) string {
	all := func(ok func(string) bool) bool {
		return !slices.ContainsFunc(states, func(s string) bool { return !ok(s) })
	}
	anyOf := func(want string) bool { return slices.Contains(states, want) }
	terminal := all(func(s string) bool { return s != "open" })
	readyWhen := map[workflow.TriggerRule]bool{
		workflow.AllSuccess:  terminal && !anyOf("failed") && anyOf("completed"),
		workflow.AnySuccess:  anyOf("completed"),
		workflow.AllComplete: terminal,
		workflow.NoneFailed:  terminal && !anyOf("failed"),
		workflow.AnyFailed:   anyOf("failed"),
	}[rule]
	skippedWhen := map[workflow.TriggerRule]bool{
		workflow.AllSuccess: terminal && (anyOf("failed") || !anyOf("completed")),
		workflow.AnySuccess: terminal && !anyOf("completed"),
		workflow.NoneFailed: anyOf("failed"),
		workflow.AnyFailed:  terminal && !anyOf("failed"),
	}[rule]
	switch {
	case readyWhen:
		return "completed"
	case skippedWhen:
		return "skipped"
	default:
		return "open"
	}
}

// Compares all trigger rules with byTheTable, over upstreams that completed, failed, were skipped,
// completed behind a false edge, or still run.
func TestTriggerRules_FollowTheTable(t *testing.T) {
	t.Parallel()
	kinds := map[string]struct{ node, edge, state string }{
		"completed": {"core.noop", "", "completed"},
		"failed":    {"core.fail", "", "failed"},
		"false":     {"core.noop", `,"condition":{"expression":"false"}`, "skipped"},
		"disabled":  {"core.noop", "", "skipped"},
		"open":      {"core.ai.callPrompt", "", "open"},
	}
	rapid.Check(t, func(rt *rapid.T) {
		rule := rapid.SampledFrom([]workflow.TriggerRule{workflow.AllSuccess, workflow.AnySuccess, workflow.AllComplete, workflow.NoneFailed, workflow.AnyFailed}).Draw(rt, "rule")
		ups := rapid.SliceOfN(rapid.SampledFrom(slices.Sorted(maps.Keys(kinds))), 1, 5).Draw(rt, "upstreams")
		nodes, edges, states := []string{one("z", "core.noop", "{}", "{}")}, []string{}, []string{}
		for i, u := range ups {
			id := fmt.Sprintf("u%d", i)
			n := one(id, kinds[u].node, "{}", "{}")
			if u == "disabled" {
				n = strings.TrimSuffix(n, "}") + `,"disabled":true}`
			}
			nodes = append(nodes, n)
			edges = append(edges, link("e"+id, id, "z", fmt.Sprintf(`,"triggerRule":%q%s`, rule, kinds[u].edge)))
			states = append(states, kinds[u].state)
		}
		m := advance(planOf(t, strings.Join(nodes, ","), strings.Join(edges, ","), noVars))
		got := "open"
		if z := m.State().Nodes["z"]; z != nil {
			got = string(z.Status)
		}
		require.Equal(rt, byTheTable(rule, states), got, "%s over %v", rule, ups)
	})
}

// If incoming edges have different trigger rules, that of the first edge by id applies (OpenWOP
// host contract §5.2).
func TestTriggerRules_TheFirstEdgeByIDWins(t *testing.T) {
	t.Parallel()
	nodes := one("a", "core.fail", "{}", "{}") + "," + one("b", "core.noop", "{}", "{}") + "," + one("z", "core.noop", "{}", "{}")
	m := advance(planOf(t, nodes, link("e2", "a", "z", "")+","+link("e1", "b", "z", `,"triggerRule":"all_complete"`), noVars))
	require.Equal(t, runstate.NodeCompleted, m.State().Nodes["z"].Status)
}

// A port's expression reads inputs, variables and nodes (OpenWOP host contract §5.3).
func TestPort_EvaluatesAnExpression(t *testing.T) {
	t.Parallel()
	p := planOf(t, one("a", "core.end", "{}", static(`{"first":"Ada"}`))+","+
		one("b", "core.end", "{}", `{"greeting":{"type":"expression","expression":"\"Dear \" + inputs.input.first + variables.mark"},"again":{"type":"expression","expression":"nodes.a.output"}}`),
		link("e1", "a", "b", ""), noVars)
	m := advance(p, func(r *wire.RunRecord) { r.Inputs = map[string]json.RawMessage{"mark": json.RawMessage(`"!"`)} })
	require.JSONEq(t, `"Dear Ada!"`, string(m.State().Nodes["b"].Outputs["greeting"]))
	require.JSONEq(t, `{"first":"Ada"}`, string(m.State().Nodes["b"].Outputs["again"]))
}

func TestPort_AnExpressionThatErrsFailsTheNode(t *testing.T) {
	t.Parallel()
	p := planOf(t, one("a", "core.end", "{}", `{"x":{"type":"expression","expression":"variables.nope"}}`), "", noVars)
	m := advance(p)
	require.Contains(t, payloadOf(t, m, wire.EventNodeFailed), "node a, port x: line 1, column")
	require.Contains(t, payloadOf(t, m, wire.EventNodeFailed), "validation_error")
}

// The trust of an expression's value is the meet of all values that it can read. The trust of a
// node also includes those that the conditions of its edges read.
func TestTrust_OfAnExpressionIsThatOfItsInputs(t *testing.T) {
	t.Parallel()
	tainted := func(p machine.Plan) *machine.Machine {
		st := runstate.New(record())
		st.Variables["mail"], st.Tainted["mail"] = json.RawMessage(`"x"`), true
		st.Variables["fine"] = json.RawMessage(`"y"`)
		m := machine.New(p, limits, st)
		m.Advance(at)
		return m
	}
	for name, tt := range map[string]struct {
		nodes, edges string
		want         wire.Trust
	}{
		"a port that reads it":           {one("b", "core.end", "{}", `{"x":{"type":"expression","expression":"variables.mail"}}`), "", wire.Untrusted},
		"a port that may read it":        {one("b", "core.end", "{}", `{"x":{"type":"expression","expression":"size(variables)"}}`), "", wire.Untrusted},
		"a port that reads another":      {one("b", "core.end", "{}", `{"x":{"type":"expression","expression":"variables.fine"}}`), "", wire.Trusted},
		"a node that reads it":           {one("b", "core.getVariable", `{"name":"mail"}`, "{}"), "", wire.Untrusted},
		"a node that reads another":      {one("b", "core.getVariable", `{"name":"fine"}`, "{}"), "", wire.Trusted},
		"a node that decides by it":      {one("b", "core.conditional", `{"expression":"variables.mail == \"x\""}`, "{}"), "", wire.Untrusted},
		"a node that loops over it":      {one("b", "core.loop", `{"count":1,"expression":"variables.mail"}`, "{}"), "", wire.Untrusted},
		"a condition that reads it":      {one("a", "core.noop", "{}", "{}") + "," + one("b", "core.noop", "{}", "{}"), link("e", "a", "b", `,"condition":{"expression":"variables.mail == \"x\""}`), wire.Untrusted},
		"a condition that reads another": {one("a", "core.noop", "{}", "{}") + "," + one("b", "core.noop", "{}", "{}"), link("e", "a", "b", `,"condition":{"expression":"variables.fine == \"y\""}`), wire.Trusted},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			m := tainted(planOf(t, tt.nodes, tt.edges, noVars))
			require.Equal(t, runstate.NodeCompleted, m.State().Nodes["b"].Status)
			require.Equal(t, tt.want, m.State().Nodes["b"].Trust)
		})
	}
}

// flowing returns a plan with conditions, expressions, a loop, a delay and a model node with
// retries.
func flowing(t testing.TB) machine.Plan {
	return planOf(t, strings.Join([]string{
		one("start", "core.start", "{}", "{}"),
		one("sum", "core.loop", `{"expression":"acc + item","initial":0}`, `{"items":{"type":"variable","variableName":"numbers"}}`),
		one("keep", "core.setVariable", `{"name":"total"}`, "{}"),
		one("big", "core.conditional", `{"expression":"variables.total > 5"}`, "{}"),
		one("yes", "core.delay", `{"ms":50}`, "{}"), one("no", "core.noop", "{}", "{}"),
		one("ask", "core.ai.callPrompt", "{}", "{}", `{"timeoutMs":100,"retry":{"maxRetries":1,"backoffMs":10}}`),
		one("end", "core.end", "{}", `{"total":{"type":"expression","expression":"nodes.sum.output"}}`),
	}, ","), strings.Join([]string{
		link("e1", "start", "sum", ""), link("e2", "sum", "keep", ""), link("e3", "keep", "big", ""),
		link("e4", "big", "yes", `,"condition":{"type":"equals","left":"result","right":true}`),
		link("e5", "big", "no", `,"condition":{"type":"equals","left":"result","right":false}`),
		link("e6", "yes", "ask", ""), link("e7", "ask", "end", `,"triggerRule":"all_complete"`), link("e8", "no", "end", ""),
	}, ","), `,"variables":[{"name":"numbers","type":"array"}],"settings":{"maxLoopbackIterations":10}`)
}

// play continues a run until it ends. Effects and interrupts are not answered and time out.
func play(p machine.Plan, st *runstate.State, now time.Time) (events []wire.Event) {
	m := machine.New(p, limits, st)
	for {
		m.Advance(now)
		pending, _ := m.Pending()
		events = append(events, pending...)
		m.Flushed()
		due, ok := m.Due()
		if !ok {
			return events
		}
		now = due
	}
}

// shape returns the type, node and payload of each event, which are equal in a replay.
func shape(events []wire.Event) (out []string) {
	for _, e := range events {
		out = append(out, fmt.Sprintf("%d %s %s %s", e.Sequence, e.Type, e.NodeID, e.Payload))
	}
	return out
}

// A run that continues from any prefix of its log has the same events. No frame ends within the
// events of a pure node, so no prefix does.
func TestReplay_GoesOnTheSameFromAnyPrefix(t *testing.T) {
	t.Parallel()
	p := flowing(t)
	rec := record(func(r *wire.RunRecord) { r.Inputs = map[string]json.RawMessage{"numbers": json.RawMessage(`[1,2,3]`)} })
	whole := play(p, runstate.New(rec), at)
	require.Equal(t, wire.EventRunCompleted, whole[len(whole)-1].Type)
	require.Contains(t, strings.Join(shape(whole), "\n"), "node_timeout")
	within := func(st *runstate.State) bool {
		for _, n := range st.Nodes {
			class := p.Types[n.TypeID].Class
			if n.Status == runstate.NodeRunning && (class == node.Pure || class == node.Effect && n.TimeoutMs > 0) {
				return true // an effect in flight is repeated visibly
			}
		}
		return false
	}
	tried := 0
	for n := range whole {
		st, now := runstate.Fold(rec, whole[:n]), at
		if within(st) {
			continue
		}
		if n > 0 { // an executor goes on at the instant of the last event
			var err error
			now, err = time.Parse(wire.TimeLayout, whole[n-1].Timestamp)
			require.NoError(t, err)
		}
		require.Equal(t, shape(whole[n:]), shape(play(p, st, now)), "from %d", n)
		tried++
	}
	require.GreaterOrEqual(t, tried, 10)
}

// An attempt that exceeds timeoutMs fails with node_timeout. The node fails after its last retry
// (OpenWOP host contract §5.4).
func TestTimeout_EndsAnAttemptAndRetries(t *testing.T) {
	t.Parallel()
	p := planOf(t, one("a", "core.ai.callPrompt", "{}", "{}", `{"timeoutMs":1000,"retry":{"maxRetries":1,"backoffMs":200}}`), "", noVars)
	st := runstate.New(record())
	m := machine.New(p, limits, st)
	first := m.Advance(at)
	require.Len(t, first, 1)
	require.Contains(t, payloadOf(t, m, wire.EventNodeStarted), `"timeoutMs":1000`)
	due, ok := m.Due()
	require.True(t, ok)
	require.Equal(t, at.Add(time.Second), due)
	require.True(t, m.IsCurrent(first[0]))

	// A dispatcher that takes the run over after the time limit ends the attempt.
	events, _ := m.Pending()
	again := machine.New(p, limits, runstate.Fold(record(), events))
	require.Empty(t, again.Advance(due))
	require.Equal(t, "node.retried@a", strings.Join(names(again), " "))
	require.Contains(t, payloadOf(t, again, wire.EventNodeRetried), `"node_timeout"`)
	require.Contains(t, payloadOf(t, again, wire.EventNodeRetried), `"delayMs":200`)
	require.False(t, again.IsCurrent(first[0]), "the late result is dropped")

	again.Flushed()
	second := again.Advance(due.Add(200 * time.Millisecond))
	require.Len(t, second, 1)
	require.Equal(t, 1, second[0].Attempt)
	again.Flushed()
	again.Advance(due.Add(1200 * time.Millisecond))
	require.Equal(t, "node.failed@a run.failed", strings.Join(names(again), " "))
	require.Contains(t, payloadOf(t, again, wire.EventNodeFailed), `"attempts":2`)
}

// A loop over its limit records the breach and fails (OpenWOP host contract §3.4).
func TestLoop_OverItsLimitRecordsTheBreachAndFails(t *testing.T) {
	t.Parallel()
	m := advance(planOf(t, one("a", "core.loop", `{"count":6,"expression":"index"}`, "{}"), "", noVars))
	require.Equal(t, "run.started node.started@a workflow.loopback-limit@a cap.breached@a node.failed@a run.failed", strings.Join(names(m), " "))
	require.JSONEq(t, `{"kind":"loop-iterations","limit":5,"observed":6,"nodeId":"a"}`, payloadOf(t, m, wire.EventCapBreached))
	require.JSONEq(t, `{"nodeId":"a","iterations":6,"limit":5}`, payloadOf(t, m, wire.EventLoopbackLimit))
	require.Equal(t, "loop_limit_exceeded", m.State().Error.Code)
}

// A node fails if its expression cannot be evaluated when its effect is handed out, because another
// node has changed a variable since it started.
func TestEffect_FailsIfItsInputsCannotBeEvaluated(t *testing.T) {
	t.Parallel()
	p := planOf(t, strings.Join([]string{
		one("a", "core.ai.callPrompt", "{}", `{"x":{"type":"expression","expression":"variables.n + 1"}}`),
		one("b", "core.setVariable", `{"name":"n","value":"text"}`, "{}"),
	}, ","), "", noVars)
	m := machine.New(p, limits, runstate.New(record(func(r *wire.RunRecord) { r.Inputs = map[string]json.RawMessage{"n": json.RawMessage(`1`)} })))
	require.Empty(t, m.Advance(at))
	require.Equal(t, map[string]runstate.NodeStatus{"a": runstate.NodeFailed, "b": runstate.NodeCompleted}, statuses(m))
	require.Equal(t, wire.StatusFailed, m.State().Status)
}
