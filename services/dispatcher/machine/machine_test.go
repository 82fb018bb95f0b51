package machine_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"waybill.dev/waybill/protocol/runstate"
	"waybill.dev/waybill/protocol/subject"
	"waybill.dev/waybill/protocol/wire"
	"waybill.dev/waybill/protocol/workflow"
	"waybill.dev/waybill/services/dispatcher/machine"
	"waybill.dev/waybill/services/dispatcher/node"
)

var at = time.Date(2026, 5, 1, 12, 0, 0, 0, time.UTC)

var limits = machine.Limits{MaxNodeExecutions: 100, MaxDuration: time.Hour, MaxParallel: 2}

// graph is a workflow in shorthand: nodes as "id:type[:json config]", edges as "a>b[:rule]".
type graph struct {
	nodes    []string
	edges    []string
	settings string
	inputs   map[string]string // node id → inputs object
	vars     string
	overlay  string // the run's configurable
}

func (g graph) plan(t testing.TB) machine.Plan {
	t.Helper()
	var nodes, edges []string
	for _, n := range g.nodes {
		parts := strings.SplitN(n, ":", 3)
		config := "{}"
		if len(parts) == 3 {
			config = parts[2]
		}
		in := g.inputs[parts[0]]
		if in == "" {
			in = "{}"
		}
		nodes = append(nodes, fmt.Sprintf(`{"id":%q,"typeId":%q,"name":"x","position":{"x":0,"y":0},"config":%s,"inputs":%s}`,
			parts[0], parts[1], config, in))
	}
	for i, e := range g.edges {
		ends, rule, _ := strings.Cut(e, ":")
		a, b, _ := strings.Cut(ends, ">")
		if rule == "" {
			rule = "all_success"
		}
		edges = append(edges, fmt.Sprintf(`{"id":"e%d","sourceNodeId":%q,"targetNodeId":%q,"triggerRule":%q}`, i, a, b, rule))
	}
	settings, vars := g.settings, g.vars
	if settings == "" {
		settings = "{}"
	}
	if vars == "" {
		vars = "[]"
	}
	def, problems := workflow.Parse([]byte(fmt.Sprintf(
		`{"id":"wf","name":"wf","version":"1","nodes":[%s],"edges":[%s],"triggers":[],"variables":%s,"metadata":{},"settings":%s}`,
		strings.Join(nodes, ","), strings.Join(edges, ","), vars, settings)))
	require.Empty(t, problems)
	return machine.Plan{Def: def, Graph: workflow.Compile(def), Types: node.Builtin()}
}

func record(mod ...func(*wire.RunRecord)) *wire.RunRecord {
	r := &wire.RunRecord{RunID: "run_1", WorkflowID: "wf", Owner: wire.Owner{Tenant: "acme"}, EngineVersion: 1}
	for _, m := range mod {
		m(r)
	}
	return r
}

func configurable(s string) func(*wire.RunRecord) {
	return func(r *wire.RunRecord) { r.Configurable = json.RawMessage(s) }
}

// trace runs a graph from its start and returns the names of its events.
func trace(t testing.TB, g graph, mod ...func(*wire.RunRecord)) (events []string, run *machine.Machine, started []machine.Effect) {
	t.Helper()
	m := machine.New(g.plan(t), limits, runstate.New(record(mod...)))
	effects := m.Advance(at)
	return names(m), m, effects
}

// names gives "type" or "type@node" per pending event.
func names(m *machine.Machine) []string {
	events, _ := m.Pending()
	return namesOf(events)
}

func namesOf(events []wire.Event) []string {
	var out []string
	for _, e := range events {
		name := string(e.Type)
		if e.NodeID != "" {
			name += "@" + e.NodeID
		}
		out = append(out, name)
	}
	return out
}

func payloadOf(t testing.TB, m *machine.Machine, typ wire.EventType) string {
	t.Helper()
	events, _ := m.Pending()
	for _, e := range events {
		if e.Type == typ {
			return string(e.Payload)
		}
	}
	t.Fatalf("no event %s in %v", typ, names(m))
	return ""
}

// The canonical sequences of OpenWOP host contract §3.5 that consist of pure nodes.
func TestAdvance_WritesTheCanonicalSequences(t *testing.T) {
	t.Parallel()
	cases := []struct {
		name string
		g    graph
		mod  func(*wire.RunRecord)
		want string
	}{
		{
			"noop",
			graph{nodes: []string{"a:core.noop"}},
			nil,
			"run.started node.started@a node.completed@a run.completed",
		},
		{
			"a chain completes in topological order",
			graph{nodes: []string{"c:core.noop", "a:core.noop", "b:core.noop"}, edges: []string{"a>b", "b>c"}},
			nil,
			"run.started node.started@a node.completed@a node.started@b node.completed@b node.started@c node.completed@c run.completed",
		},
		{
			"a failing node",
			graph{nodes: []string{"a:core.fail"}},
			nil,
			"run.started node.started@a node.failed@a run.failed",
		},
		{
			"a failure skips what depends on it",
			graph{nodes: []string{"a:core.fail", "b:core.noop"}, edges: []string{"a>b"}},
			nil,
			"run.started node.started@a node.failed@a node.skipped@b run.failed",
		},
		{
			"any_failed recovers a failure",
			graph{nodes: []string{"a:core.fail", "b:core.noop"}, edges: []string{"a>b:any_failed"}},
			nil,
			"run.started node.started@a node.failed@a node.started@b node.completed@b run.completed",
		},
		{
			"a branch joins once",
			graph{nodes: []string{"a:core.noop", "b:core.noop", "c:core.noop", "d:core.noop"}, edges: []string{"a>b", "a>c", "b>d", "c>d"}},
			nil,
			"run.started node.started@a node.completed@a node.started@b node.completed@b node.started@c node.completed@c node.started@d node.completed@d run.completed",
		},
		{
			"the node-execution cap",
			graph{nodes: []string{"a:core.noop", "b:core.noop"}, edges: []string{"a>b"}},
			configurable(`{"recursionLimit":1}`),
			"run.started node.started@a node.completed@a cap.breached@b run.failed",
		},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			mods := []func(*wire.RunRecord){}
			if c.mod != nil {
				mods = append(mods, c.mod)
			}
			got, m, effects := trace(t, c.g, mods...)
			require.Equal(t, c.want, strings.Join(got, " "))
			require.Empty(t, effects)
			require.Equal(t, subject.End, m.FrameKind(), "all in the run's last frame")
		})
	}
}

func TestAdvance_NumbersEventsFromZeroWithoutGaps(t *testing.T) {
	t.Parallel()
	_, m, _ := trace(t, graph{nodes: []string{"a:core.noop", "b:core.noop"}, edges: []string{"a>b"}})
	events, _ := m.Pending()
	for i, e := range events {
		require.Equal(t, i, e.Sequence)
	}
}

// OpenWOP host contract §3.4: run.started has the members of the record, and omits unset ones.
func TestStarted_HasTheRecordOfTheRun(t *testing.T) {
	t.Parallel()
	_, m, _ := trace(t, graph{nodes: []string{"a:core.noop"}})
	require.JSONEq(t, `{"workflowId":"wf","engineVersion":"1","owner":{"tenant":"acme"}}`, payloadOf(t, m, wire.EventRunStarted))
	_, m, _ = trace(t, graph{nodes: []string{"a:core.noop"}}, func(r *wire.RunRecord) {
		r.Transport, r.Tags, r.Metadata = "rest", []string{"t"}, json.RawMessage(`{"m":1}`)
		r.Inputs = map[string]json.RawMessage{"x": json.RawMessage(`2`)}
	})
	require.JSONEq(t, `{"workflowId":"wf","engineVersion":"1","owner":{"tenant":"acme"},"transport":"rest","tags":["t"],"metadata":{"m":1},"inputs":{"x":2}}`,
		payloadOf(t, m, wire.EventRunStarted))
}

func TestCapBreach_NamesLimitObservedAndNode(t *testing.T) {
	t.Parallel()
	g := graph{nodes: []string{"a:core.noop", "b:core.noop"}, edges: []string{"a>b"}}
	_, m, _ := trace(t, g, configurable(`{"recursionLimit":1}`))
	require.JSONEq(t, `{"kind":"node-executions","limit":1,"observed":2,"nodeId":"b"}`, payloadOf(t, m, wire.EventCapBreached))
	require.Equal(t, "recursion_limit_exceeded", m.State().Error.Code)
}

func TestRecursionLimit_CanOnlyLowerTheHostsCap(t *testing.T) {
	t.Parallel()
	g := graph{nodes: []string{"a:core.noop"}}
	_, m, _ := trace(t, g, configurable(`{"recursionLimit":1000000}`))
	require.Equal(t, wire.StatusCompleted, m.State().Status)
}

// A huge limit is capped at the host's and does not overflow.
func TestLimits_HugeNumbersClamp(t *testing.T) {
	t.Parallel()
	for _, c := range []string{`{"runTimeoutMs":1e300}`, `{"runTimeoutMs":1e14}`, `{"recursionLimit":1e30}`} {
		_, m, _ := trace(t, graph{nodes: []string{"a:core.noop"}}, configurable(c))
		require.Equal(t, wire.StatusCompleted, m.State().Status, c)
	}
	_, m, _ := trace(t, graph{
		nodes: []string{"a:core.noop", "b:core.noop"},
		edges: []string{"a>b"},
	}, configurable(`{"recursionLimit":1.0}`))
	require.Equal(t, "recursion_limit_exceeded", m.State().Error.Code, "1.0 is an integer")
}

func TestIdentity_EchoesPortsAndFoldsThemIntoVariables(t *testing.T) {
	t.Parallel()
	g := graph{
		nodes:  []string{"echo:core.identity"},
		inputs: map[string]string{"echo": `{"payload":{"type":"variable","variableName":"payload"}}`},
		vars:   `[{"name":"payload","type":"object"}]`,
	}
	_, m, _ := trace(t, g, func(r *wire.RunRecord) {
		r.Inputs = map[string]json.RawMessage{"payload": json.RawMessage(`{"n":12345678901234567890,"deep":[1,{"x":null}]}`)}
	})
	require.Equal(t, wire.StatusCompleted, m.State().Status)
	require.JSONEq(t, `{"n":12345678901234567890,"deep":[1,{"x":null}]}`, string(m.State().Variables["payload"]))
	require.Contains(t, payloadOf(t, m, wire.EventNodeCompleted), "12345678901234567890")
}

func TestPorts_TakeEdgesVariablesConnectionsAndStatics(t *testing.T) {
	t.Parallel()
	g := graph{
		nodes: []string{"a:core.identity", "b:core.identity"}, edges: []string{"a>b"},
		inputs: map[string]string{
			"a": `{"output":{"type":"static","value":{"v":7}}}`,
			"b": `{"also":{"type":"connection","nodeId":"a","outputKey":"output"},"maybe":{"type":"variable","variableName":"nope","optional":true}}`,
		},
	}
	_, m, _ := trace(t, g)
	require.JSONEq(t, `{"v":7}`, string(m.State().Nodes["b"].Outputs["input"]), "the edge carries output to input")
	require.JSONEq(t, `{"v":7}`, string(m.State().Nodes["b"].Outputs["also"]))
	require.NotContains(t, m.State().Nodes["b"].Outputs, "maybe", "an optional port without value stays empty")
}

func TestPorts_FailTheNodeWhenARequiredValueIsMissing(t *testing.T) {
	t.Parallel()
	g := graph{
		nodes:  []string{"a:core.identity"},
		inputs: map[string]string{"a": `{"x":{"type":"variable","variableName":"ghost"}}`},
	}
	got, m, _ := trace(t, g)
	require.Equal(t, "run.started node.started@a node.failed@a run.failed", strings.Join(got, " "))
	require.Equal(t, "validation_error", m.State().Error.Code)
	require.Contains(t, m.State().Error.Message, "ghost")
}

func TestDelay_SleepsUntilItsInstantAndNotBefore(t *testing.T) {
	t.Parallel()
	g := graph{nodes: []string{`w:core.delay:{"delayMs":1500}`}}
	got, m, _ := trace(t, g)
	require.Equal(t, "run.started node.started@w", strings.Join(got, " "))
	due, ok := m.Due()
	require.True(t, ok)
	require.Equal(t, at.Add(1500*time.Millisecond), due)

	m.Flushed()
	m.Advance(at.Add(1499 * time.Millisecond))
	require.Empty(t, names(m))
	m.Advance(at.Add(1500 * time.Millisecond))
	require.Equal(t, "node.completed@w run.completed", strings.Join(names(m), " "))
}

func TestDelay_ReadsItsWaitFromInputPortOrConfig(t *testing.T) {
	t.Parallel()
	cases := []struct {
		name, config, ports string
		inputs              map[string]json.RawMessage
		want                string
	}{
		{name: "config ms", config: `{"ms":20}`, want: `"delayMs":20`},
		{name: "config durationMs", config: `{"durationMs":30}`, want: `"delayMs":30`},
		{name: "port beats config", config: `{"ms":20}`, ports: `{"delayMs":{"type":"static","value":40}}`, want: `"delayMs":40`},
		{name: "run input beats all", config: `{"ms":20}`, inputs: map[string]json.RawMessage{"delaySeconds": json.RawMessage(`0.05`)}, want: `"delayMs":50`},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			g := graph{nodes: []string{"w:core.delay:" + c.config}, inputs: map[string]string{"w": c.ports}}
			_, m, _ := trace(t, g, func(r *wire.RunRecord) { r.Inputs = c.inputs })
			require.Contains(t, payloadOf(t, m, wire.EventNodeStarted), c.want)
		})
	}
}

func TestDelay_RefusesWhatIsNoWait(t *testing.T) {
	t.Parallel()
	for _, v := range []string{`-1`, `"5"`, `1e300`} {
		_, m, _ := trace(t, graph{nodes: []string{`w:core.delay:{"ms":` + v + `}`}})
		require.Equal(t, "validation_error", m.State().Error.Code, v)
	}
}

func TestRunTimeout_BreachesTheCapAndCancelsWhatRuns(t *testing.T) {
	t.Parallel()
	g := graph{nodes: []string{`w:core.delay:{"ms":60000}`}, settings: `{"timeout":5000}`}
	_, m, _ := trace(t, g, configurable(`{"runTimeoutMs":1000}`))
	due, _ := m.Due()
	require.Equal(t, at.Add(time.Second), due, "the smallest limit counts")
	m.Flushed()
	m.Advance(at.Add(1200 * time.Millisecond))
	require.Equal(t, "cap.breached node.cancelled@w run.failed", strings.Join(names(m), " "))
	require.JSONEq(t, `{"kind":"run-duration","limit":1000,"observed":1200}`, payloadOf(t, m, wire.EventCapBreached))
	require.Equal(t, "run_timeout", m.State().Error.Code)
}

// ofThisHost adds the host's limits to a record.
func ofThisHost(r *wire.RunRecord) {
	r.WorkMs, r.MaxExecutions = limits.MaxDuration.Milliseconds(), limits.MaxNodeExecutions
}

const day = 24 * time.Hour

// A delay of a year counts against the creator's time limit of the run, but not against the host's.
func TestDelay_OfAYearIsCarriedOut(t *testing.T) {
	t.Parallel()
	g := graph{nodes: []string{`w:core.delay:{"ms":31622400000}`, "b:core.noop"}, edges: []string{"w>b"}}
	_, m, _ := trace(t, g, ofThisHost)
	due, _ := m.Due()
	require.Equal(t, at.Add(366*day), due)
	stored, _ := m.State().Due()
	require.Equal(t, due, stored, "the read model has the same time")
	m.Flushed()
	m.Advance(due.Add(time.Minute))
	require.Equal(t, "node.completed@w node.started@b node.completed@b run.completed", strings.Join(names(m), " "))

	_, m, _ = trace(t, g, ofThisHost, func(r *wire.RunRecord) { r.DurationMs = 60_000 })
	due, _ = m.Due()
	require.Equal(t, at.Add(time.Minute), due, "the creator's own limit")
	m.Flushed()
	m.Advance(due)
	require.JSONEq(t, `{"kind":"run-duration","limit":60000,"observed":60001}`, payloadOf(t, m, wire.EventCapBreached))
}

// In a run of an earlier version, whose record has no WorkMs, a delay lasts a week at most and
// counts against the time limit.
func TestDelay_OfAnOlderRunIsAWeekAndCounts(t *testing.T) {
	t.Parallel()
	_, m, _ := trace(t, graph{nodes: []string{`w:core.delay:{"ms":604800001}`}})
	require.Equal(t, "validation_error", m.State().Error.Code)
	_, m, _ = trace(t, graph{nodes: []string{`w:core.delay:{"ms":604800000}`}}, func(r *wire.RunRecord) { r.DurationMs = 3_600_000 })
	due, _ := m.Due()
	require.Equal(t, at.Add(time.Hour), due)
}

// Time counts while another node runs during a delay, and after the delay.
func TestDelay_StopsTheClockOnlyWhileNothingElseHappens(t *testing.T) {
	t.Parallel()
	g := graph{
		nodes: []string{`w:core.delay:{"ms":86400000}`, "a:core.ai.callPrompt", "b:core.ai.callPrompt"},
		edges: []string{"w>b"},
	}
	_, m, _ := trace(t, g, ofThisHost)
	require.Equal(t, at.Add(time.Hour), m.Deadline(), "the effect of a runs")
	worked := at.Add(10 * time.Minute)
	m.Complete(worked, "a", node.Output{}, wire.Trusted)
	m.Advance(worked)
	require.Zero(t, m.Deadline())
	m.Flushed()
	m.Advance(at.Add(day))
	require.Equal(t, at.Add(day).Add(50*time.Minute), m.Deadline())
	require.Equal(t, m.Deadline(), machine.New(g.plan(t), limits, m.State()).Deadline(), "it is derived from the log")
}

func TestExecutionLimit_IsTheRecords(t *testing.T) {
	t.Parallel()
	g := graph{nodes: []string{"a:core.noop", "b:core.noop"}, edges: []string{"a>b"}}
	_, m, _ := trace(t, g, func(r *wire.RunRecord) { r.MaxExecutions = 1 })
	require.Equal(t, "recursion_limit_exceeded", m.State().Error.Code)
}

func TestCancel_EndsRunningNodesFirst(t *testing.T) {
	t.Parallel()
	_, m, _ := trace(t, graph{nodes: []string{`w:core.delay:{"ms":60000}`}})
	m.Flushed()
	m.Cancel(at, wire.CancelNote{Reason: "enough", By: "key_1"})
	require.Equal(t, "node.cancelled@w run.cancelled", strings.Join(names(m), " "))
	require.JSONEq(t, `{"reason":"enough","cancelledBy":"key_1"}`, payloadOf(t, m, wire.EventRunCancelled))
	require.Empty(t, m.Advance(at), "no event follows the end")
}

func TestEffects_AreHandedOutOnceAndBounded(t *testing.T) {
	t.Parallel()
	g := graph{nodes: []string{"a:core.ai.callPrompt", "b:core.ai.callPrompt", "c:core.ai.callPrompt"}}
	got, m, effects := trace(t, g)
	require.Equal(t, "run.started node.started@a node.started@b node.started@c", strings.Join(got, " "))
	require.Len(t, effects, 2, "MaxParallel")
	require.Empty(t, m.Advance(at))
	m.Complete(at, "a", node.Output{}, wire.Trusted)
	require.Len(t, m.Advance(at), 1, "another effect may start")
}

func TestTaint_FollowsTheDataToTheRunsEnd(t *testing.T) {
	t.Parallel()
	g := graph{
		nodes: []string{"a:core.identity", "b:core.identity"}, edges: []string{"a>b"},
		inputs: map[string]string{"a": `{"output":{"type":"variable","variableName":"mail"}}`},
	}
	_, m, _ := trace(t, g, func(r *wire.RunRecord) {
		r.TrustBoundary = wire.Untrusted
		r.Inputs = map[string]json.RawMessage{"mail": json.RawMessage(`"hello"`)}
	})
	events, _ := m.Pending()
	require.Equal(t, wire.Untrusted, events[len(events)-1].ContentTrust)
}

func TestDisabledNodes_AreSkippedAndReadAsSkipped(t *testing.T) {
	t.Parallel()
	def := graph{nodes: []string{"a:core.noop", "b:core.noop"}, edges: []string{"a>b:all_complete"}}
	p := def.plan(t)
	p.Def.Nodes[0].Disabled = true
	p.Graph = workflow.Compile(p.Def)
	m := machine.New(p, limits, runstate.New(record()))
	m.Advance(at)
	require.Equal(t, "run.started node.skipped@a node.started@b node.completed@b run.completed", strings.Join(names(m), " "))
}

// A run of pure nodes ends in one Advance, for any graph. It has one terminal event, the last one,
// and every node has ended.
func TestAdvance_EndsEveryPureGraph(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(r *rapid.T) {
		n := rapid.IntRange(1, 8).Draw(r, "nodes")
		g := graph{}
		for i := range n {
			typ := rapid.SampledFrom([]string{"core.noop", "core.identity", "core.fail"}).Draw(r, "type")
			g.nodes = append(g.nodes, fmt.Sprintf("n%d:%s", i, typ))
			for j := range i {
				if rapid.IntRange(0, 2).Draw(r, "edge") == 0 {
					rule := rapid.SampledFrom([]string{"all_success", "any_success", "all_complete", "none_failed", "any_failed"}).Draw(r, "rule")
					g.edges = append(g.edges, fmt.Sprintf("n%d>n%d:%s", j, i, rule))
				}
			}
		}
		m := machine.New(g.plan(t), limits, runstate.New(record()))
		require.Empty(r, m.Advance(at))
		events, _ := m.Pending()
		for i, e := range events {
			require.Equal(r, i, e.Sequence)
			require.Equal(r, i == len(events)-1, e.Type.Terminal())
		}
		require.Len(r, m.State().Nodes, n)
		for id, v := range m.State().Nodes {
			require.True(r, v.Status.Terminal(), id)
		}
		// The log folds to the same state.
		again := runstate.Fold(record(), events)
		require.Equal(r, string(m.State().SnapshotJSON()), string(again.SnapshotJSON()))
	})
}

func BenchmarkAdvance_TenNodes(b *testing.B) {
	g := graph{}
	for i := range 10 {
		g.nodes = append(g.nodes, fmt.Sprintf("n%d:core.noop", i))
		if i > 0 {
			g.edges = append(g.edges, fmt.Sprintf("n%d>n%d", i-1, i))
		}
	}
	p := g.plan(b)
	b.ReportAllocs()
	for b.Loop() {
		machine.New(p, limits, runstate.New(record())).Advance(at)
	}
}
