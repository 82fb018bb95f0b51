// Package telemetry exports the spans, metrics and logs of a process, as the flags and the
// environment variables of the OpenTelemetry SDK specification configure it. Flags win over
// variables.
//
// Settings are read and checked once, by Read. The exporters get all of them as options, so
// that nothing depends on what an exporter reads by itself.
package telemetry

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"go.opentelemetry.io/contrib/bridges/otelslog"
	"go.opentelemetry.io/otel/propagation"
	sdklog "go.opentelemetry.io/otel/sdk/log"
	sdkmetric "go.opentelemetry.io/otel/sdk/metric"
	"go.opentelemetry.io/otel/sdk/resource"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"

	"waybill.dev/waybill/internal/obs/tracing"
	"waybill.dev/waybill/internal/version"
)

// scope is the name of the instrumentation.
const scope = "waybill.dev/waybill"

// Telemetry exports the signals of a process. The zero Telemetry exports nothing.
type Telemetry struct {
	// Spans exports spans; nil disables it.
	Spans *tracing.Exporter

	settings Settings
	resource *resource.Resource
	log      *slog.Logger
	logs     *sdklog.LoggerProvider
	closers  []func()

	metricExporters []sdkmetric.Exporter

	mu      sync.Mutex // guards metrics
	metrics *sdkmetric.MeterProvider
}

// Open makes the exporters. They connect with their first batch. log gets a warning when a
// collector does not accept a batch; it must not be a log that is exported.
func Open(ctx context.Context, s Settings, service string, log *slog.Logger) (*Telemetry, error) {
	t := &Telemetry{settings: s, log: log}
	for _, w := range s.Warnings {
		log.Warn(w)
	}
	if !s.exports() {
		return t, nil
	}
	var err error
	if t.resource, err = resourceOf(ctx, service, s.resource); err != nil {
		return nil, err
	}
	if err := errors.Join(t.openSpans(ctx), t.openMetrics(ctx), t.openLogs(ctx)); err != nil {
		return nil, errors.Join(err, t.Close(ctx))
	}
	return t, nil
}

func (t *Telemetry) openSpans(ctx context.Context) error {
	exporters, err := openAll(ctx, t, t.settings.traces, newSpanExporter)
	if err != nil || len(exporters) == 0 {
		return err
	}
	options := []sdktrace.TracerProviderOption{sdktrace.WithResource(t.resource)}
	for _, x := range exporters {
		options = append(options, sdktrace.WithBatcher(spanExporter{x, t.log}, t.settings.batches.spans...))
	}
	t.Spans = tracing.New(tracing.Config{Sampler: t.settings.sampler, Content: t.settings.Content}, options...)
	return nil
}

func (t *Telemetry) openLogs(ctx context.Context) error {
	exporters, err := openAll(ctx, t, t.settings.logs, newLogExporter)
	if err != nil || len(exporters) == 0 {
		return err
	}
	options := append(t.settings.logLimits(), sdklog.WithResource(t.resource))
	for _, x := range exporters {
		options = append(options, sdklog.WithProcessor(sdklog.NewBatchProcessor(logExporter{x, t.log}, t.settings.batches.logs...)))
	}
	t.logs = sdklog.NewLoggerProvider(options...)
	return nil
}

// openAll makes the exporters of a signal.
func openAll[X any](ctx context.Context, t *Telemetry, targets []target, open func(context.Context, target) (X, error)) ([]X, error) {
	out := make([]X, 0, len(targets))
	for _, at := range targets {
		at.closers = &t.closers
		x, err := open(ctx, at)
		if err != nil {
			return nil, fmt.Errorf("exporter of %s: %w", at.signal.what(), err)
		}
		out = append(out, x)
	}
	return out, nil
}

// Propagator reads trace contexts of requests; nil reads W3C Trace Context only.
func (t *Telemetry) Propagator() propagation.TextMapPropagator { return t.settings.Propagator }

// Logger returns a logger that also exports the records of log, if logs are exported.
func (t *Telemetry) Logger(log *slog.Logger) *slog.Logger {
	if t.logs == nil {
		return log
	}
	export := otelslog.NewHandler(scope, otelslog.WithLoggerProvider(t.logs), otelslog.WithVersion(version.Version))
	return slog.New(slog.NewMultiHandler(log.Handler(), &logHandler{levels: log.Handler(), next: export}))
}

func (t *Telemetry) openMetrics(ctx context.Context) (err error) {
	t.metricExporters, err = openAll(ctx, t, t.settings.metrics, newMetricExporter)
	return err
}

// ExportMetrics starts to export the metrics of a registry. Call it at most once, before Close.
func (t *Telemetry) ExportMetrics(from prometheus.Gatherer) {
	if len(t.metricExporters) == 0 {
		return
	}
	options := []sdkmetric.Option{sdkmetric.WithResource(t.resource)}
	for _, x := range t.metricExporters {
		reading := append([]sdkmetric.PeriodicReaderOption{sdkmetric.WithProducer(newProducer(from))}, t.settings.batches.metrics...)
		options = append(options, sdkmetric.WithReader(sdkmetric.NewPeriodicReader(metricExporter{x, t.log}, reading...)))
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	t.metrics = sdkmetric.NewMeterProvider(options...)
}

// StopMetrics exports the metrics a last time, until ctx ends. Call it while the registry can
// still be read.
func (t *Telemetry) StopMetrics(ctx context.Context) error {
	t.mu.Lock()
	p := t.metrics
	t.metrics = nil
	t.mu.Unlock()
	if p == nil {
		return nil
	}
	return p.Shutdown(ctx)
}

// Close exports pending data, until ctx ends.
func (t *Telemetry) Close(ctx context.Context) error {
	errs := []error{t.StopMetrics(ctx)}
	if t.Spans != nil {
		errs = append(errs, t.Spans.Close(ctx))
	}
	if t.logs != nil {
		errs = append(errs, t.logs.Shutdown(ctx))
	}
	for _, x := range t.metricExporters {
		_ = x.Shutdown(ctx) // if they were never started; others refuse to be closed again
	}
	for _, f := range t.closers {
		f()
	}
	return errors.Join(errs...)
}

// spanExporter logs export errors and does not return them: the SDK would print them, and the
// answer of a collector can contain anything.
type spanExporter struct {
	sdktrace.SpanExporter

	log *slog.Logger
}

// ExportSpans sends a batch.
func (x spanExporter) ExportSpans(ctx context.Context, spans []sdktrace.ReadOnlySpan) error {
	began := time.Now()
	warn(x.log, "spans were not exported", len(spans), began, x.SpanExporter.ExportSpans(ctx, spans))
	return nil
}

// warn logs that a batch was not exported. Partial refusals count as failures.
func warn(log *slog.Logger, what string, n int, began time.Time, err error) {
	if err != nil {
		log.Warn(what, "count", n, "took", time.Since(began), "reason", reason(err))
	}
}

func reason(err error) string {
	if errors.Is(err, context.DeadlineExceeded) {
		return "the collector did not answer in time"
	}
	return "the collector is unreachable or refused them"
}

var _ slog.Handler = (*logHandler)(nil)

// logHandler exports records that the process's own log has, too, with the trace context of the
// call that logged them.
type logHandler struct {
	levels, next slog.Handler
}

// Enabled implements slog.Handler.
func (h *logHandler) Enabled(ctx context.Context, l slog.Level) bool { return h.levels.Enabled(ctx, l) }

// Handle implements slog.Handler.
func (h *logHandler) Handle(ctx context.Context, r slog.Record) error {
	return h.next.Handle(tracing.WithSpanContext(ctx), r)
}

// WithAttrs implements slog.Handler.
func (h *logHandler) WithAttrs(attrs []slog.Attr) slog.Handler {
	return &logHandler{h.levels, h.next.WithAttrs(attrs)}
}

// WithGroup implements slog.Handler.
func (h *logHandler) WithGroup(name string) slog.Handler {
	return &logHandler{h.levels, h.next.WithGroup(name)}
}
