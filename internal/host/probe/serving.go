// Package probe keeps track of whether a process can serve, and reports it as gRPC health, HTTP
// probes and a metric.
package probe

import (
	"errors"
	"sync/atomic"

	"github.com/prometheus/client_golang/prometheus"
)

// Serving holds why the service does not serve, as the last check found it.
type Serving struct{ why atomic.Pointer[error] }

// Reasons outside of checks.
var (
	// ErrStarting holds until the first check.
	ErrStarting = errors.New("it starts")
	errEnding   = errors.New("it ends")
)

// Set stores the reason; nil: the service serves.
func (s *Serving) Set(err error) { s.why.Store(&err) }

// Reason returns the stored reason.
func (s *Serving) Reason() error { return *s.why.Load() }

// publicError is an error with a text for callers. What exactly failed, and at which address, is
// only for the log.
type publicError struct {
	text string
	error
}

// Unwrap returns the error for the log.
func (e publicError) Unwrap() error { return e.error }

// WithPublic gives an error a text that callers get instead of it.
func WithPublic(text string, err error) error { return publicError{text, err} }

// Public returns the error that callers get.
func Public(err error) error {
	if e, ok := errors.AsType[publicError](err); ok {
		return errors.New(e.text)
	}
	return err
}

// Gauge is the metric waybill_serving.
func (s *Serving) Gauge() prometheus.Collector {
	return prometheus.NewGaugeFunc(prometheus.GaugeOpts{
		Namespace: "waybill", Name: "serving", Help: "Whether the service has all that it needs: 1 or 0.",
	}, func() float64 {
		if s.Reason() != nil {
			return 0
		}
		return 1
	})
}
