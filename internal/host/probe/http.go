package probe

import (
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/pprof"
	"strconv"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"waybill.dev/waybill/internal/lifecycle"
	"waybill.dev/waybill/internal/rpc"
	"waybill.dev/waybill/protocol/fault"
)

// WriteFault writes an error response.
func WriteFault(w http.ResponseWriter, e *fault.Error) {
	h := w.Header()
	h.Set("Content-Type", "application/json")
	h.Set("Cache-Control", "no-store")
	h.Set("X-Content-Type-Options", "nosniff")
	if e.RetryAfter > 0 {
		h.Set("Retry-After", strconv.Itoa(rpc.RetryAfterSeconds(e.RetryAfter)))
		e = e.With("retryAfter", rpc.RetryAfterSeconds(e.RetryAfter))
	}
	w.WriteHeader(fault.Lookup(e.Code).HTTP)
	_, _ = w.Write(e.Envelope()) //nolint:gosec // G705: JSON, and not sniffed; the client may have gone
}

// NewRegistry returns a registry with the metrics of every process.
func NewRegistry() *prometheus.Registry {
	reg := prometheus.NewRegistry()
	reg.MustRegister(collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	return reg
}

// OperatorMux serves metrics and profiles, which are for the operator only.
func OperatorMux(reg *prometheus.Registry) *http.ServeMux {
	mux := http.NewServeMux()
	mux.Handle("GET /metrics", promhttp.HandlerFor(reg, promhttp.HandlerOpts{}))
	mux.HandleFunc("GET /debug/pprof/", pprof.Index)
	mux.HandleFunc("GET /debug/pprof/profile", pprof.Profile)
	return mux
}

// ServeOperator serves the operator's address.
func ServeOperator(lis net.Listener, h http.Handler) lifecycle.Part {
	srv := &http.Server{Handler: h, ReadTimeout: 5 * time.Second}
	return lifecycle.Part{
		Name: "metrics",
		Run: func(context.Context) error {
			if err := srv.Serve(lis); !errors.Is(err, http.ErrServerClosed) {
				return err
			}
			return nil
		},
		Stop: func(ctx context.Context) { _ = srv.Shutdown(ctx) },
	}
}

// MetricsURL returns the URL of the metrics of a listener; empty without one.
func MetricsURL(lis net.Listener) string {
	if lis == nil {
		return ""
	}
	return "http://" + lis.Addr().String() + "/metrics"
}

// The paths of the probes.
const (
	livePath  = "/healthz"
	readyPath = "/readyz"
)

// Handle adds the liveness and readiness probes.
func Handle(mux *http.ServeMux, ready func() error) {
	for _, path := range []string{livePath, readyPath} {
		mux.HandleFunc("GET "+path, func(w http.ResponseWriter, r *http.Request) { Answer(w, r, ready) })
	}
}

// Answer answers a liveness or readiness probe. It returns false if the request is neither.
func Answer(w http.ResponseWriter, r *http.Request, ready func() error) bool {
	if r.Method != http.MethodGet && r.Method != http.MethodHead || r.URL.Path != livePath && r.URL.Path != readyPath {
		return false
	}
	if r.URL.Path == readyPath {
		if err := ready(); err != nil {
			WriteFault(w, fault.New(fault.ServiceUnavailable, "not ready: %s", err).After(CheckEvery))
			return true
		}
	}
	w.Header().Set("Content-Type", "application/json")
	_, _ = io.WriteString(w, `{"status":"ok"}`) // the caller has gone
	return true
}
