package runstate_test

import (
	"encoding/json"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"waybill.dev/waybill/protocol/runstate"
	"waybill.dev/waybill/protocol/wire"
)

var at = time.Date(2026, 5, 1, 12, 0, 0, 0, time.UTC)

func record() *wire.RunRecord {
	return &wire.RunRecord{
		RunID: "r", WorkflowID: "wf", Owner: wire.Owner{Tenant: "acme"},
		Inputs:   map[string]json.RawMessage{"a": json.RawMessage(`1`)},
		Defaults: map[string]json.RawMessage{"b": json.RawMessage(`2`)},
	}
}

type fact struct {
	t       wire.EventType
	node    string
	payload string
	cause   string
	trust   wire.Trust
}

func fold(t testing.TB, facts ...fact) *runstate.State {
	t.Helper()
	return runstate.Fold(record(), events(facts))
}

func events(facts []fact) []wire.Event {
	out := make([]wire.Event, len(facts))
	for i, f := range facts {
		d := wire.Draft{Type: f.t, NodeID: f.node, Payload: json.RawMessage(f.payload), CausationID: f.cause, Trust: f.trust}
		out[i] = d.Place("r", i, at.Add(time.Duration(i)*time.Second))
	}
	return out
}

func TestNew_IsPendingWithInputsOverDefaults(t *testing.T) {
	t.Parallel()
	s := runstate.New(record())
	require.Equal(t, wire.StatusPending, s.Status)
	require.Equal(t, 0, s.Next)
	require.JSONEq(t, `{"a":1,"b":2}`, mustJSON(t, s.Variables))
}

func TestFold_FollowsTheStatusesOfARun(t *testing.T) {
	t.Parallel()
	cases := []struct {
		name  string
		facts []fact
		want  wire.Status
	}{
		{"started", []fact{{t: wire.EventRunStarted}}, wire.StatusRunning},
		{"paused", []fact{{t: wire.EventRunStarted}, {t: wire.EventRunPaused}}, wire.StatusPaused},
		{"resumed", []fact{{t: wire.EventRunStarted}, {t: wire.EventRunPaused}, {t: wire.EventRunResumed}}, wire.StatusRunning},
		{"completed", []fact{{t: wire.EventRunStarted}, {t: wire.EventRunCompleted}}, wire.StatusCompleted},
		{"cancelled", []fact{{t: wire.EventRunStarted}, {t: wire.EventRunCancelled}}, wire.StatusCancelled},
		{"nothing follows an end", []fact{{t: wire.EventRunStarted}, {t: wire.EventRunCancelled}, {t: wire.EventRunCompleted}}, wire.StatusCancelled},
		{"unknown types are ignored", []fact{{t: wire.EventRunStarted}, {t: "acme.thing.happened"}}, wire.StatusRunning},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			s := fold(t, c.facts...)
			require.Equal(t, c.want, s.Status)
			require.Equal(t, len(c.facts), s.Next)
		})
	}
}

func TestFold_KeepsTheErrorOfAFailedRun(t *testing.T) {
	t.Parallel()
	s := fold(t, fact{t: wire.EventRunStarted}, fact{t: wire.EventRunFailed, payload: `{"error":{"code":"x","message":"y","retryable":true}}`})
	require.Equal(t, "x", s.Error.Code)
	snap := s.Snapshot()
	require.Equal(t, "2026-05-01T12:00:01.000Z", snap.CompletedAt)
	require.NotContains(t, string(s.SnapshotJSON()), "retryable", "the snapshot's error is closed")
}

// A model's questions precede the suspension of its node. The node waits until the first time limit.
func TestFold_AModelsQuestionsHaveATimeLimit(t *testing.T) {
	t.Parallel()
	question := func(id, limit string) fact {
		return fact{t: wire.EventInterruptRequested, node: "n", payload: `{"runId":"r","nodeId":"n","interruptId":"` + id +
			`","kind":"clarification","key":"` + id + `","data":{"questions":[{"id":"q","question":"?"}]},` + limit + `"requestedAt":"2026-05-01T12:00:00.000Z"}`}
	}
	facts := []fact{
		{t: wire.EventRunStarted},
		{t: wire.EventNodeStarted, node: "n", payload: `{"nodeId":"n","typeId":"core.ai.callPrompt","attempt":0}`},
		question("i", `"timeoutMs":60000,`),
		question("j", `"timeoutMs":90000,`),
		question("k", ""),
		{t: wire.EventNodeSuspended, node: "n", payload: `{"nodeId":"n","interruptId":"i","kind":"clarification","key":"i"}`},
	}
	s := fold(t, facts...)
	due, ok := s.Due()
	require.True(t, ok)
	require.Equal(t, at.Add(time.Minute), due)

	resolved := func(id string) fact {
		return fact{t: wire.EventInterruptResolved, node: "n", payload: `{"nodeId":"n","interruptId":"` + id + `","resumeValue":{}}`}
	}
	s = fold(t, append(facts, resolved("i"))...)
	due, ok = s.Due()
	require.True(t, ok)
	require.Equal(t, at.Add(90*time.Second), due, "of the next question")

	s = fold(t, append(facts, resolved("i"), resolved("j"))...)
	_, ok = s.Due()
	require.False(t, ok, "the last question has no time limit")
}

func TestFold_FollowsANodeThroughItsAttempts(t *testing.T) {
	t.Parallel()
	s := fold(t,
		fact{t: wire.EventRunStarted},
		fact{t: wire.EventNodeStarted, node: "n", payload: `{"nodeId":"n","typeId":"core.x","attempt":0}`},
		fact{t: wire.EventOutputChunk, node: "n", payload: `{"nodeId":"n"}`},
		fact{t: wire.EventNodeRetried, node: "n", payload: `{"nodeId":"n","attempt":1,"delayMs":500,"lastError":{"code":"e","message":"m"}}`},
	)
	n := s.Nodes["n"]
	require.Equal(t, runstate.NodeRetrying, n.Status)
	require.Equal(t, 1, n.Attempt)
	require.Equal(t, 1, s.Executions)
	id, timer, ok := s.Timer()
	require.True(t, ok)
	require.Equal(t, "n", id)
	require.Equal(t, at.Add(3*time.Second+500*time.Millisecond), timer.Due())

	s.Apply(events([]fact{{}, {}, {}, {}, {t: wire.EventNodeStarted, payload: `{"nodeId":"n","typeId":"core.x","attempt":1}`}})[4])
	require.Equal(t, runstate.NodeRunning, s.Nodes["n"].Status)
	require.False(t, s.Nodes["n"].Chunked, "a new attempt has no output")
	require.Equal(t, 2, s.Executions, "retries count")
}

func TestRetries_BelongToTheRunningAttempt(t *testing.T) {
	t.Parallel()
	facts := []fact{
		{t: wire.EventRunStarted},
		{t: wire.EventNodeStarted, payload: `{"nodeId":"n","typeId":"core.x"}`},
		{t: wire.EventEnvelopeRetryAttempted, payload: `{"nodeId":"n","attempt":2,"reason":"truncation"}`},
		{t: wire.EventEnvelopeRetryAttempted, payload: `{"nodeId":"n","attempt":3,"reason":"schema-violation","previousError":"want a"}`},
	}
	require.Equal(t, []runstate.Retry{{Attempt: 2, Reason: "truncation", Sequence: 2}, {Attempt: 3, Reason: "schema-violation", Detail: "want a", Sequence: 3}}, fold(t, facts...).Nodes["n"].Retries)
	facts = append(facts, fact{t: wire.EventEnvelopeNLToFormat, payload: `{"nodeId":"n","originalEnvelopeType":"x","fallbackCalls":1}`})
	require.Equal(t, []runstate.Retry{{Reason: runstate.ReasonProse, Sequence: 4}}, fold(t, facts...).Nodes["n"].Retries[2:], "the extra call for prose is a retry without an attempt number")
	facts = append(facts, fact{t: wire.EventNodeStarted, payload: `{"nodeId":"n","typeId":"core.x","attempt":1}`})
	require.Empty(t, fold(t, facts...).Nodes["n"].Retries, "another attempt starts empty")
}

func TestTimer_IsTheEarliestOfALiveRun(t *testing.T) {
	t.Parallel()
	facts := []fact{
		{t: wire.EventRunStarted},
		{t: wire.EventNodeStarted, payload: `{"nodeId":"late","typeId":"core.delay","delayMs":9000}`},
		{t: wire.EventNodeStarted, payload: `{"nodeId":"soon","typeId":"core.delay","delayMs":1000}`},
	}
	id, _, ok := fold(t, facts...).Timer()
	require.True(t, ok)
	require.Equal(t, "soon", id)
	_, _, ok = fold(t, append(facts, fact{t: wire.EventRunCancelled})...).Timer()
	require.False(t, ok)
}

func TestFold_SumsCostAndOmitsUnknownPrices(t *testing.T) {
	t.Parallel()
	s := fold(t,
		fact{t: wire.EventProviderUsage, payload: `{"provider":"p","model":"m","inputTokens":10,"outputTokens":5,"nodeId":"n"}`},
		fact{t: wire.EventProviderUsage, payload: `{"provider":"p","model":"m2","inputTokens":1,"outputTokens":2,"nodeId":"n"}`},
	)
	snap := s.Snapshot()
	require.Equal(t, runstate.CostTokens{Input: 11, Output: 7}, snap.Metrics.Cost.Tokens)
	require.Nil(t, snap.Metrics.Cost.USD, "unknown is absent, never zero")
	require.Equal(t, "m2", snap.Metrics.Cost.Model)
	require.Nil(t, runstate.New(record()).Snapshot().Metrics, "absent without a call")
}

func TestFold_RecordsTheEventsOfAnEnvelope(t *testing.T) {
	t.Parallel()
	s := fold(t,
		fact{t: wire.EventRunStarted},
		fact{t: wire.EventArtifactCreated, node: "n", cause: "corr-1", payload: `{"artifactId":"env_1","artifactType":"vendor.x.y","answer":{"size":2,"index":1,"with":[1]},"payload":{"n":12345678901234567890}}`},
	)
	require.Equal(t, wire.AnswerPart{Size: 2, Index: 1, With: []int{1}}, s.Envelopes["corr-1"].Answer)
	require.Equal(t, 1, s.Envelopes["corr-1"].Sequence)
	v := s.Envelopes["corr-1"]
	require.Equal(t, "vendor.x.y", v.Kind)
	require.Equal(t, "env_1", v.ID)
	require.JSONEq(t, `{"n":12345678901234567890}`, string(v.Payload))
	require.Equal(t, []string{"ev_r_1"}, v.EventIDs)
}

// OpenWOP envelope contract §9: the log alone identifies the envelope, even without an artifact.
func TestFold_RecordsALoggedEnvelope(t *testing.T) {
	t.Parallel()
	s := fold(t,
		fact{t: wire.EventRunStarted},
		fact{t: wire.EventLogAppended, node: "n", cause: "corr-1", payload: `{"fields":{"envelopeType":"schema.request","envelopeId":"env_1","outcome":"accepted","answer":{"size":2,"index":0},"payload":{"a":1}}}`},
		fact{t: wire.EventLogAppended, node: "n", cause: "corr-2", payload: `{"fields":{"refusedType":"x","outcome":"gated"}}`},
		fact{t: wire.EventLogAppended, node: "n", cause: "corr-3", payload: `{"fields":"none"}`},
	)
	require.Equal(t, &runstate.Envelope{
		NodeID: "n", EventIDs: []string{"ev_r_1"}, Kind: "schema.request", ID: "env_1", Payload: json.RawMessage(`{"a":1}`), Sequence: 1, Answer: wire.AnswerPart{Size: 2}, Logged: true,
	}, s.Envelopes["corr-1"])
	for _, id := range []string{"corr-2", "corr-3"} {
		require.Empty(t, s.Envelopes[id].Kind)
		require.False(t, s.Envelopes[id].Logged)
	}
}

// OpenWOP envelope contract §13: the hints of an envelope are part of its record, whatever event records
// it.
func TestFold_RecordsTheHintsOfAnEnvelope(t *testing.T) {
	t.Parallel()
	const hints = `"label":"L","rendering":{"display":"card"}`
	want := wire.Hints{Label: "L", Rendering: json.RawMessage(`{"display":"card"}`)}
	for typ, payload := range map[wire.EventType]string{
		wire.EventArtifactCreated: `{"artifactId":"e","artifactType":"vendor.x.y",` + hints + `,"payload":{}}`,
		wire.EventLogAppended:     `{"fields":{"envelopeType":"error","envelopeId":"e","outcome":"accepted",` + hints + `,"payload":{}}}`,
	} {
		s := fold(t, fact{t: wire.EventRunStarted}, fact{t: typ, node: "n", cause: "c", payload: payload})
		require.Equal(t, want, s.Envelopes["c"].Hints, typ)
		require.Equal(t, want, wire.HintsOf(wire.Event{Type: typ, Payload: json.RawMessage(payload)}))
	}
	require.Equal(t, want, wire.HintsOf(wire.Event{Type: wire.EventClarificationRequested, Payload: json.RawMessage(`{"envelope":{` + hints + `}}`)}))
	require.Nil(t, wire.HintsOf(wire.Event{Type: wire.EventNodeStarted, Payload: json.RawMessage(`{` + hints + `}`)}).OrNil())
}

// The envelopes of the answer that asked a question, in the order in which the model sent them.
func TestBeside_FindsTheAnswerOfAQuestion(t *testing.T) {
	t.Parallel()
	artifact := func(id, answer string) string {
		return `{"artifactId":"` + id + `","artifactType":"vendor.x.y","answer":` + answer + `,"payload":{}}`
	}
	s := fold(t,
		fact{t: wire.EventRunStarted},
		fact{t: wire.EventArtifactCreated, node: "n", cause: "c1", payload: artifact("first", `{"size":3,"index":0}`)},
		fact{t: wire.EventClarificationRequested, node: "n", cause: "c2", payload: `{"nodeId":"n","interruptId":"int_1","envelope":{"envelopeType":"clarification.request","envelopeId":"q","outcome":"accepted","answer":{"size":3,"index":1,"with":[1]},"payload":{}}}`},
		fact{t: wire.EventArtifactCreated, node: "n", cause: "c3", payload: artifact("last", `{"size":3,"index":2,"with":[1,2]}`)},
		fact{t: wire.EventArtifactCreated, node: "n", cause: "c4", payload: artifact("other", `{"size":0,"index":0}`)},
		fact{t: wire.EventClarificationRequested, node: "n", cause: "c5", payload: `{"nodeId":"n","interruptId":"int_2","envelope":{"envelopeType":"clarification.request","envelopeId":"q2","outcome":"accepted","payload":{}}}`},
	)
	var ids []string
	for _, v := range s.SentWith("int_1") {
		ids = append(ids, v.ID)
	}
	require.Equal(t, []string{"first", "last"}, ids)
	require.Empty(t, s.SentWith("int_2"))
	require.Empty(t, s.SentWith(""))
}

func TestFold_TaintFollowsVariables(t *testing.T) {
	t.Parallel()
	s := fold(t, fact{t: wire.EventVariableChanged, payload: `{"name":"v","next":1}`, trust: wire.Untrusted})
	require.True(t, s.Tainted["v"])
	rec := record()
	rec.TrustBoundary = wire.Untrusted
	require.True(t, runstate.New(rec).Tainted["a"], "inputs of an untrusted run are tainted")
}

func TestFold_IgnoresDamagedPayloads(t *testing.T) {
	t.Parallel()
	s := fold(t, fact{t: wire.EventRunStarted, payload: `"a string"`}, fact{t: wire.EventNodeCompleted, node: "n", payload: `[1]`})
	require.Equal(t, runstate.NodeCompleted, s.Nodes["n"].Status)
}

// The fold is idempotent by sequence: a redelivered frame changes nothing.
func TestApply_IgnoresRepeatedEvents(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(r *rapid.T) {
		types := []wire.EventType{
			wire.EventRunStarted, wire.EventNodeStarted, wire.EventNodeCompleted, wire.EventNodeFailed, wire.EventVariableChanged,
			wire.EventProviderUsage, wire.EventOutputChunk, wire.EventNodeRetried,
		}
		n := rapid.IntRange(1, 20).Draw(r, "events")
		facts := make([]fact, n)
		for i := range facts {
			facts[i] = fact{
				t:       rapid.SampledFrom(types).Draw(r, "type"),
				payload: rapid.SampledFrom([]string{`{"nodeId":"a","attempt":1}`, `{"nodeId":"b","outputs":{"o":1}}`, `{"name":"v","next":3}`}).Draw(r, "payload"),
			}
		}
		all := events(facts)
		once := runstate.Fold(record(), all)
		again := runstate.Fold(record(), all)
		for _, e := range all {
			again.Apply(e)
		}
		require.Equal(r, string(once.SnapshotJSON()), string(again.SnapshotJSON()))
		cut := rapid.IntRange(0, n).Draw(r, "cut")
		resumed := runstate.Fold(record(), all[:cut])
		for _, e := range all[cut:] {
			resumed.Apply(e)
		}
		require.Equal(r, string(once.SnapshotJSON()), string(resumed.SnapshotJSON()), "a fold can be resumed anywhere")
	})
}

func TestSnapshotJSON_SurvivesADamagedRecord(t *testing.T) {
	t.Parallel()
	rec := record()
	rec.Metadata = json.RawMessage(`{`)
	require.True(t, json.Valid(runstate.New(rec).SnapshotJSON()))
}

func mustJSON(t *testing.T, v any) string {
	t.Helper()
	b, err := json.Marshal(v)
	require.NoError(t, err)
	return string(b)
}

func FuzzApply(f *testing.F) {
	f.Add("node.started", `{"nodeId":"n","delayMs":5}`)
	f.Fuzz(func(t *testing.T, typ, payload string) {
		s := runstate.New(record())
		s.Apply(wire.Event{Type: wire.EventType(typ), Payload: json.RawMessage(payload), Timestamp: "x"})
		require.True(t, json.Valid(s.SnapshotJSON()))
		s.Timer()
	})
}

func BenchmarkFold_NoopRun(b *testing.B) {
	all := events([]fact{
		{t: wire.EventRunStarted, payload: `{"workflowId":"wf"}`},
		{t: wire.EventNodeStarted, payload: `{"nodeId":"n","typeId":"core.noop","attempt":0}`},
		{t: wire.EventNodeCompleted, payload: `{"nodeId":"n"}`},
		{t: wire.EventRunCompleted, payload: `{}`},
	})
	b.ReportAllocs()
	for b.Loop() {
		runstate.Fold(record(), all)
	}
}

// OpenWOP envelope contract §19.2: a composition belongs to the running attempt.
func TestFold_RecordsThePromptOfTheRunningAttempt(t *testing.T) {
	t.Parallel()
	started := fact{t: wire.EventNodeStarted, node: "n", payload: `{"nodeId":"n","typeId":"core.ai.callPrompt","attempt":0}`}
	composed := fact{t: wire.EventPromptComposed, node: "n", payload: `{"nodeId":"n","refs":["prompt:w@1.0.0"],"kind":"user-only","hash":"sha256:0"}`}
	require.Nil(t, fold(t, started).Nodes["n"].Prompt)
	require.Equal(t, &runstate.Prompt{Refs: []string{"prompt:w@1.0.0"}, Hash: "sha256:0"}, fold(t, started, composed).Nodes["n"].Prompt)
	require.Nil(t, fold(t, started, composed, started).Nodes["n"].Prompt)
}

// A retry that is suspended by a pending pause does not hide other timers: running nodes must end
// before the pause takes effect.
func TestTimer_IgnoresRetriesWhileAPauseIsPending(t *testing.T) {
	t.Parallel()
	s := runstate.New(&wire.RunRecord{RunID: "r"})
	for i, d := range []wire.Draft{
		{Type: wire.EventRunStarted},
		{Type: wire.EventNodeStarted, NodeID: "retried", Payload: json.RawMessage(`{"nodeId":"retried"}`)},
		{Type: wire.EventNodeRetried, NodeID: "retried", Payload: json.RawMessage(`{"nodeId":"retried","attempt":1,"delayMs":10}`)},
		{Type: wire.EventNodeStarted, NodeID: "delay", Payload: json.RawMessage(`{"nodeId":"delay","delayMs":20}`)},
	} {
		s.Apply(d.Place("r", i, at))
	}
	id, _, ok := s.Timer()
	require.Equal(t, "retried", id)
	require.True(t, ok)
	s.Remember(wire.Note{Pause: &wire.PauseNote{At: wire.FormatTime(at)}})
	id, _, ok = s.Timer()
	require.Equal(t, "delay", id)
	require.True(t, ok)
}

// OpenWOP host contract §3.2, §12 no. 15: the member's type is disputed, so it is omitted.
func TestSnapshot_OmitsTheEngineVersion(t *testing.T) {
	t.Parallel()
	r := record()
	r.EngineVersion = 1
	require.NotContains(t, string(runstate.New(r).SnapshotJSON()), "engineVersion")
}

// Attempts that lost their dispatcher count neither as retries nor as executions. Beyond a limit
// they do, because the node itself is the likely cause.
func TestFold_ExemptsAttemptsWithoutDispatcherUpToALimit(t *testing.T) {
	t.Parallel()
	facts := []fact{{t: wire.EventRunStarted}, {t: wire.EventNodeStarted, node: "n", payload: `{"nodeId":"n","typeId":"core.x","attempt":0}`}}
	const more = 3
	for i := 1; i <= runstate.MaxLost+more; i++ {
		facts = append(
			facts,
			fact{t: wire.EventNodeRetried, node: "n", payload: fmt.Sprintf(
				`{"nodeId":"n","attempt":%d,"delayMs":0,"lastError":{"code":"e","message":"m","details":{"reason":%q}}}`, i, runstate.ExecutorLost)},
			fact{t: wire.EventNodeStarted, node: "n", payload: fmt.Sprintf(`{"nodeId":"n","typeId":"core.x","attempt":%d}`, i)},
		)
	}
	s := fold(t, facts...)
	require.Equal(t, runstate.MaxLost, s.Nodes["n"].Spared)
	require.Equal(t, 1+more, s.Executions)
}
