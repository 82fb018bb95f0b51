package metrics

import "github.com/prometheus/client_golang/prometheus"

var quarantinedDesc = prometheus.NewDesc("waybill_dispatcher_quarantined_runs",
	"Quarantined runs of the installation, by reason. All dispatchers report the same number.", []string{"reason"}, nil)

// QuarantinedRuns reads how many runs are quarantined, by reason.
type QuarantinedRuns func() map[string]int

// Describe sends the metric's description; see prometheus.Collector.
func (QuarantinedRuns) Describe(to chan<- *prometheus.Desc) { to <- quarantinedDesc }

// Collect sends one value for each reason.
func (q QuarantinedRuns) Collect(to chan<- prometheus.Metric) {
	for reason, n := range q() {
		to <- prometheus.MustNewConstMetric(quarantinedDesc, prometheus.GaugeValue, float64(n), reason)
	}
}
