// Package metrics counts the work of dispatchers under the protocol's names (OpenWOP host contract
// §10.3) in Prometheus form: underscores for dots, _total for counters and _seconds for durations.
//
// Events of a run are counted by the process that appended them. Only one append succeeds, so a
// claimed run is not counted twice, and reading a log counts nothing. Events that a crashed process
// did not count are missing. No label contains a run, a node or a tenant.
package metrics

import (
	"context"
	"math"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"waybill.dev/waybill/internal/obs/runspan"
	"waybill.dev/waybill/internal/runlog"
)

// The labels.
const (
	labelStatus    = "openwop_run_status"
	labelWorkflow  = "openwop_workflow_id"
	labelType      = "openwop_node_type"
	labelNode      = "openwop_node_status"
	labelCap       = "openwop_cap_kind"
	labelKind      = "openwop_interrupt_kind"
	labelProvider  = "provider"
	labelDirection = "direction"
	labelResult    = "result"
	labelOperation = "gen_ai_operation_name"
	labelGenAI     = "gen_ai_provider_name"
	labelModel     = "gen_ai_response_model"
	labelTokenType = "gen_ai_token_type" //nolint:gosec // G101: the name of a label
)

// Limits of the workflows, node types and providers with their own series.
const (
	maxWorkflows = 50
	maxTypes     = 200
	maxProviders = 50
	maxModels    = 100
)

// Buckets of the histograms, in seconds (OpenWOP host contract §10.3).
var (
	runBuckets       = []float64{0.5, 1, 2.5, 5, 10, 30, 60, 300, 600, 1800, 3600}
	nodeBuckets      = []float64{0.001, 0.005, 0.01, 0.05, 0.1, 0.5, 1, 5, 10, 30, 60}
	activityBuckets  = []float64{0.01, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 120}
	interruptBuckets = []float64{60, 300, 900, 1800, 3600, 14400, 86400, 604800}
	queueBuckets     = []float64{0.001, 0.01, 0.1, 0.5, 1, 5, 10, 30, 60, 300, 900}
	// Buckets of the semantic conventions for generative AI.
	callBuckets  = []float64{0.01, 0.02, 0.04, 0.08, 0.16, 0.32, 0.64, 1.28, 2.56, 5.12, 10.24, 20.48, 40.96, 81.92}
	tokenBuckets = []float64{1, 4, 16, 64, 256, 1024, 4096, 16384, 65536, 262144, 1048576, 4194304, 16777216, 67108864}

	backlogBuckets = []float64{0.05, 0.1, 0.5, 1, 5, 30, 60, 300, 1800}
)

// Metrics are the metrics of one process. It is safe for concurrent use.
type Metrics struct {
	apis                               runspan.APIs
	created, completed                 *prometheus.CounterVec
	nodes, attempts                    *prometheus.CounterVec
	invocations, tokens, usd           *prometheus.CounterVec
	caps, interrupts                   *prometheus.CounterVec
	conflicts, enqueued                prometheus.Counter
	snapshots                          *prometheus.CounterVec
	quarantined, erasures              *prometheus.CounterVec
	runSeconds, nodeSeconds            *prometheus.HistogramVec
	activitySeconds, interruptsSeconds *prometheus.HistogramVec
	backlogSeconds                     prometheus.Histogram
	queueSeconds                       *prometheus.HistogramVec
	inFlight, queued, holds, limits    *prometheus.GaugeVec
	refused                            *prometheus.CounterVec
	callSeconds, callTokens            *prometheus.HistogramVec

	workflows, types, providers, models *labelValues
	byType                              sync.Map // of *typeCounters, by type id as in the log
}

// New returns metrics with all counts at zero.
func New(apis runspan.APIs) *Metrics {
	return &Metrics{
		apis:        apis,
		created:     counter("run_created", "Created runs, including forks and child runs.", labelWorkflow),
		completed:   counter("run_completed", "Ended runs, by status.", labelWorkflow, labelStatus),
		nodes:       counter("node_completed", "Started nodes that ended, by status.", labelType, labelNode),
		attempts:    counter("node_attempts", "Started attempts of nodes.", labelType),
		invocations: counter("activity_invocations", "Model calls, including failed ones.", labelProvider),
		tokens:      counter("activity_tokens", "Tokens reported by providers and nodes.", labelProvider, labelDirection),
		usd:         counter("cost_usd", "Estimated cost of model calls and cost reported by nodes, in US dollars.", labelProvider),
		caps:        counter("cap_exceeded", "Breached limits.", labelCap),
		interrupts:  counter("interrupt_requested", "Interrupts requested by runs.", labelKind),
		conflicts: prometheus.NewCounter(prometheus.CounterOpts{
			Name: "openwop_run_claim_conflicts_total", Help: "Runs that another dispatcher owned or took over.",
		}),
		enqueued: prometheus.NewCounter(prometheus.CounterOpts{
			Name: "openwop_queue_enqueued_total", Help: "Runs put into the dispatchers' queue, at creation and at each wake-up.",
		}),
		snapshots: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "waybill_dispatcher_snapshots_total",
			Help: "Snapshots of runs, by result: used (hit), not used (missing, unavailable, rejected), written, or not written (too_large, dropped, failed).",
		}, []string{labelResult}),
		quarantined: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "waybill_dispatcher_quarantines_total", Help: "Runs that this process quarantined, by reason.",
		}, []string{"reason"}),
		erasures: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "waybill_dispatcher_erasures_total",
			Help: "Attempts to remove the data of erased runs, by result: done, or failed and repeated.",
		}, []string{labelResult}),
		runSeconds:        histogram("run_duration", "Time from a run's start to its end, including waits.", runBuckets, labelWorkflow, labelStatus),
		nodeSeconds:       histogram("node_duration", "Time from the start of a node's first attempt to the node's end, including waits.", nodeBuckets, labelType),
		activitySeconds:   histogram("activity_duration", "Duration of model calls.", activityBuckets, labelProvider),
		interruptsSeconds: histogram("interrupt_duration", "Time from an interrupt's request to its resolution.", interruptBuckets, labelKind),
		backlogSeconds: prometheus.NewHistogram(prometheus.HistogramOpts{
			Name: "openwop_run_backlog_seconds", Help: "Time from a run's creation to its start.", Buckets: backlogBuckets,
		}),
		queueSeconds: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Name:    "waybill_provider_queue_seconds",
			Help:    "Time that model calls waited for the limits of their provider.",
			Buckets: queueBuckets,
		}, []string{labelProvider}),
		inFlight: prometheus.NewGaugeVec(prometheus.GaugeOpts{
			Name: "waybill_provider_in_flight",
			Help: "Model calls of this process in flight.",
		}, []string{labelProvider}),
		queued: prometheus.NewGaugeVec(prometheus.GaugeOpts{
			Name: "waybill_provider_queued",
			Help: "Model calls of this process that wait for the limits of their provider.",
		}, []string{labelProvider}),
		holds: prometheus.NewGaugeVec(prometheus.GaugeOpts{
			Name: "waybill_provider_holds",
			Help: "Pairs of model and credential whose calls this process holds after the provider refused one for lack of capacity.",
		}, []string{labelProvider}),
		limits: prometheus.NewGaugeVec(prometheus.GaugeOpts{
			Name: "waybill_provider_limit",
			Help: "Limits that this process applies to model calls: its share of the installation's limits.",
		}, []string{labelProvider, "limit"}),
		refused: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "waybill_provider_no_capacity_total",
			Help: "Model calls rejected for lack of capacity: rate limited, overloaded or unreachable provider.",
		}, []string{labelProvider}),
		callSeconds: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Name:    "gen_ai_client_operation_duration_seconds",
			Help:    "Duration of model calls, by the semantic conventions of OpenTelemetry.",
			Buckets: callBuckets,
		}, []string{labelOperation, labelGenAI}),
		callTokens: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Name:    "gen_ai_client_token_usage",
			Help:    "Tokens of model calls, by the semantic conventions of OpenTelemetry.",
			Buckets: tokenBuckets,
		}, []string{labelOperation, labelGenAI, labelModel, labelTokenType}),
		workflows: newLabelValues(maxWorkflows), types: newLabelValues(maxTypes),
		providers: newLabelValues(maxProviders), models: newLabelValues(maxModels),
	}
}

func counter(name, help string, labels ...string) *prometheus.CounterVec {
	return prometheus.NewCounterVec(prometheus.CounterOpts{Name: "openwop_" + name + "_total", Help: help}, labels)
}

func histogram(name, help string, buckets []float64, labels ...string) *prometheus.HistogramVec {
	return prometheus.NewHistogramVec(prometheus.HistogramOpts{
		Name:    "openwop_" + name + "_seconds",
		Help:    help,
		Buckets: buckets,
	}, labels)
}

// Collectors returns the metrics, including two that are read at collection: the active runs and
// the length of the queue.
func (m *Metrics) Collectors(active func() int, depth func(context.Context) (runlog.Depth, error)) []prometheus.Collector {
	return []prometheus.Collector{
		m.created, m.completed, m.nodes, m.attempts, m.invocations, m.tokens, m.usd, m.caps, m.interrupts,
		m.conflicts, m.enqueued, m.snapshots, m.quarantined, m.erasures,
		m.runSeconds, m.nodeSeconds, m.activitySeconds, m.interruptsSeconds, m.backlogSeconds,
		m.queueSeconds, m.inFlight, m.queued, m.holds, m.limits, m.refused, m.callSeconds, m.callTokens,
		prometheus.NewGaugeFunc(prometheus.GaugeOpts{Name: "openwop_run_active", Help: "Runs that this process executes."},
			func() float64 { return float64(active()) }),
		queueDepth{depth},
	}
}

// depthPatience limits the wait for the queue at collection.
const depthPatience = time.Second

var depthDesc = prometheus.NewDesc("openwop_queue_depth", "Runs in the dispatchers' queue, waiting or delivered and not yet acknowledged.", nil, nil)

// queueDepth reads the length of the queue. There is no value while the queue does not answer.
type queueDepth struct {
	depth func(context.Context) (runlog.Depth, error)
}

// Describe sends the metric's description.
func (queueDepth) Describe(to chan<- *prometheus.Desc) { to <- depthDesc }

// Collect sends the current value.
func (q queueDepth) Collect(to chan<- prometheus.Metric) {
	ctx, cancel := context.WithTimeout(context.Background(), depthPatience)
	defer cancel()
	if d, err := q.depth(ctx); err == nil {
		to <- prometheus.MustNewConstMetric(depthDesc, prometheus.GaugeValue, float64(d.Waiting+d.InDelivery+d.Limited))
	}
}

// Created counts a created run, which is also enqueued.
func (m *Metrics) Created(workflowID string) {
	m.created.WithLabelValues(m.workflows.value(workflowID)).Inc()
	m.Enqueued()
}

// Enqueued counts a run put into the queue.
func (m *Metrics) Enqueued() { m.enqueued.Inc() }

// Conflict counts a run that another dispatcher owns.
func (m *Metrics) Conflict() { m.conflicts.Inc() }

// Snapshot counts the result of reading or writing a snapshot.
func (m *Metrics) Snapshot(result string) { m.snapshots.WithLabelValues(result).Inc() }

// Quarantined counts a run that was quarantined.
func (m *Metrics) Quarantined(reason string) { m.quarantined.WithLabelValues(reason).Inc() }

// Called counts a model call, successful or not.
func (m *Metrics) Called(provider string, took time.Duration) {
	name := m.providers.value(provider)
	m.invocations.WithLabelValues(name).Inc()
	m.activitySeconds.WithLabelValues(name).Observe(max(took, 0).Seconds())
	m.callSeconds.WithLabelValues(m.apis.OperationName(provider), m.apis.ProviderName(name)).Observe(max(took, 0).Seconds())
}

// add adds a reported value. Invalid values are ignored; a counter never decreases.
func add(c prometheus.Counter, v float64) {
	if v > 0 && !math.IsInf(v, 0) {
		c.Add(v)
	}
}
