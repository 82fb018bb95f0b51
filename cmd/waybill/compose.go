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
	"strconv"
	"strings"
	"time"

	"google.golang.org/grpc"

	"waybill.dev/waybill/internal/lifecycle"
	"waybill.dev/waybill/internal/natsd"
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
	"waybill.dev/waybill/services/acceptor"
	"waybill.dev/waybill/services/acceptor/assets"
	"waybill.dev/waybill/services/acceptor/kinds"
	"waybill.dev/waybill/services/dispatcher"
	"waybill.dev/waybill/services/dispatcher/catalogue"
	"waybill.dev/waybill/services/dispatcher/completion"
	"waybill.dev/waybill/services/dispatcher/vault"
	"waybill.dev/waybill/services/eventlog"
	"waybill.dev/waybill/services/eventlog/store/sqlite"
	"waybill.dev/waybill/services/eventlog/store/writebehind"
	"waybill.dev/waybill/services/gateway"
	"waybill.dev/waybill/services/gateway/auth"
	"waybill.dev/waybill/services/gateway/interrupttoken"
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
	group     lifecycle.Group
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

// compose builds everything; nothing runs before start. What was opened is
// closed again if a later part cannot be built.
func compose(ctx context.Context, o devOptions, log logger) (h *host, err error) {
	if o.testSeams {
		o.prompts.canary = canaryValue()
	}
	h = &host{log: log, opts: o}
	defer func() {
		if err != nil {
			h.close()
		}
	}()
	specs, err := parseKeys(o.apiKeys)
	if err != nil {
		return h, err
	}
	if h.catalogue, err = loadCatalogue(o.models.models); err != nil {
		return h, fmt.Errorf("%w: %w", errUsage, err)
	}
	if h.packs, err = loadPacks(o.packs, devOffers(h.catalogue, o.models.ids()), log); err != nil {
		return h, err
	}
	if h.prompts, err = o.prompts.config(h.packs, log); err != nil {
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

// openLog starts NATS and opens what is kept in it.
func (h *host) openLog(ctx context.Context, specs []auth.Spec) error {
	var err error
	h.nats, err = natsd.Start(natsd.Config{
		Dir: filepath.Join(h.opts.dataDir, "nats"), Sync: h.opts.durability == durabilitySync,
		Addr: h.opts.natsAddr, Users: natsUsers(specs), Log: h.log,
	}, rand.Text())
	if err != nil {
		return err
	}
	h.later(h.nats.Stop)
	h.group.Start(lifecycle.Part{Name: "run log", Run: h.nats.Watch})
	cfg := jetstream.DefaultConfig()
	cfg.AckWait, cfg.ShareSync = h.opts.lease, h.opts.durability == durabilitySync
	if h.stores, err = openStoresAgain(ctx, h.nats, cfg); err != nil {
		return err
	}
	h.later(h.stores.close)
	if h.opts.testSeams {
		return h.stores.openSeams(ctx, h.nats, cfg.Replicas)
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

// serve runs the server of a service, and gives the connection to it.
func (h *host) serve(name string, register func(grpc.ServiceRegistrar)) grpc.ClientConnInterface {
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
		return err
	}
	h.clients.acceptor = acceptorv1.NewAcceptorClient(h.serve("acceptor", s.Register))
	return nil
}

// openAssets makes the place of assets. Their URLs are signed with the operator's
// keys, or with one that derives from the host's.
func (h *host) openAssets() (*assets.Vault, error) {
	secret, err := hostKey(h.opts.dataDir)
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

// interruptKeys sign the tokens of interrupts: the operator's keys, or one that derives
// from the host's.
func (h *host) interruptKeys() (token.Keys, error) {
	secret, err := hostKey(h.opts.dataDir)
	if err != nil {
		return nil, err
	}
	derived, err := token.DeriveKey(secret, interrupttoken.Purpose)
	if err != nil {
		return nil, err
	}
	keys, err := token.ParseKeys(h.opts.interruptKeys, derived)
	if err != nil {
		return nil, fmt.Errorf("%w: --interrupt-keys: %w", errUsage, err)
	}
	return keys, nil
}

// baseURL is where clients reach the host.
func (h *host) baseURL() string {
	if h.opts.publicURL != "" {
		return strings.TrimSuffix(h.opts.publicURL, "/")
	}
	return "http://" + reachable(h.httpAddr.Addr())
}

func (h *host) buildEventLog(ctx context.Context, _ []auth.Spec) error {
	st, err := sqlite.Open(ctx, sqlite.Config{Path: filepath.Join(h.opts.dataDir, "waybill.db")}, h.log, time.Now)
	if err != nil {
		return err
	}
	model := writebehind.New(st, writebehind.DefaultConfig())
	h.later(func() { _ = model.Close() })
	if h.events, err = eventlog.New(eventlog.DefaultConfig(), eventlog.Deps{Log: h.stores.log, Store: model, Logger: h.log}); err != nil {
		return err
	}
	h.group.Start(lifecycle.Part{Name: "read model", Run: model.Write})
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
	tools, err := h.opts.tools.runners(h.later)
	if err != nil {
		return err
	}
	secret, err := hostKey(h.opts.dataDir)
	if err != nil {
		return err
	}
	sealed, err := vault.New(h.stores.sealed, secret)
	if err != nil {
		return err
	}
	cfg := dispatcher.DefaultConfig()
	cfg.Lease, cfg.TestSeams = h.opts.lease, h.opts.testSeams
	cfg.SelfHosted, cfg.Keyed, cfg.Packs = models.selfHosted(), models.keyed(), h.packs
	cfg.Completion.TenantKeyed = models.tenantKeyed()
	cfg.Prompts, cfg.RuntimeCapabilities = h.prompts, h.opts.runtimeCapabilities
	cfg.Completion.TrustsUnknown = models.unknownModels == trustUnknown
	cfg.Completion.Directive = completion.Directive(models.directive)
	cfg.Completion.HidesFallback, cfg.Completion.WithholdsRefusals = models.hidesFallback, models.refusalText == noRefusals
	cfg.Completion.Defaults.Provider, cfg.Completion.Defaults.Model, _ = strings.Cut(models.defaultModel, "/")
	if _, ok := providers.Lookup(cfg.Completion.Defaults.Provider); !ok {
		return fmt.Errorf("%w: --default-model %q: no such provider; there are %v, and --provider adds one", errUsage, models.defaultModel, providers.IDs())
	}
	deps := dispatcher.Deps{
		Log: h.stores.log, Queue: h.stores.queue, Workflows: h.stores.workflows, Claims: h.stores.claims,
		Providers: providers, Credentials: credentials, Policies: policies, Catalogue: h.catalogue, Tools: tools, Vault: sealed, Scripts: h.stores.seams.scripts, Clock: time.Now, Logger: h.log,
		Acceptor: h.clients.acceptor, Redactor: h.clients.redactor, EventLog: h.clients.events,
	}
	if h.spans != nil {
		deps.Spans = h.spans
	}
	if h.dispatch, err = dispatcher.New(cfg, deps); err != nil {
		return err
	}
	h.group.Start(lifecycle.Part{Name: "dispatcher", Run: h.dispatch.Run})
	h.clients.dispatcher = dispatcherv1.NewDispatcherClient(h.serve("dispatcher", h.dispatch.Register))
	return nil
}

func (h *host) buildGateway(ctx context.Context, specs []auth.Spec) error {
	key, err := hostKey(h.opts.dataDir)
	if err != nil {
		return err
	}
	answers, err := h.interruptKeys()
	if err != nil {
		return err
	}
	log, err := h.openAudit()
	if err != nil {
		return err
	}
	hooks, err := h.buildWebhooks(key, answers)
	if err != nil {
		return err
	}
	h.gateway, err = gateway.New(gateway.Config{
		Keys: specs, REST: rest.Config{MaxBodyBytes: h.opts.maxBody}, MaxStreams: 10_000, TestSeams: h.opts.testSeams,
		BaseURL:      h.baseURL,
		GRPCEndpoint: func() string { return "grpc://" + reachable(h.grpcAddr.Addr()) }, RunKey: key, InterruptKeys: answers,
	}, gateway.Deps{
		Dispatcher: h.clients.dispatcher, EventLog: h.clients.events, Acceptor: h.clients.acceptor, Redactor: h.clients.redactor,
		Annotations: h.stores.annotations, Notices: h.stores.notices, Audit: log, AuditKeys: h.stores.auditKeys,
		Records: h.stores.records, Webhooks: hooks, Ready: h.ready, Clock: time.Now, Logger: h.log,
	})
	if err != nil {
		return err
	}
	h.group.Start(lifecycle.Part{Name: "audit of keys", Run: h.gateway.AuditKeys})
	return h.buildPublic(ctx)
}

// reachable is an address that a client on this machine can use; the one a
// listener tells may be "every address".
func reachable(a net.Addr) string {
	t, ok := a.(*net.TCPAddr)
	if !ok || !t.IP.IsUnspecified() {
		return a.String()
	}
	return net.JoinHostPort("localhost", strconv.Itoa(t.Port))
}

// buildPublic serves the public API twice: on the network, and within the
// process for the REST side.
func (h *host) buildPublic(ctx context.Context) error {
	h.public = h.gateway.Server()
	local := h.gateway.Local()
	h.group.Start(lifecycle.Part{Name: "gateway calls", Run: local.Serve})
	handler, err := h.gateway.Handler(ctx, local)
	if err != nil {
		return err
	}
	h.http = &http.Server{
		Handler: handler, ReadHeaderTimeout: 10 * time.Second, IdleTimeout: 2 * time.Minute,
		MaxHeaderBytes: 64 << 10, ErrorLog: slog.NewLogLogger(h.log.Handler(), slog.LevelDebug),
	}
	return nil
}

// hostKey is a secret of this host, made on first use: run ids derive from it.
func hostKey(dir string) ([]byte, error) {
	path := filepath.Join(dir, "host.key")
	key, err := os.ReadFile(path) //nolint:gosec // G304: the operator names the directory
	if err == nil && len(key) >= 32 {
		return key, nil
	}
	if err == nil {
		return nil, fmt.Errorf("%s is cut short: restore it; without it repeated requests would not find their runs", path)
	}
	if !errors.Is(err, os.ErrNotExist) {
		return nil, fmt.Errorf("host key: %w", err)
	}
	key = make([]byte, 32)
	if _, err := rand.Read(key); err != nil {
		return nil, fmt.Errorf("host key: %w", err)
	}
	return key, writeKey(path, key)
}

// writeKey is durable before the first run derives from it.
func writeKey(path string, key []byte) error {
	tmp := path + ".tmp"
	f, err := os.OpenFile(tmp, os.O_CREATE|os.O_WRONLY|os.O_TRUNC, 0o600) //nolint:gosec // G304: the operator names the directory
	if err != nil {
		return fmt.Errorf("host key: %w", err)
	}
	_, err = f.Write(key)
	err = errors.Join(err, f.Sync(), f.Close())
	if err == nil {
		err = os.Rename(tmp, path)
	}
	if err != nil {
		return fmt.Errorf("host key: %w", err)
	}
	return nil
}
