package host

import (
	"github.com/prometheus/client_golang/prometheus"
)

// lostRecords is the metric of lost records of the run log. Nothing is ever deleted from it.
func lostRecords(lost func() uint64) prometheus.Collector {
	return prometheus.NewGaugeFunc(prometheus.GaugeOpts{
		Namespace: "waybill", Subsystem: "eventlog", Name: "lost_records",
		Help: "Records that the run log had and has no more: positions without one at the leader of its stream, and what this process had read behind its end.",
	}, func() float64 { return float64(lost()) })
}
