package host

import (
	"context"
	"fmt"
	"log/slog"
	"net"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"google.golang.org/grpc"
	"google.golang.org/grpc/health"
	healthv1 "google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/grpc/reflection"

	"waybill.dev/waybill/internal/cli/exit"
	"waybill.dev/waybill/internal/host/hostfile"
	"waybill.dev/waybill/internal/host/peer"
	"waybill.dev/waybill/internal/host/probe"
	"waybill.dev/waybill/internal/lifecycle"
	"waybill.dev/waybill/internal/mtls"
	"waybill.dev/waybill/internal/obs/tracing"
	"waybill.dev/waybill/internal/rpc"
	"waybill.dev/waybill/proto/gen/go/waybill/redactor/v1"
	"waybill.dev/waybill/services/redactor"
)

// process is a service in a process of its own: a gRPC server with health checks
// and reflection, and what it needs from outside.
type process struct {
	opts   ProcessOptions
	log    *slog.Logger
	group  lifecycle.Group
	lis    net.Listener
	server *grpc.Server
	health *health.Server
	// needs are the health names of services that lack something when the process
	// does; the others serve as long as it runs.
	needs []string
	certs *mtls.Certs // nil: no TLS
	calls *tracing.Calls
	// metrics and assets are nil unless they are served; http is the URL of assets.
	metrics  net.Listener
	assets   net.Listener
	http     string
	registry *prometheus.Registry
	serving  probe.Serving
	// operating says that metrics and probes are served.
	operating bool
	// closers are closed last first.
	closers []func()
}

// newProcess takes the address and makes the server; nothing is served before run.
func newProcess(o ProcessOptions, log *slog.Logger) (*process, error) {
	a := &process{opts: o, log: log, health: health.NewServer(), registry: probe.NewRegistry(), calls: &tracing.Calls{}}
	a.serving.Set(probe.ErrStarting)
	var (
		opts   []grpc.ServerOption
		unary  []grpc.UnaryServerInterceptor
		stream []grpc.StreamServerInterceptor
	)
	if o.TLSCert != "" {
		var err error
		if a.certs, err = mtls.Load(mtls.Files{Cert: o.TLSCert, Key: o.TLSKey, CA: o.ClientCA}, mtls.Reread); err != nil {
			return nil, fmt.Errorf("%w: --tls-cert, --tls-key, --tls-client-ca: %w", exit.ErrUsage, err)
		}
		a.later(a.certs.Close)
		creds, err := a.certs.Server()
		if err != nil {
			return nil, err
		}
		opts = append(opts, grpc.Creds(creds))
	}
	if o.tokenFile != "" {
		token, err := hostfile.ReadToken(o.tokenFile)
		if err != nil {
			return nil, fmt.Errorf("%w: --token-file: %w", exit.ErrUsage, err)
		}
		guard := rpc.BearerToken(token, healthv1.Health_Check_FullMethodName, healthv1.Health_Watch_FullMethodName)
		unary, stream = append(unary, guard.Unary), append(stream, guard.Stream)
	}
	lis, err := net.Listen("tcp", o.GRPCAddr)
	if err != nil {
		return nil, fmt.Errorf("--grpc-addr %s: %w; give another address, or port 0 for a free one", o.GRPCAddr, err)
	}
	a.lis = lis
	a.later(func() { _ = lis.Close() })
	if o.metricsAddr != "" {
		if a.metrics, err = net.Listen("tcp", o.metricsAddr); err != nil {
			a.close()
			return nil, fmt.Errorf("--metrics-addr %s: %w; give another address, or port 0 for a free one", o.metricsAddr, err)
		}
		a.later(func() { _ = a.metrics.Close() })
	}
	a.server = rpc.NewServer(log, append(unary, a.calls.Unary), append(stream, a.calls.Stream), opts...)
	healthv1.RegisterHealthServer(a.server, a.health)
	reflection.Register(a.server)
	return a, nil
}

func (a *process) later(f func()) { a.closers = append(a.closers, f) }

// close ends what still runs, and gives back what was taken.
func (a *process) close() {
	_ = a.group.Stop() // nothing, unless the service could not be built
	for i := len(a.closers) - 1; i >= 0; i-- {
		a.closers[i]()
	}
}

// run serves until ctx ends, then lets the calls that are under way finish.
// own says what the service lacks itself, and others which other service it does not reach; nil: it
// needs none.
func (a *process) run(ctx context.Context, began time.Time, own, others func(context.Context) error) error {
	for name := range a.server.GetServiceInfo() {
		a.health.SetServingStatus(name, healthv1.HealthCheckResponse_SERVING)
	}
	a.setHealth(healthv1.HealthCheckResponse_NOT_SERVING) // until it was looked
	a.health.SetServingStatus(probe.HealthOfReads, healthv1.HealthCheckResponse_NOT_SERVING)
	a.group.Start(lifecycle.Part{
		Name: "grpc",
		Run: func(ctx context.Context) error {
			err := a.server.Serve(a.lis)
			if ctx.Err() != nil {
				return nil
			}
			return err
		},
		Stop: func(ctx context.Context) {
			a.health.Shutdown() // balancers look elsewhere from here on
			stopped := make(chan struct{})
			go func() { a.server.GracefulStop(); close(stopped) }()
			select {
			case <-stopped:
			case <-ctx.Done():
				a.server.Stop()
				<-stopped
			}
		},
	})
	a.operate()
	a.group.Start(lifecycle.Part{Name: "health", Run: a.readiness(began, own, others).Watch})
	return a.group.Wait(ctx)
}

// operate serves metrics and probes, once: earlier than calls, where what the service
// needs may be long in coming.
func (a *process) operate() {
	if a.metrics == nil || a.operating {
		return
	}
	a.operating = true
	a.registry.MustRegister(a.serving.Gauge())
	mux := probe.OperatorMux(a.registry)
	probe.Handle(mux, a.serving.Reason)
	a.group.Start(probe.ServeOperator(a.metrics, mux))
}

// redactor is the client of the redactor service: one elsewhere, or own, which is then
// served here beside the acceptor.
func (a *process) redactor(o AcceptorOptions, own *redactor.Service) (redactorv1.RedactorClient, error) {
	if o.Redactor.Addr == "" {
		if o.Redactor != (peer.Address{}) {
			return nil, fmt.Errorf("%w: --redactor-ca, --redactor-token-file and --redactor-plaintext belong to --redactor", exit.ErrUsage)
		}
		own.Register(a.server)
		local := rpc.NewLocal(a.log, nil, nil)
		own.Register(local)
		a.group.Start(lifecycle.Part{Name: "redactor calls", Run: local.Serve})
		return redactorv1.NewRedactorClient(local), nil
	}
	conn, err := o.Redactor.Dial(a.later, append(peer.ToRedactors(), tracing.Forward()...)...)
	if err != nil {
		return nil, fmt.Errorf("%w: --redactor: %w", exit.ErrUsage, err)
	}
	a.later(func() { _ = conn.Close() })
	return redactorv1.NewRedactorClient(conn), nil
}

// checkRedactor asks the redactor for nothing.
func checkRedactor(ctx context.Context, r redactorv1.RedactorClient) error {
	if _, err := r.Redact(ctx, &redactorv1.RedactRequest{Scope: &redactorv1.Scope{Tenant: "health"}}); err != nil {
		return fmt.Errorf("redactor: %w", err)
	}
	return nil
}
