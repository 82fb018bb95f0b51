package host

import (
	"errors"
	"fmt"
	"net"

	"github.com/spf13/pflag"

	"waybill.dev/waybill/internal/obs"
)

// ProcessOptions are those of every service that runs alone.
type ProcessOptions struct {
	GRPCAddr            string
	metricsAddr         string
	tokenFile           string
	TLSCert, TLSKey     string
	ClientCA            string
	insecure            bool
	redactShapes        bool
	secretsFile         string
	readyFile           string
	LogLevel, LogFormat string
	configFile          string
	Tracing             tracingOptions
}

func (o *ProcessOptions) Flags(f *pflag.FlagSet, addr string) {
	f.StringVar(&o.GRPCAddr, "grpc-addr", addr, "address of the gRPC API; port 0 takes a free one")
	f.StringVar(&o.metricsAddr, "metrics-addr", "", "address of the Prometheus metrics, of /healthz and /readyz, and of profiles; no token guards it; empty: nowhere")
	f.StringVar(&o.tokenFile, "token-file", "", "file with the bearer token that callers must send; empty: none, on loopback only")
	o.TLSFlags(f)
	f.StringVar(&o.ClientCA, "tls-client-ca", "", "PEM certificates that vouch for callers: only those that show a certificate of theirs are heard; empty: --token-file decides")
	f.BoolVar(&o.insecure, "insecure", false, "serve other machines without a token or without TLS")
	o.Tracing.Flags(f)
	o.ProcessFlags(f)
}

func (o *ProcessOptions) TLSFlags(f *pflag.FlagSet) {
	f.StringVar(&o.TLSCert, "tls-cert", "", "PEM certificate chain to serve with; empty: no TLS")
	f.StringVar(&o.TLSKey, "tls-key", "", "PEM key of --tls-cert")
}

// ProcessFlags are those of any process.
func (o *ProcessOptions) ProcessFlags(f *pflag.FlagSet) {
	f.StringVar(&o.secretsFile, "secrets-file", "", "YAML file of secret ids and values that must never show, for everybody")
	f.BoolVar(&o.redactShapes, "redact-shapes", true, "also take out text that looks like a secret, though nobody has registered it")
	f.StringVar(&o.readyFile, "ready-file", "", "file to write the addresses to, as JSON, once the service is ready")
	f.StringVar(&o.LogLevel, "log-level", "warn", "debug, info, warn or error")
	f.StringVar(&o.LogFormat, "log-format", obs.FormatText, "text or json")
	f.StringVar(&o.configFile, "config", "", "YAML file of flag names and values")
}

// Validate returns all that is wrong with the flags, joined. Whoever reaches the
// service may record envelopes and register secrets, so other machines need a
// token, and TLS to keep it.
func (o *ProcessOptions) Validate() error {
	var errs []error
	host, _, err := net.SplitHostPort(o.GRPCAddr)
	if err != nil {
		errs = append(errs, fmt.Errorf("--grpc-addr %q: want host:port, such as 127.0.0.1:9091", o.GRPCAddr))
	}
	if err := o.Tracing.config("").Validate(); err != nil {
		errs = append(errs, fmt.Errorf("--%w", err))
	}
	if (o.TLSCert == "") != (o.TLSKey == "") {
		errs = append(errs, errors.New("--tls-cert and --tls-key belong together; give both or neither"))
	}
	if o.ClientCA != "" && o.TLSCert == "" {
		errs = append(errs, errors.New("--tls-client-ca: callers show certificates within TLS; give --tls-cert and --tls-key"))
	}
	if ip := net.ParseIP(host); err == nil && host != "localhost" && (ip == nil || !ip.IsLoopback()) && !o.insecure {
		if o.tokenFile == "" && o.ClientCA == "" {
			errs = append(errs, fmt.Errorf("--grpc-addr %s: other machines reach it; give --token-file or --tls-client-ca, or --insecure if something else guards it", o.GRPCAddr))
		}
		if o.TLSCert == "" {
			errs = append(errs, fmt.Errorf("--grpc-addr %s: the token would cross the network in clear; give --tls-cert and --tls-key, or --insecure", o.GRPCAddr))
		}
	}
	return errors.Join(errs...)
}
