package telemetry

import (
	"context"
	"log/slog"
	"net/http"
	"net/url"
	"os"
	"time"

	"go.opentelemetry.io/otel/exporters/otlp/otlplog/otlploggrpc"
	"go.opentelemetry.io/otel/exporters/otlp/otlplog/otlploghttp"
	"go.opentelemetry.io/otel/exporters/otlp/otlpmetric/otlpmetricgrpc"
	"go.opentelemetry.io/otel/exporters/otlp/otlpmetric/otlpmetrichttp"
	"go.opentelemetry.io/otel/exporters/otlp/otlptrace/otlptracegrpc"
	"go.opentelemetry.io/otel/exporters/otlp/otlptrace/otlptracehttp"
	"go.opentelemetry.io/otel/exporters/stdout/stdoutlog"
	"go.opentelemetry.io/otel/exporters/stdout/stdoutmetric"
	"go.opentelemetry.io/otel/exporters/stdout/stdouttrace"
	sdklog "go.opentelemetry.io/otel/sdk/log"
	sdkmetric "go.opentelemetry.io/otel/sdk/metric"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/credentials/insecure"
)

// console is where the console exporters write JSON. Standard output is for people.
var console = os.Stderr

func newSpanExporter(ctx context.Context, at target) (sdktrace.SpanExporter, error) {
	switch {
	case at.console:
		return stdouttrace.New(stdouttrace.WithWriter(console))
	case at.protocol == GRPC:
		o := []otlptracegrpc.Option{
			otlptracegrpc.WithEndpoint(at.dialTarget()), otlptracegrpc.WithTLSCredentials(at.credentials()),
			otlptracegrpc.WithHeaders(at.headers), otlptracegrpc.WithTimeout(at.timeout),
		}
		if at.gzip {
			o = append(o, otlptracegrpc.WithCompressor("gzip"))
		}
		return otlptracegrpc.New(ctx, o...)
	}
	compression := otlptracehttp.NoCompression
	if at.gzip {
		compression = otlptracehttp.GzipCompression
	}
	return otlptracehttp.New(ctx,
		otlptracehttp.WithEndpointURL(at.url.String()), otlptracehttp.WithHTTPClient(at.client()),
		otlptracehttp.WithTLSClientConfig(at.tls), otlptracehttp.WithEncoding(otlptracehttp.EncodingProtobuf),
		otlptracehttp.WithHeaders(at.headers), otlptracehttp.WithTimeout(at.timeout), otlptracehttp.WithCompression(compression))
}

func newMetricExporter(ctx context.Context, at target) (sdkmetric.Exporter, error) {
	switch {
	case at.console:
		return stdoutmetric.New(stdoutmetric.WithWriter(console))
	case at.protocol == GRPC:
		o := []otlpmetricgrpc.Option{
			otlpmetricgrpc.WithEndpoint(at.dialTarget()), otlpmetricgrpc.WithTLSCredentials(at.credentials()),
			otlpmetricgrpc.WithHeaders(at.headers), otlpmetricgrpc.WithTimeout(at.timeout),
			otlpmetricgrpc.WithTemporalitySelector(sdkmetric.CumulativeTemporalitySelector),
			otlpmetricgrpc.WithAggregationSelector(sdkmetric.DefaultAggregationSelector),
		}
		if at.gzip {
			o = append(o, otlpmetricgrpc.WithCompressor("gzip"))
		}
		return otlpmetricgrpc.New(ctx, o...)
	}
	compression := otlpmetrichttp.NoCompression
	if at.gzip {
		compression = otlpmetrichttp.GzipCompression
	}
	return otlpmetrichttp.New(ctx,
		otlpmetrichttp.WithEndpointURL(at.url.String()), otlpmetrichttp.WithHTTPClient(at.client()),
		otlpmetrichttp.WithTLSClientConfig(at.tls),
		otlpmetrichttp.WithTemporalitySelector(sdkmetric.CumulativeTemporalitySelector),
		otlpmetrichttp.WithAggregationSelector(sdkmetric.DefaultAggregationSelector),
		otlpmetrichttp.WithHeaders(at.headers), otlpmetrichttp.WithTimeout(at.timeout), otlpmetrichttp.WithCompression(compression))
}

func newLogExporter(ctx context.Context, at target) (sdklog.Exporter, error) {
	switch {
	case at.console:
		return stdoutlog.New(stdoutlog.WithWriter(console))
	case at.protocol == GRPC:
		o := []otlploggrpc.Option{
			otlploggrpc.WithEndpoint(at.dialTarget()), otlploggrpc.WithTLSCredentials(at.credentials()),
			otlploggrpc.WithHeaders(at.headers), otlploggrpc.WithTimeout(at.timeout),
		}
		if at.gzip {
			o = append(o, otlploggrpc.WithCompressor("gzip"))
		}
		return otlploggrpc.New(ctx, o...)
	}
	compression := otlploghttp.NoCompression
	if at.gzip {
		compression = otlploghttp.GzipCompression
	}
	return otlploghttp.New(ctx,
		otlploghttp.WithEndpointURL(at.url.String()), otlploghttp.WithHTTPClient(at.client()),
		otlploghttp.WithTLSClientConfig(at.tls),
		otlploghttp.WithHeaders(at.headers), otlploghttp.WithTimeout(at.timeout), otlploghttp.WithCompression(compression))
}

// credentials are those of a gRPC connection.
func (t *target) credentials() credentials.TransportCredentials {
	if t.tls == nil {
		return insecure.NewCredentials()
	}
	return credentials.NewTLS(t.tls)
}

// client makes the HTTP client of an exporter.
func (t *target) client() *http.Client {
	transport := http.DefaultTransport.(*http.Transport).Clone() //nolint:forcetypeassert // it is one, unless a dependency replaces it
	transport.TLSClientConfig = t.tls
	*t.closers = append(*t.closers, transport.CloseIdleConnections)
	c := &http.Client{Transport: exact{transport, t.url}, Timeout: t.timeout}
	if t.protocol == HTTPJSON {
		c.Transport = jsonTransport{c.Transport, t.signal}
	}
	return c
}

// exact sends requests to a URL as it was given: exporters decode its path and drop a slash at its end.
type exact struct {
	next http.RoundTripper
	url  *url.URL
}

// RoundTrip sends a request. A redirect keeps its own URL.
func (t exact) RoundTrip(r *http.Request) (*http.Response, error) {
	if r.Response == nil {
		r = r.Clone(r.Context())
		r.URL = t.url
	}
	return t.next.RoundTrip(r)
}

// metricExporter logs export errors, as spanExporter does.
type metricExporter struct {
	sdkmetric.Exporter

	log *slog.Logger
}

// Export sends a collection.
func (x metricExporter) Export(ctx context.Context, m *metricdata.ResourceMetrics) error {
	n := 0
	for _, s := range m.ScopeMetrics {
		n += len(s.Metrics)
	}
	began := time.Now()
	warn(x.log, "metrics were not exported", n, began, x.Exporter.Export(ctx, m))
	return nil
}

// logExporter logs export errors, as spanExporter does.
type logExporter struct {
	sdklog.Exporter

	log *slog.Logger
}

// Export sends a batch.
func (x logExporter) Export(ctx context.Context, records []sdklog.Record) error {
	began := time.Now()
	warn(x.log, "log records were not exported", len(records), began, x.Exporter.Export(ctx, records))
	return nil
}
