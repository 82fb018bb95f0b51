package main

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	js "github.com/nats-io/nats.go/jetstream"
	"google.golang.org/grpc"

	"waybill.dev/waybill/internal/lifecycle"
	"waybill.dev/waybill/internal/mtls"
	"waybill.dev/waybill/internal/natsd"
	"waybill.dev/waybill/internal/natsperm"
	"waybill.dev/waybill/internal/obs"
	"waybill.dev/waybill/internal/obs/tracing"
	"waybill.dev/waybill/internal/rpc"
	"waybill.dev/waybill/internal/runlog/jetstream"
	"waybill.dev/waybill/internal/token"
	acceptorv1 "waybill.dev/waybill/proto/gen/go/waybill/acceptor/v1"
	dispatcherv1 "waybill.dev/waybill/proto/gen/go/waybill/dispatcher/v1"
	eventlogv1 "waybill.dev/waybill/proto/gen/go/waybill/eventlog/v1"
	redactorv1 "waybill.dev/waybill/proto/gen/go/waybill/redactor/v1"
	"waybill.dev/waybill/protocol/pack"
	"waybill.dev/waybill/protocol/subject"
	"waybill.dev/waybill/services/acceptor"
	"waybill.dev/waybill/services/acceptor/assets"
	"waybill.dev/waybill/services/acceptor/kinds"
	"waybill.dev/waybill/services/dispatcher"
	"waybill.dev/waybill/services/dispatcher/catalogue"
	"waybill.dev/waybill/services/dispatcher/cleartext"
	"waybill.dev/waybill/services/dispatcher/lease"
	"waybill.dev/waybill/services/dispatcher/model"
	"waybill.dev/waybill/services/dispatcher/snapshot"
	"waybill.dev/waybill/services/eventlog"
	"waybill.dev/waybill/services/gateway"
	"waybill.dev/waybill/services/gateway/auth"
	"waybill.dev/waybill/services/gateway/rest"
	"waybill.dev/waybill/services/gateway/webhook"
	"waybill.dev/waybill/services/redactor"
)

type logger = *slog.Logger

// host is the five services in one process: each behind its own gRPC server,
// wired as they are when each runs alone.
type host struct {
	log       logger
	opts      devOptions
	packs     []*pack.Pack
	catalogue *catalogue.Catalogue
	prompts   dispatcher.PromptConfig
	nats      *natsd.Server
	stores    *stores
	group     *lifecycle.Group
	// alone is the process of a service that is a part of a host; nil: all are here.
	alone *alone
	// peers are the services in other processes. state is why a gateway in a process of its own
	// may get no requests, and lacking what it has not.
	peers          []*service
	state, lacking serving
	// certs are those of the public API; nil: no TLS.
	certs *mtls.Certs
	// closers are closed last first.
	closers []func()

	redactor *redactor.Service
	events   *eventlog.Service
	dispatch *dispatcher.Service
	gateway  *gateway.Service
	webhooks *webhook.Service
	clients  clients
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
	dispatcher dispatcherv1.DispatcherClient
}

// compose builds everything; nothing is served before start. What was opened and begun is
// ended again if a later part cannot be built.
func compose(ctx context.Context, o devOptions, log logger) (h *host, err error) {
	if o.testSeams {
		o.prompts.canary = canaryValue()
	}
	h = &host{log: log, opts: o, group: &lifecycle.Group{}}
	defer func() {
		if err == nil {
			return
		}
		if unended := h.group.Stop(); unended != nil {
			err = errors.Join(err, unended)
		}
		h.close()
	}()
	specs, err := parseKeys(o.apiKeys)
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
	if h.spans, err = h.opts.tracing.exporter(ctx, "waybill", h.log, h.later); err != nil {
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
func (h *host) readPacks() (err error) {
	if h.catalogue, err = loadCatalogue(h.opts.models.models); err != nil {
		return fmt.Errorf("%w: %w", errUsage, err)
	}
	if h.packs, err = loadPacks(h.opts.packs, devOffers(h.catalogue, h.opts.models.ids(), h.opts.models.defaultModel), h.log, h.opts.demoPacks()...); err != nil {
		return err
	}
	h.prompts, err = h.opts.prompts.config(h.packs, h.log)
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
		return nil, fmt.Errorf("%w: %w", errUsage, err)
	}
	return specs, nil
}

func (h *host) later(f func()) { h.closers = append(h.closers, f) }

func (h *host) close() {
	for i := len(h.closers) - 1; i >= 0; i-- {
		h.closers[i]()
	}
	h.closers = nil
}

// listen takes the public addresses first: a busy port is told at once.
func (h *host) listen() error {
	for _, l := range []struct {
		flag, addr string
		into       *net.Listener
	}{{"http-addr", h.opts.httpAddr, &h.httpAddr}, {"grpc-addr", h.opts.grpcAddr, &h.grpcAddr}, {"metrics-addr", h.opts.metricsAddr, &h.metrics}} {
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

// logConfig is how the log is kept, and its runs handed out.
func logConfig(o devOptions) jetstream.Config {
	cfg := jetstream.DefaultConfig()
	if o.handedOut > 0 { // of a service that executes runs
		cfg.MaxPending = o.handedOut
	}
	return cfg
}

// openLog starts NATS and opens what is kept in it.
func (h *host) openLog(ctx context.Context, specs []auth.Spec) error {
	var err error
	var users []natsd.User
	if h.opts.natsAddr != "" {
		users = natsUsers(specs)
	}
	h.nats, err = natsd.Start(natsd.Config{
		Dir: filepath.Join(h.opts.dataDir, "nats"), Sync: h.opts.durability == durabilitySync, Hashed: hashedStreams,
		Addr: h.opts.natsAddr, Users: users, Log: h.log,
	}, rand.Text())
	if err != nil {
		return err
	}
	h.later(h.nats.Stop)
	h.group.Start(lifecycle.Part{Name: "run log", Run: h.nats.Watch})
	cfg := logConfig(h.opts)
	cfg.OnDisk = h.nats.OnDisk
	all := []needs{dispatcherNeeds, acceptorNeeds, gatewayNeeds}
	if h.opts.testSeams {
		all = append(all, seamNeeds)
	}
	if h.stores, err = openStoresAgain(ctx, h.nats.Connect, cfg, all...); err != nil {
		return err
	}
	h.later(h.stores.close)
	return h.makeConsumers(ctx, users)
}

// makeConsumers makes those that the users read from.
func (h *host) makeConsumers(ctx context.Context, users []natsd.User) error {
	if len(users) == 0 {
		return nil
	}
	nc, err := h.nats.Connect("consumers of readers")
	if err != nil {
		return err
	}
	defer nc.Close()
	api, err := js.New(nc)
	if err != nil {
		return err
	}
	for _, u := range users {
		if err := (natsperm.Consumer{Tenant: u.Tenant, Name: subject.DefaultConsumer}).Make(ctx, api); err != nil {
			return fmt.Errorf("--nats-addr: %w", err)
		}
	}
	return nil
}

// natsUsers lets the first key of each tenant that may read runs read them over
// NATS.
func natsUsers(specs []auth.Spec) []natsd.User {
	var users []natsd.User
	seen := map[string]bool{}
	for _, s := range specs {
		readable := s.All
		for _, scope := range s.Scopes {
			readable = readable || scope == auth.RunsRead
		}
		if readable && !seen[s.Tenant] {
			seen[s.Tenant] = true
			users = append(users, natsd.User{Name: s.Tenant, Password: s.Key, Tenant: s.Tenant})
		}
	}
	return users
}

// serve runs the server of a service, and gives the connection to it; none if the
// service is served to other processes.
func (h *host) serve(name string, register func(grpc.ServiceRegistrar)) grpc.ClientConnInterface {
	if h.alone != nil {
		register(h.alone.server)
		return nil
	}
	srv := rpc.NewLocal(h.log, nil, nil)
	register(srv)
	h.group.Start(lifecycle.Part{Name: name + " calls", Run: srv.Serve})
	return srv
}

// openRedactor makes the redactor first: the logs of everything else pass it.
func (h *host) openRedactor(specs []auth.Spec) error {
	cfg := redactor.DefaultConfig()
	more, err := readSecrets(h.opts.secretsFile)
	if err != nil {
		return fmt.Errorf("%w: --secrets-file: %w", errUsage, err)
	}
	cfg.Shapes = h.opts.redactShapes
	cfg.HostSecrets = slices.Concat(hostSecrets(specs, h.opts), h.opts.models.secrets(), h.opts.tools.secrets(), more)
	if h.redactor, err = redactor.New(cfg); err != nil {
		return err
	}
	h.log = obs.Clean(h.log, h.redactor.Clean)
	return nil
}

func (h *host) buildRedactor(context.Context, []auth.Spec) error {
	h.clients.redactor = redactorv1.NewRedactorClient(h.serve("redactor", h.redactor.Register))
	return nil
}

func (h *host) buildAcceptor(context.Context, []auth.Spec) (err error) {
	cfg := acceptor.DefaultConfig()
	cfg.TestSeams = h.opts.testSeams
	cfg.Lint, cfg.Strictness = kinds.Lint(h.opts.kindLint), acceptor.Strictness(h.opts.strictness)
	if cfg.KindsDir, err = kindFiles(h.opts.kinds); err != nil {
		return err
	}
	cfg.Packs = h.packs
	cfg.MaxInlineBytes, cfg.MaxMediaBytes = h.opts.maxInline, h.opts.maxMedia
	vault, err := h.openAssets()
	if err != nil {
		return err
	}
	deps := acceptor.Deps{Log: h.stores.log, Redactor: h.clients.redactor, Clock: time.Now, Logger: h.log, Assets: vault, Seam: h.stores.seams.state}
	if h.spans != nil {
		deps.Spans = h.spans
	}
	s, err := acceptor.New(cfg, deps)
	if err != nil {
		return ofFiles(err)
	}
	h.clients.acceptor = acceptorv1.NewAcceptorClient(h.serve("acceptor", s.Register))
	return nil
}

// openAssets makes the place of assets. Their URLs are signed with the operator's
// keys, or with one that derives from the host's.
func (h *host) openAssets() (*assets.Store, error) {
	secret, err := h.opts.key()
	if err != nil {
		return nil, err
	}
	derived, err := assets.DeriveKey(secret)
	if err != nil {
		return nil, err
	}
	keys, err := token.ParseKeys(h.opts.assetKeys, derived)
	if err != nil {
		return nil, fmt.Errorf("%w: --asset-keys: %w", errUsage, err)
	}
	return assets.New(h.stores.assets, keys, func() string { return h.baseURL() + strings.TrimSuffix(rest.AssetsPrefix, "/") }, time.Now)
}

// baseURL is where clients reach the host. A public URL with a path has the base path
// already.
func (h *host) baseURL() string {
	if h.opts.publicURL == "" {
		return h.localURL()
	}
	public := strings.TrimSuffix(h.opts.publicURL, "/")
	if base := h.opts.browser.basePath; !strings.HasSuffix(public, base) {
		return public + base
	}
	return public
}

// localURL is where this process serves.
func (h *host) localURL() string {
	return h.scheme() + reachable(h.httpAddr.Addr()) + h.opts.browser.basePath
}

func (h *host) scheme() string {
	if h.certs != nil {
		return "https://"
	}
	return "http://"
}

func (h *host) buildEventLog(ctx context.Context, _ []auth.Spec) error {
	model, err := h.openReadModel(ctx)
	if err != nil {
		return err
	}
	if h.events, err = eventlog.New(eventlog.DefaultConfig(), eventlog.Deps{Log: h.stores.log, Store: model, Logger: h.log}); err != nil {
		return err
	}
	h.group.Start(lifecycle.Part{Name: "event log", Run: h.events.Run})
	h.clients.events = eventlogv1.NewEventLogClient(h.serve("event log", h.events.Register))
	return nil
}

func (h *host) buildDispatcher(context.Context, []auth.Spec) error {
	models := &h.opts.models
	providers, err := models.open(h.stores.seams.scripts, h.later)
	if err != nil {
		return err
	}
	credentials, err := models.credentials()
	if err != nil {
		return err
	}
	h.later(func() { _ = credentials.Close() })
	policies, err := models.readPolicies()
	if err != nil {
		return fmt.Errorf("%w: %w", errUsage, err)
	}
	settings, err := models.readSettings()
	if err != nil {
		return fmt.Errorf("%w: %w", errUsage, err)
	}
	limits, err := h.opts.openTenantLimits(h.log)
	if err != nil {
		return err
	}
	tools, err := h.opts.tools.runners(h.later)
	if err != nil {
		return err
	}
	secret, err := h.opts.key()
	if err != nil {
		return err
	}
	sealed, err := cleartext.New(h.stores.sealed, secret)
	if err != nil {
		return err
	}
	snapshots, err := snapshot.NewStore(h.stores.snapshots, secret)
	if err != nil {
		return err
	}
	cfg := dispatcher.DefaultConfig()
	cfg.Lease, cfg.MaxRuns, cfg.TestSeams = h.leaseConfig(), h.opts.maxRuns, h.opts.testSeams
	cfg.Intake.MaxWait = h.opts.maxQueueWait
	cfg.Limits.MaxNodeExecutions, cfg.Limits.MaxDuration = h.opts.runLimits.MaxNodeExecutions, h.opts.runLimits.MaxRunDuration
	cfg.SelfHosted, cfg.Keyed, cfg.Packs = models.selfHosted(), models.keyed(), h.packs
	cfg.Completion.TenantKeyed = models.tenantKeyed()
	cfg.Completion.Providers = settings
	cfg.Prompts, cfg.RuntimeCapabilities = h.prompts, h.opts.runtimeCapabilities
	cfg.Completion.TrustsUnknown = models.unknownModels == trustUnknown
	cfg.Completion.Directive = model.Directive(models.directive)
	cfg.Completion.HidesFallback, cfg.Completion.WithholdsRefusals = models.hidesFallback, models.refusalText == noRefusals
	cfg.Completion.Defaults.Provider, cfg.Completion.Defaults.Model, _ = strings.Cut(models.defaultModel, "/")
	if _, ok := providers.Lookup(cfg.Completion.Defaults.Provider); !ok {
		return fmt.Errorf("%w: --default-model %q: no such provider; there are %v, and --provider adds one", errUsage, models.defaultModel, providers.IDs())
	}
	deps := dispatcher.Deps{
		Log: h.stores.log, Queue: h.stores.queue, Workflows: h.stores.workflows, Claims: h.stores.claims, Quarantine: h.stores.quarantine, Leases: h.stores.leases, Peers: h.stores.peers,
		Waiting: h.stores.waiting, Rates: h.stores.rates, TenantLimits: limits,
		Providers: providers, Credentials: credentials, Policies: policies, Catalogue: h.catalogue, Tools: tools, Cleartext: sealed, Snapshots: snapshots, Scripts: h.stores.seams.scripts, Clock: time.Now, Logger: h.log,
		Acceptor: h.clients.acceptor, Redactor: h.clients.redactor, EventLog: h.clients.events,
	}
	if h.spans != nil {
		deps.Spans = h.spans
	}
	if h.dispatch, err = dispatcher.New(cfg, deps); err != nil {
		return err
	}
	h.group.Start(lifecycle.Part{
		Name: "dispatcher", Run: h.dispatch.Run,
		Quiesce: h.dispatch.Quiesce, Stop: h.dispatch.Drain, StopWithin: max(h.opts.drainTimeout, time.Millisecond),
	})
	h.clients.dispatcher = dispatcherv1.NewDispatcherClient(h.serve("dispatcher", h.dispatch.Register))
	return nil
}

// leaseConfig is how this process holds its lease. A host on an embedded NATS server has its data
// directory to itself: no other dispatcher can be running.
func (h *host) leaseConfig() lease.Config {
	name, _ := os.Hostname() // for people; a pod's name
	return lease.Config{Duration: h.opts.lease, Host: name, Sole: h.nats != nil}
}
