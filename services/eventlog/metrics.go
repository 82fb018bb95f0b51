package eventlog

import "github.com/prometheus/client_golang/prometheus"

// Collectors returns the service's metrics. They read existing counters, so they cost nothing
// between scrapes.
func (s *Service) Collectors() []prometheus.Collector {
	counter := func(name, help string, value func() int64) prometheus.Collector {
		return prometheus.NewCounterFunc(prometheus.CounterOpts{
			Namespace: "waybill",
			Subsystem: "eventlog",
			Name:      name,
			Help:      help,
		},
			func() float64 { return float64(value()) })
	}
	gauge := func(name, help string, value func() float64) prometheus.Collector {
		return prometheus.NewGaugeFunc(prometheus.GaugeOpts{
			Namespace: "waybill",
			Subsystem: "eventlog",
			Name:      name,
			Help:      help,
		}, value)
	}
	return []prometheus.Collector{
		counter("frames_total", "Frames of the run log applied to the read model.", func() int64 { return s.ingest.Stats().Frames }),
		counter("batches_total", "Transactions of the read model.", func() int64 { return s.ingest.Stats().Batches }),
		counter("damaged_frames_total", "Frames of the run log that failed to decode.", func() int64 { return s.ingest.Stats().Damaged }),
		counter("refused_frames_total", "Frames rejected because they do not continue their run.", func() int64 { return s.ingest.Stats().Refused }),
		counter("rebuilds_total", "Rebuilds of the read model from the run log.", func() int64 { return s.ingest.Stats().Rebuilds }),
		counter("follower_lags_total", "Followers that fell behind and continued from the store.", s.hub.Lags),
		gauge("applied_position", "Last position of the run log applied to the read model.",
			func() float64 { return float64(s.ingest.Stats().Applied) }),
		gauge("followers", "Open streams and waiting reads.", func() float64 { return float64(s.hub.Subscriptions()) }),
		gauge("view_cache_bytes", "Memory used by cached run views.", func() float64 { return float64(s.views.size()) }),
		gauge("hot_runs_bytes", "Memory used by active runs.", func() float64 { return float64(s.ingest.Stats().HotBytes) }),
	}
}
