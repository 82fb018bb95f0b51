// Package host puts services together: all of a host in one process, or one service in a process
// of its own.
package host

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"

	"google.golang.org/grpc"

	"waybill.dev/waybill/internal/cli/exit"
	"waybill.dev/waybill/internal/host/models"
	"waybill.dev/waybill/internal/host/natsstore"
	"waybill.dev/waybill/internal/host/packs"
	"waybill.dev/waybill/internal/host/peer"
	"waybill.dev/waybill/internal/host/probe"
	"waybill.dev/waybill/internal/lifecycle"
	"waybill.dev/waybill/internal/mtls"
	"waybill.dev/waybill/internal/natsd"
	"waybill.dev/waybill/internal/obs/tracing"
	"waybill.dev/waybill/internal/rpc"
	"waybill.dev/waybill/proto/gen/go/waybill/acceptor/v1"
	"waybill.dev/waybill/proto/gen/go/waybill/dispatcher/v1"
	"waybill.dev/waybill/proto/gen/go/waybill/eventlog/v1"
	"waybill.dev/waybill/proto/gen/go/waybill/redactor/v1"
	"waybill.dev/waybill/protocol/pack"
	"waybill.dev/waybill/services/dispatcher"
	"waybill.dev/waybill/services/dispatcher/catalogue"
	"waybill.dev/waybill/services/eventlog"
	"waybill.dev/waybill/services/gateway"
	"waybill.dev/waybill/services/gateway/auth"
	"waybill.dev/waybill/services/gateway/webhook"
	"waybill.dev/waybill/services/redactor"
)

// Host is the five services in one process: each behind its own gRPC server,
// wired as they are when each runs alone.
type Host struct {
	Log       *slog.Logger
	opts      Options
	packs     []*pack.Pack
	catalogue *catalogue.Catalogue
	prompts   dispatcher.PromptConfig
	NATS      *natsd.Server
	stores    *natsstore.Stores
	Group     *lifecycle.Group
	// process is the process of a service that is a part of a host; nil: all are here.
	process *process
	// peers are the services in other processes. state is why a gateway in a process of its own
	// may get no requests, and lacking what it has not.
	peers          []*peer.Service
	state, lacking probe.Serving
	// certs are those of the public API; nil: no TLS.
	certs *mtls.Certs
	// closers are closed last first.
	closers []func()

	redactor *redactor.Service
	events   *eventlog.Service
	dispatch *dispatcher.Service
	gateway  *gateway.Service
	webhooks *webhook.Service
	Clients  clients
	// spans is nil unless they are exported.
	spans *tracing.Exporter

	public   *grpc.Server
	http     *http.Server
	httpAddr net.Listener
	grpcAddr net.Listener
	metrics  net.Listener
}

// clients reach the services.
type clients struct {
	redactor   redactorv1.RedactorClient
	acceptor   acceptorv1.AcceptorClient
	events     eventlogv1.EventLogClient
	Dispatcher dispatcherv1.DispatcherClient
}

// Compose builds everything; nothing is served before start. What was opened and begun is
// ended again if a later part cannot be built.
func Compose(ctx context.Context, o Options, log *slog.Logger) (h *Host, err error) {
	if o.TestSeams {
		o.prompts.Canary = packs.CanaryValue()
	}
	h = &Host{Log: log, opts: o, Group: &lifecycle.Group{}}
	defer func() {
		if err == nil {
			return
		}
		if unended := h.Group.Stop(); unended != nil {
			err = errors.Join(err, unended)
		}
		h.Close()
	}()
	specs, err := parseKeys(o.APIKeys)
	if err != nil {
		return h, err
	}
	if err := h.readPacks(); err != nil {
		return h, err
	}
	if err := h.openRedactor(specs); err != nil {
		return h, err
	}
	if err := h.listen(); err != nil {
		return h, err
	}
	if err := h.openLog(ctx, specs); err != nil {
		return h, err
	}
	if h.spans, err = h.opts.Tracing.exporter(ctx, "waybill", h.Log, h.later); err != nil {
		return h, err
	}
	for _, build := range []func(context.Context, []auth.Spec) error{
		h.buildRedactor, h.buildAcceptor, h.buildEventLog, h.buildDispatcher, h.buildGateway,
	} {
		if err := build(ctx, specs); err != nil {
			return h, err
		}
	}
	return h, nil
}

// readPacks reads what may be executed: models, packs, prompt templates.
func (h *Host) readPacks() (err error) {
	if h.catalogue, err = models.LoadCatalogue(h.opts.Models.CatalogueFile); err != nil {
		return fmt.Errorf("%w: %w", exit.ErrUsage, err)
	}
	if h.packs, err = packs.Load(h.opts.packs, packs.HostOffers(h.catalogue, h.opts.Models.IDs(), h.opts.Models.DefaultModel), h.Log, h.opts.demoPacks()...); err != nil {
		return err
	}
	h.prompts, err = h.opts.prompts.Config(h.packs, h.Log)
	return err
}

func parseKeys(flags []string) ([]auth.Spec, error) {
	var (
		specs []auth.Spec
		errs  []error
	)
	for i, f := range flags {
		s, err := auth.ParseSpec(f)
		if err != nil {
			errs = append(errs, fmt.Errorf("--api-key no. %d: %w", i+1, err))
		}
		specs = append(specs, s)
	}
	if err := errors.Join(errs...); err != nil {
		return nil, fmt.Errorf("%w: %w", exit.ErrUsage, err)
	}
	return specs, nil
}

func (h *Host) later(f func()) { h.closers = append(h.closers, f) }

func (h *Host) Close() {
	for i := len(h.closers) - 1; i >= 0; i-- {
		h.closers[i]()
	}
	h.closers = nil
}

// listen takes the public addresses first: a busy port is told at once.
func (h *Host) listen() error {
	for _, l := range []struct {
		flag, addr string
		into       *net.Listener
	}{{"http-addr", h.opts.HTTPAddr, &h.httpAddr}, {"grpc-addr", h.opts.GRPCAddr, &h.grpcAddr}, {"metrics-addr", h.opts.metricsAddr, &h.metrics}} {
		if l.addr == "" {
			continue
		}
		lis, err := net.Listen("tcp", l.addr)
		if err != nil {
			return fmt.Errorf("--%s %s: %w; give another address, or port 0 for a free one", l.flag, l.addr, err)
		}
		*l.into = lis
		h.later(func() { _ = lis.Close() })
	}
	return nil
}

// serve runs the server of a service, and gives the connection to it; none if the
// service is served to other processes.
func (h *Host) serve(name string, register func(grpc.ServiceRegistrar)) grpc.ClientConnInterface {
	if h.process != nil {
		register(h.process.server)
		return nil
	}
	srv := rpc.NewLocal(h.Log, nil, nil)
	register(srv)
	h.Group.Start(lifecycle.Part{Name: name + " calls", Run: srv.Serve})
	return srv
}
