package machine_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"waybill.dev/waybill/protocol/interrupt"
	"waybill.dev/waybill/protocol/runstate"
	"waybill.dev/waybill/protocol/wire"
	"waybill.dev/waybill/services/dispatcher/machine"
	"waybill.dev/waybill/services/dispatcher/node"
)

// world executes a run with random results of effects, random answers and random times.
type world struct {
	t    *rapid.T
	plan machine.Plan
	rec  *wire.RunRecord
	log  []wire.Event
	now  time.Time
	// m is the machine of the session, busy the effects that it returned.
	m    *machine.Machine
	busy []machine.Effect
	// source is the log of a branch's source.
	source []wire.Event
}

func (w *world) append() {
	events, _ := w.m.Pending()
	w.log = append(w.log, events...)
	w.m.Flushed()
}

// session starts a session from the log. The effects of the previous session are lost.
func (w *world) session() {
	w.busy = nil
	st := runstate.Fold(w.rec, w.log)
	w.m = machine.New(w.plan, limits, st)
	if w.source != nil && (len(w.log) == w.rec.Copied() || machine.IsPartial(st, w.plan.Types)) {
		w.m = machine.NewBranch(w.plan, limits, st, machine.NewHistory(*w.rec.Fork, w.source, w.log))
	}
	w.advance()
}

func (w *world) advance() {
	w.busy = append(w.busy, w.m.Advance(w.now)...)
	w.append()
}

// step makes one random thing happen; false if the run cannot continue.
func (w *world) step() bool {
	st := w.m.State()
	if st.Status.Terminal() {
		return false
	}
	w.now = w.now.Add(time.Duration(rapid.IntRange(1, 900).Draw(w.t, "passes")) * time.Millisecond)
	switch what := rapid.IntRange(0, 19).Draw(w.t, "what"); {
	case what == 0:
		w.session()
		return true
	case what == 1 && st.Status == wire.StatusRunning:
		policy := rapid.SampledFrom([]wire.DrainPolicy{wire.DrainNot, wire.DrainCurrent}).Draw(w.t, "policy")
		if policy == wire.DrainCurrent && len(w.busy) > 0 {
			return true
		}
		w.m = machine.NewChange(w.plan, limits, w.m.State())
		w.m.Pause(w.now, policy, "for a test", "k")
		w.append()
		w.answersWhilePaused()
		if w.m.State().Status == wire.StatusPaused && rapid.IntRange(0, 9).Draw(w.t, "resumes") > 0 {
			w.m = machine.NewChange(w.plan, limits, runstate.Fold(w.rec, w.log))
			w.m.Resume(w.now, "")
			w.append()
		}
		w.session()
		return w.m.State().Status != wire.StatusPaused
	case what == 2 && rapid.IntRange(0, 5).Draw(w.t, "cancels") == 0:
		w.m.Cancel(w.now, wire.CancelNote{Reason: "enough", By: "k"})
		w.append()
		return false
	case what == 3 && rapid.IntRange(0, 9).Draw(w.t, "late") == 0:
		w.now = w.now.Add(2 * time.Hour)
		w.session()
		return true
	}
	return w.goOn()
}

// answersWhilePaused lets people answer a paused run.
func (w *world) answersWhilePaused() {
	for _, n := range w.plan.Graph.Steps {
		st, id := w.m.State(), n.Node.ID
		if st.Status != wire.StatusPaused || st.Open(id) == nil || !rapid.Bool().Draw(w.t, "answers") {
			continue
		}
		w.m = machine.NewChange(w.plan, limits, runstate.Fold(w.rec, w.log))
		w.resolve(id)
		w.append()
	}
}

func (w *world) goOn() bool {
	if len(w.busy) > 0 {
		w.effect(rapid.IntRange(0, len(w.busy)-1).Draw(w.t, "effect"))
		return true
	}
	for _, n := range w.plan.Graph.Steps {
		if w.m.State().Open(n.Node.ID) != nil && w.m.State().Nodes[n.Node.ID].Status == runstate.NodeSuspended {
			w.answer(n.Node.ID)
			return true
		}
	}
	due, ok := w.m.Due()
	if !ok || w.m.State().Status == wire.StatusPaused {
		return false
	}
	if due.After(w.now) {
		w.now = due
	}
	w.session()
	return true
}

// effect lets the ith running effect emit events, or end.
func (w *world) effect(i int) {
	e := w.busy[i]
	tell := func(typ wire.EventType, payload string) {
		w.m.Emit(w.now, wire.Draft{
			Type:    typ,
			NodeID:  e.NodeID,
			Payload: json.RawMessage(payload),
			Trust:   wire.Untrusted,
		})
	}
	switch what := rapid.IntRange(0, 9).Draw(w.t, "does"); what {
	case 0, 1, 2:
		tell(wire.EventOutputChunk, fmt.Sprintf(`{"nodeId":%q,"runId":"run_1","chunk":"%d","isLast":false}`, e.NodeID, len(w.log)))
		w.append()
		return
	case 3:
		tell(wire.EventEnvelopeRetryAttempted, fmt.Sprintf(`{"nodeId":%q,"attempt":2,"reason":"parse-error"}`, e.NodeID))
		w.append()
		return
	case 4, 5, 6:
		tell(wire.EventProviderUsage, fmt.Sprintf(`{"provider":"p","model":"m","inputTokens":%d,"outputTokens":2,"nodeId":%q}`, len(w.log), e.NodeID))
		w.m.Complete(w.now, e.NodeID, node.Output{
			Ports:  map[string]json.RawMessage{"output": json.RawMessage(fmt.Sprint(len(w.log)))},
			Writes: map[string]json.RawMessage{"v": json.RawMessage(fmt.Sprint(len(w.log) % 3))},
		}, wire.Untrusted)
	default:
		tell(wire.EventEnvelopeRefusal, fmt.Sprintf(`{"nodeId":%q,"provider":"p","model":"m"}`, e.NodeID))
		failure := &wire.NodeError{
			Code:      "provider_unavailable",
			Message:   "no",
			Retryable: what < 9,
			Capacity:  what == 7,
		}
		if failure.Capacity {
			failure.RetryAfter = time.Duration(rapid.IntRange(0, 900).Draw(w.t, "pause")) * time.Millisecond
		}
		w.m.FailNode(w.now, e.NodeID, failure, wire.Trusted)
	}
	w.busy = append(w.busy[:i:i], w.busy[i+1:]...)
	w.advance()
}

func (w *world) answer(id string) {
	if !w.resolve(id) { // the question has expired; its timer ends it
		w.session()
		return
	}
	w.advance()
}

// resolve answers a node's question; false if the answer is too late.
func (w *world) resolve(id string) bool {
	value := rapid.SampledFrom([]string{`{"action":"accept"}`, `{"action":"reject"}`}).Draw(w.t, "answer")
	d, err := interrupt.Decide(w.m.State().Open(id).Pending, interrupt.Answer{
		Value: json.RawMessage(value),
		By:    interrupt.Responder{Principal: "k"},
		At:    w.now,
	})
	if err != nil {
		return false
	}
	w.m.Resolve(w.now, id, d)
	return true
}

// someGraph draws a workflow.
func someGraph(t *rapid.T) graph {
	kinds := []string{
		"core.noop", "core.identity", "core.identity:reads", "core.identity:reads", `core.setVariable:{"name":"set","value":[1]}`,
		`core.channelWrite:{"channelName":"sum","reducer":"counter","value":5}`,
		`core.channelWrite:{"channelName":"log","reducer":"append","ttlMs":500,"value":"one"}`, "core.delay:{\"delayMs\":0}", "core.delay:{\"delayMs\":700}", "core.fail",
		`core.approvalGate:{"title":"t","actions":["accept","reject"],"timeoutSec":30}`, `core.approvalGate:{"title":"t","actions":["accept","reject"]}`, "core.ai.callPrompt", "core.ai.callPrompt",
	}
	g := graph{
		settings: fmt.Sprintf(`{"maxRetries":%d}`, rapid.IntRange(0, 2).Draw(t, "retries")),
		inputs:   map[string]string{},
	}
	for i := range rapid.IntRange(1, 6).Draw(t, "nodes") {
		kind := rapid.SampledFrom(kinds).Draw(t, "kind")
		if strings.HasSuffix(kind, ":reads") {
			kind = strings.TrimSuffix(kind, ":reads")
			g.inputs[fmt.Sprintf("n%d", i)] = fmt.Sprintf(`{"a":{"type":"static","value":%d},"b":{"type":"variable","variableName":"log","optional":true},"c":{"type":"variable","variableName":"sum","optional":true}}`, i)
		}
		g.nodes = append(g.nodes, fmt.Sprintf("n%d:%s", i, kind))
		for j := range i {
			if rapid.IntRange(0, 2).Draw(t, "edge") == 0 {
				rule := rapid.SampledFrom([]string{"all_success", "all_complete", "any_failed", "any_success"}).Draw(t, "rule")
				g.edges = append(g.edges, fmt.Sprintf("n%d>n%d:%s", j, i, rule))
			}
		}
	}
	return g
}

func live(t *testing.T, rt *rapid.T) *world {
	w := &world{t: rt, plan: someGraph(rt).plan(t), rec: record(), now: at}
	w.rec.Channels, w.rec.CreatedAt = w.plan.Def.PinnedChannels(), wire.FormatTime(at)
	if rapid.IntRange(0, 9).Draw(rt, "capped") == 0 {
		w.rec.Configurable = json.RawMessage(`{"recursionLimit":3}`)
	}
	w.session()
	for range rapid.IntRange(0, 60).Draw(rt, "steps") {
		if !w.step() {
			break
		}
	}
	return w
}

// forkOf is the record of a fork of the world's run.
func (w *world) forkOf(id string, mode wire.ForkMode, from int) *wire.RunRecord {
	rec := *w.rec
	rec.RunID, rec.CreatedAt = id, wire.FormatTime(at.Add(100*time.Hour))
	rec.Fork = &wire.Fork{SourceRunID: w.rec.RunID, Mode: mode, FromSeq: from, Head: len(w.log)}
	if mode == wire.ForkReplay {
		rec.Fork.Since = w.rec.Since()
	}
	return &rec
}

// prefix returns the copied history of a fork.
func (w *world) prefix(rec *wire.RunRecord, now time.Time) []wire.Event {
	var out []wire.Event
	for _, e := range w.log[:rec.Fork.FromSeq] {
		out = append(out, machine.CopyEvent(rec, e, now))
	}
	return out
}

// replayed returns the log of a replay. With sessions, many executors replay it, and each is lost
// after some events.
func (w *world) replayed(id string, from int, sessions bool) []wire.Event {
	rec := w.forkOf(id, wire.ForkReplay, from)
	now := at.Add(100 * time.Hour)
	log := w.prefix(rec, now)
	for {
		m := machine.NewReplay(w.plan, limits, runstate.Fold(rec, log), machine.NewHistory(*rec.Fork, w.log, log))
		require.Empty(w.t, m.Advance(now), "a replay has no effects")
		events, _ := m.Pending()
		if n := 1 + len(log)%max(len(events), 1); sessions && len(log)+n < len(w.log)-1 {
			log = append(log, events[:n]...) // the executor is lost before it appends the rest
			continue
		}
		return append(log, events...)
	}
}

func facts(log []wire.Event) []string {
	out := make([]string, 0, len(log))
	for _, e := range log {
		out = append(out, fmt.Sprintf("%s@%s %s", e.Type, e.NodeID, e.Payload))
	}
	return out
}

// OpenWOP host contract §7.2: a replay from any event has the events of its source up to the
// source's last event. Every replay has the same events.
func TestReplay_IsTheSourceAgain(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(rt *rapid.T) {
		w := live(t, rt)
		most := len(w.log)
		if w.m.State().Status.Terminal() {
			most--
		}
		want := facts(w.log)
		if n := len(w.log); n > 0 && w.log[n-1].Type == wire.EventRunPaused {
			want = want[:n-1]
		}
		for from := 0; from <= most; from++ {
			got := w.replayed("run_2", from, false)
			n := min(len(want), len(got))
			if from > n { // the history ends with a pause
				continue
			}
			require.Equal(rt, strings.Join(want, "\n"), strings.Join(facts(got[:n]), "\n"), "from %d", from)
			if w.m.State().Status.Terminal() {
				require.Len(rt, got, len(want))
			}
			for i, e := range got {
				require.Equal(rt, i, e.Sequence)
				require.Equal(rt, wire.EventID("run_2", i), e.EventID)
				require.NotEqual(rt, wire.EventReplayDiverged, e.Type)
			}
			again := facts(w.replayed("run_2", from, true))
			require.Equal(rt, strings.Join(facts(got), "\n"), strings.Join(again, "\n"), "from %d", from)
		}
	})
}

// A branch from any event ends, even if its history ends within a step.
func TestBranch_EndsFromEverywhere(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(rt *rapid.T) {
		w := live(t, rt)
		most := len(w.log)
		if w.m.State().Status.Terminal() {
			most--
		}
		from := rapid.IntRange(0, most).Draw(rt, "from")
		rec := w.forkOf("run_2", wire.ForkBranch, from)
		b := &world{t: rt, plan: w.plan, rec: rec, now: at.Add(100 * time.Hour), source: w.log}
		b.log = w.prefix(rec, b.now)
		b.session()
		for range 200 {
			if st := b.m.State(); st.Status == wire.StatusPaused {
				b.m = machine.NewChange(b.plan, limits, runstate.Fold(rec, b.log))
				b.m.Resume(b.now, "")
				b.append()
				b.session()
			}
			if b.m.State().Status.Terminal() || !b.goOn() { // the end of the run cancels running effects
				break
			}
		}
		require.True(rt, b.m.State().Status.Terminal(), "%s after\n%s", b.m.State().Status, strings.Join(facts(b.log), "\n"))
		ends := 0
		for i, e := range b.log {
			require.Equal(rt, i, e.Sequence)
			if e.Type.Terminal() {
				ends++
			}
		}
		require.Equal(rt, 1, ends)
		require.True(rt, b.log[len(b.log)-1].Type.Terminal())
	})
}

// diverged returns the payloads of replay.diverged in a log.
func diverged(log []wire.Event) []string {
	var out []string
	for _, e := range log {
		if e.Type == wire.EventReplayDiverged {
			out = append(out, string(e.Payload))
		}
	}
	return out
}

// OpenWOP host contract §7.2, §12 no. 34: a replay records its first divergence with all members,
// and continues.
func TestReplay_RecordsItsDivergenceOnce(t *testing.T) {
	t.Parallel()
	source := graph{
		nodes: []string{"a:core.noop", "b:core.noop", "c:core.ai.callPrompt"},
		edges: []string{"a>b", "b>c"},
	}
	m := machine.New(source.plan(t), limits, runstate.New(record()))
	require.Len(t, m.Advance(at), 1)
	m.Complete(at, "c", node.Output{}, wire.Trusted)
	m.Advance(at)
	log := appended(m)
	for name, tc := range map[string]struct {
		nodes []string
		want  string
		ends  wire.Status
	}{
		"another node":  {[]string{"a:core.noop", "x:core.noop", "c:core.ai.callPrompt"}, `{"sourceRunId":"run_1","atSequence":3,"originalEventId":"ev_run_1_3","replayEventId":"ev_run_2_4","divergenceKind":"type-mismatch","divergencePoint":"node.started"}`, wire.StatusCompleted},
		"another end":   {[]string{"a:core.noop", "b:core.fail", "c:core.ai.callPrompt"}, `{"sourceRunId":"run_1","atSequence":4,"originalEventId":"ev_run_1_4","replayEventId":"ev_run_2_5","divergenceKind":"type-mismatch","divergencePoint":"node.completed"}`, wire.StatusFailed},
		"nothing of it": {[]string{"a:core.noop", "b:core.noop", "c:core.noop", "d:core.ai.callPrompt"}, `{"sourceRunId":"run_1","atSequence":7,"originalEventId":"ev_run_1_7","replayEventId":"ev_run_2_8","divergenceKind":"type-mismatch","divergencePoint":"run.completed"}`, wire.StatusFailed},
		"too early":     {[]string{"a:core.noop"}, `{"sourceRunId":"run_1","atSequence":3,"originalEventId":"ev_run_1_3","replayEventId":"ev_run_2_4","divergenceKind":"missing","divergencePoint":"node.started"}`, wire.StatusCompleted},
	} {
		g := graph{nodes: tc.nodes}
		for i := 1; i < len(tc.nodes); i++ {
			g.edges = append(g.edges, tc.nodes[i-1][:1]+">"+tc.nodes[i][:1])
		}
		rec := record(func(r *wire.RunRecord) {
			r.RunID, r.Fork = "run_2", &wire.Fork{SourceRunID: "run_1", Mode: wire.ForkReplay, Head: len(log)}
		})
		m := machine.NewReplay(g.plan(t), limits, runstate.New(rec), machine.NewHistory(*rec.Fork, log, nil))
		require.Empty(t, m.Advance(at), name)
		events, _ := m.Pending()
		require.Equal(t, []string{tc.want}, diverged(events), name)
		require.Equal(t, tc.ends, m.State().Status, name)
		require.True(t, events[len(events)-1].Type.Terminal())
	}
}

// The child of a run belongs to that run. A replay fails a node whose child had not ended, also if the
// child waits for a person.
func TestReplay_FailsANodeWhoseChildHadNotEnded(t *testing.T) {
	t.Parallel()
	g := graph{nodes: []string{`a:core.subWorkflow:{"workflowId":"kid"}`}}
	for name, waits := range map[string]bool{"it runs": false, "it waits": true} {
		m := machine.New(g.plan(t), limits, runstate.New(record()))
		effects := m.Advance(at)
		require.Len(t, effects, 1)
		m.RecordDispatch(at, "a", *effects[0].Spawn)
		if waits {
			require.True(t, m.ApplyReport(at, "a", machine.Report{
				RunID: effects[0].Spawn.RunID, WorkflowID: "kid", Status: wire.StatusWaitingApproval,
				Wait: &runstate.Wait{NodeID: "gate", InterruptID: "int_1", Kind: interrupt.Approval},
			}))
		}
		log := appended(m)
		rec := record(func(r *wire.RunRecord) {
			r.RunID, r.Fork = "run_2", &wire.Fork{SourceRunID: "run_1", Mode: wire.ForkReplay, Head: len(log)}
		})
		m = machine.NewReplay(g.plan(t), limits, runstate.New(rec), machine.NewHistory(*rec.Fork, log, nil))
		require.Empty(t, m.Advance(at), name)
		require.Equal(t, wire.StatusFailed, m.State().Status, name)
		require.Equal(t, "replay_source_missing", m.State().Error.Code, name)
		events, _ := m.Pending()
		require.Empty(t, diverged(events), name)
		require.Equal(t, facts(log), facts(events[:len(log)]), name)
	}
}

// A node fails if the source has not recorded its outcome. No call is made.
func TestReplay_FailsWhatIsNotRecorded(t *testing.T) {
	t.Parallel()
	g := graph{nodes: []string{"a:core.ai.callPrompt"}, settings: `{"maxRetries":3}`}
	m := machine.New(g.plan(t), limits, runstate.New(record()))
	require.Len(t, m.Advance(at), 1)
	log := appended(m)
	rec := record(func(r *wire.RunRecord) {
		r.RunID, r.Fork = "run_2", &wire.Fork{SourceRunID: "run_1", Mode: wire.ForkReplay, Head: len(log)}
	})
	m = machine.NewReplay(g.plan(t), limits, runstate.New(rec), machine.NewHistory(*rec.Fork, log, nil))
	require.Empty(t, m.Advance(at))
	require.Equal(t, "run.started node.started@a node.failed@a run.failed", strings.Join(names(m), " "))
	require.Contains(t, payloadOf(t, m, wire.EventNodeFailed), `"code":"replay_source_missing"`)
}

// OpenWOP host contract §7.2: the run.started of a branch is that of its source. A replay of the
// branch repeats it, although the branch's record has other tags and metadata.
func TestReplay_OfABranchBeginsAsItsSourceDid(t *testing.T) {
	t.Parallel()
	g := graph{nodes: []string{"a:core.noop"}}
	m := machine.New(g.plan(t), limits, runstate.New(record(func(r *wire.RunRecord) { r.Tags = []string{"first"} })))
	m.Advance(at)
	log := appended(m)
	rec := record(func(r *wire.RunRecord) {
		r.RunID, r.Tags, r.Metadata = "run_3", []string{"branch"}, json.RawMessage(`{"n":2}`)
		r.Fork = &wire.Fork{SourceRunID: "run_2", Mode: wire.ForkReplay, Head: len(log)}
	})
	m = machine.NewReplay(g.plan(t), limits, runstate.New(rec), machine.NewHistory(*rec.Fork, log, nil))
	require.Empty(t, m.Advance(at))
	require.Equal(t, facts(log), facts(appended(m)))
}
