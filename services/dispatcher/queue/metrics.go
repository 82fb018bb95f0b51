package queue

import (
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

// metrics count waiting runs. No label identifies a run, a workflow or a tenant.
type metrics struct {
	parked  *prometheus.CounterVec
	seconds *prometheus.HistogramVec
}

func newMetrics() metrics {
	return metrics{
		parked: prometheus.NewCounterVec(prometheus.CounterOpts{
			Namespace: "waybill",
			Subsystem: "dispatcher",
			Name:      "parked_runs_total",
			Help:      "Runs that this process moved from the queue to tickets, by reason.",
		}, []string{"reason"}),
		seconds: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Namespace: "waybill",
			Subsystem: "dispatcher",
			Name:      "waiting_seconds",
			Help:      "How long runs waited after they left the queue, by reason.",
			Buckets:   []float64{0.01, 0.05, 0.1, 0.5, 1, 5, 30, 60, 300, 1800, 7200},
		}, []string{"reason"}),
	}
}

func (m metrics) waited(why Reason, d time.Duration) {
	m.seconds.WithLabelValues(string(why)).Observe(max(d, 0).Seconds())
}

var waitingDesc = prometheus.NewDesc("waybill_dispatcher_waiting_runs", "Runs of all dispatchers that wait outside the queue, by reason.", []string{"reason"}, nil) //nolint:gochecknoglobals // a constant

// gauge reports the number of waiting runs.
type gauge struct{ scheduler *Scheduler }

// Describe sends the metric's description.
func (gauge) Describe(to chan<- *prometheus.Desc) { to <- waitingDesc }

// Collect sends the current numbers.
func (g gauge) Collect(to chan<- prometheus.Metric) {
	for _, why := range Reasons() {
		g.scheduler.mu.Lock()
		n := g.scheduler.byReason[why]
		g.scheduler.mu.Unlock()
		to <- prometheus.MustNewConstMetric(waitingDesc, prometheus.GaugeValue, float64(n), string(why))
	}
}

// Collectors are the scheduler's metrics.
func (s *Scheduler) Collectors() []prometheus.Collector {
	return []prometheus.Collector{s.metrics.parked, s.metrics.seconds, gauge{s}}
}
