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

// Handle adds the liveness and readiness probes.
func Handle(mux *http.ServeMux, ready func() error) {
	healthy := func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		_, _ = io.WriteString(w, `{"status":"ok"}`) // the caller has gone
	}
	mux.HandleFunc("GET /healthz", healthy)
	mux.HandleFunc("GET /readyz", func(w http.ResponseWriter, r *http.Request) {
		err := ready()
		if err == nil {
			healthy(w, r)
			return
		}
		WriteFault(w, fault.New(fault.ServiceUnavailable, "not ready: %s", err).After(CheckEvery))
	})
}
