package acceptor

import (
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"waybill.dev/waybill/protocol/fault"
	"waybill.dev/waybill/services/acceptor/accept"
)

// metrics count the results of accepts. Labels contain nothing of an envelope.
type metrics struct {
	envelopes *prometheus.CounterVec
	errors    *prometheus.CounterVec
	seconds   prometheus.Histogram
}

// recalled is the outcome label of an envelope that an earlier request recorded.
const recalled = "recalled"

func newMetrics() metrics {
	const namespace, subsystem = "waybill", "acceptor"
	m := metrics{
		envelopes: prometheus.NewCounterVec(prometheus.CounterOpts{
			Namespace: namespace, Subsystem: subsystem, Name: "envelopes_total",
			Help: "Envelopes by outcome: accepted, invalid, gated, breached, or recalled (recorded by an earlier request).",
		}, []string{"outcome"}),
		errors: prometheus.NewCounterVec(prometheus.CounterOpts{
			Namespace: namespace,
			Subsystem: subsystem,
			Name:      "errors_total",
			Help:      "Envelopes that failed without an outcome, by error code.",
		}, []string{"code"}),
		seconds: prometheus.NewHistogram(prometheus.HistogramOpts{
			Namespace: namespace, Subsystem: subsystem, Name: "accept_seconds", Help: "Duration of accepts, including errors.",
			Buckets: prometheus.ExponentialBuckets(0.0005, 2, 14), // half a millisecond to four seconds
		}),
	}
	for _, s := range []accept.Status{accept.Accepted, accept.Invalid, accept.Gated, accept.Breached, recalled} {
		m.envelopes.WithLabelValues(string(s)) // rates need a series that starts at 0
	}
	return m
}

// observe counts one accept.
func (m metrics) observe(res *accept.Result, err error, took time.Duration) {
	m.seconds.Observe(took.Seconds())
	switch {
	case err != nil:
		m.errors.WithLabelValues(string(fault.CodeOf(err))).Inc()
	case res.Recalled:
		m.envelopes.WithLabelValues(recalled).Inc()
	default:
		m.envelopes.WithLabelValues(string(res.Attributes.Outcome)).Inc()
	}
}

// Collectors returns the service's metrics.
func (s *Service) Collectors() []prometheus.Collector {
	return []prometheus.Collector{s.metrics.envelopes, s.metrics.errors, s.metrics.seconds}
}
