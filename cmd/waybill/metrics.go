package main

import (
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/pprof"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"waybill.dev/waybill/internal/lifecycle"
	"waybill.dev/waybill/protocol/fault"
)

// newRegistry makes the metrics that every process has.
func newRegistry() *prometheus.Registry {
	reg := prometheus.NewRegistry()
	reg.MustRegister(collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	return reg
}

// operatorMux serves what is for the operator only: metrics, and profiles beside
// them.
func operatorMux(reg *prometheus.Registry) *http.ServeMux {
	mux := http.NewServeMux()
	mux.Handle("GET /metrics", promhttp.HandlerFor(reg, promhttp.HandlerOpts{}))
	mux.HandleFunc("GET /debug/pprof/", pprof.Index)
	mux.HandleFunc("GET /debug/pprof/profile", pprof.Profile)
	return mux
}

// lostRecords tells what is gone of the run log, in which nothing is ever deleted.
func lostRecords(lost func() uint64) prometheus.Collector {
	return prometheus.NewGaugeFunc(prometheus.GaugeOpts{
		Namespace: "waybill", Subsystem: "eventlog", Name: "lost_records",
		Help: "Records that the run log had and has no more: positions without one at the leader of its stream, and what this process had read behind its end.",
	}, func() float64 { return float64(lost()) })
}

// metricsPart serves the operator's address.
func metricsPart(lis net.Listener, h http.Handler) lifecycle.Part {
	srv := &http.Server{Handler: h, ReadHeaderTimeout: 5 * time.Second}
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

// metricsURL is where the metrics of a listener are; empty without one.
func metricsURL(lis net.Listener) string {
	if lis == nil {
		return ""
	}
	return "http://" + lis.Addr().String() + "/metrics"
}

// probes answer an orchestrator: whether the process lives, and whether it serves.
func probes(mux *http.ServeMux, ready func() error) {
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
		writeFault(w, fault.New(fault.ServiceUnavailable, "not ready: %s", err).After(checkEvery))
	})
}
