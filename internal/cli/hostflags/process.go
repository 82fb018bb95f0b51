package hostflags

import (
	"strconv"

	"github.com/spf13/pflag"

	"waybill.dev/waybill/internal/host"
	"waybill.dev/waybill/internal/obs"
)

// Process are the flags of a service in a process of its own.
func Process(f *pflag.FlagSet, o *host.Process) {
	f.StringVar(&o.GRPCAddr, "grpc-addr", o.GRPCAddr, "address of the gRPC API; port 0 uses a free port")
	f.StringVar(&o.MetricsAddr, "metrics-addr", "", "address of Prometheus metrics, /healthz, /readyz and profiles, without authentication; empty disables them")
	f.StringVar(&o.TokenFile, "token-file", "", "file with the bearer token that callers must send; empty means no token, on loopback only")
	TLS(f, &o.TLS)
	f.StringVar(&o.TLS.ClientCA, "tls-client-ca", "", "PEM file of client CAs; enables mutual TLS; empty uses --token-file")
	f.BoolVar(&o.Insecure, "insecure", false, "allow callers on other machines without a token or without TLS")
	Telemetry(f, &o.Telemetry)
	Secrets(f, &o.Secrets)
	ReadyFile(f, &o.ReadyFile)
}

// TLS are the flags of a server's certificate.
func TLS(f *pflag.FlagSet, o *host.TLS) {
	f.StringVar(&o.Cert, "tls-cert", "", "PEM server certificate chain; empty disables TLS")
	f.StringVar(&o.Key, "tls-key", "", "PEM key of --tls-cert")
}

// Telemetry are the flags of the export of spans, metrics and logs.
func Telemetry(f *pflag.FlagSet, o *host.Telemetry) {
	f.StringVar(&o.Endpoint, "otlp-endpoint", "", "URL of an OpenTelemetry collector for spans, metrics and logs, such as http://localhost:4318; empty uses the OTEL_ variables, and exports nothing without them")
	f.StringVar(&o.Protocol, "otlp-protocol", "", "grpc, http/protobuf or http/json; empty uses the OTEL_ variables, by default http/protobuf")
	f.Var(&optionalRatio{&o.Ratio, o.DefaultRatio}, "trace-ratio", "sampling ratio, 0 to 1, of traces without a sampling decision of the caller; without this flag OTEL_TRACES_SAMPLER applies, if set")
	f.Var(&optionalBool{&o.Content}, "trace-content", "export the texts of model calls that the log has as attributes of spans, without secrets; without this flag OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT applies, if set")
	f.Lookup("trace-content").NoOptDefVal = "true"
}

// optionalRatio is a flag that is nil unless it is given.
type optionalRatio struct {
	into  **float64
	usual float64
}

// String returns the effective value.
func (o *optionalRatio) String() string {
	if o.into == nil || *o.into == nil {
		return strconv.FormatFloat(o.usual, 'g', -1, 64)
	}
	return strconv.FormatFloat(**o.into, 'g', -1, 64)
}

// Set implements pflag.Value.
func (o *optionalRatio) Set(text string) error {
	r, err := strconv.ParseFloat(text, 64)
	if err == nil {
		*o.into = &r
	}
	return err
}

// Type names the type of the value.
func (o *optionalRatio) Type() string { return "float64" }

// optionalBool is a flag that is nil unless it is given.
type optionalBool struct{ into **bool }

// String returns the effective value.
func (o *optionalBool) String() string {
	return strconv.FormatBool(o.into != nil && *o.into != nil && **o.into)
}

// Set implements pflag.Value.
func (o *optionalBool) Set(text string) error {
	b, err := strconv.ParseBool(text)
	if err == nil {
		*o.into = &b
	}
	return err
}

// Type names the type of the value.
func (o *optionalBool) Type() string { return "bool" }

// Secrets are the flags of what a redactor takes out.
func Secrets(f *pflag.FlagSet, o *host.Secrets) {
	f.StringVar(&o.File, "secrets-file", "", "YAML file of secret ids and values to redact for all tenants")
	f.BoolVar(&o.Shapes, "redact-shapes", o.Shapes, "also redact unregistered text that looks like a secret")
}

// ReadyFile is the flag of the file that a service writes once it is ready.
func ReadyFile(f *pflag.FlagSet, file *string) {
	f.StringVar(file, "ready-file", "", "file to write the addresses to, as JSON, once the service is ready")
}

// Log are the settings of a command's log.
type Log struct{ Level, Format string }

// Flags are those of the log.
func (o *Log) Flags(f *pflag.FlagSet) {
	f.StringVar(&o.Level, "log-level", "warn", "debug, info, warn or error")
	f.StringVar(&o.Format, "log-format", obs.FormatText, "text or json")
}

// ConfigFile is the flag of the file of flag names and values, which config.Load reads.
func ConfigFile(f *pflag.FlagSet) {
	f.String("config", "", "YAML file of flag names and values")
}

// IndexPayloads is the flag of the index over the contents of runs.
func IndexPayloads(f *pflag.FlagSet, on *bool) {
	f.BoolVar(on, "index-payloads", *on, "index the words of inputs, outputs, answers and errors, so that lists of runs can be searched with text:; costs throughput, and covers only runs created after it was set")
}
