package metrics_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	dto "github.com/prometheus/client_model/go"
	"github.com/stretchr/testify/require"

	"waybill.dev/waybill/internal/runlog"
	"waybill.dev/waybill/protocol/runstate"
	"waybill.dev/waybill/protocol/wire"
	"waybill.dev/waybill/services/dispatcher/metrics"
)

var began = time.Date(2026, 1, 31, 12, 0, 0, 0, time.UTC)

func record() *wire.RunRecord {
	return &wire.RunRecord{
		RunID:         "run_1",
		WorkflowID:    "wf",
		Owner:         wire.Owner{Tenant: "acme"},
		CreatedAt:     wire.FormatTime(began),
		EngineVersion: 1,
	}
}

// appendEvents appends events a second apart, all in one frame, to a run that was created a second
// before the first.
func appendEvents(m *metrics.Metrics, rec *wire.RunRecord, docs ...string) *runstate.State {
	st := runstate.New(rec)
	var events []wire.Event
	for i, d := range docs {
		var e struct {
			Type        wire.EventType
			NodeID      string
			CausationID string
			Payload     json.RawMessage
		}
		if err := json.Unmarshal([]byte(d), &e); err != nil {
			panic(fmt.Sprintf("%s: %v", d, err))
		}
		events = append(events, wire.Event{
			Type: e.Type, NodeID: e.NodeID, CausationID: e.CausationID, Payload: e.Payload, Sequence: i,
			Timestamp: wire.FormatTime(began.Add(time.Duration(i+1) * time.Second)),
		})
		st.Apply(events[i])
	}
	m.Appended(st, events)
	return st
}

// all are the families of the metrics by name.
func all(t *testing.T, m *metrics.Metrics) map[string]*dto.MetricFamily {
	t.Helper()
	reg := prometheus.NewPedanticRegistry()
	reg.MustRegister(m.Collectors(func() int { return 3 }, func(context.Context) (runlog.Depth, error) { return runlog.Depth{Waiting: 3, InDelivery: 2}, nil })...)
	got, err := reg.Gather()
	require.NoError(t, err)
	out := map[string]*dto.MetricFamily{}
	for _, f := range got {
		out[f.GetName()] = f
	}
	return out
}

// values are the series of a family by their attributes' values: a counter's or a gauge's
// value, a histogram's sum.
func values(f *dto.MetricFamily) map[string]float64 {
	out := map[string]float64{}
	for _, m := range f.GetMetric() {
		var labels []string
		for _, l := range m.GetLabel() {
			labels = append(labels, l.GetValue())
		}
		out[strings.Join(labels, " ")] = m.GetCounter().GetValue() + m.GetGauge().GetValue() + m.GetHistogram().GetSampleSum()
	}
	return out
}

// full is a run that changes every metric.
var full = []string{
	`{"type":"run.started","payload":{"workflowId":"wf"}}`,
	`{"type":"node.started","nodeId":"n","payload":{"nodeId":"n","typeId":"core.ai.callPrompt","attempt":0}}`,
	`{"type":"provider.usage","nodeId":"n","payload":{"nodeId":"n","provider":"mock","model":"m","inputTokens":10,"outputTokens":5,"costEstimateUsd":0.5,"currency":"USD"}}`,
	`{"type":"node.retried","nodeId":"n","payload":{"nodeId":"n","attempt":1,"lastError":{"code":"provider_unavailable","message":"words"}}}`,
	`{"type":"node.started","nodeId":"n","payload":{"nodeId":"n","typeId":"core.ai.callPrompt","attempt":1}}`,
	`{"type":"log.appended","nodeId":"n","payload":{"fields":{"openwop.cost.usd":0.25,"openwop.cost.tokens.input":7,"openwop.cost.provider":"tool"}}}`,
	`{"type":"log.appended","nodeId":"n","causationId":"c","payload":{"fields":{"openwop.cost.usd":9}}}`,
	`{"type":"node.completed","nodeId":"n","payload":{"nodeId":"n"}}`,
	`{"type":"node.started","nodeId":"g","payload":{"nodeId":"g","typeId":"core.approvalGate","attempt":0}}`,
	`{"type":"node.suspended","nodeId":"g","payload":{"nodeId":"g","interruptId":"i1","kind":"approval","key":"k"}}`,
	`{"type":"interrupt.requested","nodeId":"g","payload":{"nodeId":"g","interruptId":"i1","kind":"approval","key":"k","data":{},"requestedAt":"2026-01-31T12:00:11.000Z"}}`,
	`{"type":"interrupt.resolved","nodeId":"g","payload":{"nodeId":"g","interruptId":"i1","resumeValue":{"action":"reject"}}}`,
	`{"type":"node.failed","nodeId":"g","payload":{"nodeId":"g","error":{"code":"rejected","message":"words"}}}`,
	`{"type":"node.failed","nodeId":"never","payload":{"nodeId":"never","error":{"code":"forbidden","message":"words"}}}`,
	`{"type":"cap.breached","payload":{"kind":"node-executions","limit":2,"observed":3}}`,
	`{"type":"run.failed","payload":{"error":{"code":"rejected","message":"words"}}}`,
}

func TestMetrics_HaveTheContractsNamesAndBuckets(t *testing.T) {
	t.Parallel()
	m := metrics.New(nil)
	m.Created("wf")
	m.Conflict()
	m.Called("mock", time.Second)
	appendEvents(m, record(), full...)
	got := all(t, m)
	buckets := map[string][]float64{
		"openwop_run_duration_seconds":       {0.5, 1, 2.5, 5, 10, 30, 60, 300, 600, 1800, 3600},
		"openwop_node_duration_seconds":      {0.001, 0.005, 0.01, 0.05, 0.1, 0.5, 1, 5, 10, 30, 60},
		"openwop_activity_duration_seconds":  {0.01, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 120},
		"openwop_interrupt_duration_seconds": {60, 300, 900, 1800, 3600, 14400, 86400, 604800},
		"openwop_run_backlog_seconds":        {0.05, 0.1, 0.5, 1, 5, 30, 60, 300, 1800},
		// These are of the semantic conventions for generative AI.
		"gen_ai_client_operation_duration_seconds": {
			0.01, 0.02, 0.04, 0.08, 0.16, 0.32, 0.64, 1.28, 2.56, 5.12, 10.24, 20.48, 40.96, 81.92,
		},
		"gen_ai_client_token_usage": {
			1, 4, 16, 64, 256, 1024, 4096, 16384, 65536, 262144, 1048576, 4194304, 16777216, 67108864,
		},
	}
	for name, want := range buckets {
		require.Equal(t, dto.MetricType_HISTOGRAM, got[name].GetType(), name)
		var bounds []float64
		for _, b := range got[name].GetMetric()[0].GetHistogram().GetBucket() {
			bounds = append(bounds, b.GetUpperBound())
		}
		require.Equal(t, want, bounds, name)
		delete(got, name)
	}
	for _, name := range []string{"openwop_run_active", "openwop_queue_depth"} {
		require.Equal(t, dto.MetricType_GAUGE, got[name].GetType(), name)
		delete(got, name)
	}
	for _, name := range []string{
		"run_created", "run_completed", "node_completed", "node_attempts", "activity_invocations",
		"activity_tokens", "cap_exceeded",
		"run_claim_conflicts", "interrupt_requested", "queue_enqueued", "cost_usd",
	} {
		name = "openwop_" + name + "_total"
		require.Equal(t, dto.MetricType_COUNTER, got[name].GetType(), name)
		delete(got, name)
	}
	require.Empty(t, got, "no others")
}

func TestAppended_CountsTheEventsOfTheLog(t *testing.T) {
	t.Parallel()
	m := metrics.New(nil)
	appendEvents(m, record(), full...)
	got := all(t, m)
	for name, want := range map[string]map[string]float64{
		"openwop_run_completed_total":  {"failed wf": 1},
		"openwop_run_duration_seconds": {"failed wf": 15},
		"openwop_run_backlog_seconds":  {"": 1},
		"openwop_node_attempts_total":  {"core.ai.callPrompt": 2, "core.approvalGate": 1},
		"openwop_node_completed_total": {
			"completed core.ai.callPrompt": 1,
			"failed core.ai.callPrompt":    0,
			"cancelled core.ai.callPrompt": 0,
			"completed core.approvalGate":  0,
			"failed core.approvalGate":     1,
			"cancelled core.approvalGate":  0,
		},
		"openwop_node_duration_seconds":      {"core.ai.callPrompt": 6, "core.approvalGate": 4},
		"openwop_activity_tokens_total":      {"input mock": 10, "output mock": 5, "input tool": 7, "output tool": 0},
		"openwop_cost_usd_total":             {"mock": 0.5, "tool": 0.25},
		"gen_ai_client_token_usage":          {"chat mock m input": 10, "chat mock m output": 5},
		"openwop_cap_exceeded_total":         {"node-executions": 1},
		"openwop_interrupt_requested_total":  {"approval": 1},
		"openwop_interrupt_duration_seconds": {"approval": 1},
		"openwop_run_claim_conflicts_total":  {"": 0},
		"openwop_queue_enqueued_total":       {"": 0},
		"openwop_run_active":                 {"": 3},
		"openwop_queue_depth":                {"": 5},
	} {
		require.Equal(t, want, values(got[name]), name)
	}
}

// OpenWOP host contract §7.2: a replay counts as a run, but has no calls and no costs.
func TestAppended_OfAReplayCountsNoCallsAndNoCosts(t *testing.T) {
	t.Parallel()
	m := metrics.New(nil)
	rec := record()
	rec.Fork = &wire.Fork{SourceRunID: "run_0", Mode: wire.ForkReplay}
	appendEvents(m, rec, full...)
	got := all(t, m)
	for _, name := range []string{
		"openwop_activity_tokens_total", "openwop_cost_usd_total", "openwop_cap_exceeded_total",
		"openwop_interrupt_requested_total",
		"openwop_interrupt_duration_seconds", "openwop_activity_invocations_total", "gen_ai_client_token_usage",
	} {
		require.NotContains(t, got, name)
	}
	require.Equal(t, map[string]float64{"failed wf": 1}, values(got["openwop_run_completed_total"]))
}

func TestMetrics_NameNoRunNoNodeAndNoTenant(t *testing.T) {
	t.Parallel()
	m := metrics.New(nil)
	rec := record()
	rec.RunID, rec.Owner.Tenant = "run-canary", "tenant-canary"
	m.Created("wf")
	appendEvents(m, rec, strings.ReplaceAll(full[0], `"n"`, `"node-canary"`), strings.ReplaceAll(full[1], `"n"`, `"node-canary"`))
	for _, f := range all(t, m) {
		require.NotContains(t, f.String(), "canary")
	}
}

// OpenWOP host contract §10.3: values that tenants choose do not add unlimited series.
func TestMetrics_BoundTheSeriesOfWorkflows(t *testing.T) {
	t.Parallel()
	m := metrics.New(nil)
	for i := range 1000 {
		m.Created(fmt.Sprintf("wf-%d", i))
		m.Called(fmt.Sprintf("p-%d", i), 0)
	}
	m.Created(strings.Repeat("x", 1000))
	m.Created("wf-\xff")
	m.Created("wf-7")
	got := all(t, m)
	created := values(got["openwop_run_created_total"])
	require.Len(t, created, 51)
	require.InDelta(t, 2, created["wf-7"], 0)
	require.InDelta(t, 952, created["other"], 0)
	require.Len(t, values(got["openwop_activity_invocations_total"]), 51)
}

func TestMetrics_AcceptTextThatIsNoUTF8(t *testing.T) {
	t.Parallel()
	m := metrics.New(nil)
	m.Created("wf-\xff")
	require.Contains(t, values(all(t, m)["openwop_run_created_total"]), "wf-\uFFFD")
}

func TestAppended_IgnoresDamagedEvents(t *testing.T) {
	t.Parallel()
	m := metrics.New(nil)
	appendEvents(m, record(),
		`{"type":"provider.usage","payload":{"provider":"mock","inputTokens":-5,"outputTokens":-1,"costEstimateUsd":-1}}`,
		`{"type":"provider.usage","payload":[]}`, `{"type":"cap.breached","payload":7}`, `{"type":"interrupt.requested","payload":{}}`,
		`{"type":"node.completed","nodeId":"ghost","payload":{"nodeId":"ghost"}}`, `{"type":"log.appended","payload":{"fields":"x"}}`)
	got := all(t, m)
	require.Equal(t, map[string]float64{"mock": 0}, values(got["openwop_cost_usd_total"]))
	require.NotContains(t, got, "openwop_node_completed_total")
}

func TestCollectors_LeaveOutTheDepthOfAQueueThatDoesNotAnswer(t *testing.T) {
	t.Parallel()
	reg := prometheus.NewRegistry()
	reg.MustRegister(metrics.New(nil).Collectors(func() int { return 0 }, func(context.Context) (runlog.Depth, error) { return runlog.Depth{}, errors.New("away") })...)
	got, err := reg.Gather()
	require.NoError(t, err, "the other metrics are there")
	require.NotEmpty(t, got)
	for _, f := range got {
		require.NotEqual(t, "openwop_queue_depth", f.GetName())
	}
}

func BenchmarkAppended_NoopRun(b *testing.B) {
	m := metrics.New(nil)
	st := runstate.New(record())
	var events []wire.Event
	for i, d := range []string{
		`{"workflowId":"wf"}`, `{"nodeId":"n","typeId":"core.noop","attempt":0}`, `{"nodeId":"n"}`, `{}`,
	} {
		typ := []wire.EventType{
			wire.EventRunStarted, wire.EventNodeStarted, wire.EventNodeCompleted, wire.EventRunCompleted,
		}[i]
		e := wire.Event{Type: typ, NodeID: "n", Payload: json.RawMessage(d), Sequence: i, Timestamp: wire.FormatTime(began)}
		st.Apply(e)
		events = append(events, e)
	}
	b.ReportAllocs()
	for b.Loop() {
		m.Appended(st, events)
	}
}
