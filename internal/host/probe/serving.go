// Package probe tracks the readiness of a process, and reports it as gRPC health, HTTP probes and a
// metric.
package probe

import (
	"errors"
	"sync/atomic"

	"github.com/prometheus/client_golang/prometheus"
)

// Serving stores the result of the last readiness check.
type Serving struct{ why atomic.Pointer[error] }

// Reasons outside of checks.
var (
	// ErrStarting holds until the first check.
	ErrStarting = errors.New("it starts")
	errEnding   = errors.New("it ends")
)

// Set stores why the service is not ready; nil means it is.
func (s *Serving) Set(err error) { s.why.Store(&err) }

// Reason returns the stored reason.
func (s *Serving) Reason() error { return *s.why.Load() }

// publicError is an error with a text for callers. The cause and its address are only for the log.
type publicError struct {
	text string
	error
}

// Unwrap returns the error for the log.
func (e publicError) Unwrap() error { return e.error }

// WithPublic adds a text for callers to an error.
func WithPublic(text string, err error) error { return publicError{text, err} }

// Plain returns an error whose text callers may see.
func Plain(text string) error { return publicError{text, errors.New(text)} }

// errHidden replaces reasons that are not for callers: they may hold paths, addresses and account
// names.
var errHidden = errors.New("a part of it is not ready; the host's log has the reason")

// Public returns the error that callers get.
func Public(err error) error {
	e, isPublic := errors.AsType[publicError](err)
	switch {
	case err == nil:
		return nil
	case isPublic:
		return errors.New(e.text)
	case errors.Is(err, ErrStarting), errors.Is(err, errEnding):
		return err
	default:
		return errHidden
	}
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
