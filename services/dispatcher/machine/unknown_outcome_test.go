package machine_test

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"waybill.dev/waybill/protocol/interrupt"
	"waybill.dev/waybill/protocol/runstate"
	"waybill.dev/waybill/protocol/wire"
	"waybill.dev/waybill/protocol/workflow"
	"waybill.dev/waybill/services/dispatcher/machine"
	"waybill.dev/waybill/services/dispatcher/node"
)

// charge returns a tool node with settings and further config members.
func charge(id, settings, more string) string {
	return one(id, node.TypeMCPCallTool, `{"server":"shop","tool":"charge"`+more+`}`, "{}", settings)
}

// calling returns a plan whose host has the tool of charge.
func calling(t testing.TB, nodes, edges string) machine.Plan {
	t.Helper()
	def, problems := workflow.Parse([]byte(`{"id":"wf","name":"wf","version":"1","nodes":[` + nodes + `],"edges":[` + edges + `],"triggers":[],"metadata":{},"settings":{},"variables":[]}`))
	require.Empty(t, problems)
	types := node.Builtin().And(node.Type{
		ID:         node.TypeMCPCallTool,
		Class:      node.Effect,
		Idempotent: node.MarkedIdempotent,
	})
	return machine.Plan{Def: def, Graph: workflow.Compile(def), Types: types}
}

// runlog is a log of frames, each with its events and its note.
type runlog struct {
	rec    *wire.RunRecord
	frames []func(*runstate.State)
	events []wire.Event
}

// append appends a machine's pending events and note.
func (l *runlog) append(m *machine.Machine) {
	events, _ := m.Pending()
	note := wire.Note{}
	if n := m.Note(); n != nil {
		note = wire.ParseNote(n.JSON())
	}
	l.events = append(l.events, events...)
	l.frames = append(l.frames, func(st *runstate.State) {
		for _, e := range events {
			st.Apply(e)
		}
		st.Remember(note)
	})
	m.Flushed()
}

func (l *runlog) state() *runstate.State {
	st := runstate.New(l.rec)
	for _, f := range l.frames {
		f(st)
	}
	return st
}

// lost returns the log of a run whose executor was lost after it started the first effect and
// recorded drafts.
func lost(t testing.TB, p machine.Plan, tell ...wire.Draft) *runlog {
	t.Helper()
	l := &runlog{rec: record()}
	m := machine.New(p, limits, l.state())
	require.NotEmpty(t, m.Advance(at))
	require.Nil(t, m.Note(), "an effect that begins in the frame of its start needs no note")
	l.append(m)
	if len(tell) > 0 {
		m.Emit(at, tell...)
		l.append(m)
	}
	return l
}

func about(typ wire.EventType, payload string) wire.Draft {
	return wire.Draft{Type: typ, NodeID: "a", Payload: json.RawMessage(payload)}
}

func TestUnknownOutcome_FollowsThePolicy(t *testing.T) {
	t.Parallel()
	const repeated, failed, asked = "node.retried@a node.started@a", "node.failed@a run.failed", "node.suspended@a interrupt.requested@a"
	chunk := about(wire.EventOutputChunk, `{"nodeId":"a","chunk":"hm"}`)
	usage := about(wire.EventProviderUsage, `{"nodeId":"a"}`)
	progress := about(wire.EventLogAppended, `{"level":"info","message":"m","nodeId":"a","fields":{"reason":"tool_progress","progress":1}}`)
	answer := wire.Draft{
		Type:        wire.EventArtifactCreated,
		NodeID:      "a",
		CausationID: "c",
		Payload:     json.RawMessage(`{"artifactId":"e","artifactType":"k","payload":{}}`),
	}
	for name, tc := range map[string]struct {
		node string
		tell []wire.Draft
		want string
	}{
		"a tool":                        {charge("a", "{}", ""), nil, failed},
		"a tool that says retry":        {charge("a", `{"onUnknownOutcome":"retry"}`, ""), nil, repeated},
		"a tool that says fail":         {charge("a", `{"onUnknownOutcome":"fail"}`, `,"idempotent":true`), nil, failed},
		"a tool that says ask":          {charge("a", `{"onUnknownOutcome":"ask"}`, ""), nil, asked},
		"an idempotent tool":            {charge("a", "{}", `,"idempotent":true`), nil, repeated},
		"a tool with retries":           {charge("a", `{"maxRetries":3}`, ""), nil, failed},
		"a tool that reported progress": {charge("a", "{}", ""), []wire.Draft{progress}, failed},
		"a repeatable tool that did":    {charge("a", "{}", `,"idempotent":true`), []wire.Draft{progress}, repeated},
		"a model":                       {model("{}"), nil, repeated},
		"a model that says fail":        {model(`{"onUnknownOutcome":"fail"}`), nil, failed},
		"a model that says ask":         {model(`{"onUnknownOutcome":"ask"}`), nil, asked},
		"a model that has shown a part": {model("{}"), []wire.Draft{chunk}, repeated},
		"a model between two rounds":    {model("{}"), []wire.Draft{usage}, "log.appended@a"},
		"a model whose answer is there": {model(`{"onUnknownOutcome":"fail"}`), []wire.Draft{usage, answer}, ""},
		"a tool whose time is up":       {charge("a", `{"timeoutMs":500}`, ""), nil, failed},
		"with retries":                  {charge("a", `{"timeoutMs":500,"maxRetries":1}`, ""), nil, failed},
		"that says ask":                 {charge("a", `{"timeoutMs":500,"maxRetries":1,"onUnknownOutcome":"ask"}`, ""), nil, asked},
		"that says retry":               {charge("a", `{"timeoutMs":500,"maxRetries":1,"onUnknownOutcome":"retry"}`, ""), nil, "node.retried@a"},
		"that may be repeated":          {charge("a", `{"timeoutMs":500}`, `,"idempotent":true`), nil, "node.failed@a run.failed"},
		"a model whose time is up":      {model(`{"timeoutMs":500}`), nil, "node.failed@a run.failed"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := calling(t, tc.node, "")
			l := lost(t, p, tc.tell...)
			m := machine.New(p, limits, l.state())
			m.Advance(at.Add(time.Second))
			require.Equal(t, tc.want, strings.Join(names(m), " "))
		})
	}
}

// model is a node "a" that calls a model.
func model(settings string) string { return one("a", "core.ai.callPrompt", "{}", "{}", settings) }

// Without a policy to repeat it, a lost call whose time is up has an unknown outcome: retries of the node
// could carry it out twice.
func TestUnknownOutcome_OfAnAttemptOutOfTime(t *testing.T) {
	t.Parallel()
	const settings = `{"timeoutMs":500,"maxRetries":0}`
	for name, tc := range map[string]struct{ node, code string }{
		"a tool":             {charge("a", settings, ""), "outcome_unknown"},
		"an idempotent tool": {charge("a", settings, `,"idempotent":true`), "node_timeout"},
		"a model":            {model(settings), "node_timeout"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := calling(t, tc.node, "")
			l := lost(t, p)
			m := machine.New(p, limits, l.state())
			m.Advance(at.Add(time.Second))
			require.Contains(t, payloadOf(t, m, wire.EventNodeFailed), `"code":"`+tc.code+`"`)
		})
	}
}

// A request to a run whose executor is lost does not end the attempt: its retry would repeat the call.
func TestUnknownOutcome_IsNotDecidedByAChange(t *testing.T) {
	t.Parallel()
	p := calling(t, charge("a", `{"timeoutMs":500,"maxRetries":1}`, ""), "")
	l := lost(t, p)
	late := at.Add(time.Second)
	m := machine.NewChange(p, limits, l.state())
	m.Advance(late)
	events, _ := m.Pending()
	require.Empty(t, events)
	m = machine.New(p, limits, l.state())
	require.Empty(t, m.Advance(late))
	require.Contains(t, payloadOf(t, m, wire.EventNodeFailed), `"code":"outcome_unknown"`)
}

func TestUnknownOutcome_FailsWithWhatAPersonNeeds(t *testing.T) {
	t.Parallel()
	p := calling(t, charge("a", "{}", "")+","+one("b", "core.noop", "{}", "{}"), link("e", "a", "b", `,"triggerRule":"any_failed"`))
	l := lost(t, p)
	m := machine.New(p, limits, l.state())
	m.Advance(at.Add(time.Second))
	require.Equal(t, "node.failed@a node.started@b node.completed@b run.completed", strings.Join(names(m), " "), "another node handles the failure")
	key := node.InvocationID("acme", "run_1", "a", 0, "mcp:shop:charge")
	require.JSONEq(t, `{"nodeId":"a","attempts":1,"error":{"code":"outcome_unknown",
		"message":"the dispatcher stopped while the node was running; the call may have taken effect",
		"details":{"reason":"executor_lost","typeId":"core.mcp.callTool","peer":"mcp:shop:charge","idempotencyKey":"`+key+`","attempt":0,"since":"2026-05-01T12:00:00.000Z"}}}`,
		payloadOf(t, m, wire.EventNodeFailed))
}

// Each repeated call is recorded with its idempotency key, and counts as no retry.
func TestUnknownOutcome_RepeatsVisibly(t *testing.T) {
	t.Parallel()
	p := calling(t, charge("a", `{"onUnknownOutcome":"retry","retry":{"maxRetries":1,"backoffMs":100}}`, ""), "")
	l := lost(t, p)
	for i := range 2 {
		m := machine.New(p, limits, l.state())
		effects := m.Advance(at.Add(time.Duration(i+1) * time.Second))
		require.Len(t, effects, 1)
		require.Equal(t, i+1, effects[0].Attempt)
		require.Contains(t, payloadOf(t, m, wire.EventNodeRetried), `"idempotencyKey":"`)
		l.append(m)
	}
	m := machine.New(p, limits, l.state())
	m.Advance(at.Add(3 * time.Second))
	m.Flushed()
	m.FailNode(at.Add(3*time.Second), "a", &wire.NodeError{
		Code:      "service_unavailable",
		Message:   "away",
		Retryable: true,
	}, wire.Trusted)
	require.Equal(t, "node.retried@a", strings.Join(names(m), " "))
	require.Contains(t, payloadOf(t, m, wire.EventNodeRetried), `"delayMs":100,`, "its first own retry")
}

func TestUnknownOutcome_APersonDecides(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		answer, want, outputs string
		effects               int
	}{
		"retry":      {`{"choice":"retry"}`, "interrupt.resolved@a node.resumed@a", "", 1},
		"fail":       {`{"choice":"fail","reason":"the shop is closed"}`, "interrupt.resolved@a node.resumed@a node.failed@a run.failed", "", 0},
		"use-result": {`{"choice":"use-result","outputs":{"output":"charged"}}`, "interrupt.resolved@a node.resumed@a node.completed@a run.completed", `"charged"`, 0},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := calling(t, charge("a", `{"onUnknownOutcome":"ask"}`, ""), "")
			l := lost(t, p)
			m := machine.New(p, limits, l.state())
			require.Empty(t, m.Advance(at))
			require.Equal(t, wire.StatusWaitingExternal, m.State().Status)
			l.append(m)

			m = machine.NewChange(p, limits, l.state())
			m.Resolve(at, "a", decide(t, m, "a", tc.answer))
			m.Advance(at)
			require.Equal(t, tc.want, strings.Join(names(m), " "))
			l.append(m)
			m = machine.New(p, limits, l.state())
			effects := m.Advance(at)
			require.Empty(t, names(m))
			require.Len(t, effects, tc.effects)
			if tc.effects > 0 {
				require.Empty(t, effects[0].Answered, "the decision is not passed to the node")
			}
			n := m.State().Nodes["a"]
			require.Equal(t, tc.outputs, string(n.Outputs["output"]))
			if tc.outputs != "" {
				require.Equal(t, wire.Untrusted, n.Trust)
			}
			if tc.effects == 0 {
				return
			}
			l.append(m) // the executor is lost again, and the question is asked again
			m = machine.New(p, limits, l.state())
			require.Empty(t, m.Advance(at))
			require.Equal(t, "node.suspended@a interrupt.requested@a", strings.Join(names(m), " "))
			require.Len(t, m.State().Interrupts, 2)
			require.NotEqual(t, m.State().Interrupts[0].Key, m.State().Interrupts[1].Key)
		})
	}
}

func TestUnknownOutcome_TakesOnlyAnswersThatFit(t *testing.T) {
	t.Parallel()
	for typ, refused := range map[string][]string{
		charge("a", `{"onUnknownOutcome":"ask"}`, ""): {
			`"retry"`, `{}`, `{"choice":"later"}`, `{"choice":"use-result"}`, `{"choice":"retry","outputs":{}}`, `{"choice":"use-result","outputs":"x"}`,
		},
		one("a", "core.ai.callPrompt", "{}", "{}", `{"onUnknownOutcome":"ask"}`): {`{"choice":"use-result","outputs":{}}`},
	} {
		p := calling(t, typ, "")
		l := lost(t, p)
		m := machine.New(p, limits, l.state())
		m.Advance(at)
		q := m.State().Open("a")
		require.True(t, q.IsUnknown())
		for _, value := range refused {
			_, err := interrupt.Decide(q.Pending, interrupt.Answer{
				Value: json.RawMessage(value),
				By:    interrupt.Responder{Principal: "key"},
				At:    at,
			})
			require.Error(t, err, value)
		}
	}
}

// A decision made while the run is paused applies after the resume.
func TestUnknownOutcome_DecidedWhilePaused(t *testing.T) {
	t.Parallel()
	p := calling(t, charge("a", `{"onUnknownOutcome":"ask"}`, "")+","+charge("b", `{"onUnknownOutcome":"retry"}`, ""), "")
	l := lost(t, p)
	m := machine.New(p, limits, l.state())
	require.Len(t, m.Advance(at), 1)
	l.append(m)
	m = machine.NewChange(p, limits, l.state())
	m.Pause(at, wire.DrainNot, "", "key")
	l.append(m)
	m = machine.NewChange(p, limits, l.state())
	m.Resolve(at, "a", decide(t, m, "a", `{"choice":"retry"}`))
	require.Empty(t, m.Advance(at))
	l.append(m)
	m = machine.NewChange(p, limits, l.state())
	m.Resume(at, "")
	l.append(m)
	m = machine.New(p, limits, l.state())
	require.Len(t, m.Advance(at), 2)
	require.Equal(t, "node.started@b", strings.Join(names(m), " "), "the stopped attempt starts again, the other continues")
}

// A replay has the result of its source, even if the policy has changed since.
func TestUnknownOutcome_IsReplayedAsRecorded(t *testing.T) {
	t.Parallel()
	for _, settings := range []string{`{}`, `{"onUnknownOutcome":"retry"}`, `{"onUnknownOutcome":"ask"}`} {
		p := calling(t, charge("a", settings, ""), "")
		l := lost(t, p)
		m := machine.New(p, limits, l.state())
		m.Advance(at)
		l.append(m)
		switch m.State().Nodes["a"].Status {
		case runstate.NodeRunning:
			m.Complete(at, "a", node.Output{}, wire.Untrusted)
		case runstate.NodeSuspended:
			m.Resolve(at, "a", decide(t, m, "a", `{"choice":"use-result","outputs":{"output":1}}`))
		}
		m.Advance(at)
		l.append(m)
		require.True(t, m.State().Status.Terminal())

		rec := record(func(r *wire.RunRecord) {
			r.RunID = "run_2"
			r.Fork = &wire.Fork{SourceRunID: "run_1", Mode: wire.ForkReplay, Head: len(l.events)}
		})
		again := calling(t, charge("a", `{"onUnknownOutcome":"fail"}`, ""), "")
		copied := machine.NewReplay(again, limits, runstate.New(rec), machine.NewHistory(*rec.Fork, l.events, nil))
		require.Empty(t, copied.Advance(at.Add(time.Hour)))
		events, _ := copied.Pending()
		require.Equal(t, shape(l.events), shape(events))
		require.Nil(t, copied.Note())
	}
}
