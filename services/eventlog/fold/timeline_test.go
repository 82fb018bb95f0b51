package fold_test

import (
	"encoding/json"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"waybill.dev/waybill/protocol/view"
	"waybill.dev/waybill/protocol/wire"
	"waybill.dev/waybill/services/eventlog/fold"
)

var zero = time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)

type step struct {
	at      int
	typ     string
	payload string
}

// run folds steps; a payload names its node.
func run(t *testing.T, steps ...step) *view.Run {
	t.Helper()
	var events []wire.Event
	for i, s := range steps {
		payload := json.RawMessage("{}")
		if s.payload != "" {
			payload = json.RawMessage(s.payload)
		}
		at := zero.Add(time.Duration(s.at) * time.Millisecond)
		events = append(events, wire.Draft{Type: wire.EventType(s.typ), Payload: payload}.Place("r", i, at))
	}
	return fold.Of("r", wire.FormatTime(zero), events)
}

func bars(l *view.Lane) []string {
	var out []string
	for _, b := range l.Bars {
		to := "…"
		if b.To != nil {
			to = fmt.Sprint(*b.To)
		}
		out = append(out, fmt.Sprintf("%d %d-%s %s", b.Attempt, b.From, to, b.Status))
	}
	return out
}

func parts(b *view.Bar) []string {
	var out []string
	for _, p := range b.Parts {
		to := "…"
		if p.To != nil {
			to = fmt.Sprint(*p.To)
		}
		out = append(out, fmt.Sprintf("%s %d-%s", p.Kind, p.From, to))
	}
	return out
}

func TestTimeline_HasABarForEachAttemptAndTheWaitBetween(t *testing.T) {
	t.Parallel()
	lanes := run(t,
		step{5, "run.started", ""},
		step{10, "node.started", `{"nodeId":"b","typeId":"t","attempt":0}`},
		step{20, "node.retried", `{"nodeId":"b","attempt":1}`},
		step{50, "node.started", `{"nodeId":"b","typeId":"t","attempt":1}`},
		step{60, "node.completed", `{"nodeId":"b"}`},
		step{60, "node.started", `{"nodeId":"a","typeId":"t","attempt":0}`},
		step{70, "node.failed", `{"nodeId":"a","error":{}}`},
	).Timeline.Lanes
	require.Len(t, lanes, 2)
	require.Equal(t, "b completed t", lanes[0].NodeID+" "+lanes[0].Status+" "+lanes[0].TypeID)
	require.Equal(t, []string{"0 10-20 retried", "1 50-60 completed"}, bars(lanes[0]))
	require.Equal(t, "a failed t", lanes[1].NodeID+" "+lanes[1].Status+" "+lanes[1].TypeID)
	require.Equal(t, []string{"0 60-70 failed"}, bars(lanes[1]))
	require.Equal(t, []string{"work 10-20", "wait 20-50"}, parts(lanes[0].Bars[0]))
	require.Len(t, lanes[0].Marks, 1)
	require.Equal(t, "↻2", lanes[0].Marks[0].Sign)
}

func TestTimeline_EndsOpenBarsWithTheRun(t *testing.T) {
	t.Parallel()
	line := run(t, step{0, "run.started", ""}, step{1, "node.started", `{"nodeId":"a","attempt":0}`}, step{9, "run.cancelled", ""}).Timeline
	require.Equal(t, []string{"0 1-9 cancelled"}, bars(line.Lanes[0]))
	require.Equal(t, int64(9), *line.Run.To)
	require.Equal(t, "cancelled", line.Run.Status)
}

func TestTimeline_SplitsABarIntoTheProvidersTimeAndTheHosts(t *testing.T) {
	t.Parallel()
	line := run(t,
		step{0, "run.started", ""},
		step{1, "node.started", `{"nodeId":"a","attempt":0}`},
		step{5, "output.chunk", `{"nodeId":"a"}`},
		step{8, "provider.usage", `{"nodeId":"a"}`},
		step{9, "node.completed", `{"nodeId":"a"}`},
	).Timeline
	require.Equal(t, []string{"call 1-8", "work 8-9"}, parts(line.Lanes[0].Bars[0]))
}

func TestTimeline_ShowsWaitsOfNodesAndOfTheRun(t *testing.T) {
	t.Parallel()
	line := run(t,
		step{3, "run.started", ""},
		step{3, "node.started", `{"nodeId":"a","attempt":0}`},
		step{4, "x-vendor.thing", `{"nodeId":"a"}`},
		step{5, "node.suspended", `{"nodeId":"a"}`},
		step{5, "interrupt.requested", `{"nodeId":"a","kind":"approval"}`},
		step{9, "interrupt.resolved", `{"nodeId":"a"}`},
		step{9, "node.resumed", `{"nodeId":"a"}`},
	).Timeline
	require.Equal(t, []string{"0 3-5 completed", "0 5-9 suspended", "0 9-… running"}, bars(line.Lanes[0]))
	require.Equal(t, []string{"wait 0-3", "work 3-5", "wait 5-9", "work 9-…"}, parts(line.Run))
	require.Equal(t, "waiting for approval", line.Lanes[0].Marks[0].Words)
	require.Equal(t, int64(9), line.Last)
}

func TestTimeline_ToleratesInvalidTimes(t *testing.T) {
	t.Parallel()
	e := wire.Event{Sequence: 0, Type: "node.skipped", NodeID: "a", Timestamp: "yesterday"}
	line := fold.Of("r", "also yesterday", []wire.Event{e}).Timeline
	require.Equal(t, []string{"0 0-0 skipped"}, bars(line.Lanes[0]))
}

func TestTimeline_ABranchWithinANodeIsNoRetry(t *testing.T) {
	t.Parallel()
	v := run(t,
		step{0, "run.started", ""},
		step{10, "node.started", `{"nodeId":"b","typeId":"core.ai.callPrompt","attempt":0}`},
		step{20, "output.chunk", `{"nodeId":"b","chunk":"half"}`},
		step{30, "node.retried", `{"nodeId":"b","attempt":1,"reason":"branched"}`},
		step{30, "node.started", `{"nodeId":"b","typeId":"core.ai.callPrompt","attempt":1}`},
		step{40, "output.chunk", `{"nodeId":"b","chunk":"whole","isLast":true}`},
		step{50, "provider.usage", `{"nodeId":"b","provider":"p","model":"m","inputTokens":10,"outputTokens":5,"costEstimateUsd":0.5}`},
		step{60, "node.completed", `{"nodeId":"b","outputs":{"output":"whole"}}`},
	)
	require.Zero(t, v.Timeline.Retries)
	require.Equal(t, []string{"0 10-30 branched", "1 30-60 completed"}, bars(v.Timeline.Lanes[0]))
	require.Equal(t, "⑂", v.Timeline.Lanes[0].Marks[0].Sign)
	require.Len(t, v.Cost.Calls, 1)
	require.False(t, v.Cost.Calls[0].Retry)
	require.Zero(t, v.Cost.Retries.Calls)
	require.Equal(t, view.ResultBranched, v.Answers[0].Result)
	require.Equal(t, view.Note, v.Answers[0].Tone)
	require.Nil(t, v.Answers[0].Error)
}

func TestTimeline_BarsHaveTheirUsageAndTheEventThatEndedThem(t *testing.T) {
	t.Parallel()
	const usage = `{"nodeId":"b","provider":"p","model":"m","inputTokens":10,"outputTokens":5,"costEstimateUsd":0.5}`
	v := run(t,
		step{0, "run.started", ""},
		step{10, "node.started", `{"nodeId":"b","attempt":0}`},
		step{20, "provider.usage", usage},
		step{30, "provider.usage", usage},
		step{40, "node.retried", `{"nodeId":"b","attempt":1,"lastError":{"code":"x"}}`},
		step{50, "node.started", `{"nodeId":"b","attempt":1}`},
		step{60, "provider.usage", usage},
		step{70, "node.failed", `{"nodeId":"b","error":{"code":"x"}}`},
	)
	first, second := v.Timeline.Lanes[0].Bars[0], v.Timeline.Lanes[0].Bars[1]
	require.Equal(t, 2, first.Usage.Calls)
	require.Equal(t, "20", first.Usage.InputTokens.String())
	require.InDelta(t, 1.0, *first.Usage.Cost, 1e-9)
	require.Equal(t, 4, *first.Ended)
	require.Equal(t, 1, second.Usage.Calls)
	require.Equal(t, 7, *second.Ended)
	require.Equal(t, 1, v.Timeline.Retries)
}

func TestTimeline_ADelayIsAWait(t *testing.T) {
	t.Parallel()
	v := run(t,
		step{5, "run.started", ""},
		step{10, "node.started", `{"nodeId":"n","typeId":"core.delay","delayMs":500}`},
		step{510, "node.completed", `{"nodeId":"n"}`},
	)
	require.Equal(t, []string{"wait 10-510"}, parts(v.Timeline.Lanes[0].Bars[0]))
}

func TestTimeline_NamesTheRunsThatANodeStarted(t *testing.T) {
	t.Parallel()
	v := run(t,
		step{5, "run.started", ""},
		step{10, "node.started", `{"nodeId":"n"}`},
		step{20, "node.dispatched", `{"nodeId":"n","childRunId":"run_1"}`},
		step{30, "node.dispatched", `{"nodeId":"n","childRunId":"run_2"}`},
	)
	require.Equal(t, []string{"run_1", "run_2"}, v.Timeline.Lanes[0].Children)
}

func TestTimeline_NamesQuestionsVotesAndAnswersAndSumsWaits(t *testing.T) {
	t.Parallel()
	v := run(t,
		step{5, "run.started", ""},
		step{10, "node.started", `{"nodeId":"g"}`},
		step{20, "node.suspended", `{"nodeId":"g"}`},
		step{20, "interrupt.requested", `{"nodeId":"g","kind":"approval"}`},
		step{50, "approval.received", `{"nodeId":"g","action":"accept"}`},
		step{70, "interrupt.resolved", `{"nodeId":"g","outcome":"accepted"}`},
		step{80, "interrupt.requested", `{"nodeId":"g","kind":"approval"}`},
	)
	q := v.Timeline.Lanes[0].Questions
	require.Len(t, q, 2)
	require.Equal(t, 3, q[0].Requested)
	require.Equal(t, []int{4}, q[0].Votes)
	require.Equal(t, 5, *q[0].Resolved)
	require.Nil(t, q[1].Resolved)
	require.EqualValues(t, 50, v.Timeline.WaitedMs)
}
