package webhook

import "github.com/prometheus/client_golang/prometheus"

// Collectors returns the service's metrics.
func (s *Service) Collectors() []prometheus.Collector {
	counter := func(name, help string, value func() int64) prometheus.Collector {
		return prometheus.NewCounterFunc(prometheus.CounterOpts{
			Namespace: "waybill",
			Subsystem: "webhook",
			Name:      name,
			Help:      help,
		},
			func() float64 { return float64(value()) })
	}
	return []prometheus.Collector{
		counter("delivered_total", "Successful deliveries.", s.counts.Delivered.Load),
		counter("failed_attempts_total", "Failed delivery attempts.", s.counts.Failed.Load),
		counter("dead_letters_total", "Events given up after their last attempt.", s.counts.Dead.Load),
		counter("dropped_events_total", "Events that were not queued, because their webhook has too many runs with pending deliveries.", s.counts.Dropped.Load),
		prometheus.NewGaugeFunc(prometheus.GaugeOpts{
			Namespace: "waybill", Subsystem: "webhook", Name: "pending_runs",
			Help: "Runs with pending deliveries, counted once for each webhook.",
		}, func() float64 { return float64(s.worker.Pending()) }),
	}
}
