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
	faults *Faults
	sealer *Sealer
	hot    func(ctx context.Context) (bytes uint64, err error)

	runs, pending, bytes, sealed, failed, partly, removed, unreadable, damaged, aside, unbounded, uncleaned *prometheus.Desc
}

// NewCollector returns the metrics of a store, of what it cannot read, of the sealer that fills it,
// nil without one, and of the log below, whose size hot returns.
func NewCollector(store Store, faults *Faults, sealer *Sealer, hot func(context.Context) (uint64, error)) *Collector {
	desc := func(name, help string) *prometheus.Desc {
		return prometheus.NewDesc("waybill_cold_"+name, help, nil, nil)
	}
	return &Collector{
		store: store, faults: faults, sealer: sealer, hot: hot,
		runs:    desc("runs", "Sealed runs in the cold store."),
		pending: desc("pending_runs", "Sealed runs whose frames are not removed from the run log yet."),
		bytes: prometheus.NewDesc("waybill_run_log_bytes",
			"Size of the run log (hot), and compressed size of the sealed runs in the cold store (cold).", []string{"tier"}, nil),
		sealed:     desc("sealed_runs_total", "Runs that this process moved from the run log to the cold store."),
		unreadable: desc("unreadable_total", "Reads of sealed runs that failed because an object in the cold store is damaged or lost."),
		removed: prometheus.NewDesc("waybill_cold_removed_runs_total",
			"Sealed runs whose frames this process removed from the run log, by what happened to their bytes (overwritten, released).", []string{"how"}, nil),
		unbounded: desc("unbounded_erasures_total", "Requested erasures of runs whose frames were released: bytes may stay in a file of the NATS server until more than half of it is removed."),
		damaged:   desc("damaged_runs_total", "Times that an ended run was not sealed because its frames or its object are damaged."),
		aside:     desc("unremoved_runs", "Sealed runs whose frames could not be removed from the run log; they are tried again after growing pauses."),
		uncleaned: desc("clean_failures_total", "Sweeps that could not remove contents without a run from the cold store's bucket; the next sweep tries again."),
		failed:    desc("sweep_failures_total", "Sweeps for ended runs that failed; the runs stay in the run log and the next sweep tries again."),
		partly:    desc("partial_erasures_total", "Times that an erasure could not read, or not overwrite, all of a sealed run, because the cold store is damaged."),
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
	to <- c.removed
	to <- c.unreadable
	to <- c.damaged
	to <- c.aside
	to <- c.unbounded
	to <- c.uncleaned
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
	to <- prometheus.MustNewConstMetric(c.partly, prometheus.CounterValue, float64(c.faults.partly.Load()))
	to <- prometheus.MustNewConstMetric(c.unbounded, prometheus.CounterValue, float64(c.faults.unbounded.Load()))
	to <- prometheus.MustNewConstMetric(c.unreadable, prometheus.CounterValue, float64(c.faults.reads.Load()))
	if s := c.sealer; s != nil {
		to <- prometheus.MustNewConstMetric(c.sealed, prometheus.CounterValue, float64(s.sealed.Load()))
		to <- prometheus.MustNewConstMetric(c.removed, prometheus.CounterValue, float64(s.overwritten.Load()), "overwritten")
		to <- prometheus.MustNewConstMetric(c.removed, prometheus.CounterValue, float64(s.released.Load()), "released")
		to <- prometheus.MustNewConstMetric(c.damaged, prometheus.CounterValue, float64(s.damaged.Load()))
		to <- prometheus.MustNewConstMetric(c.aside, prometheus.GaugeValue, float64(s.aside.Load()))
		to <- prometheus.MustNewConstMetric(c.uncleaned, prometheus.CounterValue, float64(s.uncleaned.Load()))
		to <- prometheus.MustNewConstMetric(c.failed, prometheus.CounterValue, float64(s.failed.Load()))
	}
}
