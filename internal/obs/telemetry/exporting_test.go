package telemetry_test

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/stretchr/testify/require"
	logspb "go.opentelemetry.io/proto/otlp/collector/logs/v1"
	metricspb "go.opentelemetry.io/proto/otlp/collector/metrics/v1"
	tracepb "go.opentelemetry.io/proto/otlp/collector/trace/v1"
	"go.uber.org/goleak"
	"google.golang.org/grpc"
	"google.golang.org/grpc/metadata"

	"waybill.dev/waybill/internal/obs"
	"waybill.dev/waybill/internal/obs/runspan"
	"waybill.dev/waybill/internal/obs/telemetry"
	"waybill.dev/waybill/protocol/wire"
	"waybill.dev/waybill/test/double/otlp"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// open opens telemetry whose warnings go to the returned buffer.
func open(t *testing.T, f telemetry.Flags, environ ...string) (*telemetry.Telemetry, *bytes.Buffer) {
	t.Helper()
	s, err := telemetry.Read(f, environ)
	require.NoError(t, err)
	var warnings bytes.Buffer
	x, err := telemetry.Open(t.Context(), s, "waybill-test", slog.New(slog.NewTextHandler(&warnings, nil)))
	require.NoError(t, err)
	t.Cleanup(func() { _ = x.Close(context.Background()) })
	return x, &warnings
}

// exportAll exports one span, one log record and some metrics.
func exportAll(t *testing.T, x *telemetry.Telemetry) {
	t.Helper()
	reg := prometheus.NewRegistry()
	tokens := prometheus.NewHistogramVec(prometheus.HistogramOpts{Name: "gen_ai_client_token_usage", Help: "h"}, []string{"gen_ai_token_type"})
	runs := prometheus.NewCounter(prometheus.CounterOpts{Name: "openwop_run_created_total", Help: "h"})
	reg.MustRegister(tokens, runs)
	tokens.WithLabelValues("input").Observe(7)
	x.ExportMetrics(reg)
	if x.Spans != nil {
		id, _ := runspan.TraceOf("r", "")
		x.Spans.Ended([]*runspan.Span{{Name: "openwop.run", Trace: id, ID: runspan.RunSpan("r"), Start: time.Now(), End: time.Now()}})
	}
	log := obs.Clean(x.Logger(slog.New(slog.DiscardHandler)), func(s string) string { return strings.ReplaceAll(s, secret, "[REDACTED]") })
	log.Info("not at this level")
	log = obs.Clean(x.Logger(slog.New(slog.NewTextHandler(&bytes.Buffer{}, nil))), func(s string) string { return strings.ReplaceAll(s, secret, "[REDACTED]") })
	log.Warn("a record with "+secret, "key", secret)
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	require.NoError(t, x.Close(ctx))
}

func TestExport_SendsAllSignalsOverHTTP(t *testing.T) {
	t.Parallel()
	for protocol, contentType := range map[string]string{
		"":                     "application/x-protobuf",
		telemetry.HTTPProtobuf: "application/x-protobuf",
		telemetry.HTTPJSON:     "application/json",
	} {
		for _, compression := range []string{"none", "gzip"} {
			t.Run(protocol+" "+compression, func(t *testing.T) {
				t.Parallel()
				c := otlp.New()
				t.Cleanup(c.Close)
				x, warnings := open(t, telemetry.Flags{DefaultRatio: 1},
					"OTEL_EXPORTER_OTLP_ENDPOINT="+c.URL(), "OTEL_EXPORTER_OTLP_PROTOCOL="+protocol,
					"OTEL_EXPORTER_OTLP_COMPRESSION="+compression, "OTEL_EXPORTER_OTLP_HEADERS=api-key=k%201")
				exportAll(t, x)
				require.Empty(t, c.Refused())
				require.Empty(t, warnings.String())
				require.Len(t, c.Spans(), 1)
				require.Equal(t, "waybill-test", c.Spans()[0].Service)
				require.Equal(t, []string{"a record with [REDACTED]"}, c.Logs())
				require.Equal(t, map[string]string{
					"gen_ai.client.token.usage": "{token}",
					"openwop_run_created_total": "",
				}, c.Metrics())
				require.NotContains(t, string(c.Bytes()), secret)
				require.Equal(t, "k 1", c.Headers().Get("Api-Key"))
				require.Equal(t, 3, c.ContentTypes()[contentType], "%v", c.ContentTypes())
			})
		}
	}
}

// collector records calls over gRPC.
type collector struct {
	tracepb.UnimplementedTraceServiceServer

	mu       sync.Mutex
	received map[string]int
	headers  metadata.MD
}

func (c *collector) note(ctx context.Context, signal string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.received[signal]++
	c.headers, _ = metadata.FromIncomingContext(ctx)
}

func (c *collector) Export(ctx context.Context, _ *tracepb.ExportTraceServiceRequest) (*tracepb.ExportTraceServiceResponse, error) {
	c.note(ctx, "traces")
	return &tracepb.ExportTraceServiceResponse{}, nil
}

type metricsService struct {
	metricspb.UnimplementedMetricsServiceServer
	*collector
}

func (s metricsService) Export(ctx context.Context, _ *metricspb.ExportMetricsServiceRequest) (*metricspb.ExportMetricsServiceResponse, error) {
	s.note(ctx, "metrics")
	return &metricspb.ExportMetricsServiceResponse{}, nil
}

type logsService struct {
	logspb.UnimplementedLogsServiceServer
	*collector
}

func (s logsService) Export(ctx context.Context, _ *logspb.ExportLogsServiceRequest) (*logspb.ExportLogsServiceResponse, error) {
	s.note(ctx, "logs")
	return &logspb.ExportLogsServiceResponse{}, nil
}

func serveGRPC(t *testing.T, network, address string) (*collector, string) {
	t.Helper()
	lis, err := net.Listen(network, address)
	require.NoError(t, err)
	c := &collector{received: map[string]int{}}
	srv := grpc.NewServer()
	tracepb.RegisterTraceServiceServer(srv, c)
	metricspb.RegisterMetricsServiceServer(srv, metricsService{collector: c})
	logspb.RegisterLogsServiceServer(srv, logsService{collector: c})
	go func() { _ = srv.Serve(lis) }()
	t.Cleanup(srv.Stop)
	return c, lis.Addr().String()
}

func TestExport_SendsAllSignalsOverGRPC(t *testing.T) {
	t.Parallel()
	for name, endpoint := range map[string][]string{
		"URL":       {"OTEL_EXPORTER_OTLP_ENDPOINT=http://"},
		"HOST:PORT": {"OTEL_EXPORTER_OTLP_INSECURE=true", "OTEL_EXPORTER_OTLP_ENDPOINT="},
		"DNS":       {"OTEL_EXPORTER_OTLP_INSECURE=true", "OTEL_EXPORTER_OTLP_ENDPOINT=dns:///"},
		"socket":    {"OTEL_EXPORTER_OTLP_INSECURE=true", "OTEL_EXPORTER_OTLP_ENDPOINT=unix://"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			network, address := "tcp", "127.0.0.1:0"
			if name == "socket" {
				network, address = "unix", filepath.Join(t.TempDir(), "s")
			}
			c, addr := serveGRPC(t, network, address)
			endpoint[len(endpoint)-1] += addr
			x, warnings := open(t, telemetry.Flags{DefaultRatio: 1}, append(endpoint,
				"OTEL_EXPORTER_OTLP_PROTOCOL=grpc", "OTEL_EXPORTER_OTLP_HEADERS=api-key=k", "OTEL_EXPORTER_OTLP_COMPRESSION=gzip")...)
			exportAll(t, x)
			require.Empty(t, warnings.String())
			require.Equal(t, map[string]int{"traces": 1, "metrics": 1, "logs": 1}, c.received)
			require.Equal(t, []string{"k"}, c.headers.Get("api-key"))
		})
	}
}

func TestExport_ChecksTheCertificateOfTheCollector(t *testing.T) {
	t.Parallel()
	calls := make(chan string, 3)
	srv := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		calls <- r.TLS.PeerCertificates[0].Subject.String()
	}))
	srv.TLS = &tls.Config{ClientAuth: tls.RequireAnyClientCert, MinVersion: tls.VersionTLS12}
	srv.StartTLS()
	t.Cleanup(srv.Close)
	dir := t.TempDir()
	write := func(name, kind string, der []byte) string {
		file := filepath.Join(dir, name)
		require.NoError(t, os.WriteFile(file, pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: der}), 0o600))
		return file
	}
	cert := srv.TLS.Certificates[0]
	key, err := x509.MarshalPKCS8PrivateKey(cert.PrivateKey)
	require.NoError(t, err)
	ca, keyFile := write("ca.pem", "CERTIFICATE", cert.Certificate[0]), write("key.pem", "PRIVATE KEY", key)
	env := []string{"OTEL_EXPORTER_OTLP_TRACES_ENDPOINT=" + srv.URL + "/v1/traces", "OTEL_EXPORTER_OTLP_CLIENT_CERTIFICATE=" + ca, "OTEL_EXPORTER_OTLP_CLIENT_KEY=" + keyFile}

	x, warnings := open(t, telemetry.Flags{DefaultRatio: 1}, env...)
	exportAll(t, x)
	require.Empty(t, calls)
	require.Contains(t, warnings.String(), "spans were not exported")

	x, warnings = open(t, telemetry.Flags{DefaultRatio: 1}, append(env, "OTEL_EXPORTER_OTLP_TRACES_CERTIFICATE="+ca)...)
	exportAll(t, x)
	require.Empty(t, warnings.String())
	require.Len(t, calls, 1, "only the signal that has an endpoint")
}

func TestExport_DependsOnTheExporterOfEachSignal(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		flag                 bool
		env                  []string
		spans, metrics, logs bool
	}{
		"nothing is configured":          {},
		"an endpoint":                    {env: []string{"OTEL_EXPORTER_OTLP_ENDPOINT=URL"}, spans: true, metrics: true, logs: true},
		"the flag":                       {flag: true, spans: true, metrics: true, logs: true},
		"the flag wins":                  {flag: true, env: []string{"OTEL_EXPORTER_OTLP_ENDPOINT=http://127.0.0.1:1", "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT=http://127.0.0.1:1"}, spans: true, metrics: true, logs: true},
		"an endpoint of one":             {env: []string{"OTEL_EXPORTER_OTLP_METRICS_ENDPOINT=URL/v1/metrics"}, metrics: true},
		"none":                           {env: []string{"OTEL_EXPORTER_OTLP_ENDPOINT=URL", "OTEL_METRICS_EXPORTER=none", "OTEL_LOGS_EXPORTER=none"}, spans: true},
		"prometheus":                     {env: []string{"OTEL_EXPORTER_OTLP_ENDPOINT=URL", "OTEL_METRICS_EXPORTER=prometheus"}, spans: true, logs: true},
		"prometheus and otlp":            {env: []string{"OTEL_EXPORTER_OTLP_ENDPOINT=URL", "OTEL_METRICS_EXPORTER=prometheus,otlp"}, spans: true, metrics: true, logs: true},
		"disabled":                       {env: []string{"OTEL_EXPORTER_OTLP_ENDPOINT=URL", "OTEL_SDK_DISABLED=true"}},
		"disabled, with the flag":        {flag: true, env: []string{"OTEL_SDK_DISABLED=true"}},
		"an empty exporter is the usual": {env: []string{"OTEL_EXPORTER_OTLP_ENDPOINT=URL", "OTEL_TRACES_EXPORTER="}, spans: true, metrics: true, logs: true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := otlp.New()
			t.Cleanup(c.Close)
			f := telemetry.Flags{DefaultRatio: 1}
			if tc.flag {
				f.Endpoint = c.URL() + "/"
			}
			var env []string
			for _, v := range tc.env {
				env = append(env, strings.Replace(v, "URL", c.URL(), 1))
			}
			x, _ := open(t, f, env...)
			exportAll(t, x)
			require.Equal(t, []bool{tc.spans, tc.metrics, tc.logs}, []bool{len(c.Spans()) > 0, len(c.Metrics()) > 0, len(c.Logs()) > 0})
		})
	}
}

func TestSampler_FollowsTheFlagElseTheVariables(t *testing.T) {
	t.Parallel()
	none, all := 0.0, 1.0
	const yes, no = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01", "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-00"
	for name, tc := range map[string]struct {
		flags                       telemetry.Flags
		env                         []string
		root, sampledParent, others bool
	}{
		"the default":          {flags: telemetry.Flags{DefaultRatio: 1}, root: true, sampledParent: true},
		"the flag":             {flags: telemetry.Flags{DefaultRatio: 1, Ratio: &none}, sampledParent: true},
		"the flag wins":        {flags: telemetry.Flags{Ratio: &all}, env: []string{"OTEL_TRACES_SAMPLER=always_off"}, root: true, sampledParent: true},
		"always_on":            {env: []string{"OTEL_TRACES_SAMPLER=always_on"}, root: true, sampledParent: true, others: true},
		"always_off":           {flags: telemetry.Flags{DefaultRatio: 1}, env: []string{"OTEL_TRACES_SAMPLER=always_off"}},
		"parentbased on":       {env: []string{"OTEL_TRACES_SAMPLER=parentbased_always_on"}, root: true, sampledParent: true},
		"parentbased off":      {flags: telemetry.Flags{DefaultRatio: 1}, env: []string{"OTEL_TRACES_SAMPLER=parentbased_always_off"}, sampledParent: true},
		"ratio":                {env: []string{"OTEL_TRACES_SAMPLER=traceidratio", "OTEL_TRACES_SAMPLER_ARG=1"}, root: true, sampledParent: true, others: true},
		"ratio without number": {env: []string{"OTEL_TRACES_SAMPLER=parentbased_traceidratio"}, root: true, sampledParent: true},
		"an unsupported one":   {flags: telemetry.Flags{DefaultRatio: 1}, env: []string{"OTEL_TRACES_SAMPLER=jaeger_remote", "OTEL_TRACES_SAMPLER_ARG=endpoint=http://h:14250"}, root: true, sampledParent: true},
		"ratio of 0":           {env: []string{"OTEL_TRACES_SAMPLER=parentbased_traceidratio", "OTEL_TRACES_SAMPLER_ARG=0"}, sampledParent: true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := otlp.New()
			t.Cleanup(c.Close)
			tc.flags.Endpoint = c.URL()
			x, _ := open(t, tc.flags, tc.env...)
			wants := func(parent string) bool { return x.Spans.Wants(&wire.RunRecord{RunID: "r", Traceparent: parent}) }
			require.Equal(t, []bool{tc.root, tc.sampledParent, tc.others}, []bool{wants(""), wants(yes), wants(no)})
		})
	}
}

func TestResource_IsOfTheVariablesElseOfTheService(t *testing.T) {
	t.Parallel()
	c := otlp.New()
	t.Cleanup(c.Close)
	x, _ := open(t, telemetry.Flags{Endpoint: c.URL(), DefaultRatio: 1})
	exportAll(t, x)
	body := string(c.Bytes())
	for _, name := range []string{"service.name", "service.version", "service.instance.id", "telemetry.sdk.name", "host.name"} {
		require.Contains(t, body, name)
	}
}

func TestResource_HasTheAttributesOfTheVariables(t *testing.T) {
	t.Parallel()
	c := otlp.New()
	t.Cleanup(c.Close)
	x, warnings := open(t, telemetry.Flags{DefaultRatio: 1}, "OTEL_EXPORTER_OTLP_ENDPOINT="+c.URL(),
		"OTEL_RESOURCE_ATTRIBUTES=service.name=other, deployment.environment.name = a%2Cb%3D%C3%BC ,empty=,x=1=2,a%2Eb=dotted,", "OTEL_SERVICE_NAME=desk")
	exportAll(t, x)
	require.Empty(t, warnings.String())
	require.Empty(t, c.Refused())
	of := c.Resources()
	require.Len(t, of, 3, "one of each signal")
	for _, attributes := range of {
		for name, want := range map[string]string{
			"service.name": "desk", "deployment.environment.name": "a,b=ü", "empty": "", "x": "1=2", "a.b": "dotted",
		} {
			require.Contains(t, attributes, name)
			require.Equal(t, want, attributes[name], name)
		}
	}
}

// An endpoint of a signal is used as it is, an endpoint of all signals is a prefix.
func TestExport_RequestsTheURLAsItWasGiven(t *testing.T) {
	t.Parallel()
	paths := make(chan string, 3)
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		paths <- r.RequestURI
		if r.URL.Path == "/moved/" {
			http.Redirect(w, r, "/here", http.StatusTemporaryRedirect)
		}
	}))
	t.Cleanup(srv.Close)
	for given, want := range map[string][]string{
		"/":            {"/"},
		"/v1/traces":   {"/v1/traces"},
		"/a%2Fb/in/":   {"/a%2Fb/in/"},
		"/in//traces/": {"/in//traces/"},
		"/moved/":      {"/moved/", "/here"},
	} {
		x, _ := open(t, telemetry.Flags{DefaultRatio: 1}, "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT="+srv.URL+given)
		exportAll(t, x)
		for _, path := range want {
			require.Equal(t, path, <-paths)
		}
		require.Empty(t, paths)
	}
	for _, given := range []string{"/otlp", "/otlp/"} {
		x, _ := open(t, telemetry.Flags{DefaultRatio: 1, Endpoint: srv.URL + given}, "OTEL_METRICS_EXPORTER=none", "OTEL_LOGS_EXPORTER=none")
		exportAll(t, x)
		require.Equal(t, "/otlp/v1/traces", <-paths)
	}
}
