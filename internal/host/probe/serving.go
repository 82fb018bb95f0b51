// Package probe answers whether a process serves: over gRPC health checks, HTTP probes and a
// metric, and keeps the answer up to date.
package probe

import (
	"errors"
	"sync/atomic"

	"github.com/prometheus/client_golang/prometheus"
)

// Serving is why the service does not serve, as it was found last.
type Serving struct{ why atomic.Pointer[error] }

var (
	ErrStarting = errors.New("it starts")
	errEnding   = errors.New("it ends")
)

func (s *Serving) Set(err error) { s.why.Store(&err) }

func (s *Serving) Reason() error { return *s.why.Load() }

// publicError is an error with a text that anybody may read. What exactly failed, and at which
// address, is for the log.
type publicError struct {
	text string
	error
}

// Unwrap returns what exactly failed.
func (e publicError) Unwrap() error { return e.error }

// WithPublic gives an error the text that anybody may read instead of it.
func WithPublic(text string, err error) error { return publicError{text, err} }

// Public returns an error as anybody may read it.
func Public(err error) error {
	if e, ok := errors.AsType[publicError](err); ok {
		return errors.New(e.text)
	}
	return err
}

// Gauge tells it as a metric.
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
