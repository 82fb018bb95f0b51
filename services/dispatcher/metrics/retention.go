package metrics

import (
	"fmt"

	"github.com/prometheus/client_golang/prometheus"

	"waybill.dev/waybill/services/dispatcher/retention"
)

var (
	retentionRuns = prometheus.NewDesc("waybill_retention_runs",
		"Ended runs by the days since their end. Only the dispatcher that sweeps reports it.", []string{"age"}, nil)
	retentionBytes = prometheus.NewDesc("waybill_retention_bytes",
		"Estimated bytes of ended runs in the run log, by the days since their end.", []string{"age"}, nil)
	retentionNextRuns = prometheus.NewDesc("waybill_retention_next_day_runs",
		"Ended runs whose retention is over or ends within a day.", nil, nil)
	retentionNextBytes = prometheus.NewDesc("waybill_retention_next_day_bytes",
		"Estimated bytes in the run log that the next day frees.", nil, nil)
	retentionExpired = prometheus.NewDesc("waybill_retention_expired_runs_total",
		"Runs that this process erased because their retention was over.", nil, nil)
	retentionUnarchived = prometheus.NewDesc("waybill_retention_archive_failures_total",
		"Failed attempts of this process to archive a run whose retention was over. The run is kept.", nil, nil)
	retentionBehind = prometheus.NewDesc("waybill_retention_clock_behind_seconds",
		"How far the time that retention counts with is behind the host's clock.", nil, nil)
)

// Retention reports the work of a sweeper; nil reports nothing.
type Retention struct{ Sweeper *retention.Sweeper }

// Describe sends the descriptions; see prometheus.Collector.
func (Retention) Describe(to chan<- *prometheus.Desc) {
	for _, d := range []*prometheus.Desc{
		retentionRuns, retentionBytes, retentionNextRuns, retentionNextBytes, retentionExpired, retentionUnarchived, retentionBehind,
	} {
		to <- d
	}
}

// Collect sends the values; see prometheus.Collector.
func (r Retention) Collect(to chan<- prometheus.Metric) {
	if r.Sweeper == nil {
		return
	}
	stats := r.Sweeper.Stats()
	to <- prometheus.MustNewConstMetric(retentionExpired, prometheus.CounterValue, float64(stats.Expired))
	to <- prometheus.MustNewConstMetric(retentionUnarchived, prometheus.CounterValue, float64(stats.Unarchived))
	t := r.Sweeper.Totals()
	if t == nil {
		return
	}
	gauge := func(d *prometheus.Desc, v float64, labels ...string) {
		to <- prometheus.MustNewConstMetric(d, prometheus.GaugeValue, v, labels...)
	}
	gauge(retentionBehind, stats.Behind.Seconds())
	gauge(retentionNextRuns, float64(t.NextDay))
	gauge(retentionNextBytes, t.Bytes(t.NextDay))
	for _, a := range retention.Split(t.Runs, t.Older) {
		age := fmt.Sprintf("%d-%d", a.From, a.To)
		if a.To == 0 {
			age = fmt.Sprintf("%d+", a.From)
		}
		gauge(retentionRuns, float64(a.Runs), age)
		gauge(retentionBytes, t.Bytes(a.Runs), age)
	}
}
