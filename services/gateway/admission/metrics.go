package admission

import "github.com/prometheus/client_golang/prometheus"

// Collectors are the gate's metrics. They read what is counted anyway.
func (g *Gate) Collectors() []prometheus.Collector {
	gauge := func(name, help string, value func() float64) prometheus.Collector {
		return prometheus.NewGaugeFunc(prometheus.GaugeOpts{Namespace: "waybill", Subsystem: "gateway", Name: name, Help: help}, value)
	}
	return []prometheus.Collector{
		refusals{g},
		gauge("requests_count", "Requests that are being answered, streams not counted.", func() float64 { return float64(g.requests.Load()) }),
		gauge("starts_count", "Starts of runs that are being answered.", func() float64 { return float64(g.starts.Load()) }),
		gauge("start_delay_seconds", "From the request for a run to the run's first step, as measured over the last moment.", func() float64 { return g.limiter.Delay().Seconds() }),
		gauge("start_rate_limit", "Starts of runs that are taken in a second at the moment; +Inf: all.", g.limiter.Rate),
	}
}

var refusedDesc = prometheus.NewDesc("waybill_gateway_refused_total", "Requests that were told to come again before anything was done for them, by reason.", []string{"reason"}, nil)

// refusals are counters that the gate keeps.
type refusals struct{ gate *Gate }

// Describe tells of the one metric.
func (refusals) Describe(to chan<- *prometheus.Desc) { to <- refusedDesc }

// Collect reads it.
func (r refusals) Collect(to chan<- prometheus.Metric) {
	for why, name := range names {
		to <- prometheus.MustNewConstMetric(refusedDesc, prometheus.CounterValue, float64(r.gate.refused[why].Load()), name)
	}
}
