package project_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"waybill.dev/waybill/internal/runlog/memory"
	"waybill.dev/waybill/protocol/frame"
	"waybill.dev/waybill/protocol/wire"
	"waybill.dev/waybill/services/eventlog/logtest"
	"waybill.dev/waybill/services/eventlog/project"
	"waybill.dev/waybill/services/eventlog/store"
	"waybill.dev/waybill/services/eventlog/tally"
)

// tallied adds up what the frames of a log count, as several batches do.
func tallied(t *testing.T, log *memory.Log) (sum tally.Tally) {
	t.Helper()
	frames := log.Frames()
	r, err := project.Begin(frames[0])
	require.NoError(t, err)
	take := func() {
		for _, d := range r.Counted() {
			require.Equal(t, logtest.Tenant, d.Tenant)
			require.Equal(t, "flow", d.WorkflowID)
			sum.Merge(&d.Tally)
		}
	}
	take()
	for _, f := range frames[1:] {
		require.NoError(t, r.Apply(f))
		take()
	}
	require.Empty(t, r.Counted())
	return sum
}

func TestCounted_CountsTheRunAtItsCreationAndItsEnd(t *testing.T) {
	t.Parallel()
	w, log := written(t)
	w.Step(append([]wire.Draft{logtest.RunStarted}, logtest.Node("n1")...)...)
	w.End(logtest.RunCompleted)
	r, err := project.Begin(log.Frames()[0])
	require.NoError(t, err)
	deltas := r.Counted()
	for _, f := range log.Frames()[1:] {
		require.NoError(t, r.Apply(f))
		deltas = append(deltas, r.Counted()...)
	}
	var end tally.Tally
	end.Completed = 1
	end.Took.Add(3)
	at := logtest.Epoch
	require.Len(t, deltas, 2)
	for i, want := range []tally.Delta{
		{Pos: 1, Tenant: logtest.Tenant, WorkflowID: "flow", At: at, Tally: tally.Tally{Runs: tally.Runs{Created: 1}}},
		{Pos: 3, Tenant: logtest.Tenant, WorkflowID: "flow", At: at.Add(3 * time.Millisecond), Tally: end},
	} {
		require.True(t, want.At.Equal(deltas[i].At), "%s", deltas[i].At)
		want.At = deltas[i].At
		require.Equal(t, want, deltas[i])
	}

	w, log = written(t)
	w.End(logtest.RunStarted, logtest.RunFailed)
	require.Equal(t, tally.Tally{Runs: tally.Runs{Created: 1, Failed: 1, Codes: map[string]int64{"run_timeout": 1}}}, tallied(t, log))

	w, log = written(t)
	w.End(logtest.RunStarted, wire.Draft{Type: wire.EventRunCancelled, Payload: json.RawMessage(`{}`)})
	require.Equal(t, tally.Tally{Runs: tally.Runs{Created: 1, Cancelled: 1}}, tallied(t, log))
}

// logged writes the events of a recorded log of package fold to a run.
func logged(t *testing.T, name string) (*logtest.Writer, *memory.Log) {
	t.Helper()
	w, log := written(t)
	for _, d := range recorded(t, name) {
		w.Step(d)
	}
	return w, log
}

func recorded(t *testing.T, name string) (out []wire.Draft) {
	t.Helper()
	b, err := os.ReadFile(filepath.Join("..", "fold", "testdata", name+".json"))
	require.NoError(t, err)
	var doc struct{ Events []wire.Event }
	require.NoError(t, json.Unmarshal(b, &doc))
	for _, e := range doc.Events {
		out = append(out, wire.Draft{Type: e.Type, NodeID: e.NodeID, Payload: e.Payload, CausationID: e.CausationID})
	}
	return out
}

func TestCounted_CountsAnswersAsTheViewOfTheRunShowsThem(t *testing.T) {
	t.Parallel()
	type reason struct {
		gate, reason string
		n            int64
	}
	for name, want := range map[string]struct {
		answers, first, corrected int64
		refused                   []reason
	}{
		"contract":     {1, 0, 0, []reason{{"contract", "envelope_contract_violation", 1}}},
		"discard":      {1, 1, 0, []reason{{"contract", "envelope_contract_violation", 1}}},
		"corrected":    {1, 0, 1, []reason{{"payload", "schema-violation", 2}}},
		"exhausted":    {1, 0, 0, []reason{{"payload", "schema-violation", 3}}},
		"truncated":    {1, 0, 1, []reason{{"", "truncation", 1}}},
		"refusal":      {1, 0, 0, []reason{{"", "refusal", 1}}},
		"unknown-kind": {1, 0, 1, []reason{{"kind", "type-drift", 1}}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, log := logged(t, name)
			sum := tallied(t, log)
			require.Len(t, sum.Models, 1, "%+v", sum)
			for m, c := range sum.Models {
				require.NotEmpty(t, m.Provider)
				require.Equal(t, []int64{want.answers, want.first, want.corrected}, []int64{c.Answers, c.First, c.Corrected})
			}
			var got []reason
			for r, n := range sum.Refusals {
				require.NotEmpty(t, r.Provider)
				got = append(got, reason{r.Gate, r.Reason, n})
			}
			require.Equal(t, want.refused, got)
		})
	}
}

func TestCounted_GoesOnFromTheStore(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"corrected", "discard", "truncated"} {
		_, log := logged(t, name)
		want, frames := tallied(t, log), log.Frames()
		for cut := 1; cut < len(frames); cut++ {
			var sum tally.Tally
			s := &shelf{perPage: 10}
			first, err := project.Begin(frames[0])
			require.NoError(t, err)
			apply := func(r *project.Run, frames []*frame.Frame) {
				for _, f := range frames {
					require.NoError(t, r.Apply(f))
				}
				for _, d := range r.Counted() {
					sum.Merge(&d.Tally)
				}
			}
			apply(first, frames[1:cut])
			for _, f := range frames[:cut] {
				s.frames = append(s.frames, project.Stored(f)...)
			}
			second, err := project.LoadToCount(t.Context(), s, first.Row())
			require.NoError(t, err)
			apply(second, frames[cut:])
			require.Equal(t, want, sum, "%s, cut at frame %d", name, cut)
		}
	}
}

// A replay makes no calls, and the copied history of a branch was counted for its source.
func TestCounted_CountsNoCallTwice(t *testing.T) {
	t.Parallel()
	events := recorded(t, "corrected")
	for _, fork := range []wire.Fork{
		{Mode: wire.ForkReplay, SourceRunID: "source", Head: len(events)},
		{Mode: wire.ForkBranch, SourceRunID: "source", FromSeq: len(events)},
	} {
		log := memory.New()
		rec := logtest.Record("run-1")
		rec.Fork = &fork
		w := logtest.Begin(t, log, rec)
		w.Step(events...)
		sum := tallied(t, log)
		require.Empty(t, sum.Models, "%s", fork.Mode)
		require.Empty(t, sum.Refusals, "%s", fork.Mode)
		require.EqualValues(t, 1, sum.Created)
	}
}

// A run that tries a node alone is no run of its workflow, and its answers are no answers of it. Its
// calls cost as much as others.
func TestCounted_CountsOnlyTheCallsOfATry(t *testing.T) {
	t.Parallel()
	_, log := logged(t, "corrected")
	want := tallied(t, log)
	log = memory.New()
	rec := logtest.Record("run-1")
	rec.Fork = &wire.Fork{Mode: wire.ForkBranch, SourceRunID: "source", Edited: &wire.Edited{Only: "n"}}
	w := logtest.Begin(t, log, rec)
	w.Step(recorded(t, "corrected")...)
	got := tallied(t, log)
	require.Positive(t, want.Created*want.Completed)
	require.Zero(t, got.Created+got.Completed)
	require.Empty(t, got.Refusals)
	require.Len(t, got.Models, 1)
	for m, c := range got.Models {
		require.Equal(t, want.Models[m].Calls, c.Calls)
		require.Positive(t, c.Calls)
		require.Equal(t, want.Models[m].Cost, c.Cost)
		require.Zero(t, c.Answers)
	}
}

func TestCounted_CountsProvidersThatFail(t *testing.T) {
	t.Parallel()
	w, log := written(t)
	start := wire.Draft{Type: wire.EventNodeStarted, NodeID: "n", Payload: json.RawMessage(`{"nodeId":"n","typeId":"core.ai.callPrompt","attempt":0}`)}
	failed := `{"code":"provider_unavailable","message":"busy","details":{"provider":"openai"}}`
	w.Step(
		logtest.RunStarted, start,
		wire.Draft{Type: wire.EventNodeRetried, NodeID: "n", Payload: json.RawMessage(`{"nodeId":"n","attempt":1,"delayMs":1,"lastError":` + failed + `}`)},
		start,
		wire.Draft{Type: wire.EventNodeFailed, NodeID: "n", Payload: json.RawMessage(`{"nodeId":"n","error":` + failed + `}`)},
	)
	w.End(logtest.RunFailed)
	sum := tallied(t, log)
	require.Equal(t, map[tally.ProviderError]int64{{Provider: "openai", Code: "provider_unavailable"}: 2}, sum.Errors)
	for m, c := range sum.Models {
		require.Zero(t, c.Answers, "%s: there was no answer", m.Model)
	}
}

func TestCounted_CountsNothingForReaders(t *testing.T) {
	t.Parallel()
	w, log := logged(t, "corrected")
	s := &shelf{perPage: 10}
	for _, f := range log.Frames() {
		s.frames = append(s.frames, project.Stored(f)...)
	}
	r, err := project.Load(t.Context(), s, store.Run{Key: project.Key(w.Run()), WorkflowID: "flow", Head: w.Head.Next - 1})
	require.NoError(t, err)
	require.Empty(t, r.Counted())
}

// An attempt that waits for its next one has ended, and is counted once, however its node ends.
func TestCounted_CountsAnAttemptOnce(t *testing.T) {
	t.Parallel()
	event := func(typ wire.EventType, payload string) wire.Draft {
		return wire.Draft{Type: typ, NodeID: "n", Payload: json.RawMessage(payload)}
	}
	attempt := []wire.Draft{
		logtest.RunStarted,
		event(wire.EventNodeStarted, `{"nodeId":"n","typeId":"core.ai.callPrompt","attempt":0}`),
		event(wire.EventProviderUsage, `{"provider":"openai","model":"m","inputTokens":1,"outputTokens":1,"costEstimateUsd":0.5}`),
		event("envelope.refusal", `{"refusalText":"no"}`),
		event(wire.EventNodeRetried, `{"nodeId":"n","attempt":1,"delayMs":60000,"lastError":{"code":"envelope_refusal","message":"no"}}`),
	}
	w, log := written(t)
	w.Step(attempt...)
	want := tallied(t, log)
	require.Len(t, want.Refusals, 1)
	require.Len(t, want.Models, 1)
	for _, end := range []wire.Draft{
		event(wire.EventNodeCancelled, `{"nodeId":"n","reason":"run-cancelled"}`),
		event(wire.EventNodeFailed, `{"nodeId":"n","error":{"code":"run_timeout","message":"late"}}`),
	} {
		w, log := written(t)
		w.Step(attempt...)
		w.Step(end)
		require.Equal(t, want, tallied(t, log), "%s", end.Type)
	}

	// An attempt that waits for an answer has not ended.
	w, log = written(t)
	w.Step(attempt[:4]...)
	w.Step(event(wire.EventNodeSuspended, `{"nodeId":"n"}`), event(wire.EventNodeCancelled, `{"nodeId":"n","reason":"run-cancelled"}`))
	sum := tallied(t, log)
	require.Equal(t, want.Refusals, sum.Refusals)
}
