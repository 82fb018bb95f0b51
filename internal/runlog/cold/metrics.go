package cold

import (
	"context"
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

// scrapeTimeout limits the count of objects for a scrape.
const scrapeTimeout = 5 * time.Second

// Collector shows how many bytes are in the log and in a store, and what a sealer has done.
type Collector struct {
	store  Store
	log    *Log
	sealer *Sealer
	hot    func(ctx context.Context) (bytes uint64, err error)

	runs, pending, bytes, sealed, failed, partly *prometheus.Desc
}

// NewCollector returns the metrics of a store, of the log that reads from it, of the sealer that fills it,
// nil without one, and of the log below, whose size hot returns.
func NewCollector(store Store, log *Log, sealer *Sealer, hot func(context.Context) (uint64, error)) *Collector {
	desc := func(name, help string) *prometheus.Desc {
		return prometheus.NewDesc("waybill_cold_"+name, help, nil, nil)
	}
	return &Collector{
		store: store, log: log, sealer: sealer, hot: hot,
		runs:    desc("runs", "Sealed runs in the cold store."),
		pending: desc("pending_runs", "Sealed runs whose frames are not removed from the run log yet."),
		bytes: prometheus.NewDesc("waybill_run_log_bytes",
			"Size of the run log (hot), and compressed size of the sealed runs in the cold store (cold).", []string{"tier"}, nil),
		sealed: desc("sealed_runs_total", "Runs that this process moved from the run log to the cold store."),
		failed: desc("sweep_failures_total", "Sweeps for ended runs that failed; the runs stay in the run log and the next sweep tries again."),
		partly: desc("partial_erasures_total", "Times that an erasure could not read, or not overwrite, all of a sealed run, because the cold store is damaged."),
	}
}

// Describe describes the metrics.
func (c *Collector) Describe(to chan<- *prometheus.Desc) {
	to <- c.runs
	to <- c.pending
	to <- c.bytes
	to <- c.sealed
	to <- c.failed
	to <- c.partly
}

// Collect reads the metrics. Without an answer of the store, its counts are left out.
func (c *Collector) Collect(to chan<- prometheus.Metric) {
	ctx, cancel := context.WithTimeout(context.Background(), scrapeTimeout)
	defer cancel()
	if t, err := c.store.Totals(ctx); err == nil {
		to <- prometheus.MustNewConstMetric(c.runs, prometheus.GaugeValue, float64(t.Runs))
		to <- prometheus.MustNewConstMetric(c.pending, prometheus.GaugeValue, float64(t.Pending))
		to <- prometheus.MustNewConstMetric(c.bytes, prometheus.GaugeValue, float64(t.Bytes), "cold")
	}
	if n, err := c.hot(ctx); err == nil {
		to <- prometheus.MustNewConstMetric(c.bytes, prometheus.GaugeValue, float64(n), "hot")
	}
	to <- prometheus.MustNewConstMetric(c.partly, prometheus.CounterValue, float64(c.log.partly.Load()))
	if s := c.sealer; s != nil {
		to <- prometheus.MustNewConstMetric(c.sealed, prometheus.CounterValue, float64(s.sealed.Load()))
		to <- prometheus.MustNewConstMetric(c.failed, prometheus.CounterValue, float64(s.failed.Load()))
	}
}
