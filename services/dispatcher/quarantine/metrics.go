package quarantine

import (
	"encoding/json"
	"sync"

	"github.com/prometheus/client_golang/prometheus"

	"waybill.dev/waybill/internal/kv"
)

// counts are the quarantined runs by reason, as last read.
type counts struct {
	mu sync.Mutex // guards by
	by map[string]int
}

// set counts records.
func (c *counts) set(all []kv.Entry) {
	by := map[string]int{}
	for _, there := range all {
		var e entry
		if json.Unmarshal(there.Value, &e) == nil && !e.Back {
			by[e.reason()]++
		}
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.by = by
}

var quarantinedDesc = prometheus.NewDesc("waybill_dispatcher_quarantined_runs",
	"Quarantined runs of the installation, by reason. All dispatchers report the same number.", []string{"reason"}, nil)

// Describe sends the metric's description; see prometheus.Collector.
func (l *List) Describe(to chan<- *prometheus.Desc) { to <- quarantinedDesc }

// Collect sends one value for each reason.
func (l *List) Collect(to chan<- prometheus.Metric) {
	l.count.mu.Lock()
	defer l.count.mu.Unlock()
	for _, reason := range Reasons() {
		to <- prometheus.MustNewConstMetric(quarantinedDesc, prometheus.GaugeValue, float64(l.count.by[reason]), reason)
	}
}
