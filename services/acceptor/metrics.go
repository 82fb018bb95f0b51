package acceptor

import (
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"waybill.dev/waybill/protocol/fault"
	"waybill.dev/waybill/services/acceptor/accept"
)

// metrics count what became of envelopes. Nothing of an envelope is in a label.
type metrics struct {
	envelopes *prometheus.CounterVec
	errors    *prometheus.CounterVec
	seconds   prometheus.Histogram
}

// recalled is the outcome of an envelope that was decided before.
const recalled = "recalled"

func newMetrics() metrics {
	const namespace, subsystem = "waybill", "acceptor"
	m := metrics{
		envelopes: prometheus.NewCounterVec(prometheus.CounterOpts{
			Namespace: namespace, Subsystem: subsystem, Name: "envelopes_total",
			Help: "Envelopes by outcome: accepted, invalid, gated, breached, or recalled, which was decided before.",
		}, []string{"outcome"}),
		errors: prometheus.NewCounterVec(prometheus.CounterOpts{
			Namespace: namespace, Subsystem: subsystem, Name: "errors_total", Help: "Envelopes that were not judged, by error code.",
		}, []string{"code"}),
		seconds: prometheus.NewHistogram(prometheus.HistogramOpts{
			Namespace: namespace, Subsystem: subsystem, Name: "accept_seconds", Help: "How long an accept took, whatever came of it.",
			Buckets: prometheus.ExponentialBuckets(0.0005, 2, 14), // half a millisecond to four seconds
		}),
	}
	for _, s := range []accept.Status{accept.Accepted, accept.Invalid, accept.Gated, accept.Breached, recalled} {
		m.envelopes.WithLabelValues(string(s)) // a rate needs the zero
	}
	return m
}

// counted counts one accept.
func (m metrics) counted(res *accept.Result, err error, took time.Duration) {
	m.seconds.Observe(took.Seconds())
	switch {
	case err != nil:
		m.errors.WithLabelValues(string(fault.CodeOf(err))).Inc()
	case res.Recalled:
		m.envelopes.WithLabelValues(recalled).Inc()
	default:
		m.envelopes.WithLabelValues(string(res.Facts.Outcome)).Inc()
	}
}

// Collectors are the metrics of the service.
func (s *Service) Collectors() []prometheus.Collector {
	return []prometheus.Collector{s.metrics.envelopes, s.metrics.errors, s.metrics.seconds}
}
