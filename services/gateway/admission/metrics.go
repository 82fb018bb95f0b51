package admission

import "github.com/prometheus/client_golang/prometheus"

// Collectors returns the gate's metrics.
func (g *Gate) Collectors() []prometheus.Collector {
	gauge := func(name, help string, value func() float64) prometheus.Collector {
		return prometheus.NewGaugeFunc(prometheus.GaugeOpts{
			Namespace: "waybill",
			Subsystem: "gateway",
			Name:      name,
			Help:      help,
		}, value)
	}
	return []prometheus.Collector{
		refusals{g},
		gauge("requests_in_flight", "Requests in progress, excluding streams.", func() float64 { return float64(g.requests.Used()) }),
		gauge("starts_in_flight", "Starts of runs in progress.", func() float64 { return float64(g.starts.Used()) }),
		gauge("bytes_in_flight", "Bytes of bodies and answers in memory.", func() float64 { return float64(g.bytes.Used()) }),
		gauge("start_delay_seconds", "Measured delay from the request for a run to its first step.", func() float64 { return g.limiter.Delay().Seconds() }),
		gauge("start_rate_limit", "Admitted starts of runs per second; +Inf means no limit.", g.limiter.Rate),
	}
}

var refusedDesc = prometheus.NewDesc("waybill_gateway_refused_total", "Requests rejected by admission control, by reason.", []string{"reason"}, nil)

// refusals collects the counters of rejections.
type refusals struct{ gate *Gate }

// Describe implements prometheus.Collector.
func (refusals) Describe(to chan<- *prometheus.Desc) { to <- refusedDesc }

// Collect implements prometheus.Collector.
func (r refusals) Collect(to chan<- prometheus.Metric) {
	for why, name := range names {
		to <- prometheus.MustNewConstMetric(refusedDesc, prometheus.CounterValue, float64(r.gate.refused[why].Load()), name)
	}
}
