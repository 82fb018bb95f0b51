package webhook

import "github.com/prometheus/client_golang/prometheus"

// Collectors are the service's metrics. They read counters that are kept anyway.
func (s *Service) Collectors() []prometheus.Collector {
	counter := func(name, help string, value func() int64) prometheus.Collector {
		return prometheus.NewCounterFunc(prometheus.CounterOpts{Namespace: "waybill", Subsystem: "webhook", Name: name, Help: help},
			func() float64 { return float64(value()) })
	}
	return []prometheus.Collector{
		counter("delivered_total", "Deliveries that were taken.", s.counts.Delivered.Load),
		counter("failed_attempts_total", "Attempts to deliver that failed.", s.counts.Failed.Load),
		counter("dead_letters_total", "Events that were given up.", s.counts.Dead.Load),
		prometheus.NewGaugeFunc(prometheus.GaugeOpts{
			Namespace: "waybill", Subsystem: "webhook", Name: "pending_runs_count",
			Help: "Runs of which something waits to be delivered, counted for each webhook.",
		}, func() float64 { return float64(s.worker.Pending()) }),
	}
}
