package host

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"google.golang.org/grpc"
	"google.golang.org/grpc/health"
	healthv1 "google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/grpc/reflection"

	"waybill.dev/waybill/internal/cli/exit"
	"waybill.dev/waybill/internal/host/hostfile"
	"waybill.dev/waybill/internal/host/probe"
	"waybill.dev/waybill/internal/lifecycle"
	"waybill.dev/waybill/internal/mtls"
	"waybill.dev/waybill/internal/obs/tracing"
	"waybill.dev/waybill/internal/rpc"
)

// Process are the settings of the server of a separate service process.
type Process struct {
	GRPCAddr string
	// MetricsAddr serves metrics and probes; empty disables them.
	MetricsAddr string
	// TokenFile has the bearer token of callers; empty means no token.
	TokenFile string
	TLS       TLS
	// Insecure allows callers on other machines without a token or without TLS.
	Insecure  bool
	Secrets   Secrets
	Telemetry Telemetry
	ReadyFile string
}

// TLS names the files of a server's TLS.
type TLS struct {
	Cert, Key string
	// ClientCA is a PEM file of client CAs and enables mutual TLS; empty disables it.
	ClientCA string
}

// DefaultProcess are the settings without flags.
func DefaultProcess(grpcAddr string) Process {
	return Process{GRPCAddr: grpcAddr, Secrets: DefaultSecrets(), Telemetry: DefaultTelemetry()}
}

// Validate returns all errors in the settings, joined.
func (o *Process) Validate() error {
	return errors.Join(o.checkValues(), validateTelemetry(o.Telemetry, os.Environ()), o.Secrets.Validate())
}

// Check returns all errors in the values, joined. It reads neither files nor variables.
func (o *Process) Check() error {
	return errors.Join(o.checkValues(), validateTelemetry(o.Telemetry, nil))
}

// checkValues returns all errors in the values, joined. Callers may record envelopes and register
// secrets, so other machines need a token, and TLS to protect it.
func (o *Process) checkValues() error {
	var errs []error
	host, _, err := net.SplitHostPort(o.GRPCAddr)
	if err != nil {
		errs = append(errs, fmt.Errorf("--grpc-addr %q: want host:port, such as 127.0.0.1:9091", o.GRPCAddr))
	}
	errs = append(errs, checkListenAddr("metrics-addr", o.MetricsAddr), o.TLS.validate())
	if o.TLS.ClientCA != "" && o.TLS.Cert == "" {
		errs = append(errs, errors.New("--tls-client-ca: callers show certificates within TLS; give --tls-cert and --tls-key"))
	}
	if ip := net.ParseIP(host); err == nil && host != "localhost" && (ip == nil || !ip.IsLoopback()) && !o.Insecure {
		if o.TokenFile == "" && o.TLS.ClientCA == "" {
			errs = append(errs, fmt.Errorf("--grpc-addr %s: other machines reach it; give --token-file or --tls-client-ca, or --insecure if something else guards it", o.GRPCAddr))
		}
		if o.TLS.Cert == "" {
			errs = append(errs, fmt.Errorf("--grpc-addr %s: the token would cross the network in clear; give --tls-cert and --tls-key, or --insecure", o.GRPCAddr))
		}
	}
	return errors.Join(errs...)
}

func (o *TLS) validate() error {
	if (o.Cert == "") != (o.Key == "") {
		return errors.New("--tls-cert and --tls-key belong together; give both or neither")
	}
	return nil
}

// process serves one service: a gRPC server with health checks and reflection, and an address for
// the operator.
type process struct {
	core

	opts   *Process
	began  time.Time
	lis    net.Listener
	server *grpc.Server
	health *health.Server
	// needs are the health names of services that lack something when the process
	// does; the others serve as long as it runs.
	needs []string
	certs *mtls.Certs // nil means no TLS
	calls *tracing.Calls
	// metrics is nil unless it is served.
	metrics  net.Listener
	registry *prometheus.Registry
	serving  probe.Serving
	// operating is true once serveOperator was called.
	operating bool
	// assetsURL is the URL of assets; empty if they are not served.
	assetsURL string
	// coldCheck compares the cold store of a dispatcher with the run log; nil without one.
	coldCheck *coldCheck
}

// newProcess listens on the addresses and creates the server; nothing is served before serve.
func newProcess(o *Process, out outputs) (*process, error) {
	p := &process{
		opts: o, began: time.Now(),
		health: health.NewServer(), registry: probe.NewRegistry(), calls: &tracing.Calls{},
	}
	p.use(out)
	p.serving.Set(probe.ErrStarting)
	limitMemory()
	if err := p.open(); err != nil {
		p.close()
		return nil, err
	}
	return p, nil
}

func (p *process) open() error {
	options, err := p.loadCerts()
	if err != nil {
		return err
	}
	unary, stream := []grpc.UnaryServerInterceptor{}, []grpc.StreamServerInterceptor{}
	if p.opts.TokenFile != "" {
		token, err := hostfile.ReadToken(p.opts.TokenFile)
		if err != nil {
			return exit.Usagef("--token-file: %w", err)
		}
		guard := rpc.BearerToken(token, healthv1.Health_Check_FullMethodName, healthv1.Health_Watch_FullMethodName)
		unary, stream = append(unary, guard.Unary), append(stream, guard.Stream)
	}
	if p.lis, err = p.listen("grpc-addr", p.opts.GRPCAddr); err != nil {
		return err
	}
	if p.opts.MetricsAddr != "" {
		if p.metrics, err = p.listen("metrics-addr", p.opts.MetricsAddr); err != nil {
			return err
		}
	}
	p.server = rpc.NewServer(p.log, append(unary, p.calls.Unary), append(stream, p.calls.Stream), options...)
	healthv1.RegisterHealthServer(p.server, p.health)
	reflection.Register(p.server)
	return nil
}

func (p *process) loadCerts() ([]grpc.ServerOption, error) {
	if p.opts.TLS.Cert == "" {
		return nil, nil
	}
	var err error
	if p.certs, err = mtls.Load(mtls.Files{
		Cert: p.opts.TLS.Cert,
		Key:  p.opts.TLS.Key,
		CA:   p.opts.TLS.ClientCA,
	}, mtls.Reread); err != nil {
		return nil, exit.Usagef("--tls-cert, --tls-key, --tls-client-ca: %w", err)
	}
	p.later(p.certs.Close)
	creds, err := p.certs.Server()
	if err != nil {
		return nil, err
	}
	return []grpc.ServerOption{grpc.Creds(creds)}, nil
}

func (p *process) listen(flag, addr string) (net.Listener, error) {
	lis, err := net.Listen("tcp", addr)
	if err != nil {
		return nil, fmt.Errorf("--%s %s: %w; give another address, or port 0 for a free one", flag, addr, err)
	}
	p.later(func() { _ = lis.Close() })
	return lis, nil
}

// close stops the server and releases the process's resources.
func (p *process) close() {
	_ = p.group.Stop() // already stopped, unless the service could not be built
	p.core.close()
}

// exportCalls exports spans of the calls to this service.
func (p *process) exportCalls() { p.calls.Exporter = p.spans }

// serve serves until ctx ends, then waits for running calls. own checks the service itself, others
// the services it calls; both may be nil.
func (p *process) serve(ctx context.Context, own, others func(context.Context) error) error {
	for name := range p.server.GetServiceInfo() {
		p.health.SetServingStatus(name, healthv1.HealthCheckResponse_SERVING)
	}
	p.setHealth(healthv1.HealthCheckResponse_NOT_SERVING) // until the first check
	p.health.SetServingStatus(probe.HealthOfReads, healthv1.HealthCheckResponse_NOT_SERVING)
	p.group.Start(grpcPart("grpc", p.server, p.lis, p.health.Shutdown)) // balancers call other replicas from then on
	p.serveOperator()
	p.group.Start(lifecycle.Part{Name: "health", Run: p.readiness(own, others).Watch})
	return p.group.Wait(ctx)
}

// serveOperator exports metrics, and serves them and probes, once. A service that may wait long for its dependencies
// calls it before serve.
func (p *process) serveOperator() {
	if p.operating {
		return
	}
	p.operating = true
	p.registry.MustRegister(p.serving.Gauge())
	p.exportMetrics(p.registry)
	if p.metrics == nil {
		return
	}
	mux := probe.OperatorMux(p.registry)
	probe.Handle(mux, p.serving.Reason)
	p.group.Start(probe.ServeOperator(p.metrics, mux))
}

// ignoreStop drops an error after the end of ctx, because the process is stopping.
func ignoreStop(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return nil
	}
	return err
}
