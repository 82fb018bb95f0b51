package eventlog_test

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"google.golang.org/protobuf/encoding/protojson"

	eventlogv1 "waybill.dev/waybill/proto/gen/go/waybill/eventlog/v1"
	hostv1 "waybill.dev/waybill/proto/gen/go/waybill/host/v1"
	"waybill.dev/waybill/protocol/fault"
	"waybill.dev/waybill/protocol/wire"
	"waybill.dev/waybill/services/eventlog/logtest"
	"waybill.dev/waybill/services/eventlog/store"
	"waybill.dev/waybill/services/eventlog/tally"
)

func (r *rig) statistics(t testing.TB, req *eventlogv1.GetStatisticsRequest) *hostv1.GetStatisticsResponse {
	t.Helper()
	if req.GetTenant() == "" {
		req.Tenant = logtest.Tenant
	}
	if req.GetSince() == "" {
		req.Since, req.Until = wire.FormatTime(logtest.Epoch), wire.FormatTime(logtest.Epoch.Add(24*time.Hour))
	}
	res, err := r.GetStatistics(within(t), req)
	require.NoError(t, err)
	return res.GetStatistics()
}

// asked are the events of a node whose model answers after one correction.
func asked(provider, model, usd string) []wire.Draft {
	draft := func(typ wire.EventType, payload string) wire.Draft {
		return wire.Draft{Type: typ, NodeID: "ask", Payload: json.RawMessage(payload)}
	}
	usage := draft(wire.EventProviderUsage, fmt.Sprintf(
		`{"provider":%q,"model":%q,"inputTokens":100,"outputTokens":20,"cacheReadTokens":50,"costEstimateUsd":%s}`, provider, model, usd))
	return []wire.Draft{
		draft(wire.EventNodeStarted, `{"nodeId":"ask","typeId":"core.ai.structuredOutput","attempt":0}`),
		usage,
		draft("envelope.retry.attempted", `{"attempt":2,"reason":"schema-violation","previousError":"required member missing: name (/required)"}`),
		usage,
		draft(wire.EventNodeCompleted, `{"nodeId":"ask","outputs":{"value":{}}}`),
	}
}

func TestGetStatistics_AddsUpRunsUsageAndRefusals(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.ran(t, "flow", 1, 10, logtest.RunCompleted, asked("openai", "large", "0.5")...)
	r.ran(t, "flow", 2, 10, logtest.RunFailed)
	r.ran(t, "flow", 3, 1, wire.Draft{}) // active
	r.ran(t, "other", 4, 100, logtest.RunCompleted, asked("gemini", "small", "0.25")...)

	got := r.statistics(t, &eventlogv1.GetStatisticsRequest{})
	total := got.GetRuns()
	require.Equal(t, []int64{4, 2, 1, 0}, []int64{total.GetCreated(), total.GetCompleted(), total.GetFailed(), total.GetCancelled()})
	require.Len(t, total.GetFailures(), 1)
	require.Equal(t, "run_timeout", total.GetFailures()[0].GetCode())
	require.EqualValues(t, 10, total.GetP50Ms())
	require.InEpsilon(t, 100, total.GetP95Ms(), 0.0625)
	u := got.GetUsage()
	require.Equal(t, []int64{4, 400, 80, 200, 2, 2, 0, 2}, []int64{
		u.GetCalls(), u.GetInputTokens(), u.GetOutputTokens(), u.GetCachedTokens(), u.GetRetries(), u.GetAnswers(), u.GetAcceptedFirst(), u.GetCorrected(),
	})
	require.Equal(t, 1.5, u.GetCostUsd())
	require.Equal(t, 0.75, u.GetRetryCostUsd())
	require.Len(t, got.GetWorkflows(), 2)
	require.Equal(t, "flow", got.GetWorkflows()[0].GetWorkflowId())
	require.EqualValues(t, 3, got.GetWorkflows()[0].GetRuns().GetCreated())
	require.Len(t, got.GetModels(), 2)
	require.Equal(t, "large", got.GetModels()[0].GetModel(), "the most expensive first")
	require.Equal(t, 1.0, got.GetModels()[0].GetUsage().GetCostUsd())
	require.Len(t, got.GetRefusals(), 2)
	require.Equal(t, "schema-violation", got.GetRefusals()[0].GetReason())
	require.Equal(t, "payload", got.GetRefusals()[0].GetGate())
	require.Len(t, got.GetPoints(), 1)
	require.Equal(t, wire.FormatTime(logtest.Epoch.Truncate(24*time.Hour)), got.GetPoints()[0].GetAt())

	one := r.statistics(t, &eventlogv1.GetStatisticsRequest{WorkflowId: "other"})
	require.EqualValues(t, 1, one.GetRuns().GetCreated())
	require.Equal(t, 0.5, one.GetUsage().GetCostUsd())

	empty, err := protojson.Marshal(r.statistics(t, &eventlogv1.GetStatisticsRequest{Tenant: "another"}))
	require.NoError(t, err)
	require.NotContains(t, string(empty), "large")
	require.NotContains(t, string(empty), "points")
}

func TestGetStatistics_ChoosesTheStepByTheSpanAndItsAge(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	now := time.Now()
	for _, tt := range []struct {
		since, until time.Duration
		step         int32
	}{
		{-time.Hour, 0, 300},
		{-12 * time.Hour, 0, 300},
		{-24 * time.Hour, 0, 3600},
		{-7 * 24 * time.Hour, 0, 3600},
		{-30 * 24 * time.Hour, 0, 86400},
		{-90 * 24 * time.Hour, 0, 86400},
		{-5 * 24 * time.Hour, -5*24*time.Hour + time.Hour, 3600},
		{-50 * 24 * time.Hour, -50*24*time.Hour + time.Hour, 86400},
	} {
		req := &eventlogv1.GetStatisticsRequest{Since: wire.FormatTime(now.Add(tt.since)), Until: wire.FormatTime(now.Add(tt.until))}
		got := r.statistics(t, req)
		require.Equal(t, tt.step, got.GetStepSeconds(), "%s", tt.since)
		since, err := time.Parse(time.RFC3339, got.GetSince())
		require.NoError(t, err)
		until, err := time.Parse(time.RFC3339, got.GetUntil())
		require.NoError(t, err)
		step := time.Duration(tt.step) * time.Second
		require.Zero(t, since.Unix()%int64(tt.step))
		require.False(t, since.After(now.Add(tt.since)), "the span is part of the answer")
		require.WithinDuration(t, now.Add(tt.since), since, step)
		require.False(t, until.Before(now.Add(tt.until).Truncate(time.Millisecond)))
		require.WithinDuration(t, now.Add(tt.until), until, step)
	}
}

func TestGetStatistics_RejectsInvalidSpans(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	for _, span := range [][2]string{
		{"", "2026-03-01T12:00:00Z"},
		{"2026-03-01T12:00:00Z", "noon"},
		{"2026-03-01T12:00:00Z", "2026-03-01T12:00:00Z"},
		{"2026-03-02T12:00:00Z", "2026-03-01T12:00:00Z"},
		{"2024-03-01T12:00:00Z", "2026-03-01T12:00:00Z"},
	} {
		_, err := r.GetStatistics(within(t), &eventlogv1.GetStatisticsRequest{Tenant: logtest.Tenant, Since: span[0], Until: span[1]})
		require.Equal(t, fault.ValidationError, fault.CodeOf(err), "%v", span)
	}
}

func TestListTenantStatistics_ListsTheMostExpensiveFirst(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	delta := func(pos uint64, tenant string, cost tally.Nanos) tally.Delta {
		d := tally.Delta{Pos: pos, Tenant: tenant, WorkflowID: "flow", At: logtest.Epoch}
		d.Tally.Created = 1
		*d.Tally.Of(tally.Model{Provider: "p", Model: "m"}) = tally.Calls{Calls: 1, Input: 5, Priced: 1, Cost: cost}
		return d
	}
	deltas := []tally.Delta{delta(1, "cheap", 1), delta(2, "dear", 9), delta(3, "dear", 9)}
	for n := range 250 {
		deltas = append(deltas, delta(4, fmt.Sprintf("t%03d", n), 2))
	}
	require.NoError(t, r.store.Apply(t.Context(), store.Batch{Tallies: deltas, Tail: store.Tail{Pos: 4, Hash: "h"}}))
	req := &eventlogv1.ListTenantStatisticsRequest{
		Since: wire.FormatTime(logtest.Epoch), Until: wire.FormatTime(logtest.Epoch.Add(24 * time.Hour)),
	}
	res, err := r.ListTenantStatistics(within(t), req)
	require.NoError(t, err)
	got := res.GetStatistics()
	require.Len(t, got.GetTenants(), 100)
	require.EqualValues(t, 152, got.GetMoreTenants())
	require.Equal(t, "dear", got.GetTenants()[0].GetTenant())
	require.EqualValues(t, 2, got.GetTenants()[0].GetRuns().GetCreated())
	require.EqualValues(t, 10, got.GetTenants()[0].GetUsage().GetInputTokens())
	require.Equal(t, "t000", got.GetTenants()[1].GetTenant())

	req.Tenant = "cheap"
	res, err = r.ListTenantStatistics(within(t), req)
	require.NoError(t, err)
	require.Len(t, res.GetStatistics().GetTenants(), 1)
	require.Equal(t, "cheap", res.GetStatistics().GetTenants()[0].GetTenant())
}

// A span with too many counts is answered in wider steps.
func TestGetStatistics_WidensItsSteps(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	now := time.Now().UTC().Truncate(time.Hour)
	var deltas []tally.Delta
	long := func(n int) string { return fmt.Sprintf("%0120d", n) }
	for n := range 400 {
		for hour := range 24 {
			d := tally.Delta{Pos: 1, Tenant: logtest.Tenant, WorkflowID: fmt.Sprint("flow-", n), At: now.Add(-time.Duration(hour) * time.Hour)}
			d.Tally.Created = 1
			for m := range 15 {
				d.Tally.Of(tally.Model{Provider: long(m), Model: long(m)}).Calls = 1
			}
			deltas = append(deltas, d)
		}
	}
	for pos, chunk := range [][]tally.Delta{deltas[:len(deltas)/2], deltas[len(deltas)/2:]} {
		for i := range chunk {
			chunk[i].Pos = uint64(pos + 1) //nolint:gosec // G115: a small number
		}
		require.NoError(t, r.store.Apply(t.Context(), store.Batch{Tallies: chunk, Tail: store.Tail{Pos: uint64(pos + 1), Hash: "h"}})) //nolint:gosec // G115: as above
	}
	got := r.statistics(t, &eventlogv1.GetStatisticsRequest{Since: wire.FormatTime(now.Add(-23 * time.Hour)), Until: wire.FormatTime(now.Add(time.Hour))})
	require.EqualValues(t, 86400, got.GetStepSeconds())
	require.EqualValues(t, len(deltas), got.GetRuns().GetCreated())
	require.Len(t, got.GetWorkflows(), 100)
	require.EqualValues(t, 300, got.GetMoreWorkflows())
}

// BenchmarkGetStatistics reads figures of a million runs of 20 workflows within 90 days.
func BenchmarkGetStatistics(b *testing.B) {
	const days, workflows, runs = 90, 20, 1_000_000
	r := newRig(b)
	now := time.Now().UTC()
	random := rand.New(rand.NewPCG(1, 2))
	var batch store.Batch
	pos := uint64(0)
	for n := range runs {
		pos++
		at := now.Add(-days * 24 * time.Hour).Add(time.Duration(n) * (days * 24 * time.Hour / runs))
		d := tally.Delta{Pos: pos, Tenant: logtest.Tenant, WorkflowID: fmt.Sprintf("flow-%02d", random.IntN(workflows)), At: at}
		d.Tally.Created, d.Tally.Completed = 1, 1
		d.Tally.Took.Add(int64(random.ExpFloat64() * 3000))
		m := d.Tally.Of(tally.Model{Provider: "openai", Model: fmt.Sprint("model-", random.IntN(5))})
		*m = tally.Calls{Calls: 2, Input: 1000, Output: 100, Cost: 1000, Priced: 2, Answers: 1, First: 1}
		m.Took.Add(int64(random.ExpFloat64() * 800))
		if n%20 == 0 {
			reason := []string{"schema-violation", "truncation", "parse-error"}[random.IntN(3)]
			d.Tally.Refuse(tally.Refusal{Model: tally.Model{Provider: "openai"}, Reason: reason}, 1)
		}
		if batch.Tallies = append(batch.Tallies, d); len(batch.Tallies) == 5000 {
			batch.Tail = store.Tail{Pos: pos, Hash: "h"}
			require.NoError(b, r.store.Apply(b.Context(), batch))
			batch.Tallies = nil
		}
	}
	for _, span := range []time.Duration{time.Hour, 12 * time.Hour, 24 * time.Hour, 7 * 24 * time.Hour, 30 * 24 * time.Hour, days * 24 * time.Hour} {
		b.Run(span.String(), func(b *testing.B) {
			req := &eventlogv1.GetStatisticsRequest{
				Tenant: logtest.Tenant, Since: wire.FormatTime(now.Add(-span)), Until: wire.FormatTime(now.Add(time.Second)),
			}
			for b.Loop() {
				_, err := r.GetStatistics(b.Context(), req)
				require.NoError(b, err)
			}
		})
	}
}
