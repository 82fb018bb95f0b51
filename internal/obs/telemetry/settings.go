package telemetry

import (
	"crypto/tls"
	"fmt"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"go.opentelemetry.io/contrib/propagators/autoprop"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/propagation"
	sdklog "go.opentelemetry.io/otel/sdk/log"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
)

// The protocols of OTLP.
const (
	GRPC         = "grpc"
	HTTPProtobuf = "http/protobuf"
	HTTPJSON     = "http/json"
)

// Protocols lists them.
func Protocols() []string { return []string{GRPC, HTTPProtobuf, HTTPJSON} }

// signal is one of the three signals, as in the names of variables.
type signal string

const (
	traces  signal = "TRACES"
	metrics signal = "METRICS"
	logs    signal = "LOGS"
)

var signals = []signal{traces, metrics, logs}

func (s signal) exporterVariable() string { return "OTEL_" + string(s) + "_EXPORTER" }

func (s signal) what() string { return strings.ToLower(string(s)) }

// path is appended to an endpoint of all signals (OTLP/HTTP).
func (s signal) path() string { return "/v1/" + s.what() }

// Flags are the settings of the command line; they win over variables.
type Flags struct {
	// Endpoint is the base URL of a collector for all signals; empty uses the variables.
	Endpoint string
	// Protocol is one of Protocols; empty uses the variables, by default http/protobuf.
	Protocol string
	// Ratio is the share of exported traces among requests without a sampling decision; nil uses
	// the variables.
	Ratio *float64
	// DefaultRatio applies without a flag and variables.
	DefaultRatio float64
	// Content exports the texts of model calls that the log has; nil uses the variables.
	Content *bool
}

// Settings are valid settings of the export.
type Settings struct {
	// Content is true if spans have the texts of model calls.
	Content bool
	// Propagator reads trace contexts of requests; nil reads W3C Trace Context only.
	Propagator propagation.TextMapPropagator
	// Secrets are the values of headers, to be redacted.
	Secrets []string
	// Warnings are about settings that are valid and probably not intended.
	Warnings []string

	traces, metrics, logs []target
	batches               batches
	// resource are attributes of the process.
	resource []attribute.KeyValue
	sampler  sdktrace.Sampler
	// logCount and logLength are the limits of all attributes, for log records; -1 if unset.
	logCount, logLength int
}

func (s *Settings) exports() bool { return len(s.traces)+len(s.metrics)+len(s.logs) > 0 }

// logLimits returns the limits that apply to all attributes. The SDK reads those of log records.
func (s *Settings) logLimits() []sdklog.LoggerProviderOption {
	var out []sdklog.LoggerProviderOption
	if s.logCount >= 0 {
		out = append(out, sdklog.WithAttributeCountLimit(s.logCount))
	}
	if s.logLength >= 0 {
		out = append(out, sdklog.WithAttributeValueLengthLimit(s.logLength))
	}
	return out
}

// target is where one exporter sends one signal.
type target struct {
	signal   signal
	console  bool
	protocol string
	// url is complete for HTTP; for gRPC only its host is used.
	url *url.URL
	// address is an endpoint that gRPC resolves, instead of url.
	address string
	headers map[string]string
	gzip    bool
	timeout time.Duration
	// tls is nil without TLS.
	tls *tls.Config
	// closers get what to call at the end.
	closers *[]func()
}

// sendTimeout limits one request to a collector (OTLP specification).
const sendTimeout = 10 * time.Second

// Read reads the settings. It returns all errors, joined; none contains a value that may be secret.
// A variable without effect is no error: one of signals that are not exported, or any if the SDK is
// disabled. Nor is a value that the specification has and this host does not support.
// environ has the form of os.Environ.
func Read(f Flags, environ []string) (Settings, error) {
	values := map[string]string{}
	for _, pair := range environ {
		if name, value, ok := strings.Cut(pair, "="); ok && strings.HasPrefix(name, "OTEL_") {
			values[name] = value
		}
	}
	v := &variables{lookup: func(name string) (string, bool) {
		value, ok := values[name]
		return value, ok
	}}
	s := Settings{Warnings: misspelled(environ), logCount: -1, logLength: -1}
	if f.Protocol != "" && !slices.Contains(Protocols(), f.Protocol) {
		v.errs = append(v.errs, fmt.Errorf("--otlp-protocol %q: want %s", f.Protocol, list(Protocols())))
		f.Protocol = ""
	}
	v.disabled = v.boolean(varDisabled)
	exporters := map[signal][]string{}
	for _, sig := range signals {
		exporters[sig] = readExporters(f, v, sig)
	}
	s.readSampler(f, v)
	s.readPropagators(v)
	s.readContent(f, v)
	s.readLogLimits(v)
	s.readResource(v)
	s.batches = v.readBatches()
	v.checkRest()
	for _, sig := range signals {
		targets := s.readTargets(f, v, sig, exporters[sig])
		switch {
		case v.disabled:
		case sig == traces:
			s.traces = targets
		case sig == metrics:
			s.metrics = targets
		default:
			s.logs = targets
		}
	}
	if v.disabled && f.Endpoint != "" {
		s.Warnings = append(s.Warnings, varDisabled+"=true disables the export to --otlp-endpoint")
	}
	slices.Sort(s.Secrets)
	s.Secrets = slices.Compact(s.Secrets)
	s.Warnings = append(s.Warnings, v.warnings...)
	slices.Sort(s.Warnings)
	s.Warnings = slices.Compact(s.Warnings)
	return s, v.err()
}

// ratio returns the value of a share.
func ratio(text string) (float64, bool) {
	r, err := strconv.ParseFloat(text, 64)
	return r, err == nil && r >= 0 && r <= 1
}

// readSampler reads which traces are exported. The host's default is its own (OpenWOP host contract
// §10.1).
func (s *Settings) readSampler(f Flags, v *variables) {
	share := f.DefaultRatio
	name, other := "", v.unsupported(varSampler)
	if other == "" {
		name = v.choice(varSampler,
			"", "always_on", "always_off", "traceidratio",
			"parentbased_always_on", "parentbased_always_off", "parentbased_traceidratio")
	}
	if arg := v.get(varSamplerArg); arg != "" && strings.HasSuffix(name, "traceidratio") {
		r, ok := ratio(arg)
		if !ok {
			v.refuse(varSamplerArg, "%q: want a number from 0 to 1", arg)
		}
		share = r
	} else if name != "" {
		share = 1
	}
	if f.Ratio != nil {
		share, name = *f.Ratio, ""
		if !(share >= 0 && share <= 1) {
			v.errs = append(v.errs, fmt.Errorf("--trace-ratio %v: must be a number from 0 to 1", share))
			share = 0
		}
	}
	if other != "" {
		v.replace(varSampler, other, fmt.Sprintf("parentbased_traceidratio with %v", share))
	}
	switch name {
	case "always_on":
		s.sampler = sdktrace.AlwaysSample()
	case "always_off":
		s.sampler = sdktrace.NeverSample()
	case "traceidratio":
		s.sampler = sdktrace.TraceIDRatioBased(share)
	case "parentbased_always_on":
		s.sampler = sdktrace.ParentBased(sdktrace.AlwaysSample())
	case "parentbased_always_off":
		s.sampler = sdktrace.ParentBased(sdktrace.NeverSample())
	default:
		s.sampler = sdktrace.ParentBased(sdktrace.TraceIDRatioBased(share))
	}
}

// propagators are the names of the specification.
var propagators = []string{"tracecontext", "baggage", "b3", "b3multi", "jaeger", "xray", "ottrace", "none"}

// readPropagators reads in which forms requests may carry a trace context.
func (s *Settings) readPropagators(v *variables) {
	value := v.get(varPropagators)
	if value == "" {
		return
	}
	var names []string
	for name := range strings.SplitSeq(strings.ToLower(value), ",") {
		name = strings.TrimSpace(name)
		if !slices.Contains(propagators, name) {
			v.refuse(varPropagators, "%q: want a list of %s", name, list(propagators))
			return
		}
		names = append(names, name)
	}
	if slices.Contains(names, "none") && len(names) > 1 {
		v.refuse(varPropagators, "none excludes the others; want none, or a list without it")
		return
	}
	p, err := autoprop.TextMapPropagator(names...)
	if err != nil {
		v.refuse(varPropagators, "%w", err)
		return
	}
	s.Propagator = p
}

// readContent reads whether spans have the texts of model calls.
func (s *Settings) readContent(f Flags, v *variables) {
	switch v.choice(varContent, "no_content", "false", "true", "span_only", "span_and_event") {
	case "true", "span_only", "span_and_event":
		s.Content = true
	}
	if f.Content != nil {
		s.Content = *f.Content
	}
}

func (s *Settings) readLogLimits(v *variables) {
	for _, limit := range []struct {
		own, all string
		into     *int
	}{{varLogCount, varLimitCount, &s.logCount}, {varLogLength, varLimitLength, &s.logLength}} {
		if v.get(limit.own) != "" {
			continue
		}
		if n, set := v.number(limit.all); set {
			*limit.into = n
		}
	}
}

// foreign are exporters of the specification that this host does not have.
var foreign = map[signal][]string{
	traces:  {"zipkin", "jaeger", "otlp/stdout"},
	metrics: {"prometheus", "otlp/stdout"},
	logs:    {"otlp/stdout"},
}

// readExporters reads which exporters a signal has: otlp, console, both or none. Without an exporter
// and an endpoint it has none: a host must not look for a collector that its operator did not name.
func readExporters(f Flags, v *variables, sig signal) []string {
	variable := sig.exporterVariable()
	value := strings.ToLower(v.get(variable))
	if _, endpoint := v.of(sig, "ENDPOINT"); value == "" && (f.Endpoint != "" || endpoint != "") {
		value = "otlp"
	}
	if value == "" {
		return nil
	}
	names := strings.Split(value, ",")
	var out, missing []string
	for i := range names {
		names[i] = strings.TrimSpace(names[i])
		switch name := names[i]; {
		case name == "none" && len(names) == 1:
		case name == "none" || slices.Contains(names[:i], name):
			v.refuse(variable, "%q: want none, or each of otlp and console at most once", value)
			v.export(sig) // the operator meant to
		case name == "otlp" || name == "console":
			out = append(out, name)
		case name == "logging":
			out = append(out, "console")
		case slices.Contains(foreign[sig], name):
			missing = append(missing, name)
		default:
			v.refuse(variable, "%q: want otlp, console or none", name)
			v.export(sig)
		}
	}
	if len(out) > 0 {
		v.export(sig)
	}
	for _, name := range missing {
		instead := "none"
		if len(out) > 0 {
			instead = strings.Join(out, ",")
		}
		if name == "prometheus" {
			instead += "; metrics for Prometheus are at --metrics-addr"
		}
		v.replace(variable, name, instead)
	}
	return out
}
