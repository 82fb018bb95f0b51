package waiting

import (
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

// metrics count waiting runs. No label names a run, a workflow or a tenant.
type metrics struct {
	parked  *prometheus.CounterVec
	seconds *prometheus.HistogramVec
}

func newMetrics() metrics {
	return metrics{
		parked: prometheus.NewCounterVec(prometheus.CounterOpts{
			Namespace: "waybill", Subsystem: "dispatcher", Name: "parked_runs_total", Help: "Runs that this process took from the queue and made wait, by reason.",
		}, []string{"reason"}),
		seconds: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Namespace: "waybill", Subsystem: "dispatcher", Name: "waiting_seconds", Help: "How long runs waited after they left the queue, by reason.",
			Buckets: []float64{0.01, 0.05, 0.1, 0.5, 1, 5, 30, 60, 300, 1800, 7200},
		}, []string{"reason"}),
	}
}

func (m metrics) waited(why Reason, d time.Duration) {
	m.seconds.WithLabelValues(string(why)).Observe(max(d, 0).Seconds())
}

// waitingGauge is one reason's gauge.
func (k *Desk) waitingGauge(why Reason) prometheus.Collector {
	return prometheus.NewGaugeFunc(prometheus.GaugeOpts{
		Namespace: "waybill", Subsystem: "dispatcher", Name: "waiting_runs", ConstLabels: prometheus.Labels{"reason": string(why)},
		Help: "Runs that wait outside the queue, of all dispatchers, by reason.",
	}, func() float64 {
		k.mu.Lock()
		defer k.mu.Unlock()
		return float64(k.byReason[why])
	})
}

// Collectors are the desk's metrics.
func (k *Desk) Collectors() []prometheus.Collector {
	out := []prometheus.Collector{k.metrics.parked, k.metrics.seconds}
	for _, why := range Reasons() {
		out = append(out, k.waitingGauge(why))
	}
	return out
}
